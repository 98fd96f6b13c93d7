"""Nearest matches for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "nearest"]


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice closest to `name`, case and `-`/`_` aside; None where none is close."""
    by_form: dict[str, str] = {}
    for choice in choices:
        by_form.setdefault(_form(choice), choice)
    found = get_close_matches(_form(name), by_form, n=1, cutoff=0.6)
    return by_form[found[0]] if found else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return `; did you mean "x"?` to append to a message, or an empty string."""
    match = nearest(name, choices)
    return f'; did you mean "{match}"?' if match is not None else ""


def _form(name: str) -> str:
    return name.casefold().replace("_", "-")
