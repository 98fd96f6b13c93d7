"""The two file habits a run folder relies on: replace whole, and append whole."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

__all__ = ["AppendFile", "remove_leftovers", "replace_file", "sync_folder"]

_UNSYNCABLE = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})


def replace_file(path: Path, data: bytes) -> None:
    """Write `path` whole or not at all: temporary file, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove what a kill in the middle of `replace_file(path, ...)` left behind."""
    for temporary in path.parent.glob(f".{path.name}.*.tmp"):
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and user-space file systems sync files, and no folders.
        if error.errno not in _UNSYNCABLE:
            raise
    finally:
        os.close(descriptor)


class AppendFile:
    """A file that only grows by whole, fsynced pieces.

    Parameters
    ----------
    path : Path
        Created where it does not exist.

    Attributes
    ----------
    size : int
        Bytes that stand.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        existed = path.exists()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.size = os.lseek(self._descriptor, 0, os.SEEK_END)
        if not existed:
            sync_folder(path.parent)

    def append(self, data: bytes) -> None:
        """Append and fsync.

        Raises
        ------
        OSError
            Nothing was appended: the file is as it was before.
        """
        try:
            view = memoryview(data)
            written = 0
            while written < len(view):
                written += os.pwrite(self._descriptor, view[written:], self.size + written)
            os.fsync(self._descriptor)
        except BaseException:
            self.cut(self.size)
            raise
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Cut the file back to `size` bytes; shrinking works on a full disk too."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, size)
            os.fsync(self._descriptor)
        self.size = size

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
