"""Offers: what a plugin provides, described without importing what it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

__all__ = ["NoOptions", "Offer"]

T_co = TypeVar("T_co", covariant=True)


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of an offer that takes none."""


class Offer(Generic[T_co]):
    """One thing a plugin provides.

    Parameters
    ----------
    name : str
        Lower case, letters, digits, `-`, `_` and `.`; unique within the plugin and kind.
    summary : str
        One line for `coordbench plugins`.
    build : callable
        `build(target, options)` makes the thing; heavy imports belong inside it. `target` is
        what follows the name (`openai/gpt-5.4` -> `gpt-5.4`), `""` where nothing does.
    options : type of msgspec.Struct
        Frozen, with a default for every field; decoded strictly from `key=value` pairs.
    requires : tuple of str
        Import names that `build` needs; a missing one is reported before anything is built.
    check : callable or None
        `check(target, options)` raises `UsageError` where `build` could not succeed here and now
        (no key, no weights, no such file). Cheap: imports, opens and calls nothing.
    traits : frozenset of str
        Facts the core may use: `scripted`, `deterministic`, `local`, `paid`, `bundled` (its
        examples run on this machine as installed), `target` (the name needs a target),
        `optional-target` (it may have one). Without either of the last two, a name with a
        target is refused.
    examples : tuple of str
        Whole names that work, for help texts: `openai/gpt-5.4,temperature=0.2`.
    """

    __slots__ = ("build", "check", "examples", "name", "options", "requires", "summary", "traits")

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        build: Callable[[str, Any], T_co],
        options: type[msgspec.Struct] = NoOptions,
        requires: tuple[str, ...] = (),
        check: Callable[[str, Any], None] | None = None,
        traits: frozenset[str] = frozenset(),
        examples: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.summary = summary
        self.build = build
        self.options = options
        self.requires = requires
        self.check = check
        self.traits = traits
        self.examples = examples

    def __repr__(self) -> str:
        return f"Offer({self.name!r})"
