"""Checks of what a provider sends and gives back where the server answers well."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from coordbench.api import (
    AssistantMessage,
    ChatMessage,
    Decision,
    ModelProvider,
    ModelReply,
    RawCall,
    Sampling,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from coordbench.reading import read
from coordbench.testing.provider_kit import (
    ProviderKit,
    make_request,
    make_tools,
    provider_check,
)
from coordbench.testing.stub_server import StubResponse, StubServer

__all__ = ["opened"]


@asynccontextmanager
async def opened(kit: ProviderKit, server: StubServer) -> AsyncIterator[ModelProvider]:
    """A provider for `server`, closed at the end."""
    provider = kit.make(server.url)
    try:
        yield provider
    finally:
        await provider.aclose()


@provider_check
async def info_is_sound(kit: ProviderKit) -> None:
    """What the core must know is there, and a server on this machine costs nothing."""
    with StubServer(kit.answer) as server:
        async with opened(kit, server) as provider:
            info = provider.info
            assert info.provider, "info.provider is empty"
            assert info.endpoint, "info.endpoint is empty: models would share limits by mistake"
            assert info.max_in_flight >= 1, f"info.max_in_flight is {info.max_in_flight}"
            assert not info.paid, "info.paid is set for a server on this machine"
            assert info.reads_text, "info.reads_text is not set"
            assert not info.instant, "info.instant is set for a model behind a network"
        with StubServer(kit.answer) as other:
            async with opened(kit, other) as provider:
                assert provider.info.endpoint != info.endpoint, "two servers share one endpoint"


@provider_check
async def tool_names_are_the_requests(kit: ProviderKit) -> None:
    """The tools offered are those of the request, and so is the name in the reply."""
    for separator in ("_", "-"):
        tools = make_tools(separator)
        with StubServer(kit.answer) as server:
            async with opened(kit, server) as provider:
                reply = await provider.complete(make_request(tools))
                offered = kit.offered(server.requests[-1].json())
        names = [tool.name for tool in tools]
        assert offered == names, f"the request offered {offered}, asked were {names}"
        found = [call.name for call in reply.calls]
        assert found == names[:1], f"the server called {names[0]}, the reply says {found}"
        result = read(reply, tools)
        assert isinstance(result, Decision), f"a clean call is read as {result}"
        assert result.action is tools[0].action, f"{names[0]} is read as {result.action}"


@provider_check
async def strange_names_are_left_as_they_are(kit: ProviderKit) -> None:
    """A tool that was never offered reaches the reading under its own name."""
    with StubServer(lambda _: StubResponse(body=kit.call_body("Steal_Fork"))) as server:
        async with opened(kit, server) as provider:
            reply = await provider.complete(make_request())
    found = [call.name for call in reply.calls]
    assert found == ["Steal_Fork"], f"the server called Steal_Fork, the reply says {found}"
    assert not isinstance(read(reply, make_tools()), Decision), "it became a decision"


@provider_check
async def text_is_text(kit: ProviderKit) -> None:
    """Prose stays prose, whatever it says."""
    with StubServer(lambda _: StubResponse(body=kit.text_body("I eat. think"))) as server:
        async with opened(kit, server) as provider:
            reply = await provider.complete(make_request())
    assert reply.text == "I eat. think", f"the text arrived as {reply.text!r}"
    assert reply.calls == (), f"prose became calls: {reply.calls}"


@provider_check
async def message_rounds_offer_no_tools(kit: ProviderKit) -> None:
    """Without tools in the request, none are offered."""
    with StubServer(kit.answer) as server:
        async with opened(kit, server) as provider:
            reply = await provider.complete(make_request(()))
            offered = kit.offered(server.requests[-1].json())
    assert offered == [], f"a message round offered {offered}"
    assert reply.text == "after you", f"the text arrived as {reply.text!r}"


@provider_check
async def a_forced_tool_is_forced(kit: ProviderKit) -> None:
    """`force` names one tool: its name stands once more in the request than without it."""
    counts = []
    for force in (None, "put_down_left"):
        with StubServer(kit.answer) as server:
            async with opened(kit, server) as provider:
                await provider.complete(make_request(force=force))
                counts.append(server.requests[-1].body.count(b'"put_down_left"'))
    assert counts[1] > counts[0], "force changes nothing in the request"


@provider_check
async def settings_are_sent_and_told(kit: ProviderKit) -> None:
    """The task's sampling goes out, and `sent` says what did."""
    asked = Sampling(temperature=0.125, top_p=0.625, max_tokens=4321)
    with StubServer(kit.answer) as server:
        async with opened(kit, server) as provider:
            reply = await provider.complete(make_request(sampling=asked))
            body = server.requests[-1].body.decode()
    for name, value in (("temperature", 0.125), ("top_p", 0.625), ("max_tokens", 4321)):
        went = json.dumps(value) in body
        told = reply.sent.get(name)
        assert not went or told == value, f"{name} went out as {value}, but sent says {told!r}"
        assert went or name not in reply.sent, f"sent says {name}={told!r}, which never went out"
    assert reply.max_tokens == 4321, f"max_tokens of the reply is {reply.max_tokens}, not the cap"


