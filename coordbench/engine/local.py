"""The executor `local`: asyncio in this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from coordbench.api.executors import EpisodeJob, EpisodeLog, Lane, Player, StopSignal
from coordbench.api.offers import NoOptions

__all__ = ["LocalExecutor", "build_local"]

_POLL_S = 0.2


def build_local(target: str, options: NoOptions) -> LocalExecutor:
    """Build the executor `local`."""
    return LocalExecutor()


class LocalExecutor:
    """Plays lanes beside each other, and as many episodes of a lane as its endpoints can serve."""

    async def run(
        self,
        jobs: Sequence[EpisodeJob],
        player: Player,
        sink: Callable[[EpisodeLog], None],
        stop: StopSignal,
    ) -> None:
        """Play all jobs, or as many as `stop` allows."""
        lanes: dict[str, deque[tuple[EpisodeJob, Lane]]] = {}
        for job in jobs:
            lane = player.lane(job)
            lanes.setdefault(lane.key, deque()).append((job, lane))
        runs = [_LaneRun(queue, player, sink, stop) for queue in lanes.values()]
        results = await asyncio.gather(*(run.play() for run in runs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result


class _LaneRun:
    def __init__(
        self,
        queue: deque[tuple[EpisodeJob, Lane]],
        player: Player,
        sink: Callable[[EpisodeLog], None],
        stop: StopSignal,
    ) -> None:
        self.queue = queue
        self.player = player
        self.sink = sink
        self.stop = stop
        self.error: Exception | None = None

    async def play(self) -> None:
        weights: dict[asyncio.Task[EpisodeLog], int] = {}
        try:
            while self.queue or weights:
                self._start_more(weights)
                if not weights:
                    break
                done, _ = await asyncio.wait(
                    weights, timeout=_POLL_S, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    del weights[task]
                self._hand_over(done)
                if self.stop.cancelled or self.error is not None:
                    for task in weights:
                        task.cancel()
        except asyncio.CancelledError:
            for task in weights:
                task.cancel()
            done, _ = await asyncio.wait(weights) if weights else (set(), set())
            self._hand_over(done)
            raise
        if self.error is not None:
            raise self.error

    def _start_more(self, weights: dict[asyncio.Task[EpisodeLog], int]) -> None:
        while self.queue and self.error is None and not self.stop.draining:
            job, lane = self.queue[0]
            if self.stop.cell_stopped(job.cell):
                self.queue.popleft()
                continue
            if sum(weights.values()) >= lane.capacity:
                break
            self.queue.popleft()
            weights[asyncio.create_task(self.player.play(job))] = lane.weight
        if self.stop.draining or self.error is not None:
            self.queue.clear()

    def _hand_over(self, done: set[asyncio.Task[EpisodeLog]]) -> None:
        # Index order makes the order of the files a function of the seed where episodes end
        # in the same tick.
        for log in sorted(
            (task.result() for task in done if not task.cancelled()),
            key=lambda log: log.job.episode,
        ):
            try:
                self.sink(log)
            except Exception as error:  # raised again once all is handed over
                self.error = self.error or error
