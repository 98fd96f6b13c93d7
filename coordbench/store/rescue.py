"""Episodes that could not be written to their run: kept elsewhere, and taken back on resume.

A full disk must not lose calls that are paid for. The system's temporary folder is often on
another disk, and takes them until the run is opened again.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from coordbench.data.events import EpisodeEnded, EpisodeStarted
from coordbench.data.manifest import Manifest
from coordbench.store.blobs import decode_blob
from coordbench.store.blocks import UNREADABLE, decode_events

__all__ = ["Rescued", "keep", "kept_for"]

_PREFIX = "coordbench-rescue-"
_SUFFIX = ".jsonl"
_VARIABLES = ("TMPDIR", "TEMP", "TMP")


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """First line of a rescue file: which run it is of, and how many of its lines are blobs."""

    run: str
    digest: str
    created_at: float
    cell: str
    blobs: int


class Rescued(msgspec.Struct, frozen=True):
    """One rescued episode.

    Attributes
    ----------
    blobs : mapping
        SHA-256 -> bytes.
    lines : bytes
        Its events as they belong into the cell's file.
    """

    file: Path
    cell: str
    episode: int
    status: str
    blobs: dict[str, bytes]
    lines: bytes


def keep(manifest: Manifest, cell: str, blobs: bytes, lines: bytes) -> Path | None:
    """Write an episode to the system's temporary folder.

    Returns
    -------
    Path or None
        None where it could not be written there either.
    """
    header = _Header(manifest.run, manifest.digest, manifest.created_at, cell, blobs.count(b"\n"))
    path = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX)
        path = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(header) + b"\n" + blobs + lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()
        return None
    return path


def kept_for(manifest: Manifest) -> Iterator[Rescued]:
    """Whole rescued episodes of the run that `manifest` is of; others are left alone."""
    for folder in _folders():
        for path in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
            try:
                rescued = _read(path, manifest)
            except (OSError, ValueError, *UNREADABLE):
                continue
            if rescued is not None:
                yield rescued


def _folders() -> list[Path]:
    """Where `keep` may have written: `tempfile` passes over a temporary folder that is full."""
    names = (tempfile.gettempdir(), *map(os.environ.get, _VARIABLES), "/tmp", "/var/tmp")
    folders = dict.fromkeys(Path(name).resolve() for name in names if name)
    return [folder for folder in folders if folder.is_dir()]


def _read(path: Path, manifest: Manifest) -> Rescued | None:
    # Anybody may write to that folder: only a plain file of this user is believed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        header = msgspec.json.decode(file.readline(), type=_Header)
        if (header.run, header.digest, header.created_at) != (
            manifest.run,
            manifest.digest,
            manifest.created_at,
        ):
            return None
        blobs = dict(decode_blob(file.readline()) for _ in range(header.blobs))
        lines = file.read()
    events = decode_events(lines)
    if not events or not lines.endswith(b"\n"):
        return None
    first, last = events[0], events[-1]
    if (
        not isinstance(first, EpisodeStarted)
        or not isinstance(last, EpisodeEnded)
        or first.cell != header.cell
        or {event.episode for event in events} != {first.episode}
    ):
        return None
    return Rescued(path, header.cell, first.episode, last.status, blobs, lines)
