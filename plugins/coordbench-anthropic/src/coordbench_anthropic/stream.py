"""A streamed message, put together into the body that would have come in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from coordbench.api import ModelError
from coordbench.api.eventstream import events_of

__all__ = ["message_from_events"]

_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""Type of a delta -> the type of its block, and the delta's field."""


def message_from_events(lines: Iterable[str]) -> Mapping[str, Any]:
    """Merge the events of a stream.

    Parameters
    ----------
    lines : iterable of str
        Lines of the event stream, with or without `data:` in front.

    Raises
    ------
    ModelError
        `stream_incomplete`: the stream ended before its stop reason.
    """
    message: dict[str, Any] = {}
    ended = False
    blocks: list[_Block] = []
    at: dict[Any, _Block] = {}
    for event in events_of(lines):
        if not isinstance(event, Mapping):
            raise ModelError("invalid_body", "an event is no JSON object", retry=True)
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            return {"type": "error", "error": event.get("error") or event}
        if kind == "message_start":
            message.update(_mapping(event.get("message")))
        elif kind == "content_block_start":
            block = _Block(_mapping(event.get("content_block")))
            blocks.append(block)
            at[_index(event)] = block
        elif kind == "content_block_delta":
            delta = _mapping(event.get("delta"))
            known = at.get(_index(event))
            if known is None:
                # Some proxies leave out the events that begin text.
                known = _Block({"type": _PIECES.get(str(delta.get("type")), ("unknown", ""))[0]})
                blocks.append(known)
                at[_index(event)] = known
            known.add(delta)
        elif kind == "message_delta":
            delta = _mapping(event.get("delta"))
            ended = ended or delta.get("stop_reason") is not None
            message.update({key: value for key, value in delta.items() if value is not None})
            message["usage"] = {**_mapping(message.get("usage")), **_counts(event.get("usage"))}
        elif kind == "message_stop":
            break
    if not ended:
        raise ModelError("stream_incomplete", "the stream ended before its stop reason", retry=True)
    begun = message.get("content")
    content = [*(begun if isinstance(begun, list) else []), *(block.whole() for block in blocks)]
    return {**message, "content": content}


class _Block:
    """A content block so far."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._start = dict(start)
        self._pieces: dict[str, list[str]] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take in one delta; those of a kind not known change nothing that is read."""
        _, field = _PIECES.get(str(delta.get("type")), ("", ""))
        piece = delta.get(field)
        if field and isinstance(piece, str):
            self._pieces.setdefault(field, []).append(piece)

    def whole(self) -> dict[str, Any]:
        """The block as it comes when it is not streamed."""
        block = self._start
        for field, pieces in self._pieces.items():
            text = "".join(pieces)
            if field == "partial_json":
                block["input"] = _input(text, block.get("input"))
            else:
                begun = block.get(field)
                block[field] = (begun if isinstance(begun, str) else "") + text
        return block


def _input(text: str, begun: Any) -> Any:
    if not text.strip():
        return begun
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


def _counts(usage: Any) -> dict[str, Any]:
    return {key: value for key, value in _mapping(usage).items() if value is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
