"""How a run is asked to end: by Ctrl-C, by a spent budget, by a cell that can't succeed."""

from __future__ import annotations

__all__ = ["Control"]


class Control:
    """The run's stop signal.

    The first interrupt drains (episodes in flight finish); the second cancels them.
    """

    def __init__(self) -> None:
        self.draining = False
        self.cancelled = False
        self.reason = ""
        self.stopped_cells: dict[str, str] = {}

    def interrupt(self) -> None:
        """Ctrl-C."""
        if self.draining:
            self.cancel("interrupt")
        else:
            self.drain("interrupt")

    def drain(self, reason: str) -> None:
        """Start no new episode."""
        self.draining = True
        self.reason = self.reason or reason

    def cancel(self, reason: str) -> None:
        """End the episodes in flight too."""
        self.drain(reason)
        self.cancelled = True

    def stop_cell(self, cell: str, reason: str) -> None:
        """Start no more episodes of this cell."""
        self.stopped_cells.setdefault(cell, reason)

    def cell_stopped(self, cell: str) -> bool:
        """Whether the cell was stopped."""
        return cell in self.stopped_cells
