r"""Strict JSON: no NaN, no Infinity, no lone surrogate, one record per `\n` line.

A value that JSON has no word for becomes null, and what it was is said beside it.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

__all__ = ["StrictJSONError", "decode", "encode", "pretty", "scrub", "without_nan"]

_ENCODER = msgspec.json.Encoder()


class StrictJSONError(ValueError):
    """The bytes are not strict JSON."""


def scrub(text: str) -> str:
    """The text with lone surrogates written as escapes, so that it can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def encode(value: Any) -> bytes:
    """Encode as strict JSON on one line.

    NaN and the infinities become null; where an object holds any, its key `reasons` says which
    member was what.
    """
    return _ENCODER.encode(without_nan(msgspec.to_builtins(value)))


def pretty(value: Any) -> bytes:
    """`encode`, indented for people and for diffs, with a final newline."""
    return msgspec.json.format(encode(value), indent=2) + b"\n"


def decode(data: bytes | str) -> Any:
    """Decode strict JSON.

    Raises
    ------
    StrictJSONError
        NaN, Infinity, trailing data, or anything else that is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise StrictJSONError(str(error)) from error


def without_nan(value: Any) -> Any:
    """Plain data with non-finite numbers replaced and lone surrogates escaped."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, dict):
        plain = {scrub(str(key)): without_nan(item) for key, item in value.items()}
        lost = {
            scrub(str(key)): _name(item)
            for key, item in value.items()
            if isinstance(item, float) and not math.isfinite(item)
        }
        if lost:
            known = plain.get("reasons")
            plain["reasons"] = (known if isinstance(known, dict) else {}) | lost
        return plain
    return value


def _name(value: float) -> str:
    if math.isnan(value):
        return "not a number"
    return "infinite" if value > 0 else "minus infinite"
