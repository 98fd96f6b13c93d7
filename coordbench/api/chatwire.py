"""The OpenAI-style chat wire format, as pure functions.

OpenAI, vLLM, llama.cpp, OpenRouter, Together, Ollama and (nearly) Mistral speak it. Nothing here
does I/O, and nothing decides what a reply means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordbench.api.httperrors import body_error
from coordbench.api.models import (
    AssistantMessage,
    ChatMessage,
    ModelError,
    ModelReply,
    RawCall,
    StopReason,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.data.events import Usage

__all__ = [
    "messages_to_chat",
    "reply_from_chat",
    "reply_from_chat_stream",
    "split_reasoning",
    "tools_to_chat",
    "usage_from_chat",
]

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "safety": "refused",
}
_FAILED_STOPS = frozenset({"error", "failed", "abort", "cancelled"})
_THINK = re.compile(r"^\s*<(think|thinking|reasoning)>(.*?)</\1>", re.DOTALL)
_THINK_OPEN = re.compile(r"^\s*<(think|thinking|reasoning)>", re.DOTALL)
_THINK_END = "</think>"


def reply_from_chat(
    body: Any,
    *,
    max_tokens: int | None = None,
    request_id: str | None = None,
    sent: Mapping[str, Any] | None = None,
) -> ModelReply:
    """Turn a chat completion body into a reply.

    Parameters
    ----------
    body : mapping
        The decoded response body.
    max_tokens : int or None
        The cap that was sent.
    sent : mapping
        Settings that were sent.

    Raises
    ------
    ModelError
        The body is an error in disguise (an `error` object, no choices, a failed stop reason), or
        no chat completion at all.
    """
    if not isinstance(body, Mapping):
        raise ModelError("invalid_body", "the body is no JSON object", retry=True)
    if body.get("error"):
        raise body_error(body["error"])
    choices = body.get("choices")
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        if "choices" not in body:
            raise ModelError("invalid_body", "the body has no choices", retry=True)
        raise ModelError("provider_error", "the list of choices is empty", retry=True)
    choice = choices[0]
    if not isinstance(choice, Mapping):
        raise ModelError("invalid_body", "a choice is no JSON object", retry=True)
    if choice.get("error"):
        raise body_error(choice["error"], inside_choice=True)
    native = choice.get("finish_reason")
    if native in _FAILED_STOPS:
        raise ModelError("provider_error", f"the stop reason is {native!r}", retry=True)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise ModelError("invalid_body", "a choice has no message", retry=True)
    text, refusal_text = _text_of(message.get("content"))
    reasoning = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
    text, thought = split_reasoning(text)
    refusal = _string(message.get("refusal")) or refusal_text or None
    calls = _calls_of(message)
    return ModelReply(
        stop=_stop(native, calls),
        stop_native=None if native is None else str(native),
        calls=calls,
        text=text,
        reasoning="\n".join(part for part in (reasoning, thought) if part),
        refusal=refusal,
        usage=usage_from_chat(body.get("usage")),
        max_tokens=max_tokens,
        request_id=request_id or _string(body.get("id")) or None,
        model=_string(body.get("model")) or None,
        sent=dict(sent or {}),
        native=_replayable(message),
        extras=_extras(choice),
    )


def reply_from_chat_stream(
    lines: Iterable[str],
    *,
    max_tokens: int | None = None,
    request_id: str | None = None,
    sent: Mapping[str, Any] | None = None,
) -> ModelReply:
    """Put the data lines of a stream together and turn them into a reply.

    Raises
    ------
    ModelError
        `stream_incomplete` where the stream ends without a stop reason; else as
        `reply_from_chat`.
    """
    content: list[str] = []
    reasoning: list[str] = []
    refusal: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    head: dict[str, Any] = {}
    usage: Any = None
    finish: Any = None
    legacy: dict[str, str] = {}
    for line in lines:
        data = line.removeprefix("data:").strip()
        if not data or data.startswith(":"):
            continue
        if data == "[DONE]":
            break
        try:
            chunk = json.loads(data)
        except ValueError as error:
            raise ModelError(
                "stream_incomplete", f"a line of the stream is no JSON: {error}", retry=True
            ) from error
        if not isinstance(chunk, Mapping):
            raise ModelError("invalid_body", "a line of the stream is no object", retry=True)
        if chunk.get("error"):
            raise body_error(chunk["error"])
        head = head or {"id": chunk.get("id"), "model": chunk.get("model")}
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            finish = choice.get("finish_reason") or finish
            content.append(_text_of(delta.get("content"))[0])
            reasoning.append(
                _string(delta.get("reasoning_content")) or _string(delta.get("reasoning"))
            )
            refusal.append(_string(delta.get("refusal")))
            for key, value in (delta.get("function_call") or {}).items():
                legacy[key] = legacy.get(key, "") + _string(value)
            for position, part in enumerate(delta.get("tool_calls") or ()):
                _merge_call(calls, position, part)
    if finish is None:
        raise ModelError("stream_incomplete", "the stream ended before its end", retry=True)
    message: dict[str, Any] = {"content": "".join(content), "reasoning": "".join(reasoning)}
    if "".join(refusal):
        message["refusal"] = "".join(refusal)
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    if legacy:
        message["function_call"] = legacy
    body = {**head, "usage": usage, "choices": [{"message": message, "finish_reason": finish}]}
    return reply_from_chat(body, max_tokens=max_tokens, request_id=request_id, sent=sent)


def usage_from_chat(usage: Any) -> Usage:
    """Tokens as the provider counted them; what it did not say stays None."""
    if not isinstance(usage, Mapping):
        return Usage()
    prompt_details = usage.get("prompt_tokens_details") or {}
    output_details = usage.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(prompt_details.get("cached_tokens")),
        reasoning_tokens=_count(output_details.get("reasoning_tokens")),
    )


def split_reasoning(text: str) -> tuple[str, str]:
    """(visible text, reasoning) of a text that begins with a reasoning block.

    A block that never closes is all reasoning; a lone closing tag ends reasoning whose opening
    tag was part of the prompt.
    """
    match = _THINK.match(text)
    if match:
        return text[match.end() :].lstrip(), match.group(2).strip()
    opened = _THINK_OPEN.match(text)
    if opened:
        return "", text[opened.end() :].strip()
    if _THINK_END in text:
        before, _, after = text.partition(_THINK_END)
        return after.lstrip(), before.strip()
    return text, ""


def tools_to_chat(tools: Sequence[Tool], *, strict: bool = False) -> list[dict[str, Any]]:
    """Tool declarations. `strict` asks for exact arguments and closes the parameter object."""
    declared = []
    for tool in tools:
        function: dict[str, Any] = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        if strict:
            function["strict"] = True
            function["parameters"] = {
                **tool.parameters,
                "required": list(tool.parameters.get("properties", {})),
                "additionalProperties": False,
            }
        declared.append({"type": "function", "function": function})
    return declared


def messages_to_chat(
    messages: Sequence[ChatMessage], *, mint_id: Any = None
) -> list[dict[str, Any]]:
    """A conversation: roles in order, every call answered once, ids matched and minted.

    Parameters
    ----------
    mint_id : callable or None
        `mint_id(k) -> str` makes the id of the k-th call that came without a usable one; by
        default nine letters and digits, which every server accepts.
    """
    mint = mint_id or (lambda number: f"call{number:05d}")
    chat: list[dict[str, Any]] = []
    ids: list[str] = []
    minted = 0
    for message in messages:
        if isinstance(message, SystemMessage):
            chat.append({"role": "system", "content": message.text})
        elif isinstance(message, UserMessage):
            chat.append({"role": "user", "content": message.text})
        elif isinstance(message, AssistantMessage):
            ids = []
            for call in message.reply.calls:
                usable = call.id not in (None, "", "null") and call.id not in ids
                ids.append(str(call.id) if usable else mint(minted))
                minted += not usable
            chat.append(_assistant(message.reply, ids))
        elif isinstance(message, ToolMessage):
            call_id = ids[message.index] if message.index < len(ids) else mint(minted)
            chat.append({"role": "tool", "tool_call_id": call_id, "content": message.text})
    return chat


def _assistant(reply: ModelReply, ids: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        entry["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": call.name or "unknown", "arguments": arguments_text(call)},
            }
            for call, call_id in zip(reply.calls, ids, strict=True)
        ]
    elif not reply.text:
        # An assistant turn with neither text nor calls is refused by most servers.
        entry["content"] = reply.refusal or "(no answer)"
    return entry


def arguments_text(call: RawCall) -> str:
    """Arguments as JSON text of an object, whatever came in."""
    value = call.arguments
    if isinstance(value, str):
        try:
            return value if isinstance(json.loads(value), dict) else "{}"
        except (ValueError, RecursionError):
            return "{}"
    return json.dumps(value) if isinstance(value, Mapping) else "{}"


def _calls_of(message: Mapping[str, Any]) -> tuple[RawCall, ...]:
    calls = [_raw_call(item) for item in message.get("tool_calls") or ()]
    broken = message.get("invalid_tool_calls") or ()
    calls += [
        RawCall(name=item.get("name"), arguments=item.get("args"), id=item.get("id"), kind="broken")
        for item in broken
        if isinstance(item, Mapping)
    ]
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        calls.append(
            RawCall(name=legacy.get("name"), arguments=legacy.get("arguments"), kind="legacy")
        )
    return tuple(calls)


def _raw_call(item: Any) -> RawCall:
    if not isinstance(item, Mapping):
        return RawCall(name=None, kind="unreadable")
    function = item.get("function")
    kind = item.get("type") or "function"
    if isinstance(function, Mapping):
        name = function.get("name")
        return RawCall(
            name=name if isinstance(name, str) else None,
            arguments=function.get("arguments"),
            id=item.get("id"),
            kind=str(kind),
        )
    other = item.get(str(kind))
    name = other.get("name") if isinstance(other, Mapping) else item.get("name")
    return RawCall(
        name=name if isinstance(name, str) else None,
        arguments=other.get("input") if isinstance(other, Mapping) else None,
        id=item.get("id"),
        kind=str(kind) if kind != "function" else "unreadable",
    )


def _merge_call(calls: dict[int, dict[str, Any]], position: int, part: Mapping[str, Any]) -> None:
    index = part.get("index")
    index = position if not isinstance(index, int) else index
    known = calls.setdefault(index, {"id": None, "type": "function", "function": {}})
    known["id"] = part.get("id") or known["id"]
    known["type"] = part.get("type") or known["type"]
    function = part.get("function") or {}
    if function.get("name"):
        known["function"]["name"] = known["function"].get("name", "") + function["name"]
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        known["function"]["arguments"] = (known["function"].get("arguments") or "") + arguments
    elif arguments is not None:
        known["function"]["arguments"] = arguments


def _stop(native: Any, calls: tuple[RawCall, ...]) -> StopReason:
    if native is None:
        return "tool_calls" if calls else "unknown"
    return _STOPS.get(str(native).lower(), "unknown")


def _text_of(content: Any) -> tuple[str, str]:
    """(text, refusal) of a content field: a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, Sequence):
        return "", ""
    texts: list[str] = []
    refusals: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            if part.get("type") == "refusal":
                refusals.append(_string(part.get("refusal")))
            elif part.get("type") in (None, "text", "output_text"):
                texts.append(_string(part.get("text")))
    return "".join(texts), "".join(refusals)


def _replayable(message: Mapping[str, Any]) -> Any:
    """Reasoning that a server wants back with the turn; nothing else needs replaying."""
    kept = {
        key: message[key]
        for key in ("reasoning_details", "reasoning_content", "thinking")
        if message.get(key)
    }
    return kept or None


def _extras(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {key: choice[key] for key in ("logprobs", "token_ids") if choice.get(key)}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
