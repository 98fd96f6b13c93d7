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
_LONGEST_NAME = 34
_GAP = 2


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
    """One table where all columns fit; otherwise as few as hold them, each with the key columns.

    Numbers are never wrapped; a long name may be folded.
    """
    key = [column for column in COLUMNS if column.group == "key"]
    rest = [column for column in COLUMNS if column.group != "key"]
    names = max((len(_name(cell)) for cell in cells), default=4)
    widths = {column.heading: _width(cells, column) for column in COLUMNS}
    key_width = sum(widths[column.heading] for column in key)
    if names + key_width + sum(widths[column.heading] for column in rest) <= width:
        return [key + rest]
    room = width - min(names, _LONGEST_NAME) - key_width
    stacks: list[list[Column]] = [[]]
    left = room
    for column in rest:
        if widths[column.heading] > left and stacks[-1]:
            stacks.append([])
            left = room
        stacks[-1].append(column)
        left -= widths[column.heading]
    return [key + stack for stack in stacks]


def _width(cells: Sequence[CellSummary], column: Column) -> int:
    return _GAP + max([len(column.heading), *(len(column.text(cell)) for cell in cells)])


def _name(cell: CellSummary) -> str:
    variant = f" ({cell.variant})" if cell.variant else ""
    return plain(f"{cell.team}{variant}{marks(cell)}")


def _table(cells: Sequence[CellSummary], columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    table.add_column("team", overflow="fold")
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for cell in cells:
        style = "dim" if not cell.rankable else ""
        table.add_row(
            Text(_name(cell)), *(Text(column.text(cell)) for column in columns), style=style
        )
    return table
