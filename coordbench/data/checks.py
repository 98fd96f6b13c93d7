"""What types cannot say of a task: names, duplicates, variants and prompt templates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from string import Template
from typing import Any

import msgspec

from coordbench.data.placeholders import BY_TEMPLATE
from coordbench.data.rewording import Fault, dotted, reword
from coordbench.data.spec import Communication, Prompt, TaskSpec
from coordbench.data.suggest import did_you_mean
from coordbench.data.toml_lines import Key

__all__ = ["find_faults"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]*")


def find_faults(spec: TaskSpec) -> Iterator[Fault]:
    """Faults of a spec whose types are right, in the order of its fields."""
    yield from _infinite(msgspec.to_builtins(spec), ())
    yield from _name(spec.name, ("name",))
    if not spec.n:
        yield Fault(("n",), "n is empty: give at least one table size")
    yield from _twice(spec.n, ("n",))
    for field, names in (
        ("models", spec.models),
        ("rewards", spec.rewards),
        ("metrics", spec.metrics),
    ):
        yield from _empty(names, (field,))
        yield from _twice(names, (field,))
    if spec.primary == "reward" and not spec.rewards:
        yield Fault(
            ("primary",),
            'primary is "reward", but rewards is empty',
            hint="name a reward, or a metric as the primary outcome",
        )
    yield from _teams(spec)
    yield from _templates(spec.prompt, spec.communication, ("prompt",), spec.prompt)
    yield from _variants(spec)


def _teams(spec: TaskSpec) -> Iterator[Fault]:
    taken = {name: f'model "{name}"' for name in spec.models}
    for index, team in enumerate(spec.teams):
        at: Key = ("teams", index)
        if not team.name:
            yield Fault((*at, "name"), f"{dotted(at)}: the team's name is empty")
        if team.name in taken:
            yield Fault((*at, "name"), f'team "{team.name}" has the name of {taken[team.name]}')
        taken[team.name] = f'team "{team.name}" above it'
        if not team.seats:
            yield Fault(
                (*at, "seats"),
                f'team "{team.name}" seats no model',
                hint='seats names a model per seat: seats = ["script/random", "script/parity"]',
            )
        yield from _empty(team.seats, (*at, "seats"))
        yield from _twice(team.n, (*at, "n"))


def _variants(spec: TaskSpec) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, variant in enumerate(spec.variants):
        at: Key = ("variants", index)
        yield from _name(variant.name, (*at, "name"))
        if variant.name.lower() in taken:
            yield Fault((*at, "name"), f'two variants are called "{variant.name}"')
        taken.add(variant.name.lower())
        parts: dict[str, Any] = {}
        for field in ("rules", "communication", "prompt"):
            base = getattr(spec, field)
            merged = {**msgspec.structs.asdict(base), **getattr(variant, field)}
            try:
                parts[field] = msgspec.convert(merged, type(base))
            except msgspec.ValidationError as error:
                yield reword(error, merged, type(base), at=(*at, field))
        if len(parts) == 3:
            yield from _templates(
                parts["prompt"], parts["communication"], (*at, "prompt"), spec.prompt
            )


def _templates(
    prompt: Prompt, communication: Communication, at: Key, written: Prompt
) -> Iterator[Fault]:
    """Faults of a prompt's templates; those of `written` are named where they stand."""
    for field, allowed in BY_TEMPLATE.items():
        text = getattr(prompt, field)
        key: Key = ("prompt", field) if text == getattr(written, field) else (*at, field)
        yield from _template(text, key, allowed)
    if not prompt.round.strip():
        yield Fault((*at, "round"), f"{dotted((*at, 'round'))} is empty: a model would see nothing")
    if communication.rounds:
        needs = f"communication.rounds is {communication.rounds}, but"
        if not prompt.message.strip():
            yield Fault(
                (*at, "message"),
                f"{needs} {dotted((*at, 'message'))} is empty",
                hint="write the user turn that asks a seat for its message",
            )
        if "heard" not in _names(prompt.round):
            yield Fault(
                (*at, "round"),
                f"{needs} {dotted((*at, 'round'))} does not show what was said",
                hint="put $heard where the messages of the other seats belong",
            )


def _template(text: str, key: Key, allowed: frozenset[str]) -> Iterator[Fault]:
    for match in Template.pattern.finditer(text):
        if match["invalid"] is not None:
            around = text[match.start() : match.start() + 12].partition("\n")[0]
            yield Fault(
                key,
                f'{dotted(key)}: "{around}" is no placeholder',
                hint="write $$ for a dollar sign",
                needle=around,
            )
    shown = [f"${name}" for name in sorted(allowed)]
    for name in _names(text):
        if name not in allowed:
            yield Fault(
                key,
                f'{dotted(key)}: unknown placeholder "${name}"{did_you_mean(f"${name}", shown)}',
                hint=f"allowed here: {', '.join(shown)}",
                needle=f"${name}" if f"${name}" in text else f"${{{name}}}",
            )


def _names(text: str) -> list[str]:
    found = (match["named"] or match["braced"] for match in Template.pattern.finditer(text))
    return [name for name in found if name]


def _name(name: str, key: Key) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        yield Fault(
            key,
            f'{dotted(key)}: "{name}" is not usable as a name',
            hint="names become file names: letters, digits and . _ - + =, the first no sign",
        )


def _empty(names: Sequence[str], key: Key) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if not name.strip():
            yield Fault((*key, index), f"{dotted((*key, index))} is an empty name")


def _twice(values: Sequence[str] | Sequence[int], key: Key) -> Iterator[Fault]:
    for index, value in enumerate(values):
        if value in values[:index]:
            shown = f'"{value}"' if isinstance(value, str) else value
            yield Fault((*key, index), f"{dotted(key)} names {shown} twice")


def _infinite(value: Any, key: Key) -> Iterator[Fault]:
    if isinstance(value, float) and not math.isfinite(value):
        yield Fault(key, f"{dotted(key)} = {value}: must be a finite number")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _infinite(item, (*key, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _infinite(item, (*key, index))
