"""Progress: a live bar per cell in a terminal, plain lines elsewhere. All on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from coordbench.api.models import ModelInfo
from coordbench.api.scoring import Reward
from coordbench.cli.console import err_console, in_ci
from coordbench.data.episode import Episode
from coordbench.data.events import CallRecord, FailureRecord
from coordbench.data.plan import Cell, Plan
from coordbench.stats.running import RunningMean

__all__ = ["RunProgress"]

_LINE_EVERY_S = 10.0
_REFRESH_PER_S = 4
_ETA_AFTER_S = 5.0


class _CellCount(msgspec.Struct):
    """What is known of a cell so far."""

    done: int = 0
    total: int = 0
    failed: int = 0
    deadlocks: int = 0
    decisions: int = 0
    invalid: int = 0
    tokens: int = 0


class RunProgress:
    """A `RunListener` that shows what it is told.

    Parameters
    ----------
    plan : Plan
    done : mapping
        Cell -> episodes already on disk (resume).
    reward : Reward
        The primary reward, for the running mean.
    windows : callable
        Endpoint -> (calls it is trusted with, its limit) where an endpoint is throttled.
    """

    def __init__(
        self,
        plan: Plan,
        done: dict[str, int],
        reward: Reward,
        windows: Callable[[], dict[str, tuple[int, int]]],
    ) -> None:
        self.console = err_console()
        self.live_mode = self.console.is_terminal and not in_ci()
        self.counts = {
            cell.id: _CellCount(done=done.get(cell.id, 0), total=cell.episodes)
            for cell in plan.cells
        }
        self.rewards = {cell.id: RunningMean() for cell in plan.cells}
        self.reward = reward
        self.windows = windows
        self.calls = self.cached = 0
        self.tokens = 0
        self.retries = 0
        self._begun = time.monotonic()
        self._last_line = self._begun
        self._todo = sum(count.total - count.done for count in self.counts.values())
        self._played = 0
        self._slow_calls = 0
        self._slow_todo = sum(
            (count.total - count.done) * cell.n * cell.rules.rounds
            for cell, count in zip(plan.cells, self.counts.values(), strict=True)
            if not cell.team.startswith("script/")
        )
        self._bars = _bars(self.console)
        self._tasks: dict[str, TaskID] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self.live_mode:
            self._live = Live(
                get_renderable=self._render,
                console=self.console,
                refresh_per_second=_REFRESH_PER_S,
                transient=True,
            )
            self._live.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(exc_type, exc, traceback)
            self._live = None
        if self._played and not self.live_mode:
            self._line(f"{self._played}/{self._todo} episodes played, {self._totals()}")

    def called(self, info: ModelInfo, record: CallRecord, failure: FailureRecord | None) -> None:
        """A call ended."""
        self.calls += 1
        self.cached += record.cached
        self._slow_calls += not info.instant
        self.retries += len(record.failures)
        usage = record.usage
        self.tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)

    def played(self, cell: Cell, episode: Episode) -> None:
        """An episode ended and is on disk."""
        count = self.counts[cell.id]
        count.tokens += _tokens(episode)
        if episode.status == "failed":
            count.failed += 1
        if episode.scored:
            count.done += 1
            self._played += 1
            count.deadlocks += episode.deadlocked
            count.decisions += episode.decisions
            count.invalid += episode.invalid_turns
            self._score(cell, episode)
        if self.live_mode:
            self._advance(cell, count)
            return
        now = time.monotonic()
        if count.done + count.failed >= count.total:
            self._line(f"{cell.id}: {self._describe(cell.id)}")
        elif now - self._last_line >= _LINE_EVERY_S:
            self._line(
                f"{self._played}/{self._todo} episodes, {self._totals()}{self._eta()}; "
                f"{cell.id}: {self._describe(cell.id)}"
            )

    def note(self, text: str) -> None:
        """Something the user should know now."""
        self.console.print(escape(text), style="yellow", soft_wrap=True)

    def _score(self, cell: Cell, episode: Episode) -> None:
        try:
            value = sum(self.reward.score(episode).values())
        except Exception:  # the report says which reward failed, and why
            return
        self.rewards[cell.id].add(value)

    def _advance(self, cell: Cell, count: _CellCount) -> None:
        task = self._tasks.get(cell.id)
        if task is None:
            task = self._tasks[cell.id] = self._bars.add_task(escape(cell.id), total=count.total)
        self._bars.update(task, completed=count.done + count.failed, detail=self._describe(cell.id))
        if count.done + count.failed >= count.total:
            # Finished cells leave the live area; a long plan would scroll it off the screen.
            self._bars.remove_task(task)
            self.console.print(f"{escape(cell.id)}: {escape(self._describe(cell.id))}")

    def _describe(self, cell_id: str) -> str:
        count, mean = self.counts[cell_id], self.rewards[cell_id]
        played = mean.n or 1
        parts = [f"{count.done}/{count.total}", f"reward {mean.describe()}"]
        parts.append(f"deadlock {count.deadlocks / played:.0%}")
        parts.append(f"invalid {count.invalid / (count.decisions or 1):.0%}")
        if count.failed:
            parts.append(f"failed {count.failed}")
        if count.tokens:
            parts.append(f"{count.tokens:,} tokens")
        return ", ".join(parts)

    def _totals(self) -> str:
        parts = [f"{self.calls:,} calls"]
        if self.cached:
            parts[0] += f" ({self.cached:,} from the cache)"
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        if self.retries:
            parts.append(f"{self.retries} retries")
        for endpoint, (now, limit) in self.windows().items():
            parts.append(f"{endpoint} throttled to {now}/{limit} calls")
        return ", ".join(parts)

    def _eta(self) -> str:
        """From calls, at most as many as planned: cells differ in size, episodes end early."""
        elapsed = time.monotonic() - self._begun
        if elapsed < _ETA_AFTER_S or not self._slow_calls:
            return ""
        left = max(0, self._slow_todo - self._slow_calls)
        return f", at most about {_duration(elapsed / self._slow_calls * left)} left"

    def _render(self) -> Group:
        line = Text(f"{self._played}/{self._todo} episodes, {self._totals()}{self._eta()}")
        line.stylize("dim")
        return Group(self._bars, line)

    def _line(self, text: str) -> None:
        self._last_line = time.monotonic()
        self.console.print(escape(text), soft_wrap=True)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        console=console,
        auto_refresh=False,
    )


def _tokens(episode: Episode) -> int:
    return sum(
        (call.usage.input_tokens or 0) + (call.usage.output_tokens or 0)
        for _, call in episode.calls
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
