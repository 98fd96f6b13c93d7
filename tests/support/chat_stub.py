"""A stub of an OpenAI-style chat server that calls the tool `think`, or what it is told."""

from __future__ import annotations

from collections.abc import Callable

from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

__all__ = ["chat_answer", "chat_stub"]


def chat_answer(request: StubRequest, tool: str = "think") -> dict[str, object]:
    """A chat completion that calls `tool`, or the tool that the request forces."""
    asked = request.json()
    forced = asked.get("tool_choice")
    if isinstance(forced, dict):
        tool = forced["function"]["name"]
    call = {"id": "call_0", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767000000,
        "model": asked["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }


def chat_stub(
    delay_s: float = 0.0, fault: Callable[[int], StubResponse | None] | None = None
) -> StubServer:
    """The stub; `fault(number)` may answer the call of that number instead."""
    count = 0

    def answer(request: StubRequest) -> StubResponse:
        nonlocal count
        count += 1
        made = fault(count) if fault is not None else None
        return made or StubResponse(body=chat_answer(request), delay_s=delay_s)

    return StubServer(answer)
