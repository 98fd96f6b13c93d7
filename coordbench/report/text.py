"""Numbers and names as a report writes them; shared by the terminal and Markdown."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from coordbench.api.reporting import CellSummary, Estimate, RunView

__all__ = ["COLUMNS", "Column", "counted", "footnotes", "marks", "plain", "rules_lines", "title"]

_NONE = "-"
_DO_NOTHING = ("script/silent", "script/idle", "script/busy-idle")


class Column(NamedTuple):
    """One column: heading, group, and its text for a cell."""

    heading: str
    group: str
    text: Callable[[CellSummary], str]


def plain(text: str) -> str:
    """Text that can do nothing to a terminal: control characters are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char
        if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn")
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def title(run: RunView) -> str:
    """One line that says what this is a report of."""
    spec = run.spec
    scored = sum(cell.n_scored for cell in run.cells)
    return (
        f"{plain(spec.name)}: {counted(len(run.cells), 'cell')}, "
        f"{counted(scored, 'episode')} scored, seed {spec.seed}"
    )


def counted(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def marks(cell: CellSummary) -> str:
    """A mark after the cell's name where it needs a note."""
    if cell.status == "incomplete":
        return " [incomplete]"
    if not cell.rankable:
        return " [not rankable]"
    return " [partial]" if cell.status == "partial" else ""


def _number(value: float | None, digits: int = 2) -> str:
    return _NONE if value is None else f"{value:.{digits}f}"


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return _NONE
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _share(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return _NONE
    return f"{estimate.value:.0%}"


def _metric(name: str) -> Callable[[CellSummary], Estimate | None]:
    return lambda cell: cell.metrics.get(name)


def _counts(cell: CellSummary) -> str:
    return f"{cell.n_scored}/{cell.n_failed}"


def _invalid(cell: CellSummary) -> str:
    if not cell.decisions:
        return _NONE
    return f"{sum(cell.invalid_reasons.values()) / cell.decisions:.0%}"


def _deadlock(cell: CellSummary) -> str:
    text = _with_interval(cell.metrics.get("deadlock"))
    if cell.deadlock_bounds is not None:
        low, high = cell.deadlock_bounds
        text += f" ({low:.2f}..{high:.2f})"
    return text


def _reward(cell: CellSummary) -> str:
    return _with_interval(next(iter(cell.rewards.values()), None))


def _tokens(cell: CellSummary) -> str:
    if cell.input_tokens is None or cell.output_tokens is None:
        return "unknown"
    total = cell.input_tokens + cell.output_tokens
    return f"{total:,}" if total else _NONE


def _cost(cell: CellSummary) -> str:
    if cell.cost is None:
        return "unknown"
    return f"${cell.cost:.2f}" if cell.cost else _NONE


def _mode(cell: CellSummary) -> str:
    return "/".join(cell.tool_modes) or _NONE


def _wall(cell: CellSummary) -> str:
    return _NONE if cell.wall_s is None else f"{cell.wall_s:.1f}s"


COLUMNS: Sequence[Column] = (
    Column("N", "key", lambda cell: str(cell.n)),
    Column("scored/failed", "outcome", _counts),
    Column("invalid", "outcome", _invalid),
    Column("deadlock rate", "outcome", _deadlock),
    Column("mean reward", "outcome", _reward),
    Column("meals/seat", "outcome", lambda cell: _number(_value(cell, "meals_per_seat"))),
    Column("throughput", "behaviour", lambda cell: _number(_value(cell, "throughput"))),
    Column("fairness", "behaviour", lambda cell: _number(_value(cell, "fairness"))),
    Column("seats fed", "behaviour", lambda cell: _share(_metric("seats_fed")(cell))),
    Column("think", "behaviour", lambda cell: _share(_metric("idle_share")(cell))),
    Column("no effect", "behaviour", lambda cell: _share(_metric("unchanged_share")(cell))),
    Column("tools", "cost", _mode),
    Column("tokens", "cost", _tokens),
    Column("cost", "cost", _cost),
    Column("wall", "cost", _wall),
)


def _value(cell: CellSummary, name: str) -> float | None:
    estimate = cell.metrics.get(name)
    return None if estimate is None else estimate.value


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.0%}"


def footnotes(run: RunView) -> list[str]:
    """What a reader must know to read the table rightly."""
    reward = next(iter(run.cells[0].rewards), "-") if run.cells else "-"
    notes = [
        "Episodes are the unit; rates carry 95% Wilson intervals, means 95% t intervals.",
        f"mean reward: {plain(reward)}. throughput: meals per round of the rules. fairness: "
        "1 - normalised Gini of meals, undefined (-) when nobody ate. think: calls of think; "
        "no effect: turns after which the table was as before (think, refused, unreadable).",
        "invalid: replies that were not one legal call, as a share of decisions; they do nothing "
        "and are never counted as think. failed: episodes ended by infrastructure, unscored.",
    ]
    if any(cell.deadlock_bounds is not None for cell in run.cells):
        notes.append("(low..high) after a rate: had all failed episodes gone one way or the other.")
    if any(model in _DO_NOTHING for cell in run.cells for model in cell.models):
        notes.append(
            "script/silent, script/idle and script/busy-idle do nothing: a team that is not above "
            "them in meals has not coordinated, whatever its reward."
        )
    for cell in run.cells:
        notes += [
            f"{plain(cell.cell)}, seat {seat.seat} ({plain(seat.model)}): "
            f"{seat.meals:.2f} meals, invalid {_percent(seat.invalid)}, "
            f"think {_percent(seat.think)}, no effect {_percent(seat.unchanged)}"
            for seat in cell.seats
        ]
        notes += [f"{plain(cell.cell)}: {plain(note)}" for note in cell.notes]
    return notes


def rules_lines(run: RunView) -> list[tuple[str, str]]:
    """The rules, readings and choices of the spec, as (what, how)."""
    spec = run.spec
    lines = [("task", f"{spec.name} ({spec.source})" if spec.source else spec.name)]
    parts = ("rules", "communication", "sampling", "reading", "limits")
    lines += [(name, _fields(getattr(spec, name))) for name in parts]
    lines.append(
        ("memory", f"rounds shown: {spec.prompt.memory}; tool names: {spec.prompt.tool_names}")
    )
    agents = ", ".join(dict.fromkeys(cell.agent for cell in run.cells))
    lines += [("agents", agents), ("rewards", ", ".join(spec.rewards)), ("primary", spec.primary)]
    lines += [
        (f"variant {variant.name}", _fields(variant)) for variant in spec.variants if variant.name
    ]
    return [(plain(what), plain(how)) for what, how in lines]


def _fields(struct: msgspec.Struct) -> str:
    values: dict[str, Any] = msgspec.to_builtins(struct)
    return ", ".join(f"{key}={_shown(value)}" for key, value in values.items() if key != "name")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
