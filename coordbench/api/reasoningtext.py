"""Reasoning that came inside the visible text, between an engine's own marks."""

from __future__ import annotations

import re

__all__ = ["split_reasoning"]

_PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
}
# `<|end|>` also ends other channels, so alone it says nothing.
_LONE_ENDS = frozenset(_PAIRS.values()) - {"<|end|>", "<channel|>"}
_ENDS = re.compile("|".join(map(re.escape, sorted(_LONE_ENDS))))
_MARKS = re.compile("|".join(map(re.escape, [*_PAIRS, *sorted(_LONE_ENDS)])))
_SIGNS = ("think", "THINK", "thought", "reasoning", "|inner_", "analysis")


def split_reasoning(text: str) -> tuple[str, str]:
    """(visible text, reasoning) of a text that may hold reasoning blocks.

    A block that never closes is reasoning to its end. A closing mark without an opening one ends
    reasoning that began in the prompt: all before it is reasoning. Linear in the text's length.
    """
    if not any(sign in text for sign in _SIGNS):
        return text, ""
    visible: list[str] = []
    thought: list[str] = []
    at = 0
    while mark := _MARKS.search(text, at):
        visible.append(text[at : mark.start()])
        end = _PAIRS.get(mark.group())
        if end is None:
            thought += visible
            visible, at = [], mark.end()
            continue
        close = text.find(end, mark.end())
        if close >= 0:
            thought.append(text[mark.end() : close])
            at = close + len(end)
            continue
        # Not closed by its own mark: another's ends all reasoning so far, as a lone one does.
        other = _ENDS.search(text, mark.end())
        if other is None:
            thought.append(text[mark.end() :])
            at = len(text)
            break
        thought += [*visible, text[mark.end() : other.start()]]
        visible, at = [], other.end()
    if at == 0:
        return text, ""
    visible.append(text[at:])
    return "".join(visible).strip(), "\n".join(filter(None, map(str.strip, thought)))
