"""Bodies of the OpenAI-style chat format, for local servers that speak it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from coordbench.api import (
    AssistantMessage,
    ChatMessage,
    ModelProvider,
    ModelReply,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from coordbench.testing.provider_kit import make_request
from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

__all__ = [
    "ask",
    "chat_body",
    "chat_call",
    "chat_chunk",
    "chat_offered",
    "chat_text",
    "event_stream",
    "second_round",
]


def chat_body(message: dict[str, Any], finish: str, **more: Any) -> dict[str, Any]:
    """A chat completion with one choice."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767000000,
        "model": "test-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 9, "total_tokens": 209},
        **more,
    }


def chat_call(tool: str, call_id: str = "call00001") -> dict[str, Any]:
    """A chat completion that calls `tool` without arguments."""
    function = {"name": tool, "arguments": "{}"}
    call = {"id": call_id, "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return chat_body(message, "tool_calls")


def chat_text(text: str) -> dict[str, Any]:
    """A chat completion of text only."""
    return chat_body({"role": "assistant", "content": text}, "stop")


def chat_offered(body: dict[str, Any]) -> list[str]:
    """Names of the tools that a request offers."""
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


def chat_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of a streamed completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1767000000,
        "model": "test-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def event_stream(*events: Any, done: bool = True, cut: bool = False) -> StubResponse:
    """A response that streams events; `cut` breaks the connection half way."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    lines += ["data: [DONE]\n\n"] if done else []
    return StubResponse(
        headers={"content-type": "text/event-stream"},
        body="".join(lines).encode(),
        fault="cut" if cut else "",
    )


def second_round(reply: ModelReply) -> list[ChatMessage]:
    """A conversation in which `reply` was the first round's."""
    return [
        SystemMessage("You are P1."),
        UserMessage("Round 1."),
        AssistantMessage(reply),
        *(ToolMessage(index, f"result {index}") for index in range(len(reply.calls))),
        UserMessage("Round 2."),
    ]


async def ask(
    make: Callable[[str], ModelProvider], answer: Any, request: ModelRequest | None = None
) -> tuple[ModelReply, StubRequest]:
    """Make one call against a server that gives `answer`.

    Parameters
    ----------
    make : callable
        `make(url) -> ModelProvider`.
    answer : StubResponse or JSON

    Returns
    -------
    reply : ModelReply
    asked : StubRequest
        What the server was asked.
    """
    response = answer if isinstance(answer, StubResponse) else StubResponse(body=answer)
    with StubServer(lambda _: response) as server:
        provider = make(server.url)
        try:
            reply = await provider.complete(request or make_request())
        finally:
            await provider.aclose()
        return reply, server.requests[-1]
