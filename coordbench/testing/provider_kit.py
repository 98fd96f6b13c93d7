"""What a provider under check is, and the requests that checks make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from coordbench.api import (
    Action,
    CallContext,
    ChatMessage,
    ModelProvider,
    ModelRequest,
    Sampling,
    SystemMessage,
    Tool,
    UserMessage,
)
from coordbench.testing.stub_server import StubRequest, StubResponse

__all__ = [
    "PROVIDER_CHECKS",
    "ProviderKit",
    "check_name",
    "make_request",
    "make_tools",
    "provider_check",
]


class ProviderKit(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, and the wire format that it speaks.

    Attributes
    ----------
    make : callable
        `make(base_url) -> ModelProvider`, for a server at `http://127.0.0.1:<port>`, with `key`,
        no price and nothing else set.
    key : str
        The key it was made with, at least eight characters; it must never be shown.
    call_body : callable
        `call_body(tool) -> JSON`: the body of a response that calls `tool` without arguments.
    text_body : callable
        `text_body(text) -> JSON`: the body of a response that holds only text.
    offered : callable
        `offered(request) -> list of str`: the names of the tools in a request's JSON body.
    error_body : callable
        `error_body(message) -> JSON`: the body of an error.
    """

    make: Callable[[str], ModelProvider]
    key: str
    call_body: Callable[[str], Any]
    text_body: Callable[[str], Any]
    offered: Callable[[Any], list[str]]
    error_body: Callable[[str], Any] = lambda message: {"error": {"message": message}}

    def answer(self, request: StubRequest) -> StubResponse:
        """Call the first tool offered, or speak where none is."""
        names = self.offered(request.json())
        return StubResponse(body=self.call_body(names[0]) if names else self.text_body("after you"))


Check = Callable[[ProviderKit], Awaitable[None]]

PROVIDER_CHECKS: list[Check] = []
"""All checks, in order."""


def provider_check(check: Check) -> Check:
    """Add a check to `PROVIDER_CHECKS`."""
    PROVIDER_CHECKS.append(check)
    return check


def check_name(check: Check) -> str:
    """A check's name, for test ids."""
    name: str = getattr(check, "__name__", repr(check))
    return name


def make_tools(separator: str = "_") -> tuple[Tool, ...]:
    """The six tools, their names joined by `separator`."""
    return tuple(
        Tool(action.value.replace("-", separator), action, f"The tool {action.value}.")
        for action in Action
    )


def make_request(
    tools: Sequence[Tool] | None = None,
    *,
    messages: Sequence[ChatMessage] | None = None,
    sampling: Sampling | None = None,
    seed: int | None = 11,
    force: str | None = None,
    round: int = 1,
) -> ModelRequest:
    """A request as the core makes it; with the six tools and one user turn by default."""
    asked = (SystemMessage("You are P1."), UserMessage("Round 1. Choose one action."))
    return ModelRequest(
        messages=asked if messages is None else tuple(messages),
        tools=make_tools() if tools is None else tuple(tools),
        sampling=sampling or Sampling(temperature=0.25, top_p=0.5, max_tokens=321),
        seed=seed,
        force=force,
        context=CallContext("cell", 0, 0, round, 1),
    )
