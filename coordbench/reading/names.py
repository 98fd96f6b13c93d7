"""What a tool is called: exact names, compared by code point, and a table of near misses.

A near miss is the same words in another spelling. Forgiven: hyphens, underscores, spaces and
their Unicode look-alikes between the words, none of them at all, letter case and camel case, a
namespace that an engine put in front, a call counter or `()` behind. Never a synonym, never a
fragment of markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import msgspec

from coordbench.api.models import Tool
from coordbench.data.actions import Action

__all__ = ["NameTable", "own_name"]

# Hyphen, underscore, space; no-break space; then every dash that looks like a hyphen.
_SEPARATORS = str.maketrans(
    dict.fromkeys(
        "_ \u00a0\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63\uff0d\uff3f", "-"
    )
)
# Soft hyphen, zero-width characters and the byte-order mark are not to be seen at all.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_NAMESPACES = re.compile(
    r"^(?:(?:functions?|tools?|default_api|default_tools?|api|namespace|multi_tool_use)"
    r"(?:[.:/]|__)|mcp(?:__|[.:/])[\w-]{1,40}?(?:__|[.:/]))+",
    re.IGNORECASE,
)
_ENGINE_NAMESPACE = re.compile(r"^functions\.")
_COUNTER = re.compile(r":\d{1,6}$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DASHES = re.compile(r"-{2,}")
_LONGEST = 100


class NameTable(msgspec.Struct, frozen=True):
    """Wire name -> action, exact and near.

    Attributes
    ----------
    exact : mapping
        The names as offered on the wire.
    near : mapping
        Those names and the task's own in the one spelling that `_plain` gives them.
    """

    exact: Mapping[str, Action]
    near: Mapping[str, Action]

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> NameTable:
        """The table of the tools that a request offered."""
        exact = {tool.name: tool.action for tool in tools}
        near = {
            spelling: tool.action
            for tool in tools
            for name in (tool.action.value, tool.name)
            for spelling in _glued(_plain(name).split("-"))
        }
        return cls(exact, near)

    def find(self, name: object, *, near: bool) -> tuple[Action, bool] | None:
        """(action, whether by its exact name), or None for a name that is not known."""
        if not isinstance(name, str):
            return None
        action = self.exact.get(name)
        if action is not None:
            return action, True
        if not near or len(name) > _LONGEST:
            return None
        bare = _COUNTER.sub("", _NAMESPACES.sub("", name.strip())).removesuffix("()")
        action = self.near.get(_plain(bare))
        return None if action is None else (action, False)


def own_name(name: str) -> str:
    """The name inside the form `functions.name:0`, which some engines write around every name."""
    return _COUNTER.sub("", _ENGINE_NAMESPACE.sub("", name))


def _plain(name: str) -> str:
    """Lower-case words with one hyphen between them."""
    joined = _CAMEL.sub("-", name.translate(_INVISIBLE).translate(_SEPARATORS))
    return _DASHES.sub("-", joined).lower()


def _glued(words: Sequence[str]) -> Iterable[str]:
    """The words with a hyphen or nothing at each seam: pick-up-left, pickup-left, pickupleft."""
    for seams in product(("-", ""), repeat=len(words) - 1):
        yield "".join(word + seam for word, seam in zip(words, (*seams, ""), strict=True))
