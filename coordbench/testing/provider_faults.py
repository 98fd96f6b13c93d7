"""Checks of what a provider makes of errors, outages, broken bodies and cancellation."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

from coordbench.api import Decision, Invalid, ModelError, ModelProvider, ModelReply, ModelRequest
from coordbench.reading import read
from coordbench.testing.provider_checks import opened
from coordbench.testing.provider_kit import ProviderKit, make_request, make_tools, provider_check
from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

__all__: list[str] = []

_PATIENCE_S = 20.0
_WAIT_S = 0.2
_OTHER_VALUES: tuple[Any, ...] = (None, -1, 1.5, "x", [], {}, [None], {"x": None}, True)
_NO_BODIES = (
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{}",
    b"<!doctype html><p>gateway</p>",
    b'{"a": ',
    b"\xff\xfe\x00",
    b"[" * 5000,
)
_STATUSES: dict[int, tuple[str, bool]] = {
    401: ("auth", False),
    403: ("auth", False),
    402: ("quota", False),
    404: ("config", False),
    408: ("timeout", True),
    413: ("context_length", False),
    429: ("rate_limit", True),
    500: ("server_error", True),
    502: ("server_error", True),
    503: ("server_error", True),
    529: ("overloaded", True),
}


async def _outcome(provider: ModelProvider, request: ModelRequest) -> ModelReply | ModelError:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await provider.complete(request)
    except ModelError as error:
        return error


@provider_check
async def error_statuses_are_failures(kit: ProviderKit) -> None:
    """Every error status is a failure of its kind, made after one try, without the key in it."""
    for body in (kit.error_body("no"), b"<html>no</html>", b""):
        for status, (kind, retry) in _STATUSES.items():
            answer = StubResponse(status=status, body=body)
            with StubServer(lambda _, a=answer: a) as server:  # type: ignore[misc]
                async with opened(kit, server) as provider:
                    made = await _outcome(provider, make_request())
                assert server.calls == 1, f"status {status} was tried {server.calls} times"
            assert isinstance(made, ModelError), f"status {status} became {made!r}"
            assert (made.kind, made.retry) == (kind, retry), (
                f"status {status} with {body!r} became {made.kind}, retry={made.retry}; "
                f"expected {kind}, retry={retry}"
            )
            assert kit.key not in f"{made!r} {made} {made.message}", "the key is in an error"


@provider_check
async def waits_are_kept(kit: ProviderKit) -> None:
    """Retry-After is handed on, not slept on."""
    for headers in (
        {"retry-after": "37"},
        {
            "retry-after": "Mon, 29 Dec 2025 09:20:37 GMT",
            "date": "Mon, 29 Dec 2025 09:20:00 GMT",
        },
        {"retry-after-ms": "37000"},
    ):
        answer = StubResponse(status=429, headers=headers, body=kit.error_body("slow down"))
        with StubServer(lambda _, a=answer: a) as server:  # type: ignore[misc]
            async with opened(kit, server) as provider:
                made = await _outcome(provider, make_request())
        assert isinstance(made, ModelError), f"429 became {made!r}"
        assert made.wait_s == 37.0, f"{headers} became a wait of {made.wait_s} s, not 37"


@provider_check
async def lost_connections_are_failures(kit: ProviderKit) -> None:
    """A reset, a cut body and a closed port are failures that may be tried again, after one try."""
    body = kit.call_body("eat")
    for fault, kinds in (("reset", {"network"}), ("cut", {"stream_incomplete", "network"})):
        answer = StubResponse(body=body, fault=fault)  # type: ignore[arg-type]
        with StubServer(lambda _, a=answer: a) as server:  # type: ignore[misc]
            async with opened(kit, server) as provider:
                made = await _outcome(provider, make_request())
            assert server.calls == 1, f"{fault}: tried {server.calls} times"
        assert isinstance(made, ModelError), f"{fault}: became {made!r}"
        assert made.kind in kinds, f"{fault}: became {made.kind} ({made.message})"
        assert made.retry, f"{fault}: not to be tried again"
    async with opened(kit, server) as provider:  # the server is gone now
        made = await _outcome(provider, make_request())
    assert isinstance(made, ModelError), f"a closed port became {made!r}"
    assert (made.kind, made.retry) == ("network", True), f"a closed port became {made.kind}"


@provider_check
async def bodies_that_are_none_are_failures(kit: ProviderKit) -> None:
    """What is no reply at all is a failure of the server, to be tried again."""
    for body in _NO_BODIES:
        with StubServer(lambda _, b=body: StubResponse(body=b)) as server:  # type: ignore[misc]
            async with opened(kit, server) as provider:
                made = await _outcome(provider, make_request())
        assert isinstance(made, ModelError), f"the body {body[:40]!r} became {made!r}"
        assert made.retry, f"the body {body[:40]!r} became {made.kind}, not to be tried again"


@provider_check
async def malformed_replies_never_raise(kit: ProviderKit) -> None:
    """Whatever stands in place of any part of a reply, it is read or it is a failure."""
    for whole in (kit.call_body("eat"), kit.text_body("hello")):
        variants = list(_variants(whole))
        answers = iter(variants)
        with StubServer(lambda _, a=answers: StubResponse(body=next(a))) as server:  # type: ignore[misc]
            async with opened(kit, server) as provider:
                for variant in variants:
                    try:
                        made = await _outcome(provider, make_request())
                    except Exception as error:
                        raise AssertionError(
                            f"the body {variant!r} raised {type(error).__name__}: {error}"
                        ) from error
                    if isinstance(made, ModelReply):
                        result = read(made, make_tools())
                        assert isinstance(result, Decision | Invalid)
                        for count in (made.usage.input_tokens, made.usage.output_tokens):
                            assert count is None or count >= 0, f"{variant!r}: usage {count}"


@provider_check
async def cancelling_frees_the_connection(kit: ProviderKit) -> None:
    """A cancelled call ends at once, and its connection can be used by others."""
    hang = True

    def answer(request: StubRequest) -> StubResponse:
        return StubResponse(fault="hang") if hang else kit.answer(request)

    with StubServer(answer) as server:
        async with opened(kit, server) as provider:
            many = provider.info.max_in_flight
            calls = [asyncio.create_task(provider.complete(make_request())) for _ in range(many)]
            # The server counts in a thread of its own, so there is no event to wait for.
            while server.in_flight < many:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            for call in calls:
                call.cancel()
            ended = await asyncio.wait_for(
                asyncio.gather(*calls, return_exceptions=True), _PATIENCE_S
            )
            assert all(isinstance(end, asyncio.CancelledError) for end in ended), (
                f"a cancelled call ended as {ended[0]!r}"
            )
            hang = False
            made = await _outcome(provider, make_request())
            assert isinstance(made, ModelReply), f"after cancellation, a call became {made!r}"


@provider_check
async def a_provider_never_ends_a_call_itself(kit: ProviderKit) -> None:
    """Time-outs are the core's: a slow answer is still an answer."""
    with StubServer(lambda _: StubResponse(body=kit.call_body("eat"), delay_s=_WAIT_S)) as server:
        async with opened(kit, server) as provider:
            made = await _outcome(provider, make_request())
    assert isinstance(made, ModelReply), f"an answer after {_WAIT_S} s became {made!r}"


def _variants(whole: Any) -> Iterator[Any]:
    """A body with each of its parts replaced by each other value, or left out."""
    for path in _paths(whole, ()):
        for value in _OTHER_VALUES:
            changed = copy.deepcopy(whole)
            holder = _at(changed, path[:-1])
            holder[path[-1]] = value
            yield changed
        changed = copy.deepcopy(whole)
        del _at(changed, path[:-1])[path[-1]]
        yield changed


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