@provider_check
async def usage_is_counted(kit: ProviderKit) -> None:
    """Tokens are counts or unknown."""
    with StubServer(kit.answer) as server:
        async with opened(kit, server) as provider:
            usage = (await provider.complete(make_request())).usage
    for name, value in msgspec.structs.asdict(usage).items():
        assert value is None or (isinstance(value, int) and value >= 0), f"{name} is {value!r}"


@provider_check
async def replies_can_be_stored(kit: ProviderKit) -> None:
    """Replies are JSON, and read back equal."""
    with StubServer(kit.answer) as server:
        async with opened(kit, server) as provider:
            reply = await provider.complete(make_request())
    again = msgspec.json.decode(msgspec.json.encode(reply), type=ModelReply)
    assert again == reply, "a stored reply is not the one that came"


@provider_check
async def histories_are_taken(kit: ProviderKit) -> None:
    """A later round is sent whatever the earlier replies were, every result in it."""
    with StubServer(kit.answer) as server:
        async with opened(kit, server) as provider:
            first = await provider.complete(make_request())
            strange = (
                first,
                ModelReply(stop="stop", text="a lone \ud800 surrogate"),
                ModelReply(stop="stop"),
                ModelReply(stop="refused", refusal="I would rather not."),
                ModelReply(stop="length", calls=(RawCall("eat", '{"a": ', id="x"),)),
                ModelReply(
                    stop="tool_calls",
                    calls=(
                        RawCall(None),
                        RawCall("no such\ntool", ["a"]),
                        RawCall("eat", {"b": 1}),
                    ),
                ),
            )
            for reply in strange:
                messages: list[ChatMessage] = [
                    SystemMessage("You are P1."),
                    UserMessage("Round 1."),
                    AssistantMessage(reply),
                    *(ToolMessage(index, f"result {index}") for index in range(len(reply.calls))),
                    UserMessage("Round 2."),
                ]
                await provider.complete(make_request(messages=messages, round=2))
                body = server.requests[-1].body.decode()
                for index in range(len(reply.calls)):
                    assert f"result {index}" in body, f"the result of call {index} was not sent"
                assert "Round 2." in body, "the newest user turn was not sent"


@provider_check
async def calls_run_beside_each_other(kit: ProviderKit) -> None:
    """As many calls as `max_in_flight` allows are in flight at once."""

    def slow(_: object) -> StubResponse:
        return StubResponse(body=kit.call_body("eat"), delay_s=0.3)

    with StubServer(slow) as server:
        async with opened(kit, server) as provider:
            wanted = min(provider.info.max_in_flight, 12)
            await asyncio.gather(*(provider.complete(make_request()) for _ in range(wanted)))
        assert server.most_in_flight == wanted, (
            f"{wanted} calls made together, {server.most_in_flight} in flight"
        )


@provider_check
async def the_key_is_sent_and_never_shown(kit: ProviderKit) -> None:
    """The key goes to the server, and into no repr, reply, info or log."""
    said = _Said()
    root = logging.getLogger()
    level = root.level
    root.addHandler(said)
    root.setLevel(logging.DEBUG)
    try:
        with StubServer(kit.answer) as server:
            async with opened(kit, server) as provider:
                reply = await provider.complete(make_request())
                shown = [repr(provider), str(provider), repr(provider.info), repr(reply)]
            headers = " ".join(server.requests[-1].headers.values()) + server.requests[-1].path
    finally:
        root.removeHandler(said)
        root.setLevel(level)
    assert kit.key in headers, "the key was not sent: this check would see nothing"
    for text in (*shown, *said.lines):
        assert kit.key not in text, f"the key is shown: {text[:200]}"


@provider_check
async def closing_without_a_call_works(kit: ProviderKit) -> None:
    """A provider that was never used can be closed."""
    with StubServer(kit.answer) as server:
        async with opened(kit, server):
            pass
        assert server.calls == 0, "the server was called although nobody asked"


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {vars(record)!r}")
