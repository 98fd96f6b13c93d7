"""Writing a report file, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from coordbench.data.errors import UsageError
from coordbench.store.files import replace_file

__all__ = ["write_report"]


def write_report(folder: Path, name: str, data: bytes) -> Path:
    """Write `data` to `folder/name`.

    Raises
    ------
    UsageError
        The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / name, data)
    except OSError as error:
        raise UsageError(
            f"cannot write {folder / name}: {error.strerror or error}",
            hint="name another folder: coordbench report RUN --out DIR",
        ) from error
    return folder / name
