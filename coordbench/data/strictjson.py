r"""Strict JSON: no NaN, no Infinity, no lone surrogate, one record per `\n` line.

A value that JSON has no word for becomes null, and what it was is said beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
    member was what (`scores[2]` for one in a list). Numbers and arrays of numpy are taken too.

    Raises
    ------
    TypeError
        Something in it has no JSON.
    """
    return _ENCODER.encode(without_nan(msgspec.to_builtins(value, enc_hook=_plain)))


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
    except (ValueError, RecursionError) as error:
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
            where: _name(number)
            for key, item in value.items()
            for where, number in _non_finite(scrub(str(key)), item)
        }
        if lost:
            known = plain.get("reasons", {})
            if isinstance(known, dict):
                plain["reasons"] = known | lost
            else:
                plain["reasons_for_null"] = lost
        return plain
    return value


def _non_finite(where: str, value: Any) -> Iterator[tuple[str, float]]:
    """Non-finite numbers that no object of their own explains, and where they stand."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield where, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _non_finite(f"{where}[{index}]", item)


def _name(value: float) -> str:
    if math.isnan(value):
        return "not a number"
    return "infinite" if value > 0 else "minus infinite"


def _plain(value: Any) -> Any:
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError(f"objects of type {type(value).__name__} have no JSON")
    return plain()
