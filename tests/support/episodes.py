"""Cells, and episodes played with models a test decides."""

from __future__ import annotations

from collections.abc import Sequence

from coordbench.agents.direct import build_direct
from coordbench.api import Agent, EpisodeJob, EpisodeLog, NoOptions, Rules, Sampling
from coordbench.data.plan import Cell
from coordbench.data.spec import Communication, Limits, Prompt
from coordbench.engine.budget import Budget, BudgetLimits
from coordbench.engine.caller import Caller
from coordbench.engine.limiter import Limiter
from coordbench.engine.loop import play_episode
from support.models import FakeModel

PROMPT = Prompt(system="You share forks.", round="Round $round. Left: $left. Right: $right.")


def cell_of(n: int, rules: Rules, **changes: object) -> Cell:
    """A cell of fake models."""
    fields: dict[str, object] = {
        "id": f"fake_n{n}",
        "team": "fake",
        "seats": ("fake",) * n,
        "n": n,
        "variant": "",
        "agent": "direct",
        "rules": rules,
        "communication": Communication(),
        "prompt": PROMPT,
        "episodes": 1,
    }
    return Cell(**(fields | changes))  # type: ignore[arg-type]


async def play(
    cell: Cell,
    models: Sequence[FakeModel],
    *,
    agent: Agent | None = None,
    budget: BudgetLimits | None = None,
    seed: int = 7,
) -> EpisodeLog:
    """Play one episode; one model serves all seats, or there is one per seat."""
    seats = list(models) * cell.n if len(models) == 1 else list(models)
    shared = Budget(budget or BudgetLimits())
    limits = Limits(tries=2, max_wait_s=0.01, timeout_s=5)
    callers = {id(model): Caller(model, Limiter(64), shared, limits) for model in models}
    return await play_episode(
        cell,
        EpisodeJob(cell=cell.id, episode=0, seed=seed),
        agent or build_direct("", NoOptions()),
        [callers[id(model)] for model in seats],
        Sampling(),
    )
