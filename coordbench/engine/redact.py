"""Keep keys out of everything that is written or shown."""

from __future__ import annotations

import os
import re
from functools import lru_cache

import msgspec

from coordbench.data.events import FailureRecord

__all__ = ["redact", "redact_failure"]

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"\b(?:sk|pk|rk|key|gsk|xai|hf)[-_][A-Za-z0-9_\-]{12,}|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?i:\bbearer\s+)[A-Za-z0-9_\-.=]{12,}"
)
_SHORTEST = 8


def redact(text: str) -> str:
    """Replace the values of key-like environment variables, and key-shaped words, by `***`."""
    for value in _values(frozenset(_named())):
        if value in text:
            text = text.replace(value, "***")
    return _SECRET_VALUE.sub("***", text)


def redact_failure(failure: FailureRecord) -> FailureRecord:
    """The same failure with its message redacted."""
    message = redact(failure.message)
    if message == failure.message:
        return failure
    return msgspec.structs.replace(failure, message=message)


def _named() -> list[str]:
    return [
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name)
    ]


@lru_cache(maxsize=4)
def _values(values: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(values, key=len, reverse=True))
