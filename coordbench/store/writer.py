"""Writing a run: blobs, then events, then fsync, one episode at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from pathlib import Path
from typing import Any, Self

import msgspec

from coordbench.api.executors import EpisodeLog
from coordbench.data.errors import StoreError, UsageError
from coordbench.data.events import Event
from coordbench.data.manifest import Manifest
from coordbench.data.strictjson import pretty, without_nan
from coordbench.store.blobs import encode_blobs, index_blobs
from coordbench.store.blocks import index_cell
from coordbench.store.files import AppendFile, replace_file
from coordbench.store.reader import MANIFEST, read_manifest

__all__ = ["RunWriter", "encode_events"]

_ENCODER = msgspec.json.Encoder()
_LOCK = ".lock"
_MOST_CLASHES = 1000


def encode_events(events: tuple[Event, ...]) -> bytes:
    """One JSON line per event; lone surrogates become escapes."""
    try:
        return _ENCODER.encode_lines(events)
    except UnicodeEncodeError:
        return _ENCODER.encode_lines([without_nan(msgspec.to_builtins(event)) for event in events])


class RunWriter:
    """The one writer of a run folder. Made by `create` or `open`.

    Attributes
    ----------
    path : Path
    repairs : list of str
        What `open` had to cut off, and where it was put.
    """

    def __init__(self, path: Path, manifest: Manifest, lock: int) -> None:
        self.path = path
        self.manifest = manifest
        self.repairs: list[str] = []
        self._lock: int | None = lock
        self._events: dict[str, AppendFile] = {}
        self._blobs: dict[str, tuple[AppendFile, set[str]]] = {}

    @classmethod
    def create(cls, root: Path, manifest: Manifest) -> RunWriter:
        """Make a new run folder under `root`, named by the manifest.

        Raises
        ------
        UsageError
            `root` cannot be written.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            path, name = _new_folder(root, manifest.run)
            for folder in ("cells", "blobs"):
                (path / folder).mkdir()
            manifest = msgspec.structs.replace(manifest, run=name)
            writer = cls(path, manifest, _locked(path))
            replace_file(path / MANIFEST, pretty(manifest))
        except OSError as error:
            raise UsageError(
                f"cannot write results to {root}: {error.strerror or error}",
                hint="name a folder you can write to: --out DIR",
            ) from error
        return writer

    @classmethod
    def open(cls, path: Path) -> RunWriter:
        """Open a run folder to go on with it; torn tails are set aside first."""
        manifest = read_manifest(path)
        try:
            writer = cls(path, manifest, _locked(path))
            for cell in manifest.cells:
                writer._repair(cell.id)
        except OSError as error:
            raise UsageError(
                f"cannot write to {path}: {error.strerror or error}",
                hint="resume needs write access to the run's folder",
            ) from error
        return writer

    def append(self, log: EpisodeLog) -> None:
        """Store one episode: durable when this returns.

        Raises
        ------
        StoreError
            It could not be written (disk full, folder gone). What was stored before is whole;
            the message names the file in the system's temporary folder that keeps this episode,
            where one could be written.
        """
        cell = log.job.cell
        lines = encode_events(log.events)
        try:
            pack, known = self._pack(cell)
            fresh = {digest: data for digest, data in log.blobs.items() if digest not in known}
            if fresh:
                pack.append(encode_blobs(fresh))
                known.update(fresh)
            self._file(cell).append(lines)
        except OSError as error:
            raise self._not_written(log, lines, error) from error

    def update(self, **fields: Any) -> None:
        """Replace fields of the manifest."""
        self.manifest = msgspec.structs.replace(self.manifest, **fields)
        try:
            replace_file(self.path / MANIFEST, pretty(self.manifest))
        except OSError as error:
            raise StoreError(
                f"cannot write {self.path / MANIFEST}: {error.strerror or error}",
                hint=_HINTS.get(error.errno or 0, ""),
            ) from error

    def close(self) -> None:
        """Close every file and let others write; may be called twice."""
        for file in self._events.values():
            file.close()
        for file, _ in self._blobs.values():
            file.close()
        self._events.clear()
        self._blobs.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _file(self, cell: str) -> AppendFile:
        if cell not in self._events:
            self._events[cell] = AppendFile(self.path / "cells" / f"{cell}.jsonl")
        return self._events[cell]

    def _pack(self, cell: str) -> tuple[AppendFile, set[str]]:
        if cell not in self._blobs:
            path = self.path / "blobs" / f"{cell}.jsonl"
            known, _ = index_blobs(path)
            self._blobs[cell] = (AppendFile(path), set(known))
        return self._blobs[cell]

    def _repair(self, cell: str) -> None:
        """Cut off what a kill left half-written, so that the next append can't glue to it."""
        path = self.path / "cells" / f"{cell}.jsonl"
        index = index_cell(path)
        if index.size > index.whole:
            kept = _free_name(path.with_suffix(".torn"))
            with path.open("rb") as file:
                file.seek(index.whole)
                kept.write_bytes(file.read())
            self._file(cell).cut(index.whole)
            self.repairs.append(
                f"{path}: the last {index.size - index.whole} bytes were cut off by a kill; "
                f"moved to {kept.name}"
            )
        pack = self.path / "blobs" / f"{cell}.jsonl"
        if pack.exists():
            _, whole = index_blobs(pack)
            if whole < pack.stat().st_size:
                self._pack(cell)[0].cut(whole)

    def _not_written(self, log: EpisodeLog, lines: bytes, error: OSError) -> StoreError:
        message = (
            f"{self.path}: episode {log.job.episode} of {log.job.cell} could not be written: "
            f"{error.strerror or error}"
        )
        with contextlib.suppress(OSError):
            with tempfile.NamedTemporaryFile(
                prefix="coordbench-rescue-", suffix=".jsonl", delete=False
            ) as file:
                file.write(encode_blobs(log.blobs) + lines)
            message += f"; it is kept in {file.name}"
        hint = _HINTS.get(error.errno or 0, "what was stored before is whole")
        return StoreError(message, hint=f"{hint}; then: coordbench run --resume {self.path}")


_HINTS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EFBIG: "the file size limit is reached: raise it",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the folder is not writable",
}


def _new_folder(root: Path, name: str) -> tuple[Path, str]:
    for number in range(1, _MOST_CLASHES):
        candidate = name if number == 1 else f"{name}-{number}"
        try:
            (root / candidate).mkdir()
        except FileExistsError:
            continue
        return root / candidate, candidate
    raise UsageError(f"{root} already holds {_MOST_CLASHES} runs named {name}")


def _locked(path: Path) -> int:
    descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise UsageError(
            f"{path} is being written by another process",
            hint="wait for it to end, or stop it",
        ) from error
    return descriptor


def _free_name(path: Path) -> Path:
    number = 1
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")
