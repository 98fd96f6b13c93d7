"""The conversation so far as turns, every call answered once; for APIs unlike OpenAI's chat."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from coordbench.api.models import (
    AssistantMessage,
    ChatMessage,
    ModelReply,
    RawCall,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from coordbench.data.strictjson import without_nan

__all__ = ["Conversation", "PastReply", "arguments_object", "conversation_of", "wire_name"]

_NO_ID = (None, "", "null")
_NO_RESULT = "(no result)"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


class PastReply(msgspec.Struct, frozen=True):
    """An earlier turn of the model.

    Attributes
    ----------
    ids : tuple of str or None
        One for each call; unique within the conversation. None only where `mint_id` gives none.
    results : tuple of str
        What came of each call; never empty text.
    """

    reply: ModelReply
    ids: tuple[str | None, ...]
    results: tuple[str, ...]


class Conversation(msgspec.Struct, frozen=True):
    """A conversation in order; a `str` is what the user said."""

    system: str
    turns: tuple[str | PastReply, ...]

    def replies(self) -> Iterator[PastReply]:
        """The model's turns."""
        for turn in self.turns:
            if isinstance(turn, PastReply):
                yield turn


def conversation_of(
    messages: Sequence[ChatMessage],
    *,
    keep_id: Callable[[str], bool] = bool,
    mint_id: Callable[[int], str | None] = "call{:05d}".format,
) -> Conversation:
    """Pair every call with its answer.

    Parameters
    ----------
    keep_id : callable
        Whether the API takes an id as it came.
    mint_id : callable
        Makes the id of the k-th call (from 0) that has no usable one.
    """
    system: list[str] = []
    turns: list[str | PastReply] = []
    taken: set[str] = set()
    minted = 0
    for at, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            system.append(message.text)
        elif isinstance(message, UserMessage):
            turns.append(message.text)
        elif isinstance(message, AssistantMessage):
            ids: list[str | None] = []
            for call in message.reply.calls:
                known = call.id if isinstance(call.id, str) else None
                if known in _NO_ID or known in taken or not keep_id(str(known)):
                    known = mint_id(minted)
                    minted += 1
                if known is not None:
                    taken.add(known)
                ids.append(known)
            results = _results(messages, at, len(ids)) if ids else ()
            turns.append(PastReply(message.reply, tuple(ids), results))
    return Conversation("\n\n".join(filter(None, system)), tuple(turns))


def arguments_object(call: RawCall) -> dict[str, Any]:
    """A call's arguments as an object, whatever came in."""
    value = call.arguments
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    # Never what JSON has no word for: not every client's encoder refuses it.
    return dict(without_nan(value)) if value and isinstance(value, dict) else {}


def wire_name(name: str | None) -> str:
    """A tool's name with only what every API allows, whatever the model sent."""
    return _NOT_IN_NAME.sub("_", name or "")[:_LONGEST_NAME] or "unknown"


def _results(messages: Sequence[ChatMessage], at: int, count: int) -> tuple[str, ...]:
    """What the tool turns right behind the reply at `at` say of each of its calls."""
    found: dict[int, str] = {}
    for message in messages[at + 1 :]:
        if not isinstance(message, ToolMessage):
            break
        found.setdefault(message.index, message.text)
    return tuple(found.get(index) or _NO_RESULT for index in range(count))
