"""Failure cases through a provider and its real SDK, against a local server.

A plugin takes part by a module `cases` beside the one its entry point names, with:

- `CASE_APIS`: the values of `input.api` that it speaks;
- `provider_for_case(given, base_url) -> ModelProvider`: a provider for the server at `base_url`
  (scheme, host and port). It asks for a stream where `given` holds `sse`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

import msgspec

from coordbench.api import (
    Action,
    CallContext,
    ChatMessage,
    ModelError,
    ModelProvider,
    ModelReply,
    ModelRequest,
    Sampling,
    SystemMessage,
    Tool,
    UserMessage,
)
from coordbench.api.transporterrors import error_from_transport
from coordbench.testing.stub_server import StubResponse, StubServer

__all__ = ["SdkDriver", "case_response", "installed_drivers"]

Input = Mapping[str, Any]
MakeProvider = Callable[[Input, str], ModelProvider]

_UNRESOLVED = re.compile(r"getaddrinfo|resol[uv]|name or service|\bDNS\b", re.IGNORECASE)
_REFUSED = re.compile(r"refused|ConnectError|all connection attempts", re.IGNORECASE)
_FAULTS: tuple[tuple[re.Pattern[str], Literal["hang", "reset", "cut"]], ...] = (
    (re.compile(r"time(?:d\s*)?-?\s?out", re.IGNORECASE), "hang"),
    (re.compile(r"reset|disconnect|broken pipe|without sending a", re.IGNORECASE), "reset"),
    (re.compile(r"incomplete|peer closed|chunk|ReadError|unexpected eof", re.IGNORECASE), "cut"),
)

_GROUP = "coordbench"
_TOOLS = tuple(Tool(action.value, action, f"The tool {action.value}.") for action in Action)
_NO_CAP = 1 << 20
_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens", "maxOutputTokens")
_PATIENCE_S = 0.25
_ASK: tuple[ChatMessage, ...] = (SystemMessage("You are P2."), UserMessage("Choose one action."))
_NOT_SENT = frozenset({"content-length", "transfer-encoding", "connection"})


class SdkDriver(msgspec.Struct, frozen=True):
    """Runs cases through a provider; the same three methods as `CaseDriver`.

    Attributes
    ----------
    api : str
        Put into each `given`.
    make : callable
        `make(given, base_url) -> ModelProvider`.
    """

    api: str
    make: MakeProvider

    def reply(self, given: Input) -> ModelReply:
        """What the provider makes of the response that a case describes.

        Raises
        ------
        ModelError
        """
        words = given.get("transport_error")
        if words:
            return self._without_answer(given, str(words))
        with StubServer(lambda _: case_response(given)) as server:
            return asyncio.run(self._ask(given, server.url, _request(given)))

    def assistant(self, body: Any) -> ModelReply:
        """What the provider makes of the body of a history case."""
        return self.reply({"status": 200, "headers": {}, "body": body})

    def request(self, messages: Sequence[ChatMessage]) -> Mapping[str, Any]:
        """The body that the provider sends for a conversation."""
        given: dict[str, Any] = {"status": 500, "headers": {}, "body": {}}
        request = msgspec.structs.replace(_request(given), messages=tuple(messages))
        with StubServer(lambda _: case_response(given)) as server:
            # Only what was sent is wanted.
            with contextlib.suppress(ModelError):
                asyncio.run(self._ask(given, server.url, request))
            body: Mapping[str, Any] = server.requests[-1].json()
            return body

    def _without_answer(self, given: Input, words: str) -> ModelReply:
        """A call that the network fails, in the way that the words tell."""
        request = _request(given)
        if _UNRESOLVED.search(words):
            return asyncio.run(self._ask(given, "http://no-such-host.invalid", request))
        if _REFUSED.search(words):
            return asyncio.run(self._ask(given, f"http://127.0.0.1:{_closed_port()}", request))
        fault = next((fault for pattern, fault in _FAULTS if pattern.search(words)), None)
        if fault is None:
            raise error_from_transport(words)
        answer = StubResponse(body={"choices": [], "padding": "x" * 999}, fault=fault)
        patience = _PATIENCE_S if fault == "hang" else None
        with StubServer(lambda _: answer) as server:
            return asyncio.run(self._ask(given, server.url, request, patience))

    async def _ask(
        self, given: Input, url: str, request: ModelRequest, patience: float | None = None
    ) -> ModelReply:
        provider = self.make({**given, "api": self.api}, url)
        try:
            async with asyncio.timeout(patience):
                return await provider.complete(request)
        except TimeoutError as error:  # as the core does it
            raise ModelError("timeout", "no answer in time", retry=True) from error
        finally:
            await provider.aclose()


def case_response(given: Input) -> StubResponse:
    """The HTTP response that a case describes."""
    headers = {
        name: value
        for name, value in (given.get("headers") or {}).items()
        if name.lower() not in _NOT_SENT
    }
    if "sse" in given:
        lines = [line if _is_field(line) else f"data: {line}" for line in given["sse"]]
        headers = {"content-type": "text/event-stream", **headers}
        body = "".join(f"{line}\n\n" for line in lines).encode("utf-8", "surrogatepass")
    elif "body_text" in given:
        body = str(given["body_text"]).encode("utf-8", "surrogatepass")
    else:
        body = json.dumps(given.get("body")).encode()
    return StubResponse(status=given.get("status") or 200, headers=headers, body=body)


@cache
def installed_drivers() -> dict[str, SdkDriver]:
    """A driver for each API that an installed plugin speaks, by the API's name."""
    drivers: dict[str, SdkDriver] = {}
    for point in entry_points(group=_GROUP):
        package = point.module.rpartition(".")[0]
        name = f"{package}.cases"
        try:
            found = bool(package) and importlib.util.find_spec(name) is not None
        except ImportError:
            continue
        if not found:
            continue
        module = importlib.import_module(name)
        for api in getattr(module, "CASE_APIS", ()):
            drivers[api] = SdkDriver(api, module.provider_for_case)
    return drivers


def _request(given: Input) -> ModelRequest:
    asked = given.get("request") or {}
    asked = {**asked, **(asked.get("generationConfig") or {})}
    cap = next((asked[name] for name in _CAPS if asked.get(name)), _NO_CAP)
    return ModelRequest(
        messages=_ASK,
        tools=_TOOLS,
        sampling=Sampling(max_tokens=cap),
        seed=7,
        context=CallContext("cases", 0, 0, int(asked.get("turn") or given.get("turn") or 1), 0),
    )


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _is_field(line: str) -> bool:
    return line.startswith(("data:", "event:", "id:", "retry:", ":"))
