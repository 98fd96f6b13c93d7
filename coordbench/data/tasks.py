"""Task files: the shipped ones by name, any other by path."""

from __future__ import annotations

import os
from pathlib import Path

from coordbench.data.errors import SpecError, UnknownNameError
from coordbench.data.suggest import did_you_mean

__all__ = ["find_task", "shipped_tasks"]

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_tasks() -> dict[str, Path]:
    """Name -> file of every task that travels with coordbench, in the order of names."""
    inside = _PACKAGE / "shipped_tasks"
    folder = inside if inside.is_dir() else _PACKAGE.parent / "tasks"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_task(task: str | Path) -> Path:
    """File of a task.

    Parameters
    ----------
    task : str or Path
        A path, or the name of a shipped task, with or without `.toml`; `-` and `_` are the same.

    Raises
    ------
    UnknownNameError
        Neither a file nor a shipped task.
    SpecError
        A path to something that is no file.
    """
    path = Path(task)
    if path.is_file():
        return path
    name = os.fspath(task)
    shipped = shipped_tasks()
    plain = name.removesuffix(".toml").replace("-", "_").lower()
    if plain in shipped:
        return shipped[plain]
    if path.is_dir():
        raise SpecError(
            "is a folder, not a task file", path=path, hint=_inside(path) or _listed(shipped)
        )
    if path.parent != Path() or "/" in name:
        siblings = [other.name for other in _toml_files(path.parent)]
        match = did_you_mean(path.name, siblings)
        raise SpecError(f"no such file{match}", path=path, hint=_listed(shipped))
    local = [other.name for other in _toml_files(Path())]
    raise UnknownNameError(
        f'no task "{name}"{did_you_mean(name, [*shipped, *local])}', hint=_listed(shipped)
    )


def _toml_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.toml"))
    except OSError:
        return []


def _inside(folder: Path) -> str:
    names = [str(path) for path in _toml_files(folder)]
    return f"task files in it: {', '.join(names)}" if names else ""


def _listed(shipped: dict[str, Path]) -> str:
    return f"shipped tasks: {', '.join(shipped)}" if shipped else ""
