"""What came back over HTTP, before anybody reads it; for responses like those of httpx."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from coordbench.api.models import ModelReply

__all__ = ["Answer", "answer_of_stream"]


class Answer(msgspec.Struct, frozen=True):
    """What came back.

    Attributes
    ----------
    data : bytes
        The body; empty where it came as a stream.
    lines : list of str or None
        Lines of a stream: all that came before its end, or before the connection broke.
    request_id : str or None
        From the headers.
    refused : ModelReply or None
        Set where a safety layer answered with an error status.
    """

    data: bytes = b""
    lines: list[str] | None = None
    request_id: str | None = None
    refused: ModelReply | None = None


async def answer_of_stream(response: Any, request_id: str | None) -> Answer:
    """Read a streamed response to its end, or to where the connection broke.

    Some servers answer in one piece although a stream was asked for, or label it otherwise.

    Parameters
    ----------
    response : object
        With `headers` and `aiter_lines()`.
    """
    lines: list[str] = []
    # Whether a stream that broke was whole is for its last event to say.
    with contextlib.suppress(Exception):
        async for line in response.aiter_lines():
            lines.append(line)  # noqa: PERF401
    labelled = "event-stream" in response.headers.get("content-type", "")
    if labelled or any(line.startswith("data:") for line in lines):
        return Answer(lines=lines, request_id=request_id)
    return Answer(data="\n".join(lines).encode(), request_id=request_id)
