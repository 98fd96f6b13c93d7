"""What an executor is: it plays the episodes of a plan, here or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from coordbench.data.events import Event

__all__ = ["EpisodeJob", "EpisodeLog", "Executor", "Lane", "Player", "StopSignal"]


class EpisodeJob(msgspec.Struct, frozen=True):
    """One episode to play."""

    cell: str
    episode: int
    seed: int


class EpisodeLog(msgspec.Struct, frozen=True):
    """One played episode: its events in order, and the blobs they name (SHA-256 -> bytes)."""

    job: EpisodeJob
    events: tuple[Event, ...]
    blobs: dict[str, bytes]


class Lane(msgspec.Struct, frozen=True):
    """Episodes of one lane share endpoints; lanes run beside each other.

    Attributes
    ----------
    capacity : int
        Calls that the lane's endpoints take at once.
    weight : int
        Calls that the episode keeps in flight at once. An executor starts the lane's next
        episode while the weights in flight sum to less than `capacity`.
    """

    key: str
    capacity: int
    weight: int


class StopSignal(Protocol):
    """How a run is asked to end."""

    @property
    def draining(self) -> bool:
        """Start no new episode; those in flight may finish."""
        ...

    @property
    def cancelled(self) -> bool:
        """End those in flight as well."""
        ...

    def cell_stopped(self, cell: str) -> bool:
        """No more episodes of this cell (quota gone, key refused)."""
        ...


@runtime_checkable
class Player(Protocol):
    """Plays episodes. Picklable until opened, so an executor may ship it."""

    async def open(self) -> None:
        """Build models and agents."""
        ...

    def lane(self, job: EpisodeJob) -> Lane:
        """Where the job runs, and how much of it."""
        ...

    async def play(self, job: EpisodeJob) -> EpisodeLog:
        """Play one episode. Raises nothing for a failed call: the log says so."""
        ...

    async def aclose(self) -> None:
        """Close every model."""
        ...


@runtime_checkable
class Executor(Protocol):
    """Runs jobs through a player and hands each log to `sink` as soon as it is whole."""

    async def run(
        self,
        jobs: Sequence[EpisodeJob],
        player: Player,
        sink: Callable[[EpisodeLog], None],
        stop: StopSignal,
    ) -> None:
        """Play all jobs, or as many as `stop` allows. `sink` runs in this process, one at a
        time; an exception from it ends the run after the episodes in flight were handed over.
        """
        ...
