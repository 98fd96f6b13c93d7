"""Requests to llama.cpp's chat endpoint, and what came back as a reply, for both tool modes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from coordbench.api import (
    AssistantMessage,
    ChatMessage,
    ModelReply,
    ModelRequest,
    RawCall,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.api.chatwire import messages_to_chat, tools_to_chat

__all__ = ["FIELD", "constrained_body", "constrained_reply", "native_body", "sampling_fields"]

FIELD = "tool"
"""The one key of a reply held to a JSON schema."""
_CALL_ID = "call00000"


def sampling_fields(request: ModelRequest, temperature: float, max_tokens: int) -> dict[str, Any]:
    """Every setting that shapes a reply, none left to the engine's default.

    The temperature is applied before top_p, as other engines do; llama.cpp's own order is the
    other one.
    """
    fields: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": request.sampling.top_p,
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "samplers": ["temperature", "top_p"],
    }
    if request.seed is not None:
        fields["seed"] = request.seed
    return fields


def native_body(request: ModelRequest) -> dict[str, Any]:
    """Messages and tools in the chat format; the model's template puts them into words."""
    body: dict[str, Any] = {
        "messages": messages_to_chat(
            request.messages,
            # llama.cpp's ids are random, and Mistral's template refuses them: all are minted.
            keep_id=lambda call_id: False,
            empty_content="",
            reasoning_field="reasoning_content",
        )
    }
    if request.tools:
        tools = _wanted(request)
        body["tools"] = tools_to_chat(tools)
        body["tool_choice"] = "required" if request.force else "auto"
        body["parallel_tool_calls"] = False
    return body


def constrained_body(request: ModelRequest, form: str) -> dict[str, Any]:
    """Messages as plain text, and the six names as a grammar or a JSON schema.

    No tools are sent: llama.cpp takes a grammar or tools, not both.
    """
    names = [tool.name for tool in _wanted(request)]
    body: dict[str, Any] = {
        "messages": _plain_messages(request.messages, _told(names, request.messages), form)
    }
    if not names:
        return body
    if form == "grammar":
        body["grammar"] = f"root ::= {' | '.join(map(json.dumps, names))}"
    else:
        body["json_schema"] = {
            "type": "object",
            "properties": {FIELD: {"enum": names}},
            "required": [FIELD],
            "additionalProperties": False,
        }
    return body


def constrained_reply(reply: ModelReply, request: ModelRequest, form: str) -> ModelReply:
    """The reply as a call of the tool that it names.

    Where the engine did not keep to the form, whatever came stays text, and is read as text.
    """
    if reply.stop != "stop" or reply.calls:
        return reply
    # Where the template opens a block of reasoning, all that the form let through stands in it.
    whole = reply.text if not reply.reasoning else "" if reply.text else reply.reasoning
    name = _name_in(whole, form)
    if name not in {tool.name for tool in _wanted(request)}:
        return reply
    return msgspec.structs.replace(
        reply,
        stop="tool_calls",
        calls=(RawCall(name, "{}", _CALL_ID),),
        text="",
        reasoning="",
        native=None,
    )


def _wanted(request: ModelRequest) -> Sequence[Tool]:
    if request.force is None:
        return request.tools
    return [tool for tool in request.tools if tool.name == request.force]


def _told(names: Sequence[str], messages: Sequence[ChatMessage]) -> str:
    """The names, where the prompt of the task does not say them all. What it says stays as it is,
    so that models are compared on one prompt.
    """
    said = "\n".join(
        message.text for message in messages if isinstance(message, SystemMessage | UserMessage)
    )
    if all(name in said for name in names):
        return ""
    return f"Answer with one of these names and nothing else: {', '.join(names)}."


def _name_in(text: str, form: str) -> str | None:
    if form == "grammar":
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if not isinstance(value, dict) or list(value) != [FIELD] or not isinstance(value[FIELD], str):
        return None
    name: str = value[FIELD]
    return name


def _said(reply: ModelReply, form: str) -> str:
    """An earlier reply, as the model wrote it."""
    if not reply.calls:
        return reply.text or "(no answer)"
    name = reply.calls[0].name or ""
    return name if form == "grammar" else json.dumps({FIELD: name})


def _plain_messages(messages: Sequence[ChatMessage], told: str, form: str) -> list[dict[str, Any]]:
    """The conversation without calls: what came of one opens the user turn after it."""
    chat: list[dict[str, Any]] = []
    effects: list[str] = []
    for message in messages:
        match message:
            case SystemMessage():
                chat.append({"role": "system", "content": message.text})
            case UserMessage():
                text = "\n\n".join([*dict.fromkeys(effects), message.text])
                chat.append({"role": "user", "content": text})
                effects = []
            case AssistantMessage():
                chat.append({"role": "assistant", "content": _said(message.reply, form)})
            case ToolMessage():
                effects.append(message.text)
    if told:
        system = next((turn for turn in chat if turn["role"] == "system"), None)
        if system is None:
            chat.insert(0, {"role": "system", "content": told})
        else:
            system["content"] = f"{system['content']}\n\n{told}"
    return chat
