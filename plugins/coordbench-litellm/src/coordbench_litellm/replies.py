"""What came back, as a reply or a failure: from the server's own words wherever they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coordbench.api import ModelError, ModelReply
from coordbench.api.chatwire import decode_body, reply_from_chat
from coordbench.api.httperrors import error_from_response
from coordbench.api.transporterrors import error_from_transport
from coordbench_litellm.client import Call

__all__ = ["failure_of", "reply_of", "with_kept"]

_PROVIDER_FIELDS = "provider_specific_fields"
_THINKING = "thinking_blocks"
_SAID = ("max_tokens", "sent", "request_id")
_REQUEST_IDS = ("x-request-id", "request-id", "mistral-correlation-id")


def reply_of(call: Call, response: Any, known: Mapping[str, Any]) -> ModelReply:
    """The reply in a response.

    Parameters
    ----------
    call : Call
    response : litellm.ModelResponse
    known : mapping
        Further arguments of `reply_from_chat`.

    Raises
    ------
    ModelError
    """
    raw = decode_body(call.data) if call.data else None
    known = {**known, "request_id": _request_id(call)}
    if isinstance(raw, Mapping) and ("choices" in raw or "error" in raw):
        return reply_from_chat(raw, **known)
    body = response.model_dump(warnings=False)
    raw = raw if isinstance(raw, Mapping) else {}
    # litellm mints an id where it finds none, and estimates what Anthropic does not count.
    body["id"] = raw.get("id") or raw.get("responseId")
    if "stop_reason" in raw:
        (body.get("usage") or {}).pop("completion_tokens_details", None)
    native = _native_stop(raw)
    if native and body.get("choices"):
        # litellm's own word for it may be "stop" where the server's is a refusal.
        body["choices"][0]["native_finish_reason"] = native
    reply = reply_from_chat(body, **known)
    return msgspec.structs.replace(
        _as_called(reply, raw), stop_native=native or reply.stop_native, native=_kept(body)
    )


def failure_of(error: Exception, call: Call, known: Mapping[str, Any]) -> ModelReply:
    """A reply where a content filter answered with an error.

    Raises
    ------
    ModelError
        All else.
    """
    turn = known["turn"]
    if call.status is None:
        raise _without_response(error, call, turn) from None
    if call.status != 200:
        made = error_from_response(call.status, call.headers, call.data, turn=turn)
        if isinstance(made, ModelError):
            raise made from None
        return msgspec.structs.replace(
            made,
            request_id=_request_id(call),
            sent=dict(known["sent"]),
            max_tokens=known["max_tokens"],
        )
    # litellm could not read what our own rule may.
    raw = decode_body(call.data)
    known = {**known, "request_id": _request_id(call)}
    feedback = raw.get("promptFeedback") if isinstance(raw, Mapping) else None
    if isinstance(feedback, Mapping) and feedback.get("blockReason"):
        word = str(feedback["blockReason"])
        return ModelReply(stop="refused", **{name: known[name] for name in _SAID}, stop_native=word)
    parts = _parts(raw)
    if parts is None:
        return reply_from_chat(raw, **known)
    return _reply_of_parts(parts, raw, known)


def _without_response(error: Exception, call: Call, turn: int) -> ModelError:
    if call.body is not None:
        return _in_one_line(error_from_transport(error))
    # Nothing went out, or litellm used a client of its own.
    status = getattr(error, "status_code", None)
    name = type(error).__name__
    message = str(error).strip().partition("\n")[0]
    if name in ("APIConnectionError", "Timeout") or not isinstance(status, int) or status < 400:
        return _in_one_line(error_from_transport(error))
    headers = dict(getattr(getattr(error, "response", None), "headers", None) or {})
    made = error_from_response(status, headers, message, turn=turn)
    if isinstance(made, ModelError):
        return made
    return ModelError("config", message, status=status, scope="run")


def _in_one_line(error: ModelError) -> ModelError:
    """Without the stack and the link to its tracker that litellm adds."""
    message = error.message.partition("\n")[0]
    return ModelError(error.kind, message, retry=error.retry, scope=error.scope)


def _native_stop(raw: Mapping[str, Any]) -> str | None:
    """The stop reason in the provider's own word, in Anthropic's and Google's formats."""
    word = raw.get("stop_reason") or _blocked(raw)
    candidates = raw.get("candidates")
    if word is None and isinstance(candidates, list) and candidates:
        first = candidates[0]
        word = first.get("finishReason") if isinstance(first, Mapping) else None
    return word if isinstance(word, str) else None


