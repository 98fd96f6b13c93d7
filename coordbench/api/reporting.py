"""What a reporter is given, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from coordbench.data.episode import Episode
from coordbench.data.spec import TaskSpec

__all__ = ["CellSummary", "Estimate", "Reporter", "RunView", "SeatSummary"]


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its interval, or None with the reason.

    Attributes
    ----------
    low, high : float or None
        95% interval. Both None where no interval can be given.
    n : int
        Episodes it rests on.
    method : str
        E.g. `wilson`, `t`, `bca`.
    reason : str
        Why `value` or the interval is None; empty otherwise.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    method: str = ""
    reason: str = ""


class SeatSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One seat of a cell, over its scored episodes.

    Attributes
    ----------
    meals : float
        Mean meals an episode.
    invalid, think, unchanged : float or None
        Shares of the seat's turns; None without turns.
    """

    seat: int
    model: str
    meals: float
    turns: int
    invalid: float | None
    think: float | None
    unchanged: float | None


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the report.

    Attributes
    ----------
    n_scored, n_failed, n_missing : int
        Episodes completed; ended by infrastructure; planned but not played.
    rewards : mapping
        Reward name -> estimate of the mean over scored episodes.
    metrics : mapping
        Metric name -> estimate. `deadlock` is a rate with a Wilson interval.
    terms : mapping
        Reward name -> mean of each of its terms.
    deadlock_bounds : tuple of float or None
        Lowest and highest deadlock rate, had the failed episodes all gone one way; None where
        none failed.
    invalid_reasons, refusal_causes : mapping
        Counts over all decisions of scored episodes.
    cost : float or None
        US dollars of all calls made; None where a price or a usage is unknown.
    seats : tuple of SeatSummary
        Per seat, where different models share the table.
    status : str
        `complete`, `partial` (episodes missing) or `incomplete` (error share above the limit).
    rankable : bool
        False where not one valid action was read, or nothing was scored; `notes` says why.
    """

    cell: str
    team: str
    models: tuple[str, ...]
    n: int
    variant: str
    agent: str
    tool_modes: tuple[str, ...]
    n_planned: int
    n_scored: int
    n_failed: int
    n_missing: int
    decisions: int
    rewards: dict[str, Estimate]
    metrics: dict[str, Estimate]
    terms: dict[str, dict[str, float]]
    deadlock_bounds: tuple[float, float] | None
    actions: dict[str, int]
    invalid_reasons: dict[str, int]
    refusal_causes: dict[str, int]
    failure_kinds: dict[str, int]
    input_tokens: int | None
    output_tokens: int | None
    calls: int
    wall_s: float | None
    cost: float | None
    status: str
    rankable: bool
    seats: tuple[SeatSummary, ...] = ()
    notes: tuple[str, ...] = ()


class RunView(Protocol):
    """A stored run, read-only."""

    @property
    def path(self) -> Path:
        """The run's folder."""
        ...

    @property
    def spec(self) -> TaskSpec:
        """The resolved spec."""
        ...

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, as decoded JSON."""
        ...

    @property
    def cells(self) -> Sequence[CellSummary]:
        """One summary per planned cell, in plan order."""
        ...

    def episodes(self, cell: str) -> Iterator[Episode]:
        """Episodes of one cell, streamed in index order."""
        ...


@runtime_checkable
class Reporter(Protocol):
    """Renders a run. `out` is a folder, or None for reporters that write to the terminal."""

    def render(self, run: RunView, out: Path | None) -> Sequence[Path]:
        """Write the report; return the files written."""
        ...
