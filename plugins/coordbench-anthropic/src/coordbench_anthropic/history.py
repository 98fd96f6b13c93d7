"""Earlier turns in the form in which the Messages API takes them back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from coordbench.api import ModelReply
from coordbench.api.conversation import (
    Conversation,
    PastReply,
    arguments_object,
    wire_name,
)

__all__ = ["keeps_id", "messages_of", "names_called"]

_ID = re.compile(r"[A-Za-z0-9_-]+")
_ANSWERED = ("function", "unreadable")
_NO_ANSWER = "(no answer)"
_BEGIN = "Begin."

Block = dict[str, Any]


def keeps_id(call_id: str) -> bool:
    """Whether the API takes an id as it came."""
    return _ID.fullmatch(call_id) is not None


def messages_of(conversation: Conversation) -> list[dict[str, Any]]:
    """The `messages` of a request.

    The first is a user turn and the last is one; roles alternate; results stand first in the turn
    behind the calls; no text is empty; thinking goes back as it came.
    """
    messages: list[dict[str, Any]] = []
    for turn in conversation.turns:
        if isinstance(turn, PastReply):
            if not messages:
                _add(messages, "user", [_text(_BEGIN)])
            _add(messages, "assistant", _assistant(turn))
            results = _results(turn)
            if results:
                _add(messages, "user", results)
        elif turn.strip():
            _add(messages, "user", [_text(turn)])
    if not messages or messages[-1]["role"] == "assistant":
        _add(messages, "user", [_text(_BEGIN)])
    return messages


def names_called(conversation: Conversation) -> list[str]:
    """The names of tools in earlier turns, each once, in the order of their first call."""
    names = [
        wire_name(call.name)
        for turn in conversation.replies()
        for call in turn.reply.calls
        if call.kind in _ANSWERED
    ]
    return list(dict.fromkeys(names))


def _add(messages: list[dict[str, Any]], role: str, content: list[Block]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += content
    else:
        messages.append({"role": role, "content": content})


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _assistant(turn: PastReply) -> list[Block]:
    reply = turn.reply
    blocks = [block for part in _parts(reply) if (block := _block(part, turn)) is not None]
    # A turn may neither be empty nor end with what the model thought.
    if not any(block["type"] in ("text", "tool_use") for block in blocks):
        said = (reply.refusal or "").strip() or _NO_ANSWER
        blocks.append(_text(said))
    return blocks


def _parts(reply: ModelReply) -> list[Mapping[str, Any]]:
    """The reply's parts in their order: kept with the reply where it is not the usual one."""
    kept = reply.native.get("content") if isinstance(reply.native, Mapping) else None
    if isinstance(kept, list):
        return [part for part in kept if isinstance(part, Mapping)]
    calls = [{"type": "call", "index": index} for index in range(len(reply.calls))]
    return [_text(reply.text), *calls]


def _block(part: Mapping[str, Any], turn: PastReply) -> Block | None:
    if part.get("type") != "call":
        return dict(part) if part.get("type") != "text" or part["text"].strip() else None
    index = part["index"]
    call = turn.reply.calls[index]
    if call.kind not in _ANSWERED:
        return None
    return {
        "type": "tool_use",
        "id": turn.ids[index],
        "name": wire_name(call.name),
        "input": arguments_object(call),
    }


def _results(turn: PastReply) -> list[Block]:
    return [
        {"type": "tool_result", "tool_use_id": call_id, "content": result}
        for call, call_id, result in zip(turn.reply.calls, turn.ids, turn.results, strict=True)
        if call.kind in _ANSWERED
    ]
