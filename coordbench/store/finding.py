"""Runs by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from coordbench.data.errors import UnknownNameError
from coordbench.store.manifests import MANIFEST

__all__ = ["find_run", "nearest_hint"]

_LATEST = "latest"
_MOST_SHOWN = 10


def find_run(name: str, roots: Sequence[Path | str] = ("runs", "reports")) -> Path:
    """The folder of a run: a path, `latest`, or the start of a run's name under `roots`.

    Parameters
    ----------
    name : str
        `latest` is the run whose manifest was written last.

    Raises
    ------
    UnknownNameError
        There is none, or several start so.
    """
    path = Path(name)
    if path.name == MANIFEST and _exists(path):
        return path.parent
    if _exists(path / MANIFEST):
        return path
    runs = [
        folder.parent
        for root in roots
        if Path(root).is_dir()
        for folder in sorted(Path(root).glob(f"*/{MANIFEST}"))
    ]
    if name == _LATEST and runs:
        return max(runs, key=lambda run: (run / MANIFEST).stat().st_mtime_ns)
    matches = [run for run in runs if run.name == name] or [
        run for run in runs if name and run.name.startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownNameError(
            f"{len(matches)} runs start with {name!r}",
            hint=f"name one: {_shown([str(run) for run in matches])}",
        )
    if _exists(path):
        # It is what was meant; opening it says what it lacks.
        return path
    where = " or ".join(f"{root}/" for root in roots)
    if not runs:
        raise UnknownNameError(
            f"no run {name!r}: there is no such folder, and none under {where}",
            hint="`coordbench run` makes one",
        )
    raise UnknownNameError(
        f"no run {name!r} under {where}", hint=nearest_hint(name, [run.name for run in runs])
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for a file, a folder that may not be entered
        return False


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to `name`, else the known names."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}?" if near else f"known: {_shown(names)}"


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more
