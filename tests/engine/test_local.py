"""The executor `local`: what runs beside what, and how a run ends."""

from __future__ import annotations

import asyncio

import pytest

from coordbench.api import EpisodeJob, EpisodeLog, Lane, NoOptions
from coordbench.data.events import EpisodeEnded
from coordbench.engine.control import Control
from coordbench.engine.local import build_local

JOBS = [EpisodeJob(cell=cell, episode=index, seed=index) for cell in "ab" for index in range(10)]


class FakePlayer:
    """Episodes that only take time."""

    def __init__(self, capacity: int, *, seconds: float = 0.005) -> None:
        self.capacity = capacity
        self.seconds = seconds
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def open(self) -> None:
        pass

    def lane(self, job: EpisodeJob) -> Lane:
        return Lane(key=job.cell, capacity=self.capacity, weight=5)

    async def play(self, job: EpisodeJob) -> EpisodeLog:
        now = self.now[job.cell] = self.now.get(job.cell, 0) + 1
        self.most[job.cell] = max(self.most.get(job.cell, 0), now)
        status, reason = "completed", "rounds"
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            status, reason = "stopped", "interrupt"
        self.now[job.cell] -= 1
        ended = EpisodeEnded(
            episode=job.episode,
            status=status,  # type: ignore[arg-type]
            reason=reason,
            rounds=1,
        )
        return EpisodeLog(job=job, events=(ended,), blobs={})

    async def aclose(self) -> None:
        pass


async def run(
    player: FakePlayer, control: Control | None = None, sink: object = None
) -> list[EpisodeLog]:
    logs: list[EpisodeLog] = []
    executor = build_local("", NoOptions())
    await executor.run(JOBS, player, sink or logs.append, control or Control())  # type: ignore[arg-type]
    return logs


async def test_every_job_is_played_once_and_lanes_run_beside_each_other() -> None:
    player = FakePlayer(capacity=20)
    logs = await run(player)
    assert sorted((log.job.cell, log.job.episode) for log in logs) == [
        (job.cell, job.episode) for job in JOBS
    ]
    assert player.most == {"a": 4, "b": 4}


async def test_a_drained_run_finishes_what_is_in_flight_and_starts_nothing() -> None:
    control = Control()
    player = FakePlayer(capacity=10)
    logs: list[EpisodeLog] = []

    def sink(log: EpisodeLog) -> None:
        logs.append(log)
        control.interrupt()

    await run(player, control, sink)
    assert 2 <= len(logs) <= 4
    assert all(log.events[-1].status == "completed" for log in logs)  # type: ignore[union-attr]


async def test_a_second_interrupt_ends_the_episodes_in_flight() -> None:
    control = Control()
    player = FakePlayer(capacity=10, seconds=60)
    task = asyncio.create_task(run(player, control))
    await asyncio.sleep(0.05)
    control.interrupt()
    control.interrupt()
    logs = await asyncio.wait_for(task, timeout=5)
    assert len(logs) == 4
    assert all(log.events[-1].status == "stopped" for log in logs)  # type: ignore[union-attr]


async def test_a_stopped_cell_starts_no_more_episodes_and_the_other_goes_on() -> None:
    control = Control()
    control.stop_cell("a", "quota")
    logs = await run(FakePlayer(capacity=10), control)
    assert {log.job.cell for log in logs} == {"b"}
    assert len(logs) == 10


async def test_a_sink_that_fails_ends_the_run_after_all_was_handed_over() -> None:
    taken: list[EpisodeLog] = []

    def sink(log: EpisodeLog) -> None:
        taken.append(log)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await run(FakePlayer(capacity=10), Control(), sink)
    assert 2 <= len(taken) < len(JOBS)
