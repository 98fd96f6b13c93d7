"""The reporter `terminal`: one table where it fits, stacked tables where it does not."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from coordbench.api.reporting import CellSummary, RunView
from coordbench.report.text import COLUMNS, Column, footnotes, marks, plain, rules_lines, title

__all__ = ["TerminalReporter", "build_terminal"]

_UNLIMITED = 10_000
_LAYOUTS = (
    (("outcome", "behaviour", "cost"),),
    (("outcome",), ("behaviour", "cost")),
    (("outcome",), ("behaviour",), ("cost",)),
)


def build_terminal(target: str, options: msgspec.Struct) -> TerminalReporter:
    """Build the reporter."""
    return TerminalReporter()


class TerminalReporter:
    """Prints to standard output.

    Parameters
    ----------
    console : Console or None
        Where to print; by default a terminal at its width, or a pipe where nothing is cut.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console

    def render(self, run: RunView, out: Path | None) -> Sequence[Path]:
        """Print the report; writes no file."""
        console = self._console or _console()
        console.print(Text(title(run), style="bold"))
        console.print(Text(str(run.path), style="dim"), soft_wrap=True)
        console.print()
        for columns in _stacks(run.cells, console.width):
            console.print(_table(run.cells, columns))
            console.print()
        for note in footnotes(run):
            _hanging(console, "- ", note)
        console.print()
        for what, how in rules_lines(run):
            _hanging(console, f"{what}: ", how)
        for question, answer in run.spec.choices.items():
            _hanging(console, f"{plain(question)} ", plain(answer))
        return []


def _console() -> Console:
    if sys.stdout.isatty():
        return Console(highlight=False)
    width = int(os.environ.get("COORDBENCH_WIDTH") or _UNLIMITED)
    return Console(width=width, no_color=True, highlight=False, force_terminal=False)


def _hanging(console: Console, lead: str, text: str) -> None:
    if console.width >= _UNLIMITED:
        console.print(Text(lead + text), soft_wrap=True)
    else:
        console.print(Padding(Text.assemble((lead, "bold" if lead != "- " else ""), text), (0, 0)))


def _stacks(cells: Sequence[CellSummary], width: int) -> list[list[Column]]:
    """All columns at once where they fit; otherwise one table per group of columns."""
    key = [column for column in COLUMNS if column.group == "key"]
    rest = [column for column in COLUMNS if column.group != "key"]
    for layout in _LAYOUTS:
        stacks = [key + [column for column in rest if column.group in groups] for groups in layout]
        if all(_width(cells, stack) <= width for stack in stacks):
            break
    return stacks


def _width(cells: Sequence[CellSummary], columns: Sequence[Column]) -> int:
    names = max((len(_name(cell)) for cell in cells), default=4)
    return names + sum(
        2 + max([len(column.heading), *(len(column.text(cell)) for cell in cells)])
        for column in columns
    )


def _name(cell: CellSummary) -> str:
    variant = f" ({cell.variant})" if cell.variant else ""
    return plain(f"{cell.team}{variant}{marks(cell)}")


def _table(cells: Sequence[CellSummary], columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("team", overflow="fold")
    for column in columns:
        table.add_column(column.heading, justify="right", overflow="fold")
    for cell in cells:
        style = "dim" if not cell.rankable else ""
        table.add_row(
            Text(_name(cell)), *(Text(column.text(cell)) for column in columns), style=style
        )
    return table
