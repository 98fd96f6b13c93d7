"""Near-miss names of the six tools, by an explicit table of what is forgiven.

Forgiven: hyphens, underscores, spaces and their Unicode look-alikes between the words; letter
case and camel case; a namespace that an engine put in front. Never a synonym.
"""

from __future__ import annotations

import re
from functools import lru_cache

from coordbench.data.actions import Action

__all__ = ["nearest_action"]

_SEPARATORS = str.maketrans(
    dict.fromkeys(
        "-_ \u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63\uff0d\uff3f", ""
    )
)
_NAMESPACES = re.compile(
    r"^(?:(?:functions?|tools?|default_api|default_tools?|api|namespace|multi_tool_use|mcp|"
    r"coordbench|table|philosopher)(?:[.:/]|__))+",
    re.IGNORECASE,
)
_CALL_COUNTER = re.compile(r":\d+$")
_LONGEST = 64

_ACTIONS = {action.value.replace("-", ""): action for action in Action}


@lru_cache(maxsize=1024)
def _nearest(name: str) -> Action | None:
    bare = _CALL_COUNTER.sub("", _NAMESPACES.sub("", name.strip()))
    return _ACTIONS.get(bare.translate(_SEPARATORS).lower())


def nearest_action(name: str) -> Action | None:
    """The tool that `name` is a forgivable spelling of, or None."""
    return _nearest(name) if len(name) <= _LONGEST else None
