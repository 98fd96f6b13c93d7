"""From a spec to cells: what will be played, and what it will take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from coordbench.api.models import ModelInfo
from coordbench.data.decode import resolve_variant
from coordbench.data.errors import UsageError
from coordbench.data.plan import Cell, Plan
from coordbench.data.spec import TaskSpec, Team, Variant
from coordbench.plugins import Registry

__all__ = ["CellEstimate", "estimate_cell", "make_plan"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+")
_LONGEST_SLUG = 80
_CHARS_PER_TOKEN = 4.0
_AUTO = "auto"


class CellEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell takes at most: no episode ends early, every reply uses its whole cap.

    Attributes
    ----------
    input_tokens : int
        From the length of rendered prompts, at four characters a token.
    cost : float or None
        US dollars; None where a price is unknown.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


def make_plan(spec: TaskSpec, registry: Registry, models: Sequence[str] = ()) -> Plan:
    """Lay out the cells of a run.

    Parameters
    ----------
    models : sequence of str
        Names from the command line; they replace the spec's models and teams.

    Raises
    ------
    UsageError
        No model is named, or a name cannot be resolved.
    """
    if models:
        spec = msgspec.structs.replace(spec, models=tuple(models), teams=())
    teams = [Team(name=name, seats=(name,)) for name in spec.models]
    teams += list(spec.teams)
    if not teams:
        raise UsageError(
            f"task {spec.name!r} names no model",
            hint="name one or more: --model script/random --model openai/gpt-5.4",
        )
    if spec.agent != _AUTO:
        registry.check("agent", spec.agent)
    for reward in spec.rewards:
        registry.resolve("reward", reward)
    for metric in spec.metrics:
        registry.resolve("metric", metric)
    cells: list[Cell] = []
    variants: tuple[Variant | None, ...] = spec.variants or (None,)
    for team in dict.fromkeys(_resolved(team, registry) for team in teams):
        agent = _agent_of(team, spec, registry)
        for variant in variants:
            rules, communication, prompt = resolve_variant(spec, variant)
            name = variant.name if variant is not None else ""
            cells += [
                Cell(
                    id=_cell_id(team, n, name),
                    team=team.name,
                    seats=tuple(team.model_at(seat) for seat in range(n)),
                    n=n,
                    variant=name,
                    agent=agent,
                    rules=rules,
                    communication=communication,
                    prompt=prompt,
                    episodes=team.episodes or spec.episodes,
                )
                for n in (team.n or spec.n)
            ]
    ids = [cell.id for cell in cells]
    if len(set(ids)) != len(ids):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise UsageError(f"two cells would share a name: {', '.join(twice)}")
    return Plan(spec=spec, cells=tuple(cells), digest=_digest(spec, cells))


def estimate_cell(cell: Cell, plan: Plan, infos: Mapping[str, ModelInfo]) -> CellEstimate:
    """The most a cell can take.

    Parameters
    ----------
    infos : mapping
        What is known of each model by name; one that is missing has no known price.
    """
    from coordbench.engine.prompts import typical_prompt_chars

    turns = cell.episodes * cell.rules.rounds * cell.n
    exchanges = 1 + cell.communication.rounds
    chars = typical_prompt_chars(cell)
    calls = input_tokens = output_tokens = 0
    cost: float | None = 0.0
    for seat in cell.seats:
        share = turns // cell.n * exchanges
        info = infos.get(seat)
        calls += share
        if info is not None and not info.reads_text:
            continue
        tokens_in = int(share * chars / _CHARS_PER_TOKEN)
        tokens_out = share * plan.spec.sampling.max_tokens
        input_tokens += tokens_in
        output_tokens += tokens_out
        if info is not None and not info.paid:
            continue
        if info is None or info.price_in is None or info.price_out is None:
            cost = None
        elif cost is not None:
            cost += (tokens_in * info.price_in + tokens_out * info.price_out) / 1e6
    return CellEstimate(
        calls=calls, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost
    )


def _resolved(team: Team, registry: Registry) -> Team:
    seats = tuple(registry.check("model", seat).canonical_name for seat in team.seats)
    name = seats[0] if team.name == team.seats[0] and len(seats) == 1 else team.name
    return msgspec.structs.replace(team, name=name, seats=seats)


def _agent_of(team: Team, spec: TaskSpec, registry: Registry) -> str:
    if spec.agent != _AUTO:
        return registry.resolve("agent", spec.agent).canonical_name
    # An agent graph around scripted policies would only cost time.
    scripted = all(
        "scripted" in registry.resolve("model", seat).registered.offer.traits for seat in team.seats
    )
    return "direct" if scripted else "langgraph"


def _cell_id(team: Team, n: int, variant: str) -> str:
    """Readable and safe as a file name; a hash keeps names apart that a file system can't."""
    slug = _UNSAFE.sub("-", team.name.lower()).strip("-.")[:_LONGEST_SLUG]
    if slug.replace("-", "/") != team.name.replace("-", "/"):
        slug += "-" + sha256(team.name.encode("utf-8", "backslashreplace")).hexdigest()[:6]
    parts = [slug, f"n{n}"]
    if variant:
        parts.append(_UNSAFE.sub("-", variant.lower()).strip("-."))
    return "_".join(parts)


def _digest(spec: TaskSpec, cells: Sequence[Cell]) -> str:
    encoder = msgspec.json.Encoder(order="sorted")
    return sha256(encoder.encode(spec) + encoder.encode(list(cells))).hexdigest()
