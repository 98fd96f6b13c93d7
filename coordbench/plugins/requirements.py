"""What a plugin's metadata requires of the core, checked before it is imported.

A plugin may require a version of coordbench (`Requires-Dist: coordbench>=0.1,<0.2`), a version
of the plugin API (`coordbench-plugin-api>=1`, as a requirement or, since no such distribution
exists to install, as a keyword) and a version of Python.
"""

from __future__ import annotations

import re
import sys

from coordbench import __version__
from coordbench.api.hookspecs import API_VERSION
from coordbench.plugins.discovery import CORE, Found, normal

__all__ = ["PLUGIN_API", "required_name", "unmet"]

PLUGIN_API = "coordbench-plugin-api"

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^]]*\])?\s*"
    r"(?P<versions>\([^)]*\)|[^;()]*)\s*(?:;(?P<marker>.*))?"
)


def unmet(found: Found) -> tuple[str, str] | None:
    """The first requirement that does not hold.

    Returns
    -------
    (what, hint) or None
    """
    hosts = {CORE: __version__, PLUGIN_API: str(API_VERSION)}
    for text in found.requires:
        match = _REQUIREMENT.fullmatch(text.strip())
        if match is None or normal(match["name"]) not in hosts:
            continue
        name = normal(match["name"])
        versions = match["versions"].strip().strip("()").strip()
        if not _applies(match["marker"]) or _holds(versions, hosts[name]):
            continue
        what = CORE if name == CORE else "plugin API"
        return (
            f"it needs {what} {versions}, and this is {what} {hosts[name]}",
            f"install versions that go together: pip install --upgrade {CORE} {found.dist}",
        )
    python = ".".join(map(str, sys.version_info[:3]))
    if found.requires_python and not _holds(found.requires_python, python):
        return (
            f"it needs Python {found.requires_python}, and this is Python {python}",
            f"install a version made for it: pip install --force-reinstall {found.dist}",
        )
    return None


def required_name(requirement: str) -> str:
    """The distribution that a requirement names; empty where it can't be read."""
    match = _REQUIREMENT.fullmatch(requirement.strip())
    return match["name"] if match is not None else ""


def _applies(marker: str | None) -> bool:
    if not marker:
        return True
    # Imported late: few requirements have a marker, and this is slow to import.
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(marker.strip()).evaluate({"extra": ""})
    except (InvalidMarker, ValueError):
        return True


def _holds(versions: str, version: str) -> bool:
    if not versions or versions.startswith("@"):
        return True
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False
