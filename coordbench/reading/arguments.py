"""What a call's arguments say about it. None of the six tools takes any."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from coordbench.api.models import RawCall

__all__ = ["BAD_ARGUMENTS", "argument_flags", "found_flags"]

BAD_ARGUMENTS = "bad_arguments"

_NOTHING = ("", "null")


def argument_flags(call: RawCall) -> tuple[str, ...]:
    """What is unusual about a call's arguments; `bad_arguments` where they can't be read.

    The wire format says whether arguments are JSON text or an object (`call.form`); the other of
    the two is read as well, and flagged.
    """
    value = call.arguments
    if value is None or (isinstance(value, str) and value.strip() in _NOTHING):
        return ("empty_arguments",)
    if call.form == "object":
        if isinstance(value, Mapping):
            return _extra(value)
        return _text_flags(value, "arguments_not_object")
    if isinstance(value, Mapping):
        return ("arguments_object", *_extra(value))
    return _text_flags(value)


def found_flags(arguments: Any) -> tuple[str, ...]:
    """The same for a call found in text, where engines write objects and JSON text alike."""
    return argument_flags(
        RawCall(None, arguments, form="text" if isinstance(arguments, str) else "object")
    )


def _text_flags(value: Any, *flags: str) -> tuple[str, ...]:
    parsed = _object(value) if isinstance(value, str) else None
    return (BAD_ARGUMENTS,) if parsed is None else (*flags, *_extra(parsed))


def _extra(value: Mapping[Any, Any]) -> tuple[str, ...]:
    return ("extra_arguments",) if value else ()


def _object(text: str) -> dict[str, Any] | None:
    """The object that the text is the JSON of; None for all else."""
    try:
        value = json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)
