"""Earlier turns in the form in which generateContent takes them back."""

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

__all__ = ["contents_of", "mint_id", "names_called", "was_sent"]

_MINTED = "coordbench-"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_ANSWERED = ("function", "unreadable")
_NO_ANSWER = "(no answer)"
_BEGIN = "Begin."

Part = dict[str, Any]


def mint_id(index: int) -> str:
    """An id for a call that came without one, as Gemini's calls mostly do."""
    return f"{_MINTED}{index}"


def was_sent(call_id: str) -> bool:
    """Whether an id is the API's own: only those go back to it."""
    return bool(call_id) and not call_id.startswith(_MINTED)


def contents_of(conversation: Conversation) -> list[dict[str, Any]]:
    """The `contents` of a request.

    The first turn is the user's and so is the last; right behind calls comes a turn with one
    response for each of them and nothing else; signatures go back on the very part they came on.
    """
    contents: list[dict[str, Any]] = []
    for turn in conversation.turns:
        if isinstance(turn, PastReply):
            if not contents:
                _add(contents, "user", [{"text": _BEGIN}])
            _add(contents, "model", _model(turn))
            responses = _responses(turn)
            if responses:
                contents.append({"role": "user", "parts": responses})
        elif turn.strip():
            contents.append({"role": "user", "parts": [{"text": turn}]})
    if not contents or contents[-1]["role"] == "model":
        _add(contents, "user", [{"text": _BEGIN}])
    return contents


def names_called(conversation: Conversation) -> list[str]:
    """The names of tools in earlier turns, each once, in the order of their first call."""
    names = [
        _name(call.name)
        for turn in conversation.replies()
        for call in turn.reply.calls
        if call.kind in _ANSWERED
    ]
    return list(dict.fromkeys(names))


def _add(contents: list[dict[str, Any]], role: str, parts: list[Part]) -> None:
    if contents and contents[-1]["role"] == role:
        contents[-1]["parts"] += parts
    else:
        contents.append({"role": role, "parts": parts})


def _model(turn: PastReply) -> list[Part]:
    reply = turn.reply
    parts = [part for kept in _kept(reply) if (part := _part(kept, turn)) is not None]
    if not any("functionCall" in part or part.get("text", "").strip() for part in parts):
        parts.append({"text": (reply.refusal or "").strip() or _NO_ANSWER})
    return parts


def _kept(reply: ModelReply) -> list[Mapping[str, Any]]:
    """The reply's parts in their order: kept with the reply where it is not the usual one."""
    kept = reply.native.get("parts") if isinstance(reply.native, Mapping) else None
    if isinstance(kept, list):
        return [part for part in kept if isinstance(part, Mapping)]
    return [{"text": reply.text}, *({"call": index} for index in range(len(reply.calls)))]


def _part(kept: Mapping[str, Any], turn: PastReply) -> Part | None:
    index = kept.get("call")
    if index is None:
        # An empty text may carry a signature.
        return dict(kept) if kept.get("thoughtSignature") or kept["text"].strip() else None
    call = turn.reply.calls[index]
    if call.kind not in _ANSWERED:
        return None
    made: Part = {"functionCall": {"name": _name(call.name), "args": arguments_object(call)}}
    if turn.ids[index] is not None:
        made["functionCall"]["id"] = turn.ids[index]
    if "thoughtSignature" in kept:
        made["thoughtSignature"] = kept["thoughtSignature"]
    return made


def _responses(turn: PastReply) -> list[Part]:
    responses: list[Part] = []
    for call, call_id, result in zip(turn.reply.calls, turn.ids, turn.results, strict=True):
        if call.kind in _ANSWERED:
            response = {"name": _name(call.name), "response": {"output": result}}
            if call_id is not None:
                response["id"] = call_id
            responses.append({"functionResponse": response})
    return responses


def _name(name: str | None) -> str:
    return name if name and _NAME.fullmatch(name) else wire_name(name)
