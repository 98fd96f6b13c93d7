"""Where each episode's events lie in a cell's file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from coordbench.data.events import EpisodeEnded, EpisodeStarted, Event

__all__ = ["Block", "CellIndex", "decode_events", "index_cell"]

_STARTED = b'{"event":"episode_started"'
_ENDED = b'{"event":"episode_ended"'
_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class Block(msgspec.Struct, frozen=True):
    """One episode's events: bytes [start, end) of the cell's file, from line `line`."""

    episode: int
    seed: int
    status: Literal["completed", "failed", "stopped"]
    start: int
    end: int
    line: int


class CellIndex(msgspec.Struct, frozen=True):
    """All whole blocks of a cell's file, in file order.

    Attributes
    ----------
    whole : int
        Bytes up to the end of the last whole block.
    size : int
        Bytes of the file; more than `whole` where its tail is torn.
    problems : tuple of str
        `file:line: what` for everything that was left out.
    """

    blocks: tuple[Block, ...]
    whole: int
    size: int
    problems: tuple[str, ...]


def decode_events(data: bytes) -> list[Event]:
    """Decode one block."""
    return _EVENT.decode_lines(data)


def index_cell(path: Path) -> CellIndex:
    """Read a cell's file once and find its blocks; only first and last lines are decoded.

    A file that does not exist is an empty one.
    """
    blocks: list[Block] = []
    problems: list[str] = []
    started: EpisodeStarted | None = None
    start = start_line = offset = whole = 0
    if not path.exists():
        return CellIndex((), 0, 0, ())
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            begin, offset = offset, offset + len(line)
            if not line.endswith(b"\n"):
                break
            if line.startswith(_STARTED):
                if started is not None:
                    problems.append(f"{path}:{start_line}: episode {started.episode} has no end")
                event = _decode(line, path, number, problems)
                started = event if isinstance(event, EpisodeStarted) else None
                start, start_line = begin, number
            elif line.startswith(_ENDED):
                event = _decode(line, path, number, problems)
                if isinstance(event, EpisodeEnded):
                    if started is None or started.episode != event.episode:
                        problems.append(
                            f"{path}:{number}: episode {event.episode} ends but has no beginning"
                        )
                    else:
                        blocks.append(
                            Block(
                                event.episode, started.seed, event.status, start, offset, start_line
                            )
                        )
                        whole = offset
                started = None
            elif started is None and line.strip():
                problems.append(f"{path}:{number}: an event outside any episode")
    if offset > whole:
        problems.append(
            f"{path}: the last {offset - whole} bytes belong to an episode that was cut off; "
            "they are left out"
        )
    return CellIndex(tuple(blocks), whole, offset, tuple(problems))


def _decode(line: bytes, path: Path, number: int, problems: list[str]) -> Event | None:
    try:
        return _EVENT.decode(line)
    except msgspec.DecodeError as error:
        problems.append(f"{path}:{number}: not an event: {error}")
        return None
