"""What the Messages API sends, as a reply: read from the body itself, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coordbench.api import ModelError, ModelReply, RawCall, StopReason, Usage
from coordbench.api.chatwire import split_reasoning, stop_reason
from coordbench.api.httperrors import body_error

__all__ = ["reply_from_message"]

_CALL = "tool_use"
"""Blocks of server tools end in it too: `server_tool_use`."""
_THOUGHTS = {"thinking": "signature", "redacted_thinking": "data"}
"""Blocks of thinking, and the field without which the API does not take them back."""


def reply_from_message(
    body: Any,
    *,
    max_tokens: int | None = None,
    request_id: str | None = None,
    sent: Mapping[str, Any] | None = None,
    turn: int = 1,
) -> ModelReply:
    """Turn the body of a message into a reply.

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
        1-based round within the episode.

    Raises
    ------
    ModelError
        The body is an error in disguise, or no message at all.
    """
    if not isinstance(body, Mapping):
        raise ModelError("invalid_body", "the body is no JSON object", retry=True)
    error = body.get("error")
    if error or body.get("type") == "error":
        made = body_error(error or body, turn=turn)
        if isinstance(made, ModelError):
            raise made
        return msgspec.structs.replace(
            made, max_tokens=max_tokens, request_id=request_id, sent=dict(sent or {})
        )
    content = body.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    word = body.get("stop_reason")
    if content is None and word is not None:
        content = []
    if not isinstance(content, list):
        raise ModelError("invalid_body", "the body has no content", retry=True)
    native = None if word is None else str(word)
    stop = stop_reason(native)
    if stop is None:
        raise ModelError("provider_error", f"the stop reason is {native!r}", retry=True)
    read = _Content()
    for block in content:
        read.add(block)
    text, marked = split_reasoning("".join(read.texts))
    return ModelReply(
        stop=_stop(stop, native, read.calls),
        stop_native=native,
        calls=tuple(read.calls),
        text=text,
        reasoning="\n".join(filter(None, [*read.thoughts, marked])),
        refusal=_refusal(body) if stop == "refused" else None,
        usage=_usage(body.get("usage")),
        max_tokens=max_tokens,
        request_id=request_id or _string(body.get("id")),
        model=_string(body.get("model")),
        sent=dict(sent or {}),
        native={"content": read.kept} if read.unusual else None,
    )


class _Content:
    """The blocks of a message, sorted."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[RawCall] = []
        self.kept: list[dict[str, Any]] = []
        self.unusual = False
        """Whether text and calls alone do not make this turn again."""

    def add(self, block: Any) -> None:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if not isinstance(block, Mapping):
            return
        kind = block.get("type")
        kind = kind if isinstance(kind, str) else ""
        if kind == "text":
            self._add_text(block.get("text"))
        elif kind in _THOUGHTS:
            self._add_thought(block, kind)
        elif kind == _CALL:
            self._add_call(block, "function")
        elif kind.endswith(_CALL) or "input" in block:
            # A call, though none of a tool that was offered.
            self._add_call(block, kind if kind.endswith(_CALL) else "unreadable")

    def _add_text(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self.texts.append(text)
            self.unusual |= bool(self.calls)
            self.kept.append({"type": "text", "text": text})

    def _add_thought(self, block: Mapping[str, Any], kind: str) -> None:
        thought = block.get("thinking")
        if isinstance(thought, str) and thought:
            self.thoughts.append(thought)
        proof = _THOUGHTS[kind]
        if not _string(block.get(proof)):
            return
        self.unusual = True
        kept = {"type": kind, proof: block[proof]}
        if kind == "thinking":
            kept["thinking"] = thought if isinstance(thought, str) else ""
        self.kept.append(kept)

    def _add_call(self, block: Mapping[str, Any], kind: str) -> None:
        name, call_id = block.get("name"), block.get("id")
        self.kept.append({"type": "call", "index": len(self.calls)})
        self.calls.append(
            RawCall(
                name if isinstance(name, str) else None,
                block.get("input"),
                call_id if isinstance(call_id, str) else None,
                kind,
                "object",
            )
        )


def _stop(stop: StopReason, word: str | None, calls: list[RawCall]) -> StopReason:
    return "tool_calls" if stop == "unknown" and word is None and calls else stop


def _refusal(body: Mapping[str, Any]) -> str | None:
    details = body.get("stop_details")
    if not isinstance(details, Mapping):
        return None
    said = [_string(details.get(key)) for key in ("category", "explanation")]
    return ": ".join(filter(None, said)) or None


def _usage(usage: Any) -> Usage:
    """Input counts what was read from the cache and written to it, which the API counts apart."""
    if not isinstance(usage, Mapping):
        return Usage()
    fresh = _count(usage.get("input_tokens"))
    cached = _count(usage.get("cache_read_input_tokens"))
    written = _count(usage.get("cache_creation_input_tokens"))
    details = usage.get("output_tokens_details")
    reasoning = details.get("thinking_tokens") if isinstance(details, Mapping) else None
    return Usage(
        None if fresh is None else fresh + (cached or 0) + (written or 0),
        _count(usage.get("output_tokens")),
        cached,
        _count(reasoning),
    )


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
