"""Where each episode's events lie in a cell's file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from coordbench.data.events import EpisodeEnded, EpisodeStarted, Event

__all__ = ["UNREADABLE", "Block", "CellIndex", "decode_events", "index_cell"]

_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding bytes that are no strict JSON may raise."""


class Block(msgspec.Struct, frozen=True):
    """One episode's events.

    Attributes
    ----------
    spans : tuple of (start, end)
        Bytes of the cell's file, from line `line` on. One span, unless another program mixed
        the events of several episodes.
    """

    cell: str
    episode: int
    seed: int
    status: Literal["completed", "failed", "stopped"]
    spans: tuple[tuple[int, int], ...]
    line: int


class CellIndex(msgspec.Struct, frozen=True):
    """All whole blocks of a cell's file, in the order of their ends.

    Attributes
    ----------
    whole : int
        Bytes up to the end of the last episode that has one.
    size : int
        Bytes of the file; more than `whole` where its tail is torn.
    problems : tuple of str
        `file:line: what` for everything that was left out.
    """

    blocks: tuple[Block, ...]
    whole: int
    size: int
    problems: tuple[str, ...]


class _Open:
    """An episode that has begun and not ended yet; `start` to `end` is its latest span."""

    __slots__ = ("broken", "closed", "end", "episode", "line", "start", "started")

    def __init__(self, started: EpisodeStarted, line: int, start: int, end: int) -> None:
        self.started = started
        self.episode = started.episode
        self.line = line
        self.closed: list[tuple[int, int]] = []
        self.start = start
        self.end = end
        self.broken = False

    def add(self, start: int, end: int) -> None:
        if start != self.end:
            self.closed.append((self.start, self.end))
            self.start = start
        self.end = end


def decode_events(data: bytes) -> list[Event]:
    """Decode one block."""
    return _EVENT.decode_lines(data)


def index_cell(path: Path) -> CellIndex:
    r"""Read a cell's file once, decode every event, keep only where the episodes lie.

    A file that does not exist is an empty one. Only `\n` ends a line.
    """
    if not path.exists():
        return CellIndex((), 0, 0, ())
    scan = _Scan(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                scan.take(number, line)
            else:
                scan.offset += len(line)
    problems = [*scan.problems, *scan.unfinished()]
    return CellIndex(tuple(scan.blocks), scan.whole, scan.offset, tuple(problems))


class _Scan:
    """The state of one pass over a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[Block] = []
        self.problems: list[str] = []
        self.offset = 0
        self.whole = 0
        self._open: dict[int, _Open] = {}
        self._latest: _Open | None = None

    def take(self, number: int, line: bytes) -> None:
        """Take in one whole line."""
        start = self.offset
        self.offset = end = start + len(line)
        try:
            event = _EVENT.decode(line)
        except UNREADABLE as error:
            if line.strip():
                self._cannot_read(number, error)
            return
        game = self._latest
        if game is None or game.episode != event.episode:
            game = self._open.get(event.episode)
        if isinstance(event, EpisodeStarted):
            self._begin(event, number, start, end)
        elif game is None:
            self._say(number, f"an event of episode {event.episode}, which has no beginning")
        else:
            game.add(start, end)
            self._latest = game
            if isinstance(event, EpisodeEnded):
                self._end(game, event)

    def unfinished(self) -> Iterator[str]:
        """What the file ends in the middle of."""
        for episode, game in self._open.items():
            if (game.closed[0][0] if game.closed else game.start) < self.whole:
                yield f"{self.path}:{game.line}: episode {episode} has no end"
        if self.offset > self.whole:
            yield (
                f"{self.path}: the last {self.offset - self.whole} bytes belong to an episode "
                "that was cut off or is being written; they are left out"
            )

    def _begin(self, started: EpisodeStarted, number: int, start: int, end: int) -> None:
        before = self._open.get(started.episode)
        if before is not None:
            self._say(before.line, f"episode {started.episode} has no end")
        self._latest = self._open[started.episode] = _Open(started, number, start, end)

    def _end(self, game: _Open, event: EpisodeEnded) -> None:
        self.whole = self.offset
        del self._open[event.episode]
        self._latest = None
        if game.broken:
            self._say(game.line, f"episode {event.episode} cannot be read whole; it is left out")
            return
        if game.closed:
            self._say(game.line, f"the events of episode {event.episode} lie among those of others")
        started = game.started
        self.blocks.append(
            Block(
                started.cell,
                started.episode,
                started.seed,
                event.status,
                (*game.closed, (game.start, game.end)),
                game.line,
            )
        )

    def _cannot_read(self, number: int, error: Exception) -> None:
        """The line may have held an event of the episode before it, which is then not whole."""
        self._say(number, f"not an event: {error}")
        if self._latest is not None:
            self._latest.broken = True

    def _say(self, line: int, what: str) -> None:
        self.problems.append(f"{self.path}:{line}: {what}")
