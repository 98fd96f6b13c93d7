"""A streamed response, put together into the body that would have come in one piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coordbench.api import ModelError

__all__ = ["content_from_chunks"]

_LAST = ("usageMetadata", "modelVersion", "responseId", "promptFeedback")


def content_from_chunks(chunks: Iterable[Any]) -> Mapping[str, Any]:
    """Merge the chunks of a stream.

    Parameters
    ----------
    chunks : iterable
        Decoded chunks, each a body of its own with some of the parts.

    Raises
    ------
    ModelError
        `stream_incomplete`: the stream ended before its finish reason.
    """
    whole: dict[str, Any] = {}
    parts: list[Any] = []
    end: dict[str, Any] = {}
    for chunk in chunks:
        if not isinstance(chunk, Mapping):
            raise ModelError("invalid_body", "a chunk is no JSON object", retry=True)
        if chunk.get("error"):
            return chunk
        whole |= {key: chunk[key] for key in _LAST if chunk.get(key) is not None}
        candidates = chunk.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(candidate, Mapping):
            continue
        end |= {
            key: candidate[key]
            for key in ("finishReason", "finishMessage")
            if candidate.get(key) is not None
        }
        content = candidate.get("content")
        found = content.get("parts") if isinstance(content, Mapping) else None
        if isinstance(found, list):
            parts += found
    if "finishReason" in end:
        return {**whole, "candidates": [{**end, "content": {"parts": _joined(parts)}}]}
    if whole.get("promptFeedback"):
        return whole
    raise ModelError("stream_incomplete", "the stream ended before its finish reason", retry=True)


def _joined(parts: Iterable[Any]) -> list[Any]:
    """Pieces of one text as one part. A signature ends its part."""
    joined: list[Any] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            isinstance(part, Mapping)
            and isinstance(last, dict)
            and isinstance(part.get("text"), str)
            and isinstance(last.get("text"), str)
            and part.get("thought") == last.get("thought")
            and "thoughtSignature" not in last
        ):
            last.update({**part, "text": last["text"] + part["text"]})
        else:
            joined.append(dict(part) if isinstance(part, Mapping) else part)
    return joined
