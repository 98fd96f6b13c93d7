"""The executor `one-by-one`: the simplest one there can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from coordbench.api import EpisodeJob, EpisodeLog, Player, StopSignal

__all__ = ["OneByOne"]

_POLL_S = 0.2


class OneByOne:
    """Plays one episode after another, in this process."""

    async def run(
        self,
        jobs: Sequence[EpisodeJob],
        player: Player,
        sink: Callable[[EpisodeLog], None],
        stop: StopSignal,
    ) -> None:
        """Play all jobs, or as many as `stop` allows."""
        for job in jobs:
            if stop.draining:
                return
            if stop.cell_stopped(job.cell):
                continue
            task = asyncio.create_task(player.play(job))
            try:
                while not task.done():
                    await asyncio.wait({task}, timeout=_POLL_S)
                    if stop.cancelled:
                        task.cancel()
            finally:
                # A cancelled episode still has a log: it says what was paid for.
                task.cancel()
                sink(await task)
