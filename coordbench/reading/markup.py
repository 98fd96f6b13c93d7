"""Tool calls that an engine's parser left in the text: exact markup only, never prose.

Each family is a marker that only an engine or a chat template writes. Two forms have no marker
of their own and count only where they name a known tool: a pythonic list `[eat()]`, and a JSON
object that is the whole text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from coordbench.data.actions import Action
from coordbench.reading.names import nearest_action

__all__ = ["find_calls", "has_markup"]

_MARKERS = re.compile(
    r"""
      <tool_calls?>                          # Hermes, Qwen, GLM, Hunyuan, Jamba
    | </tool_call>
    | <function=                             # Qwen3-Coder, Llama custom
    | \[TOOL_CALLS\]                         # Mistral
    | <\|python_tag\|>                       # Llama 3
    | <\|?tool_calls?\|>                     # Granite, Phi-4
    | <(?:\w+:)?(?:function_calls|invoke|tool_call|function_call)\b[^<>]{0,80}>
    | <\uff5ctool\u2581calls?\u2581begin\uff5c>   # DeepSeek
    | <\|tool_calls?_(?:section_)?begin\|>   # Kimi
    | <\|channel\|>\s*commentary\s+to=       # Harmony
    | <start_function_call>                  # FunctionGemma
    | <TOOLCALL>                             # Nemotron
    | <\|START_ACTION\|>                     # Command
    | \bfunctools\s*\[                       # Phi
    | (?:```|''')\s*tool_code                # Gemini, Gemma
    | (?:```|''')\s*tool_call
    """,
    re.VERBOSE,
)
_PYTHONIC = re.compile(
    r"\[\s*([A-Za-z_][\w.-]{0,60}\([^()\[\]]{0,200}\)(?:\s*,\s*[A-Za-z_][\w.-]{0,60}\([^()\[\]]{0,200}\)){0,15})\s*\]"
)
_PY_CALL = re.compile(r"([A-Za-z_][\w.-]{0,60})\(([^()]{0,200})\)")
_XML_FUNCTION = re.compile(r"<function=([^<>\s]{1,80})>")
_INVOKE = re.compile(
    r"<(?:\w+:)?(?:invoke|function_call|tool_call)\s+name=[\"']([^\"'<>]{1,80})[\"']"
)
_KIMI = re.compile(r"<\|tool_call_begin\|>\s*([^\s<]{1,80})")
_HARMONY = re.compile(r"<\|channel\|>\s*commentary\s+to=([^\s<]{1,80})")
_GEMMA_FUNCTION = re.compile(r"<start_function_call>\s*call:([^\s{<]{1,80})")
_DEEPSEEK = re.compile(
    r"<\uff5ctool\u2581call\u2581begin\uff5c>(?:\s*function\s*<\uff5ctool\u2581sep\uff5c>)?\s*"
    r"([^\s<{`]{1,80})"
)
_MISTRAL_NAMED = re.compile(
    r"\[TOOL_CALLS\]\s*([A-Za-z_][\w.-]{0,60})\s*(?=\[(?:ARGS|CALL_ID)\]|\{)"
)
_TAG_NAMED = re.compile(r"<tool_call>\s*([A-Za-z_][\w.-]{0,60})\s*(?=\n|<arg_key>|</tool_call>|\{)")
_TOOL_CODE = re.compile(r"(?:```|''')\s*tool_code\b(.{0,2000})", re.DOTALL)
_PRINTED = re.compile(r"(?:print\(\s*)?((?:default_api\.)?[A-Za-z_][\w.-]{0,60})\(([^()]{0,200})\)")
_FENCED = re.compile(r"^```(?:json)?\s*(.*?)\s*```$", re.DOTALL)

_NAMED_BY_PATTERN = (
    _XML_FUNCTION,
    _INVOKE,
    _KIMI,
    _HARMONY,
    _GEMMA_FUNCTION,
    _DEEPSEEK,
    _MISTRAL_NAMED,
    _TAG_NAMED,
)
_LONGEST = 20_000
_MOST_OBJECTS = 64
_DECODER = json.JSONDecoder()


def has_markup(text: str, names: Mapping[str, Action]) -> bool:
    """Whether the text holds a tool call that an engine's parser missed."""
    if not text or not any(sign in text for sign in "<[{`'"):
        return False
    text = text[:_LONGEST]
    if _MARKERS.search(text):
        return True
    return bool(_whole_json(text, names) or _pythonic(text, names))


def find_calls(text: str, names: Mapping[str, Action]) -> list[str]:
    """Names of the calls in engine markup, in order; empty where none can be read exactly."""
    text = text[:_LONGEST]
    whole = _whole_json(text, names)
    if whole:
        return whole
    code = _TOOL_CODE.search(text)
    if code:
        inner = code.group(1).split("```")[0].split("'''")[0]
        return [match.group(1) for match in _PRINTED.finditer(inner)]
    if _MARKERS.search(text) is None:
        return _pythonic(text, names)
    for pattern in _NAMED_BY_PATTERN:
        found = [match.group(1) for match in pattern.finditer(text)]
        if found:
            return found
    start = _MARKERS.search(text)
    assert start is not None
    return [name for value in _objects(text[start.end() :]) for name in _names_in(value)]


def _whole_json(text: str, names: Mapping[str, Action]) -> list[str]:
    """Calls of a text that is nothing but JSON (or JSON in one fence) and names a known tool."""
    stripped = text.strip()
    fenced = _FENCED.match(stripped)
    if fenced:
        stripped = fenced.group(1)
    if not stripped.startswith(("{", "[")):
        return []
    values = list(_objects(stripped, whole=True))
    found = [name for value in values for name in _names_in(value)]
    known = [name for name in found if name in names or nearest_action(name) is not None]
    return found if found and len(known) == len(found) else []


def _pythonic(text: str, names: Mapping[str, Action]) -> list[str]:
    for match in _PYTHONIC.finditer(text):
        found = [call.group(1) for call in _PY_CALL.finditer(match.group(1))]
        if found and all(name in names or nearest_action(name) is not None for name in found):
            return found
    return []


def _objects(text: str, *, whole: bool = False) -> Iterator[Any]:
    """JSON values one after the other; between them only spaces, separators and tags.

    With `whole`, nothing at all is yielded unless the text holds nothing else.
    """
    values: list[Any] = []
    position = 0
    while len(values) < _MOST_OBJECTS:
        while position < len(text) and text[position] in " \t\r\n;,":
            position += 1
        if position >= len(text):
            break
        if text[position] not in "{[":
            if whole:
                return
            opening = re.compile(r"[{\[]").search(text, position)
            if opening is None:
                break
            position = opening.start()
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            if whole:
                return
            break
        values.append(value)
    yield from values


def _names_in(value: Any) -> Iterator[str]:
    """Names of the calls that a JSON value describes, in the shapes engines write."""
    if isinstance(value, list):
        for item in value:
            yield from _names_in(item)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("tool_calls"), list):
        yield from _names_in(value["tool_calls"])
        return
    inner = value.get("function")
    if isinstance(inner, dict):
        yield from _names_in(inner)
        return
    for key in ("name", "tool_name", "tool", "function"):
        name = value.get(key)
        if isinstance(name, str) and _is_call(value):
            yield name
            return


def _is_call(value: dict[str, Any]) -> bool:
    """A call says what it passes; an object that only has a name may be anything."""
    return any(key in value for key in ("arguments", "parameters", "args", "input")) or set(
        value
    ) <= {"name", "type", "id"}
