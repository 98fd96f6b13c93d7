"""What generateContent sends, as a reply: read from the body itself, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coordbench.api import ModelError, ModelReply, RawCall, StopReason, Usage
from coordbench.api.chatwire import split_reasoning, stop_reason
from coordbench.api.httperrors import body_error
from coordbench_google.history import mint_id

__all__ = ["reply_from_content"]

_STOPS: dict[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "LANGUAGE": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
    "ESCALATION": "refused",
    "MODEL_ARMOR": "refused",
    "IMAGE_SAFETY": "refused",
    "IMAGE_PROHIBITED_CONTENT": "refused",
    "IMAGE_RECITATION": "refused",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "TOO_MANY_TOOL_CALLS": "malformed",
}
_SIGNATURE_LOST = "MISSING_THOUGHT_SIGNATURE"
_ACCOUNT_LIMITED = "PUP_LIMITED_DISABLED"
_NOT_SAID = (None, "", "BLOCKED_REASON_UNSPECIFIED")
_KNOWN_KEYS = ("candidates", "promptFeedback", "usageMetadata")


def reply_from_content(
    body: Any,
    *,
    max_tokens: int | None = None,
    sent: Mapping[str, Any] | None = None,
    turn: int = 1,
) -> ModelReply:
    """Turn a GenerateContentResponse into a reply.

    Parameters
    ----------
    body : Any
        The decoded response body of status 200.
    max_tokens : int or None
        The cap that was sent.
    sent : mapping
        Settings that were sent.
    turn : int
        1-based round within the episode.

    Raises
    ------
    ModelError
        The body is an error in disguise, has no candidate, or is none at all.
    """
    if not isinstance(body, Mapping):
        raise ModelError("invalid_body", "the body is no JSON object", retry=True)
    if body.get("error"):
        made = body_error(body["error"], turn=turn)
        if isinstance(made, ModelError):
            raise made
        return msgspec.structs.replace(made, max_tokens=max_tokens, sent=dict(sent or {}))
    common: dict[str, Any] = {
        "usage": _usage(body.get("usageMetadata")),
        "max_tokens": max_tokens,
        "request_id": _string(body.get("responseId")),
        "model": _string(body.get("modelVersion")),
        "sent": dict(sent or {}),
    }
    feedback = body.get("promptFeedback")
    blocked = feedback.get("blockReason") if isinstance(feedback, Mapping) else None
    if blocked not in _NOT_SAID:
        assert isinstance(feedback, Mapping)
        said = _string(feedback.get("blockReasonMessage"))
        text = f"the prompt was blocked: {said or blocked}"
        return ModelReply(stop="refused", stop_native=str(blocked), refusal=text, **common)
    candidate = _candidate(body)
    word = candidate.get("finishReason")
    native = None if word is None else str(word)
    stop = _stop(native, candidate)
    read = _Parts()
    for part in _parts(candidate.get("content")):
        read.add(part)
    text, marked = split_reasoning("".join(read.texts))
    refusal = _string(candidate.get("finishMessage")) if stop == "refused" else None
    return ModelReply(
        # Gemini ends turns with a call as it ends all others.
        stop="tool_calls" if read.calls and (stop == "stop" or native is None) else stop,
        stop_native=native,
        calls=tuple(read.calls),
        text=text,
        reasoning="\n".join(filter(None, ["".join(read.thoughts), marked])),
        refusal=refusal,
        native={"parts": read.kept} if read.unusual else None,
        extras={"finish_message": candidate["finishMessage"]}
        if _string(candidate.get("finishMessage"))
        else {},
        **common,
    )


def _candidate(body: Mapping[str, Any]) -> Mapping[str, Any]:
    candidates = body.get("candidates")
    if isinstance(candidates, list) and candidates:
        if isinstance(candidates[0], Mapping):
            return candidates[0]
        raise ModelError("invalid_body", "a candidate is no JSON object", retry=True)
    if candidates or not any(key in body for key in _KNOWN_KEYS):
        raise ModelError("invalid_body", "the body has no candidates", retry=True)
    raise ModelError("provider_error", "the list of candidates is empty", retry=True)


def _stop(word: str | None, candidate: Mapping[str, Any]) -> StopReason:
    said = _string(candidate.get("finishMessage")) or ""
    known = _STOPS.get((word or "").upper())
    if known is not None:
        return known
    if word == _SIGNATURE_LOST:
        raise ModelError("history", f"{word} {said}".strip(), scope="episode")
    if word == _ACCOUNT_LIMITED:
        raise ModelError("auth", f"{word} {said}".strip(), scope="run")
    stop = stop_reason(word)
    if stop is None:
        raise ModelError("provider_error", f"the finish reason is {word!r}", retry=True)
    return stop


def _parts(content: Any) -> list[Any]:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if isinstance(parts, Mapping):
        return [parts]
    return parts if isinstance(parts, list) else []


class _Parts:
    """The parts of a candidate, sorted."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[RawCall] = []
        self.kept: list[dict[str, Any]] = []
        self.unusual = False
        """Whether text and calls alone do not make this turn again."""

    def add(self, part: Any) -> None:
        if not isinstance(part, Mapping):
            return
        signature = part.get("thoughtSignature")
        signed = {"thoughtSignature": signature} if _string(signature) else {}
        thought = part.get("thought") is True
        if "functionCall" in part and not thought:
            self._add_call(part["functionCall"], signed)
        elif "toolCall" in part:
            self.calls.append(RawCall(None, None, mint_id(len(self.calls)), "toolCall", "object"))
        elif isinstance(part.get("executableCode"), Mapping):
            # The engine's own form of a call in Python; as text it is read like any other markup.
            code = part["executableCode"].get("code")
            self._add_text(f"```tool_code\n{code}\n```", False, {})
        else:
            text = part.get("text")
            self._add_text(text if isinstance(text, str) else "", thought, signed)

    def _add_text(self, text: str, thought: bool, signed: dict[str, Any]) -> None:
        if text:
            (self.thoughts if thought else self.texts).append(text)
        self.unusual |= bool(signed or (text and not thought and self.calls))
        if signed or (text and not thought):
            self.kept.append({"text": text, **({"thought": True} if thought else {}), **signed})

    def _add_call(self, call: Any, signed: dict[str, Any]) -> None:
        self.kept.append({"call": len(self.calls), **signed})
        self.unusual |= bool(signed)
        if not isinstance(call, Mapping):
            minted = mint_id(len(self.calls))
            self.calls.append(RawCall(None, None, minted, "unreadable", "object"))
            return
        name, call_id = call.get("name"), _string(call.get("id"))
        self.calls.append(
            RawCall(
                name if isinstance(name, str) else None,
                call.get("args"),
                # Calls have no id here as a rule, so its absence tells nothing.
                call_id or mint_id(len(self.calls)),
                "function",
                "object",
            )
        )


def _usage(usage: Any) -> Usage:
    """Output counts the thinking, which the API counts apart unless its total says otherwise."""
    if not isinstance(usage, Mapping):
        return Usage()
    prompt = _count(usage.get("promptTokenCount"))
    from_tools = _count(usage.get("toolUsePromptTokenCount"))
    output = _count(usage.get("candidatesTokenCount"))
    thoughts = _count(usage.get("thoughtsTokenCount"))
    total = _count(usage.get("totalTokenCount"))
    into = None if prompt is None else prompt + (from_tools or 0)
    if thoughts and (into is None or output is None or total != into + output):
        output = (output or 0) + thoughts
    return Usage(into, output, _count(usage.get("cachedContentTokenCount")), thoughts)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
