"""The Responses API: the body of a request, and what its answer says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from coordbench.api import (
    AssistantMessage,
    ChatMessage,
    ModelError,
    ModelReply,
    ModelRequest,
    RawCall,
    StopReason,
    Usage,
)
from coordbench.api.chatwire import decode_body, messages_to_chat, stop_reason, usage_from_chat
from coordbench.api.httperrors import body_error
from coordbench_openai.plugin import OpenAIOptions
from coordbench_openai.servers import Server

__all__ = ["ResponsesWire", "input_items", "reply_from_response", "reply_from_response_stream"]

_REASONS = re.compile(r"(?:o\d|gpt-5|codex|gpt-oss)(?!.*-chat)")
_CALLS = {"function_call": "function", "custom_tool_call": "custom"}
_ENDED = ("response.completed", "response.incomplete", "response.failed", "response.done")


class ResponsesWire:
    """The Responses API, used without the server's memory: `store` is false, and reasoning comes
    back encrypted, to be replayed.

    Parameters
    ----------
    model : str
    options : OpenAIOptions
    server : Server
    """

    path = "/responses"

    def __init__(self, model: str, options: OpenAIOptions, server: Server) -> None:
        self._model = model
        self._options = options
        self._omitted = options.omitted()
        name = model.rpartition("/")[2].removeprefix("ft:")
        # Models that do not reason refuse to be asked for it.
        self._replays = server.own and bool(_REASONS.match(name) or options.reasoning_effort)
        self._tools: tuple[Any, list[dict[str, Any]]] = ((), [])

    def body(self, request: ModelRequest) -> tuple[dict[str, Any], dict[str, Any], int | None]:
        """(body, settings as they go out, output cap) of a request."""
        settings = self._settings(request)
        body: dict[str, Any] = {"model": self._model, "input": input_items(request.messages)}
        if request.tools:
            body["tools"] = self._declared(request.tools)
        body |= settings
        cap = settings.get("max_output_tokens")
        if cap is not None:
            settings["max_tokens"] = cap
        return body, settings, cap

    def reply(self, body: Any, **known: Any) -> ModelReply:
        """See `reply_from_response`."""
        return reply_from_response(body, **known)

    def reply_from_stream(self, lines: Iterable[str], **known: Any) -> ModelReply:
        """See `reply_from_response_stream`."""
        return reply_from_response_stream(lines, **known)

    def _settings(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._options.sampling(request)
        settings["max_output_tokens"] = settings.pop("max_tokens")
        settings["store"] = False
        if self._replays:
            settings["include"] = ["reasoning.encrypted_content"]
        if self._options.reasoning_effort:
            settings["reasoning"] = {"effort": self._options.reasoning_effort}
        if request.tools:
            settings["tool_choice"] = (
                {"type": "function", "name": request.force}
                if request.force is not None
                else ("required" if self._options.tools == "required" else "auto")
            )
            settings["parallel_tool_calls"] = False
        if self._options.stream:
            settings["stream"] = True
        for name in self._omitted:
            settings.pop("max_output_tokens" if name == "max_tokens" else name, None)
        return settings

    def _declared(self, tools: tuple[Any, ...]) -> list[dict[str, Any]]:
        if self._tools[0] is not tools:
            self._tools = (
                tools,
                [
                    {
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                        # The server's default would rewrite the schema.
                        "strict": False,
                    }
                    for tool in tools
                ],
            )
        return self._tools[1]


def input_items(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The conversation so far: every call answered under its id, reasoning replayed in place."""
    replies = (message.reply for message in messages if isinstance(message, AssistantMessage))
    items: list[dict[str, Any]] = []
    for turn in messages_to_chat(messages):
        match turn["role"]:
            case "assistant":
                items += _turn_items(turn, next(replies))
            case "tool":
                items.append(
                    {
                        "type": "function_call_output",
                        "call_id": turn["tool_call_id"],
                        "output": turn["content"],
                    }
                )
            case role:
                items.append({"role": role, "content": turn["content"]})
    return items


def reply_from_response(
    body: Any,
    *,
    max_tokens: int | None = None,
    request_id: str | None = None,
    sent: Mapping[str, Any] | None = None,
    turn: int = 1,
) -> ModelReply:
    """Turn a response object into a reply.

    Parameters
    ----------
    body : Any
        The decoded response body of status 200.
    max_tokens, request_id, sent, turn
        As for `reply_from_chat`.

    Raises
    ------
    ModelError
        The body is an error in disguise, a failed response, or no response at all.
    """
    if not isinstance(body, Mapping):
        raise ModelError("invalid_body", "the body is no JSON object", retry=True)
    known: dict[str, Any] = {
        "max_tokens": max_tokens,
        "request_id": request_id,
        "sent": dict(sent or {}),
    }
    status = body.get("status")
    error = body.get("error") or (body if body.get("object") == "error" else None)
    if error:
        made = body_error(error, turn=turn)
        if isinstance(made, ModelError):
            raise made
        return ModelReply(
            stop="refused", stop_native=made.stop_native, refusal=made.refusal, **known
        )
    output = body.get("output")
    if not isinstance(output, list):
        raise ModelError("invalid_body", "the body has no output", retry=True)
    if status not in (None, "completed", "incomplete"):
        raise ModelError("provider_error", f"the response's status is {status!r}", retry=True)
    known["request_id"] = request_id or _string(body.get("id")) or None
    parts = _Parts(output)
    stop, native = _stop(body, parts)
    return ModelReply(
        stop=stop,
        stop_native=native,
        calls=tuple(parts.calls),
        text="".join(parts.texts),
        reasoning="\n".join(filter(None, parts.thoughts)),
        refusal="".join(parts.refusals) or None,
        usage=_usage(body.get("usage")),
        model=_string(body.get("model")) or None,
        native=parts.native(),
        **known,
    )


