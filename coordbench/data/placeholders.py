"""The `$names` that prompt templates may use. `coordbench.engine.prompts` fills them."""

from __future__ import annotations

__all__ = ["BY_TEMPLATE"]

_TABLE = frozenset(
    {
        "n",
        "rounds",
        "rules",
        "tools",
        "memory",
        "exchanges",
        "max_chars",
        "audience",
        "pick_up_left",
        "pick_up_right",
        "put_down_left",
        "put_down_right",
        "eat",
        "think",
    }
)
_SEAT = frozenset({"seat", "left_neighbour", "right_neighbour"})
_NOW = frozenset({"round", "rounds_left", "left", "right", "meals", "last", "heard"})

BY_TEMPLATE: dict[str, frozenset[str]] = {
    "system": _TABLE | _SEAT,
    "round": _TABLE | _SEAT | _NOW,
    "message": _TABLE | _SEAT | _NOW | {"exchange"},
}
"""Template of `Prompt` -> the names it may use.

A system prompt without a `_SEAT` name is the same for all seats and rounds of a cell.
"""
