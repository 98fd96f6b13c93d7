"""The plan: cells, one seed per episode. Everything a run will do, before it does it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from coordbench.data.seeds import episode_seed
from coordbench.data.spec import Communication, Prompt, Rules, TaskSpec

__all__ = ["Cell", "Plan"]


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A team at a table of N under one variant of rules and prompt.

    Attributes
    ----------
    id : str
        Safe as a file name; unique within the plan.
    team : str
        Name of the team: the model's name where one model takes all seats.
    seats : tuple of str
        Model name per seat; length `n`.
    variant : str
        `""` for the spec as written.
    rules, communication, prompt
        As they hold in this cell, the variant applied.
    """

    id: str
    team: str
    seats: tuple[str, ...]
    n: int
    variant: str
    agent: str
    rules: Rules
    communication: Communication
    prompt: Prompt
    episodes: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All cells of a run.

    Attributes
    ----------
    spec : TaskSpec
        Resolved: the command line's changes applied.
    digest : str
        SHA-256 of the resolved spec and cells (hex). A run is resumed only under its digest.
    """

    spec: TaskSpec
    cells: tuple[Cell, ...]
    digest: str

    def seeds(self, cell: Cell) -> Iterator[tuple[int, int]]:
        """(episode index, episode seed) of each episode of `cell`."""
        for index in range(cell.episodes):
            yield index, episode_seed(self.spec.seed, cell.n, index)
