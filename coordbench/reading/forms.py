"""The forms in which engines write a call: JSON, a name with arguments, a Python call.

Each function reads at one position of a text and says where it stopped; none searches on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = [
    "NAME",
    "FoundCall",
    "arguments_at",
    "calls_after_mark",
    "calls_in",
    "calls_in_code",
    "json_at",
    "python_calls_at",
    "tag_arguments",
]

NAME = r"[^\W\d][^\s<>\[\](){}\"'`,;=|\uff5c]{0,79}"
MOST_CALLS = 64

_DECODER = json.JSONDecoder()
_SPACE_OR_FENCE = re.compile(r"(?:\s|```(?:json|python)?)*")
_BETWEEN = re.compile(r"[\s;,]*")
_NAMED = re.compile(rf"(?:call:)?({NAME})")
_THEN_OBJECT = re.compile(
    r"\s*(?:\[CALL_ID\]\s*[\w-]{0,64}\s*)?(?:\[ARGS\]|\u273fARGS\u273f:?|```(?:json)?)?\s*(?=\{)"
)
_THEN_NOTHING = re.compile(r"[ \t]*(?:[\r\n<]|\Z)")
_THEN_KEYS = re.compile(r"\s*(?:<tool_sep>\s*)?<(?:arg_key|param)")
_PYTHON_CALL = re.compile(rf"({NAME})\(([^()]{{0,300}})\)")
_PYTHON_LINE = re.compile(
    rf"[ \t]*(?:\w{{1,40}}[ \t]*=[ \t]*)?(?:print\([ \t]*)?({NAME})\(([^()]{{0,300}})\)\)?[ \t]*"
)
_TAG_END = re.compile(
    r"</[^<>\s]{0,40}(?:invoke|function|tool_call|function_call)>|<\|close\|>call"
)
_TAG_KEYS = re.compile(r"<(?:[^<>\s]{0,40}param|arg_key|\|open\|>argument)")
_LONGEST_TAG = 4000
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_LABEL_KEYS = frozenset({"name", "tool_name", "tool_call_id", "type", "id", "index"})
_DEEPEST = 4


class FoundCall(NamedTuple):
    """A call that stands in a text.

    `arguments` is a decoded object, JSON text, text that is no JSON, or None where the form has a
    place for arguments and nothing stands in it.
    """

    name: str
    arguments: Any


def calls_after_mark(text: str, at: int) -> tuple[list[FoundCall], int]:
    """Calls in whichever form follows the mark that opens them."""
    at = _skip(_SPACE_OR_FENCE, text, at)
    if text.startswith(("{", "["), at):
        found, end = json_at(text, at)
        if end > at:
            return [call for value in found for call in calls_in(value, marked=True)], end
        return python_calls_at(text, at)
    calls: list[FoundCall] = []
    while len(calls) < MOST_CALLS and (one := _named_at(text, at)) is not None:
        call, at = one
        calls.append(call)
        at = _skip(_BETWEEN, text, at)
    return calls, at


def json_at(text: str, at: int) -> tuple[list[Any], int]:
    """JSON values one after the other, between them only spaces, `;` and `,`."""
    values: list[Any] = []
    end = at
    while len(values) < MOST_CALLS and text.startswith(("{", "["), at):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        at = _skip(_BETWEEN, text, end)
    return values, end


def python_calls_at(text: str, at: int) -> tuple[list[FoundCall], int]:
    """The calls of a list such as `[eat(), think()]`; nothing where it is no such list."""
    calls: list[FoundCall] = []
    position = _skip(_BETWEEN, text, at + 1)
    while len(calls) < MOST_CALLS and (match := _PYTHON_CALL.match(text, position)):
        calls.append(_python_call(match))
        position = _skip(_BETWEEN, text, match.end())
    if not calls or not text.startswith("]", position):
        return [], at
    return calls, position + 1


def calls_in_code(text: str, at: int) -> tuple[list[FoundCall], int]:
    """Calls that are a line of their own, up to the end of the code fence."""
    fence = text.find("```", at)
    end = fence if fence >= 0 else len(text)
    calls = [
        _python_call(match)
        for line in text[at : min(end, at + _LONGEST_TAG)].splitlines()
        if (match := _PYTHON_LINE.fullmatch(line))
    ]
    return calls[:MOST_CALLS], end


def calls_in(value: Any, *, marked: bool, depth: int = 0) -> Iterator[FoundCall]:
    """The calls that a JSON value describes, in the shapes that engines write.

    Unless it is `marked`, an object must hold arguments to be a call. The declaration of a tool
    is no call of it.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value[:MOST_CALLS]:
            yield from calls_in(item, marked=marked, depth=depth + 1)
        return
    if not isinstance(value, dict):
        return
    for key in ("tool_calls", "function_calls", "tool_call", "function_call", "function"):
        inner = value.get(key)
        if isinstance(inner, dict | list):
            yield from calls_in(inner, marked=marked, depth=depth + 1)
            return
    name = next(
        (
            value[key]
            for key in ("name", "tool_name", "function")
            if isinstance(value.get(key), str)
        ),
        None,
    )
    held = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if name is None:
        if marked and len(value) == 1:
            ((name, arguments),) = value.items()
            if isinstance(arguments, dict):
                yield FoundCall(name, arguments)
        return
    if held is not None:
        if not _is_declaration(value):
            yield FoundCall(name, value[held])
    elif marked and set(value) <= _LABEL_KEYS:
        yield FoundCall(name, None)


def arguments_at(text: str, at: int) -> tuple[Any, int]:
    """(arguments, end) of a name that may be followed by an object."""
    if not text.startswith("{", at):
        return {}, at
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return text[at : at + 200], at + 1


def tag_arguments(text: str, at: int) -> tuple[Any, int]:
    """(arguments, end) of the body of a tag such as `<function=eat>`."""
    close = _TAG_END.search(text, at, at + _LONGEST_TAG)
    end = close.end() if close else at
    body = text[at : close.start() if close else at + _LONGEST_TAG]
    keys = _TAG_KEYS.search(body)
    if keys:
        return {"text": body[keys.start() :]}, end
    return arguments_at(body, _skip(_SPACE_OR_FENCE, body, 0))[0], end


def _named_at(text: str, at: int) -> tuple[FoundCall, int] | None:
    """`eat{}`, `eat[ARGS]{}`, `call:eat{}`, `eat()`, or a name with nothing behind it."""
    python = _PYTHON_CALL.match(text, at)
    if python:
        return _python_call(python), python.end()
    match = _NAMED.match(text, at)
    if not match:
        return None
    name, end = match.group(1), match.end()
    then = _THEN_OBJECT.match(text, end)
    if then:
        arguments, end = arguments_at(text, then.end())
        return FoundCall(name, arguments), end
    keys = _THEN_KEYS.match(text, end)
    if keys:
        return FoundCall(name, {"text": text[end : end + 200]}), keys.end()
    return (FoundCall(name, {}), end) if _THEN_NOTHING.match(text, end) else None


def _python_call(match: re.Match[str]) -> FoundCall:
    inner = match.group(2).strip()
    return FoundCall(match.group(1), {"text": inner} if inner else {})


def _is_declaration(value: dict[str, Any]) -> bool:
    schema = value.get("parameters")
    return "description" in value or (
        isinstance(schema, dict) and ("properties" in schema or schema.get("type") == "object")
    )


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