def _as_called(reply: ModelReply, raw: Mapping[str, Any]) -> ModelReply:
    """The reply with arguments as they came: litellm makes JSON text of whatever is there."""
    content = raw.get("content")
    if isinstance(content, list):
        given = [
            block.get("input")
            for block in content
            if isinstance(block, Mapping) and block.get("type") == "tool_use"
        ]
    else:
        called = [part.get("functionCall") for part in _parts(raw) or () if _is_object(part)]
        given = [call.get("args") for call in called if isinstance(call, Mapping)]
    if len(given) != len(reply.calls):
        return reply
    calls = [
        msgspec.structs.replace(call, arguments=arguments, form="object")
        for call, arguments in zip(reply.calls, given, strict=True)
    ]
    return msgspec.structs.replace(reply, calls=tuple(calls))


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _parts(raw: Any) -> list[Any] | None:
    """The parts of a reply in Google's format; None where it is no such reply."""
    candidates = raw.get("candidates") if isinstance(raw, Mapping) else None
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, Mapping) else None
    parts = content.get("parts") if isinstance(content, Mapping) else None
    return parts if isinstance(parts, list) else None


def _reply_of_parts(
    parts: list[Any], raw: Mapping[str, Any], known: Mapping[str, Any]
) -> ModelReply:
    """A reply in Google's format that litellm gives up on, such as a call without arguments."""
    calls: list[dict[str, Any]] = []
    texts: list[str] = []
    for part in filter(_is_object, parts):
        called = part.get("functionCall")
        if isinstance(called, Mapping):
            # Calls have no id in this format as a rule, so its absence tells nothing.
            call_id = called.get("id") or f"call{len(calls):05d}"
            calls.append({"id": call_id, "function": {"name": called.get("name")}})
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            texts.append(part["text"])
    usage = raw.get("usageMetadata")
    usage = usage if isinstance(usage, Mapping) else {}
    word = _native_stop(raw)
    body = {
        "id": raw.get("responseId"),
        "model": raw.get("modelVersion"),
        "choices": [
            {
                "finish_reason": word,
                "message": {"content": "".join(texts), "tool_calls": calls},
            }
        ],
        "usage": {
            "prompt_tokens": usage.get("promptTokenCount"),
            "completion_tokens": usage.get("candidatesTokenCount"),
        },
    }
    return _as_called(reply_from_chat(body, **known), raw)


def _blocked(raw: Any) -> str | None:
    """Why Google took no prompt; None where it did."""
    feedback = raw.get("promptFeedback") if isinstance(raw, Mapping) else None
    reason = feedback.get("blockReason") if isinstance(feedback, Mapping) else None
    return reason if isinstance(reason, str) else None


def _kept(body: Mapping[str, Any]) -> Any:
    """What litellm wants back with the turn: thinking and signatures."""
    message = body["choices"][0].get("message") or {}
    kept: dict[str, Any] = {}
    if message.get(_THINKING):
        kept[_THINKING] = message[_THINKING]
    calls = [call.get(_PROVIDER_FIELDS) for call in message.get("tool_calls") or ()]
    if any(calls):
        kept["calls"] = calls
    return kept or None


def with_kept(turn: dict[str, Any], native: Any) -> None:
    """Put what `reply_of` kept back into an assistant turn."""
    if not isinstance(native, Mapping):
        return
    if native.get(_THINKING):
        turn[_THINKING] = native[_THINKING]
    for call, fields in zip(turn.get("tool_calls", ()), native.get("calls") or (), strict=False):
        if fields:
            call[_PROVIDER_FIELDS] = fields


def _request_id(call: Call) -> str | None:
    headers = {name.lower(): value for name, value in call.headers.items()}
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None)
