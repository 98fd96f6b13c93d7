"""Whether an offer is one: checked when it is made, not when somebody first uses it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from coordbench.api.offers import Offer
from coordbench.plugins.problems import one_line

__all__ = ["offer_fault"]

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")


def offer_fault(offer: Any) -> str | None:
    """What is wrong with an offer; None where nothing is."""
    if not isinstance(offer, Offer):
        return f"{offer!r:.80} is {type(offer).__name__}, not Offer"
    name: Any = offer.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return (
            f'"{name}" is no name for an offer: lower-case letters, digits, "-", "_" and ".", '
            "a letter or digit at both ends"
        )
    summary: Any = offer.summary
    if not isinstance(summary, str) or not summary.strip() or "\n" in summary:
        return f'"{name}" needs a summary of one line'
    build: Any = offer.build
    if not callable(build):
        return f'"{name}": build is {type(build).__name__}, not callable'
    check: Any = offer.check
    if check is not None and not callable(check):
        return f'"{name}": check is {type(check).__name__}, not callable'
    for field in ("requires", "examples", "traits"):
        if not _words(getattr(offer, field)):
            return f'"{name}": {field} is {getattr(offer, field)!r:.80}, not a tuple of text'
    return _options_fault(name, offer.options)


def _options_fault(name: str, options: Any) -> str | None:
    if not isinstance(options, type) or not issubclass(options, msgspec.Struct):
        return f'"{name}": options is {options!r:.80}, not a msgspec.Struct class'
    if not options.__struct_config__.frozen:
        return f'"{name}": its options, {options.__name__}, are not frozen'
    try:
        # Compiles the types and makes the defaults, so both are known to work.
        msgspec.convert({}, options, strict=False)
    except Exception as error:  # unresolvable annotations raise anything
        return (
            f'"{name}": its options, {options.__name__}, cannot be made without arguments, as '
            f"every option needs a default and a type that text can become: {one_line(error)}"
        )
    return None


def _words(value: Any) -> bool:
    return isinstance(value, (tuple, list, set, frozenset)) and all(
        isinstance(item, str) for item in value
    )
