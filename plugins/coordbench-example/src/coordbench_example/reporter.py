"""The reporter `tsv`: one row per cell."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from coordbench.api import CellSummary, Estimate, RunView

__all__ = ["Tsv"]


class Tsv:
    """Tab-separated values, for a spreadsheet."""

    def render(self, run: RunView, out: Path | None) -> Sequence[Path]:
        """Write `cells.tsv` to `out`, or print it where `out` is None."""
        text = "".join("\t".join(map(_field, row)) + "\n" for row in _rows(run.cells))
        if out is None:
            sys.stdout.write(text)
            return []
        out.mkdir(parents=True, exist_ok=True)
        path = out / "cells.tsv"
        path.write_text(text, encoding="utf-8")
        return [path]


def _rows(cells: Sequence[CellSummary]) -> Iterator[list[object]]:
    rewards = list(dict.fromkeys(name for cell in cells for name in cell.rewards))
    metrics = list(dict.fromkeys(name for cell in cells for name in cell.metrics))
    yield [
        *("cell", "team", "n", "scored", "failed", "missing", "rankable"),
        *(f"reward:{name}" for name in rewards),
        *(f"metric:{name}" for name in metrics),
    ]
    for cell in cells:
        yield [
            *(cell.cell, cell.team, cell.n, cell.n_scored, cell.n_failed, cell.n_missing),
            "yes" if cell.rankable else "no",
            *(_value(cell.rewards.get(name)) for name in rewards),
            *(_value(cell.metrics.get(name)) for name in metrics),
        ]


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _field(value: object) -> str:
    """None is an empty field, never 0; a tab in a name would shift the row."""
    return "" if value is None else " ".join(str(value).split())
