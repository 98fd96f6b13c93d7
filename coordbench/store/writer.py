"""Writing a run: blobs, then events, then fsync, one episode at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from coordbench.api.executors import EpisodeLog
from coordbench.data.errors import StoreError, UsageError
from coordbench.data.events import Event
from coordbench.data.manifest import Manifest
from coordbench.data.strictjson import pretty, without_nan
from coordbench.store import rescue
from coordbench.store.blobs import encode_blobs, index_blobs
from coordbench.store.blocks import index_cell
from coordbench.store.files import AppendFile, remove_leftovers, replace_file, sync_folder
from coordbench.store.manifests import MANIFEST, read_manifest

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
    manifest : Manifest
    repairs : list of str
        What `open` cut off, and where it put it; what it took back.
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
        path = writer = None
        try:
            root.mkdir(parents=True, exist_ok=True)
            path, name = _new_folder(root, manifest.run)
            writer = cls(path, msgspec.structs.replace(manifest, run=name), _locked(path))
            _make_folders(path)
            replace_file(path / MANIFEST, pretty(writer.manifest))
            sync_folder(root)
        except OSError as error:
            if writer is not None:
                writer.close()
            if path is not None:
                shutil.rmtree(path, ignore_errors=True)
            raise UsageError(
                f"cannot write results to {root}: {error.strerror or error}",
                hint="name a folder you can write to: --out DIR",
            ) from error
        return writer

    @classmethod
    def open(cls, path: Path) -> RunWriter:
        """Open a run folder to go on with it.

        Torn tails are set aside first, so that no later append can glue to them, and episodes
        that an earlier process could only keep elsewhere are taken back.

        Raises
        ------
        UsageError
            It is no run folder, another process writes to it, or it cannot be written.
        """
        path = path.parent if path.name == MANIFEST else path
        manifest = read_manifest(path)
        writer = None
        try:
            writer = cls(path, manifest, _locked(path))
            writer._mend()
        except BaseException as error:
            if writer is not None:
                writer.close()
            if not isinstance(error, OSError):
                raise
            raise UsageError(
                f"cannot write to {path}: {error.strerror or error}",
                hint=_HINTS.get(error.errno or 0, "resume needs write access to the run's folder"),
            ) from error
        return writer

    def append(self, log: EpisodeLog) -> None:
        """Store one episode: durable when this returns.

        Raises
        ------
        StoreError
            It could not be written (disk full, folder gone). What was stored before is whole.
            Where the system's temporary folder could take this episode, the message names the
            file, and `open` takes it back.
        """
        cell = log.job.cell
        lines = encode_events(log.events)
        try:
            self._write(cell, log.blobs, lines)
        except OSError as error:
            raise self._not_written(log, lines, error) from error

    def update(self, **fields: Any) -> None:
        """Replace fields of the manifest.

        Raises
        ------
        StoreError
            It could not be written; the manifest on disk is the one before.
        """
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

    def _write(self, cell: str, blobs: Mapping[str, bytes], lines: bytes) -> None:
        """Append blobs, then the events that name them; both or neither."""
        pack, known = self._pack(cell)
        fresh = {digest: data for digest, data in blobs.items() if digest not in known}
        before = pack.size
        if fresh:
            pack.append(encode_blobs(fresh))
        try:
            self._file(cell).append(lines)
        except BaseException:
            if fresh:
                pack.cut(before)
            raise
        known.update(fresh)

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

    def _mend(self) -> None:
        remove_leftovers(self.path / MANIFEST)
        _make_folders(self.path)
        whole = {cell.id: self._repair(cell.id) for cell in self.manifest.cells}
        for rescued in rescue.kept_for(self.manifest):
            completed = whole.get(rescued.cell)
            if completed is None or rescued.episode in completed:
                continue
            self._write(rescued.cell, rescued.blobs, rescued.lines)
            if rescued.status == "completed":
                completed.add(rescued.episode)
            rescued.file.unlink()
            self.repairs.append(
                f"{self.path}: episode {rescued.episode} of {rescued.cell} was taken back from "
                f"{rescued.file}"
            )

    def _repair(self, cell: str) -> set[int]:
        """Set aside what a kill left half-written; return the episodes that are complete."""
        path = self.path / "cells" / f"{cell}.jsonl"
        index = index_cell(path)
        if index.size > index.whole:
            kept = _free_name(path.with_suffix(".torn"))
            with path.open("rb") as file:
                file.seek(index.whole)
                replace_file(kept, file.read())
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
        return {block.episode for block in index.blocks if block.status == "completed"}

    def _not_written(self, log: EpisodeLog, lines: bytes, error: OSError) -> StoreError:
        message = (
            f"{self.path}: episode {log.job.episode} of {log.job.cell} could not be written: "
            f"{error.strerror or error}"
        )
        kept = rescue.keep(self.manifest, log.job.cell, encode_blobs(log.blobs), lines)
        if kept is not None:
            message += f"; it is kept in {kept}, and resuming takes it back"
        hint = _HINTS.get(error.errno or 0, "what was stored before is whole")
        return StoreError(message, hint=f"{hint}; then: coordbench run --resume {self.path}")


_HINTS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EFBIG: "the file size limit is reached: raise it",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the folder is not writable",
}


def _make_folders(path: Path) -> None:
    for folder in ("cells", "blobs"):
        (path / folder).mkdir(exist_ok=True)


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