def reply_from_response_stream(lines: Iterable[str], **known: Any) -> ModelReply:
    """Turn the events of a stream into a reply.

    Raises
    ------
    ModelError
        `stream_incomplete` where no event ends the response; else as `reply_from_response`.
    """
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if not data or data == "[DONE]":
            continue
        try:
            event = decode_body(data)
        except ModelError:
            break
        kind = event.get("type") if isinstance(event, Mapping) else None
        if kind in _ENDED:
            return reply_from_response(event.get("response"), **known)
        if kind == "error":
            return reply_from_response({"error": event.get("error") or event}, **known)
    raise ModelError("stream_incomplete", "the stream ended before the response did", retry=True)


class _Parts:
    """What the items of an output hold, each kind in order."""

    def __init__(self, output: Sequence[Any]) -> None:
        self.calls: list[RawCall] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.refusals: list[str] = []
        self.cut = False
        self._order: list[dict[str, Any]] = []
        for item in output:
            if isinstance(item, Mapping):
                self._add(item, str(item.get("type")))
            else:
                self.calls.append(RawCall(None, kind="unreadable"))

    def native(self) -> Any:
        """The order of the items, with reasoning that can be replayed; None where there is none."""
        return {"output": self._order} if any("item" in part for part in self._order) else None

    def _add(self, item: Mapping[str, Any], kind: str) -> None:
        if kind == "message":
            self._order.append({"is": "text"})
            content = item.get("content")
            self.texts.append(_string(content))
            for part in _items(content):
                self.texts.append(_string(part.get("text")))
                self.refusals.append(_string(part.get("refusal")))
        elif kind == "reasoning":
            for key in ("summary", "content"):
                self.thoughts += [_string(part.get("text")) for part in _items(item.get(key))]
            # Without it, a server that stores nothing does not know the item again.
            if item.get("encrypted_content"):
                self._order.append({"is": "reasoning", "item": dict(item)})
        elif kind in _CALLS or kind.endswith("_call"):
            self._order.append({"is": "call", "index": len(self.calls)})
            self.calls.append(_raw_call(item, kind))
        # A call may be marked as unfinished where the response is not.
        self.cut = self.cut or item.get("status") == "incomplete"


def _turn_items(turn: Mapping[str, Any], reply: ModelReply) -> Iterator[dict[str, Any]]:
    calls = [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in turn.get("tool_calls", ())
    ]
    text = turn["content"]
    native = reply.native if isinstance(reply.native, Mapping) else {}
    order = native.get("output") or [{"is": "text"}]
    for part in order:
        if part.get("is") == "reasoning":
            yield part["item"]
        elif part.get("is") == "text" and text:
            yield {"role": "assistant", "content": text}
            text = None
        elif part.get("is") == "call" and part["index"] < len(calls):
            yield calls[part["index"]]
    placed = {part["index"] for part in order if part.get("is") == "call"}
    if text:
        yield {"role": "assistant", "content": text}
    yield from (call for index, call in enumerate(calls) if index not in placed)


def _raw_call(item: Mapping[str, Any], kind: str) -> RawCall:
    name, call_id = item.get("name"), item.get("call_id") or item.get("id")
    return RawCall(
        name=name if isinstance(name, str) else None,
        arguments=item.get("arguments") if kind != "custom_tool_call" else item.get("input"),
        id=call_id if isinstance(call_id, str) else None,
        kind=_CALLS.get(kind, kind),
    )


def _stop(body: Mapping[str, Any], parts: _Parts) -> tuple[StopReason, str | None]:
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if body.get("status") == "incomplete" or reason:
        word = str(reason or "incomplete")
        stop = stop_reason(word)
        if stop is None:
            raise ModelError("provider_error", f"the response stopped for {word!r}", retry=True)
        # Whatever the word, an incomplete response is never a whole one.
        return ("length" if stop in ("stop", "tool_calls", "unknown") else stop), word
    if parts.cut:
        return "length", "incomplete"
    status = body.get("status")
    return ("tool_calls" if parts.calls else "stop"), None if status is None else str(status)


def _usage(usage: Any) -> Usage:
    """Tokens under either of the names that servers use."""
    if not isinstance(usage, Mapping) or "input_tokens" not in usage:
        return usage_from_chat(usage)
    return usage_from_chat(
        {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": usage.get("input_tokens_details"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        }
    )


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
