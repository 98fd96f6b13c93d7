"""A streamed chat completion, put together into the body that would have come in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from coordbench.api.models import ModelError

__all__ = ["body_from_chunks"]

_FIELDS = ("event:", "id:", "retry:", ":")
_TEXTS = ("content", "refusal", "reasoning", "reasoning_content", "thinking")
_LISTS = ("reasoning_details",)


def body_from_chunks(chunks: Iterable[str]) -> Mapping[str, Any]:
    """Merge the chunks of a stream.

    Parameters
    ----------
    chunks : iterable of str
        Lines of the event stream, with or without `data:` in front; comments and other fields of
        the protocol are skipped.

    Raises
    ------
    ModelError
        `stream_incomplete`: the stream ended without a stop reason, or within a line.
    """
    head: dict[str, Any] = {}
    usage: Any = None
    message = _Message()
    finish: dict[str, Any] = {}
    for line in chunks:
        data = line.strip()
        if not data or data.startswith(_FIELDS):
            continue
        data = data.removeprefix("data:").strip()
        if data == "[DONE]":
            break
        chunk = _decoded(data)
        if chunk.get("error") or chunk.get("object") == "error":
            return chunk
        head = head or {key: chunk.get(key) for key in ("id", "model")}
        usage = chunk.get("usage") or usage
        for choice in _mappings(chunk.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            if choice.get("error"):
                return {"choices": [choice]}
            for key in ("finish_reason", "native_finish_reason"):
                if choice.get(key):
                    finish.setdefault(key, choice[key])
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, Mapping):
                message.add(delta)
    if "finish_reason" not in finish:
        raise ModelError("stream_incomplete", "the stream ended without a stop reason", retry=True)
    return {**head, "usage": usage, "choices": [{**finish, "message": message.whole()}]}


def _decoded(data: str) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        text = f"a line of the stream is no JSON: {error}"
        raise ModelError("stream_incomplete", text, retry=True) from error
    if not isinstance(chunk, Mapping):
        raise ModelError("invalid_body", "a line of the stream is no JSON object", retry=True)
    return chunk


class _Message:
    """The message so far."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._lists: dict[str, list[Any]] = {}
        self._parts: list[Any] = []
        self._legacy: dict[str, str] = {}
        self._calls: list[dict[str, Any]] = []
        self._at: dict[Any, dict[str, Any]] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take in one delta."""
        for key in _TEXTS:
            value = delta.get(key)
            if isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
                if key == "content":
                    self._parts.append(value)
            elif key == "content" and isinstance(value, list):
                self._parts += value
        for key in _LISTS:
            value = delta.get(key)
            if isinstance(value, list):
                self._lists.setdefault(key, []).extend(value)
        legacy = delta.get("function_call")
        if isinstance(legacy, Mapping):
            for key in ("name", "arguments"):
                if isinstance(legacy.get(key), str):
                    self._legacy[key] = self._legacy.get(key, "") + legacy[key]
        for part in _mappings(delta.get("tool_calls")):
            self._add_call(part)

    def whole(self) -> dict[str, Any]:
        """The message, in the form in which it comes when it is not streamed."""
        message: dict[str, Any] = {key: "".join(texts) for key, texts in self._texts.items()}
        if any(not isinstance(part, str) for part in self._parts):
            message["content"] = self._parts
        message |= self._lists
        if self._calls:
            message["tool_calls"] = self._calls
        if self._legacy:
            message["function_call"] = self._legacy
        return message

    def _add_call(self, part: Mapping[str, Any]) -> None:
        function = part.get("function")
        function = function if isinstance(function, Mapping) else {}
        call = self._call_of(part, function.get("name"))
        for key in ("id", "type"):
            if part.get(key):
                call[key] = part[key]
        kind = part.get("type")
        if isinstance(kind, str) and isinstance(part.get(kind), Mapping) and kind != "function":
            call[kind] = {**call.get(kind, {}), **part[kind]}
        if not function:
            return
        known = call.setdefault("function", {})
        name = function.get("name")
        # Some servers repeat the whole name with every piece.
        if isinstance(name, str) and name and known.get("name") != name:
            known["name"] = known.get("name", "") + name
        arguments = function.get("arguments")
        if isinstance(arguments, str) and isinstance(known.get("arguments", ""), str):
            known["arguments"] = known.get("arguments", "") + arguments
        elif arguments is not None:
            known["arguments"] = arguments

    def _call_of(self, part: Mapping[str, Any], name: Any) -> dict[str, Any]:
        """The call that a piece belongs to: that of its index, unless it begins another.

        Some servers send no index, or the same one for every call.
        """
        index = part.get("index")
        index = index if isinstance(index, int) else None
        known = self._at.get(index)
        if known is None and index is None and self._calls and not (name or part.get("id")):
            known = self._calls[-1]
        another = (
            known is not None
            and bool(name)
            and bool(part.get("id"))
            and bool(known.get("id"))
            and part["id"] != known["id"]
        )
        begins = index is None and bool(name)
        if known is None or another or begins:
            known = {"type": "function"}
            self._calls.append(known)
        self._at[index] = known
        return known


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
