"""Requests in the OpenAI-style chat format: tools, and the conversation so far."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn

from coordbench.api.models import (
    AssistantMessage,
    ChatMessage,
    ModelReply,
    RawCall,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)

__all__ = ["arguments_text", "messages_to_chat", "nine_characters", "tools_to_chat"]

_NO_ID = (None, "", "null")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_NO_ANSWER = "(no answer)"
_NO_RESULT = "(no result)"
_LONGEST_NAME = 64


def tools_to_chat(tools: Sequence[Tool], strict: bool = False) -> list[dict[str, Any]]:
    """Tool declarations. `strict` asks for exact arguments and closes the parameter object."""
    declared = []
    for tool in tools:
        parameters = tool.parameters
        if strict:
            required = list(parameters.get("properties", {}))
            parameters = {**parameters, "required": required, "additionalProperties": False}
        function: dict[str, Any] = {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
        }
        if strict:
            function["strict"] = True
        declared.append({"type": "function", "function": function})
    return declared


def nine_characters(call_id: str) -> bool:
    """Whether an id is nine letters and digits, as Mistral demands (pass as `keep_id`)."""
    return _NINE.fullmatch(call_id) is not None


def messages_to_chat(
    messages: Sequence[ChatMessage],
    *,
    keep_id: Callable[[str], bool] = bool,
    mint_id: Callable[[int], str] = "call{:05d}".format,
    empty_content: Literal[""] | None = None,
    after_tool: str | None = None,
    reasoning_field: str | None = None,
) -> list[dict[str, Any]]:
    """The conversation so far, in the form in which every server takes it.

    Every call is answered, once, right behind the turn that made it; ids match and are minted
    where a call came without a usable one; arguments are JSON text of an object and names hold
    only what the API allows, whatever the model sent; no turn is empty.

    Parameters
    ----------
    keep_id : callable
        Whether the API takes an id as it came.
    mint_id : callable
        Makes the id of the k-th call (from 0) that has no usable one; nine letters and digits by
        default.
    empty_content : str or None
        Content of an assistant turn that has calls and no text; some servers refuse null.
    after_tool : str or None
        Text of an assistant turn put between a tool turn and a user turn, for APIs that refuse
        the one right after the other.
    reasoning_field : str or None
        Field of an assistant turn in which the server wants its reasoning back.
    """
    chat: list[dict[str, Any]] = []
    ids: list[str] = []
    waiting: dict[int, str] = {}
    minted = 0

    def close() -> None:
        chat.extend(_tool_turn(waiting[index], _NO_RESULT) for index in sorted(waiting))
        waiting.clear()

    for message in messages:
        if isinstance(message, ToolMessage):
            call_id = waiting.pop(message.index, None)
            if call_id is not None:
                chat.append(_tool_turn(call_id, message.text))
            continue
        close()
        if isinstance(message, AssistantMessage):
            ids = []
            for call in message.reply.calls:
                usable = call.id not in _NO_ID and call.id not in ids and keep_id(str(call.id))
                ids.append(str(call.id) if usable else mint_id(minted))
                minted += not usable
            waiting.update(enumerate(ids))
            chat.append(_assistant(message.reply, ids, empty_content, reasoning_field))
            continue
        user = isinstance(message, UserMessage)
        if user and after_tool is not None and chat and chat[-1]["role"] == "tool":
            chat.append({"role": "assistant", "content": after_tool})
        if user or isinstance(message, SystemMessage):
            chat.append({"role": "user" if user else "system", "content": message.text})
    close()
    return chat


def arguments_text(call: RawCall) -> str:
    """A call's arguments as JSON text of an object, whatever came in."""
    value = call.arguments
    if value == "{}":
        return "{}"
    try:
        if isinstance(value, str):
            decoded = json.loads(value, parse_constant=_not_json)
            return value if isinstance(decoded, dict) else "{}"
        return json.dumps(value, allow_nan=False) if isinstance(value, Mapping) else "{}"
    except (ValueError, TypeError, RecursionError):
        return "{}"


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _assistant(
    reply: ModelReply, ids: Sequence[str], empty_content: str | None, reasoning_field: str | None
) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": "assistant", "content": reply.text or empty_content}
    if reasoning_field is not None:
        kept = reply.native.get(reasoning_field) if isinstance(reply.native, Mapping) else None
        if kept or reply.reasoning:
            turn[reasoning_field] = kept or reply.reasoning
    if reply.calls:
        turn["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": _allowed_name(call.name), "arguments": arguments_text(call)},
            }
            for call, call_id in zip(reply.calls, ids, strict=True)
        ]
    elif not reply.text:
        turn["content"] = reply.refusal or _NO_ANSWER
    return turn


def _tool_turn(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text or _NO_RESULT}


def _allowed_name(name: str | None) -> str:
    return _NOT_IN_NAME.sub("_", name or "")[:_LONGEST_NAME] or "unknown"
