"""The OpenAI-style chat wire format, as pure functions.

OpenAI, vLLM, llama.cpp, OpenRouter, Together, Ollama and (nearly) Mistral speak it. Nothing here
does I/O, and nothing decides what a reply means: that is `coordbench.reading`. A provider plugin
needs these names:

- `tools_to_chat`, `messages_to_chat`: a request's tools and messages as JSON-able lists;
- `decode_body`: the bytes of a response as a body;
- `reply_from_chat`, `reply_from_chat_stream`: a body, or the lines of a stream, as a reply;
- `error_from_response`, `error_from_transport`: what went wrong as a `ModelError`;
- `turn_of`: the round that a request belongs to, on which some errors depend.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coordbench.api.chatwire_history import messages_to_chat, tools_to_chat
from coordbench.api.chatwire_stream import body_from_chunks
from coordbench.api.httperrors import (
    body_error,
    error_from_response,
    retry_after_s,
    turn_of,
)
from coordbench.api.models import ModelError, ModelReply, RawCall, StopReason
from coordbench.api.reasoningtext import split_reasoning
from coordbench.api.transporterrors import error_from_transport
from coordbench.data.events import Usage

__all__ = [
    "decode_body",
    "error_from_response",
    "error_from_transport",
    "messages_to_chat",
    "reply_from_chat",
    "reply_from_chat_stream",
    "retry_after_s",
    "split_reasoning",
    "stop_reason",
    "tools_to_chat",
    "turn_of",
    "usage_from_chat",
]

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "complete": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "safety": "refused",
    "sensitive": "refused",
    "recitation": "refused",
    "malformed_function_call": "malformed",
    "unexpected_tool_call": "malformed",
}
# New words for old reasons keep coming, and a fixed list misses them.
_STOP_PARTS: tuple[tuple[str, StopReason], ...] = (
    ("malformed", "malformed"),
    ("unexpected_tool", "malformed"),
    ("invalid_tool", "malformed"),
    ("filter", "refused"),
    ("refus", "refused"),
    ("safety", "refused"),
    ("block", "refused"),
    ("prohibited", "refused"),
    ("guardrail", "refused"),
    ("length", "length"),
    ("max_", "length"),
    ("token_limit", "length"),
    ("context_window", "length"),
)
_FAILED_PARTS = ("error", "fail", "abort", "cancel", "timeout", "insufficient_system_resource")
_TEXT_PARTS = (None, "text", "output_text", "input_text")
_THOUGHT_PARTS = ("thinking", "reasoning", "thought", "reasoning_content")


def decode_body(data: bytes | str) -> Any:
    """Decode the JSON body of a response.

    Raises
    ------
    ModelError
        `invalid_body`: it is no JSON, such as the HTML page of a gateway.
    """
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        pass
    try:
        # Slower, and takes what some servers send: a byte-order mark, half a surrogate pair.
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError("invalid_body", f"the body is no JSON: {error}", retry=True) from error


def reply_from_chat(
    body: Any,
    *,
    max_tokens: int | None = None,
    request_id: str | None = None,
    sent: Mapping[str, Any] | None = None,
    turn: int = 1,
) -> ModelReply:
    """Turn a chat completion body into a reply.

    Parameters
    ----------
    body : Any
        The decoded response body of status 200.
    max_tokens : int or None
        The cap that was sent.
    request_id : str or None
        From the response's headers; the body's own id otherwise.
    sent : mapping
        Settings that were sent.
    turn : int
        1-based round within the episode; see `error_from_response`.

    Raises
    ------
    ModelError
        The body is an error in disguise (an `error` object, no choices, a failed stop reason), or
        no chat completion at all.
    """
    if not isinstance(body, Mapping):
        raise ModelError("invalid_body", "the body is no JSON object", retry=True)
    error = body.get("error") or (body if body.get("object") == "error" else None)
    if error:
        return _refused_or_raise(body_error(error, turn=turn), max_tokens, request_id, sent)
    choices = body.get("choices")
    if "choices" not in body:
        raise ModelError("invalid_body", "the body has no choices", retry=True)
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        raise ModelError("provider_error", "the list of choices is empty", retry=True)
    choice = choices[0]
    if not isinstance(choice, Mapping):
        raise ModelError("invalid_body", "a choice is no JSON object", retry=True)
    if choice.get("error"):
        made = body_error(choice["error"], inside_choice=True)
        return _refused_or_raise(made, max_tokens, request_id, sent)
    word = _native_stop(choice)
    stop = stop_reason(word)
    if stop is None:
        raise ModelError("provider_error", f"the stop reason is {word!r}", retry=True)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise ModelError("invalid_body", "a choice has no message", retry=True)
    text, thought, refused = _content(message.get("content"))
    text, marked = split_reasoning(text)
    reasoning = (_reasoning(message), thought, marked)
    calls = _calls_of(message)
    return ModelReply(
        stop="tool_calls" if stop == "unknown" and word is None and calls else stop,
        stop_native=word,
        calls=calls,
        text=text,
        reasoning="\n".join(part for part in reasoning if part),
        refusal=_string(message.get("refusal")) or refused or None,
        usage=usage_from_chat(body.get("usage")),
        max_tokens=max_tokens,
        request_id=request_id or _string(body.get("id")) or None,
        model=_string(body.get("model")) or None,
        sent=dict(sent or {}),
        native=_replayable(message),
        extras={key: choice[key] for key in ("logprobs", "token_ids") if choice.get(key)},
    )


def reply_from_chat_stream(
    chunks: Any,
    *,
    max_tokens: int | None = None,
    request_id: str | None = None,
    sent: Mapping[str, Any] | None = None,
    turn: int = 1,
) -> ModelReply:
    """Put a stream together and turn it into a reply.

    Parameters
    ----------
    chunks : iterable of str
        Lines of the event stream, with or without `data:` in front.

    Raises
    ------
    ModelError
        `stream_incomplete` where the stream ends without a stop reason; else as
        `reply_from_chat`.
    """
    return reply_from_chat(
        body_from_chunks(chunks), max_tokens=max_tokens, request_id=request_id, sent=sent, turn=turn
    )


def stop_reason(word: str | None) -> StopReason | None:
    """The normalised stop reason of a provider's own word; None where it says that the call failed.

    A word that is not known is told by its parts, else `unknown`.
    """
    if word is None:
        return "unknown"
    plain = word.lower().replace("-", "_").replace(" ", "_")
    known = _STOPS.get(plain)
    if known is not None:
        return known
    for part, meaning in _STOP_PARTS:
        if part in plain:
            return meaning
    return None if any(part in plain for part in _FAILED_PARTS) else "unknown"


def usage_from_chat(usage: Any) -> Usage:
    """Tokens as the provider counted them; what it did not say stays None.

    `output_tokens` includes reasoning: where a provider leaves it out (its total says so) it is
    added.
    """
    if not isinstance(usage, Mapping):
        return Usage()
    prompt, output = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    cached = _count(_member(usage, "prompt_tokens_details").get("cached_tokens"))
    for key in ("cached_tokens", "prompt_cache_hit_tokens"):
        cached = _count(usage.get(key)) if cached is None else cached
    reasoning = _count(_member(usage, "completion_tokens_details").get("reasoning_tokens"))
    if reasoning is None:
        reasoning = _count(usage.get("reasoning_tokens"))
    total = _count(usage.get("total_tokens"))
    if prompt is not None and output is not None and reasoning and total is not None:
        output += reasoning if total == prompt + output + reasoning else 0
    return Usage(prompt, output, cached, reasoning)


def _refused_or_raise(
    made: ModelError | ModelReply,
    max_tokens: int | None,
    request_id: str | None,
    sent: Mapping[str, Any] | None,
) -> ModelReply:
    if isinstance(made, ModelError):
        raise made
    return msgspec.structs.replace(
        made, max_tokens=max_tokens, request_id=request_id, sent=dict(sent or {})
    )


def _native_stop(choice: Mapping[str, Any]) -> str | None:
    """The stop reason's own word. Routers normalise it and put the upstream's beside it: that one
    counts where it tells of a malformed call, a refusal or a cut.
    """
    word = choice.get("finish_reason")
    upstream = choice.get("native_finish_reason")
    if isinstance(upstream, str) and stop_reason(upstream) in ("malformed", "refused", "length"):
        return upstream
    return None if word is None else str(word)


def _calls_of(message: Mapping[str, Any]) -> tuple[RawCall, ...]:
    calls = [_raw_call(item) for item in _items(message.get("tool_calls"))]
    calls += [
        RawCall(_name(item.get("name")), item.get("args"), _id(item.get("id")), "broken")
        for item in _items(message.get("invalid_tool_calls"))
        if isinstance(item, Mapping)
    ]
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping) and legacy:
        calls.append(RawCall(_name(legacy.get("name")), legacy.get("arguments"), None, "legacy"))
    return tuple(calls)


def _raw_call(item: Any) -> RawCall:
    if not isinstance(item, Mapping):
        return RawCall(None, kind="unreadable")
    kind = item.get("type") or "function"
    function = item.get("function")
    if isinstance(function, Mapping):
        return RawCall(
            _name(function.get("name")), function.get("arguments"), _id(item.get("id")), str(kind)
        )
    other = item.get(kind) if isinstance(kind, str) else None
    if isinstance(other, Mapping):
        return RawCall(_name(other.get("name")), other.get("input"), _id(item.get("id")), str(kind))
    return RawCall(
        _name(item.get("name")),
        item.get("arguments"),
        _id(item.get("id")),
        "unreadable" if kind == "function" else str(kind),
    )


def _content(content: Any) -> tuple[str, str, str]:
    """(text, reasoning, refusal) of a content field: a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content, "", ""
    texts: list[str] = []
    thoughts: list[str] = []
    refusals: list[str] = []
    for part in _items(content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            kind = part.get("type")
            if kind == "refusal":
                refusals.append(_string(part.get("refusal")))
            elif kind in _TEXT_PARTS:
                texts.append(_string(part.get("text")))
            elif kind in _THOUGHT_PARTS:
                thoughts += [_content(part.get(key))[0] for key in (str(kind), "text")]
    return "".join(texts), "".join(thoughts), "".join(refusals)


def _reasoning(message: Mapping[str, Any]) -> str:
    for key in ("reasoning_content", "reasoning", "thinking"):
        text = _content(message.get(key))[0]
        if text:
            return text
    details = _items(message.get("reasoning_details"))
    parts = [part for part in details if isinstance(part, Mapping)]
    return "".join(_string(part.get("text")) or _string(part.get("summary")) for part in parts)


def _replayable(message: Mapping[str, Any]) -> Any:
    """Reasoning that a server wants back with the turn; nothing else needs replaying."""
    kept = {
        key: message[key]
        for key in ("reasoning_details", "reasoning_content", "reasoning", "thinking")
        if message.get(key)
    }
    return kept or None


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _member(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    member = value.get(key)
    return member if isinstance(member, Mapping) else {}


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
