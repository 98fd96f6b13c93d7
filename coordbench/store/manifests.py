"""The manifest of a run folder, and whether a run may be continued under a plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from coordbench.data.errors import ResumeError, UsageError
from coordbench.data.manifest import FORMAT, Manifest
from coordbench.data.plan import Plan

__all__ = ["MANIFEST", "check_resume", "read_manifest"]

MANIFEST = "manifest.json"
_MOST_DIFFERENCES = 5
_MOST_CHARS = 60


def read_manifest(path: Path) -> Manifest:
    """The manifest of the run folder `path`.

    Raises
    ------
    UsageError
        There is none, it cannot be read, or it is of another format.
    """
    file = path / MANIFEST
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        what = f"it holds no {MANIFEST}" if path.is_dir() else "there is no such folder"
        raise UsageError(
            f"{path} is not a run folder: {what}",
            hint="name a folder that `coordbench run` made, or `latest`",
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        found = msgspec.json.decode(data)
        format_ = found.get("format") if isinstance(found, dict) else None
        if format_ is not None and format_ != FORMAT:
            raise UsageError(
                f"{file}: format {format_!r}, and this coordbench reads format {FORMAT}",
                hint=f"use the version that wrote it: {found.get('coordbench') or 'unknown'}",
            )
        manifest = msgspec.convert(found, Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}",
            hint="the file was changed or is of another program; bring it back from a copy",
        ) from error
    for cell in manifest.cells:
        # Ids become file names, and a run folder may come from anybody.
        if cell.id in ("", ".", "..") or "/" in cell.id or "\0" in cell.id:
            raise UsageError(f"{file}: the cell id {cell.id!r} is no file name")
    return manifest


def check_resume(manifest: Manifest, plan: Plan) -> None:
    """Refuse to mix two experiments in one run folder.

    Raises
    ------
    ResumeError
        The plan asked for is not the one that was recorded; names what differs.
    """
    if manifest.digest == plan.digest:
        return
    recorded = msgspec.to_builtins(manifest.spec)
    asked = msgspec.to_builtins(plan.spec)
    found = list(_differences(recorded, asked))
    if not found:
        found = list(_cell_differences(manifest, plan)) or ["the order of the cells"]
    shown = "; ".join(found[:_MOST_DIFFERENCES])
    more = f"; and {len(found) - _MOST_DIFFERENCES} more" if len(found) > _MOST_DIFFERENCES else ""
    raise ResumeError(
        f"run {manifest.run} was recorded with other settings: {shown}{more}",
        hint="resume without those options, or start a new run",
    )


def _cell_differences(manifest: Manifest, plan: Plan) -> Iterator[str]:
    recorded = {cell.id: msgspec.to_builtins(cell) for cell in manifest.cells}
    asked = {cell.id: msgspec.to_builtins(cell) for cell in plan.cells}
    for cell in [*recorded, *(cell for cell in asked if cell not in recorded)]:
        if cell not in asked:
            yield f"cell {cell} is gone"
        elif cell not in recorded:
            yield f"cell {cell} is new"
        else:
            yield from _differences(recorded[cell], asked[cell], f"cell {cell}: ")


def _differences(recorded: Any, asked: Any, key: str = "") -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in [*recorded, *(name for name in asked if name not in recorded)]:
            dot = "." if key and not key.endswith(" ") else ""
            yield from _differences(recorded.get(name), asked.get(name), f"{key}{dot}{name}")
    elif recorded != asked:
        yield f"{key} was {_short(recorded)}, now {_short(asked)}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 3] + "..."
