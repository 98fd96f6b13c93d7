"""Finding plugins: the entry points of the group `coordbench`, read one distribution at a time.

`importlib.metadata.entry_points()` reads all distributions at once, so one unreadable file
would hide every plugin.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError
from typing import Any

from coordbench import __version__
from coordbench.api.hookspecs import GROUP
from coordbench.plugins.problems import Problem, one_line, traceback_text

__all__ = ["CORE", "Found", "find_plugins", "normal"]

CORE = "coordbench"
_BUILTIN = "builtin"
_BUILTIN_MODULE = "coordbench.builtin"


class Found:
    """A plugin that is there, not imported yet.

    Parameters
    ----------
    value : str
        What the entry point names; two plugins with one value are one plugin.
    load : callable
        Imports the plugin.
    requires : tuple of str
        `Requires-Dist` and what else its metadata requires, unread.
    """

    __slots__ = ("dist", "load", "plugin", "requires", "requires_python", "value", "version")

    def __init__(
        self,
        plugin: str,
        dist: str,
        version: str,
        value: str,
        load: Callable[[], Any],
        requires: tuple[str, ...] = (),
        requires_python: str = "",
    ) -> None:
        self.plugin = plugin
        self.dist = dist
        self.version = version
        self.value = value
        self.load = load
        self.requires = requires
        self.requires_python = requires_python

    def named(self, name: str) -> bool:
        """Whether `name` means this plugin: its own name or its distribution's."""
        return name == self.plugin or normal(name) == normal(self.dist)

    def __repr__(self) -> str:
        return f"Found({self.plugin!r}, {self.dist!r}, {self.version!r})"


def normal(dist: str) -> str:
    """A distribution's name in the one spelling that indexes compare (PEP 503)."""
    return re.sub(r"[-_.]+", "-", dist).lower()


def find_plugins() -> tuple[list[Found], list[Problem]]:
    """Every plugin on `sys.path`, each once: the core's own first, then by name.

    A distribution that is on the path twice (a `lib64` that is a link to `lib`, a folder named
    twice, an older copy further back) counts once, as it does for `import`.
    """
    found: dict[tuple[str, str, str], Found] = {}
    problems: list[Problem] = []
    for dist in _distributions():
        label, version = _identity(dist)
        try:
            if dist.read_text("METADATA") is None and dist.read_text("PKG-INFO") is None:
                raise FileNotFoundError("METADATA is missing")
            entry_points = list(dist.entry_points)
            metadata: Any = dist.metadata
            requires = (
                *(dist.requires or ()),
                *(metadata.get_all("Requires-External") or ()),
                *_keywords(metadata),
            )
            requires_python = str(metadata.get("Requires-Python") or "")
        except Exception as error:  # whatever a broken file makes the parser raise
            problems.append(
                Problem(
                    plugin=label,
                    dist=label,
                    version=version,
                    stage="metadata",
                    code="bad_metadata",
                    error=f"its metadata cannot be read: {one_line(error)}",
                    hint=f"reinstall it: pip install --force-reinstall {label}",
                    traceback=traceback_text(error),
                )
            )
            continue
        for point in entry_points:
            if point.group.startswith(f"{GROUP}."):
                problems.append(_wrong_group(point, label, version))
            if point.group != GROUP or (label == CORE and point.name == _BUILTIN):
                continue
            key = (normal(label), point.name, point.value)
            found[key] = Found(
                point.name, label, version, point.value, point.load, requires, requires_python
            )
    # The core's own offers don't depend on how, or whether, it was installed.
    builtin = Found(
        _BUILTIN, CORE, __version__, _BUILTIN_MODULE, lambda: import_module(_BUILTIN_MODULE)
    )
    others = sorted(found.values(), key=lambda item: (item.plugin, normal(item.dist), item.value))
    return [builtin, *others], problems


def _distributions() -> Iterator[Distribution]:
    seen: set[str] = set()
    for dist in Distribution.discover():
        try:
            text = dist.read_text("entry_points.txt")
        except (OSError, UnicodeError):
            text = None
        if not text or (f"[{GROUP}]" not in text and f"[{GROUP}." not in text):
            continue
        name, _ = _identity(dist)
        if normal(name) in seen:
            continue
        seen.add(normal(name))
        try:
            # The first on the path is the one that `import` finds; it may be another copy.
            yield Distribution.from_name(name)
        except (PackageNotFoundError, ValueError):
            yield dist


def _wrong_group(point: EntryPoint, dist: str, version: str) -> Problem:
    return Problem(
        plugin=point.name,
        dist=dist,
        version=version,
        stage="metadata",
        code="bad_metadata",
        error=f'its entry point is in the group "{point.group}", which nobody reads',
        hint=f'there is one group, "{GROUP}"; the hooks say what kind of offer it is',
    )


def _identity(dist: Distribution) -> tuple[str, str]:
    """Name and version, also of a distribution whose METADATA is gone."""
    name: str | None = None
    version: str | None = None
    # Python 3.14 raises where METADATA is missing; others answer None or raise something else.
    with contextlib.suppress(Exception):
        name, version = dist.metadata["Name"], dist.metadata["Version"]
    if not name:
        folder = getattr(dist, "_path", None)
        stem = getattr(folder, "name", "").removesuffix(".dist-info").removesuffix(".egg-info")
        name, _, version = stem.partition("-")
    return name or "unknown", version or "unknown"


def _keywords(metadata: Any) -> list[str]:
    words: list[str] = []
    for line in metadata.get_all("Keywords") or ():
        for word in str(line).split(","):
            if words and word.strip()[:1] in ("<", ">", "=", "!", "~"):
                words[-1] += f",{word.strip()}"  # `name>=1,<2` is one keyword
            else:
                words.append(word.strip())
    return words
