"""One run from plan to stored events: the only place where playing meets the store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from coordbench import __version__
from coordbench.api.executors import EpisodeJob, EpisodeLog, Executor
from coordbench.api.models import ModelInfo
from coordbench.data.episode import Episode, fold
from coordbench.data.events import CallRecord, EpisodeEnded, FailureRecord
from coordbench.data.manifest import Manifest, PluginRecord
from coordbench.data.plan import Cell, Plan
from coordbench.engine.control import Control
from coordbench.engine.player import CorePlayer
from coordbench.plugins import Registry
from coordbench.store import RunWriter

__all__ = [
    "RunListener",
    "RunOutcome",
    "all_jobs",
    "execute",
    "new_manifest",
    "registry_records",
]


class RunListener(Protocol):
    """Told what happens while a run runs."""

    def called(self, info: ModelInfo, record: CallRecord, failure: FailureRecord | None) -> None:
        """A call ended."""
        ...

    def played(self, cell: Cell, episode: Episode) -> None:
        """An episode ended and is on disk."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know now."""
        ...


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes
    ----------
    status : str
        `complete`, or `stopped` (interrupt, budget, a stopped cell), or `failed`.
    stopped_cells : mapping
        Cell -> why no more of its episodes were started.
    """

    status: Literal["complete", "stopped", "failed"]
    reason: str = ""
    stopped_cells: dict[str, str] = {}


def all_jobs(plan: Plan) -> list[EpisodeJob]:
    """Every episode of the plan, in plan order."""
    return [
        EpisodeJob(cell=cell.id, episode=index, seed=seed)
        for cell in plan.cells
        for index, seed in plan.seeds(cell)
    ]


def new_manifest(
    plan: Plan, registry_records: Sequence[PluginRecord], problems: Sequence[str]
) -> Manifest:
    """The manifest of a run that begins now."""
    now = time.time()
    date = time.strftime("%Y-%m-%d", time.localtime(now))
    return Manifest(
        run=f"{date}-{plan.spec.name}-{plan.digest[:8]}",
        spec=plan.spec,
        digest=plan.digest,
        cells=plan.cells,
        created_at=now,
        coordbench=__version__,
        command=("coordbench", *sys.argv[1:]),
        plugins=tuple(registry_records),
        problems=tuple(problems),
        host={
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "cpus": os.cpu_count(),
        },
    )


async def execute(
    plan: Plan,
    jobs: Sequence[EpisodeJob],
    player: CorePlayer,
    executor: Executor,
    writer: RunWriter,
    listener: RunListener,
    control: Control | None = None,
) -> RunOutcome:
    """Play `jobs` through an opened player into the store.

    Raises
    ------
    StoreError
        Events could not be written; what was written before stands.
    """
    control = control or Control()
    sink = _Sink(plan, writer, listener, control)
    writer.update(status="running", reason="", ended_at=None)
    status: Literal["complete", "stopped", "failed"] = "failed"
    try:
        with _signals(control, listener):
            await executor.run(jobs, player, sink, control)
        unfinished = control.draining or control.stopped_cells or sink.failed
        status = "stopped" if unfinished else "complete"
    finally:
        reason = control.reason or "; ".join(
            f"{cell}: {why}" for cell, why in control.stopped_cells.items()
        )
        # A full disk must not hide the error that led here.
        with contextlib.suppress(Exception):
            writer.update(
                status=status, reason=reason, ended_at=time.time(), models=player.records()
            )
    return RunOutcome(status=status, reason=reason, stopped_cells=dict(control.stopped_cells))


class _Sink:
    """Stores each log, then looks whether its failures end a cell or the run."""

    def __init__(
        self, plan: Plan, writer: RunWriter, listener: RunListener, control: Control
    ) -> None:
        self.cells = {cell.id: cell for cell in plan.cells}
        self.writer = writer
        self.listener = listener
        self.control = control
        self.error_share = plan.spec.limits.error_share
        self.failed: dict[str, int] = {}

    def __call__(self, log: EpisodeLog) -> None:
        self.writer.append(log)
        cell = self.cells[log.job.cell]
        ended = log.events[-1]
        assert isinstance(ended, EpisodeEnded)
        if ended.status != "completed":
            self._judge(cell, log, ended)
        episode = fold(log.events, cell.rules)
        if episode is not None:
            self.listener.played(cell, episode)

    def _judge(self, cell: Cell, log: EpisodeLog, ended: EpisodeEnded) -> None:
        if ended.status == "stopped":
            if ended.reason == "budget" and not self.control.draining:
                self.listener.note(f"stopping: {ended.detail}")
                self.control.drain(ended.detail)
            return
        self.failed[cell.id] = self.failed.get(cell.id, 0) + 1
        if self.control.cell_stopped(cell.id):
            return
        why = f"{ended.reason}: {ended.detail}"
        scopes = {event.failure.scope for event in _failed_turns(log)}
        if "run" in scopes:
            self._stop_sharing(cell, log, why)
        elif "cell" in scopes:
            self.listener.note(f"stopping {cell.id}: {why}")
            self.control.stop_cell(cell.id, why)
        elif self.failed[cell.id] > max(1.0, self.error_share * cell.episodes):
            self.listener.note(
                f"stopping {cell.id}: more than {self.error_share:.0%} of its episodes failed, "
                f"so it can no longer be complete; last: {why}"
            )
            self.control.stop_cell(cell.id, why)

    def _stop_sharing(self, cell: Cell, log: EpisodeLog, why: str) -> None:
        """A refused key or a spent quota is gone for every cell that the model plays in; the
        cells of other models go on.
        """
        lost = {
            cell.seats[event.seat] for event in _failed_turns(log) if event.failure.scope == "run"
        }
        for other in self.cells.values():
            if lost & set(other.seats) and not self.control.cell_stopped(other.id):
                self.listener.note(f"stopping {other.id}: {why}")
                self.control.stop_cell(other.id, why)


def _failed_turns(log: EpisodeLog) -> Iterator[Any]:
    for event in log.events:
        if getattr(event, "failure", None) is not None:
            yield event


@contextlib.contextmanager
def _signals(control: Control, listener: RunListener) -> Iterator[None]:
    """Ctrl-C once: finish the episodes in flight. Twice: end them too. SIGTERM: at once."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        control.interrupt()
        if control.cancelled:
            listener.note("ending the episodes in flight; what is on disk stands")
        else:
            listener.note("finishing the episodes in flight; Ctrl-C again to end them now")

    added = []
    try:
        for number, handler in (
            (signal.SIGINT, interrupt),
            (signal.SIGTERM, lambda: control.cancel("terminated")),
        ):
            # Only the main thread may; elsewhere the caller owns the signals.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, handler)
                added.append(number)
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)


def registry_records(registry: Registry) -> list[PluginRecord]:
    """The plugins as the manifest keeps them."""
    from coordbench.plugins.describe import describe

    return [
        PluginRecord(name=item.plugin, dist=item.dist, version=item.version, state=item.state)
        for item in describe(registry)
    ]
