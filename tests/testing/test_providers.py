"""The conformance checks pass a sound provider, and each of them catches what it is for."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from coordbench.api import ModelError, ModelInfo, ModelReply, ModelRequest, RawCall, Usage
from coordbench.api.chatwire import (
    decode_body,
    error_from_response,
    error_from_transport,
    messages_to_chat,
    reply_from_chat,
    tools_to_chat,
)
from coordbench.api.requestbody import encode_body
from coordbench.testing.provider_kit import make_tools
from coordbench.testing.providers import (
    PROVIDER_CHECKS,
    ProviderKit,
    check_name,
    run_checks,
)

KEY = "key-0123456789abcdef"


class Plain:
    """A provider on nothing but asyncio's streams; `bug` names what is wrong with it."""

    def __init__(self, url: str, bug: str = "") -> None:
        parts = urlsplit(url)
        self.bug = bug
        self._host, self._port = parts.hostname, parts.port
        self._slots = asyncio.Semaphore(8)
        self._busy = 0
        self.info = ModelInfo(
            provider="plain",
            model="m",
            endpoint="everywhere" if bug == "endpoint" else url,
            max_in_flight=8,
            paid=bug == "paid",
        )

    def __repr__(self) -> str:
        return f"Plain({KEY if self.bug == 'repr' else ''})"

    async def aclose(self) -> None:
        if self.bug == "close":
            raise RuntimeError("not open")

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.bug == "serial":
            async with self._slots:
                while self._busy:
                    await asyncio.sleep(0.01)
                self._busy += 1
                try:
                    return await self._complete(request)
                finally:
                    self._busy -= 1
        try:
            return await self._complete(request)
        except ModelError as error:
            if self.bug == "retry" and error.retry:
                return await self._complete(request)
            raise
        except asyncio.CancelledError:
            if self.bug == "cancel":
                raise ModelError("network", "cancelled") from None
            raise

    async def _complete(self, request: ModelRequest) -> ModelReply:
        body, sent = self._body(request)
        if self.bug == "log":
            logging.getLogger("plain").debug("calling with %s", KEY)
        try:
            status, headers, data = await self._exchange(encode_body(body))
        except (OSError, asyncio.IncompleteReadError) as error:
            nothing = isinstance(error, asyncio.IncompleteReadError) and not error.partial
            raise error_from_transport("no answer: reset by peer" if nothing else error) from None
        if self.bug == "waits":
            headers.pop("retry-after", None)
        if status != 200:
            made = error_from_response(status, headers, data, turn=1)
            if isinstance(made, ModelError):
                if self.bug == "error key":
                    made.message += KEY
                if self.bug == "kinds":
                    made.kind = "provider_error"
                raise made
            return made
        if self.bug == "raises":
            name = json.loads(data)["choices"][0]["message"]["tool_calls"][0]["function"]["name"]
            return ModelReply(stop="tool_calls", calls=(RawCall(name, "{}", "c"),))
        reply = reply_from_chat(decode_body(data), max_tokens=body["max_tokens"], sent=sent)
        return self._spoilt(reply)

    def _body(self, request: ModelRequest) -> tuple[dict[str, Any], dict[str, Any]]:
        asked = request.sampling
        sent = {
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "max_tokens": asked.max_tokens,
        }
        body: dict[str, Any] = {"messages": messages_to_chat(request.messages), **sent}
        if self.bug == "drops settings":
            del body["top_p"]
        if self.bug == "history":
            body["messages"] = [m for m in body["messages"] if m["role"] != "tool"]
        tools = request.tools or (make_tools() if self.bug == "always tools" else ())
        if tools:
            body["tools"] = tools_to_chat(tools)
            if request.force and self.bug != "force":
                body["tool_choice"] = {"name": request.force}
        if self.bug == "rename":
            for tool in body.get("tools", ()):
                tool["function"]["name"] = tool["function"]["name"].replace("-", "_")
        return body, sent

    def _spoilt(self, reply: ModelReply) -> ModelReply:
        replace = msgspec.structs.replace
        if self.bug == "usage":
            return replace(reply, usage=Usage(-5, 1))
        if self.bug == "invents":
            return replace(reply, stop="tool_calls", calls=(RawCall("think", "{}", "c"),))
        if self.bug == "near names":
            calls = tuple(replace(call, name=str(call.name).lower()) for call in reply.calls)
            return replace(reply, calls=calls)
        if self.bug == "extras":
            return replace(reply, extras={"seen": (1, 2)})
        return reply

    async def _exchange(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            head = (
                f"POST /v1/chat HTTP/1.1\r\nhost: {self._host}\r\nauthorization: Bearer {KEY}\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            patience = 0.05 if self.bug == "impatient" else None
            async with asyncio.timeout(patience):
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in lines if line)
            headers = {name.lower(): value for name, value in pairs}
            data = await reader.readexactly(int(headers["content-length"]))
            return int(first.split()[1]), headers, data
        finally:
            writer.close()


def completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    return {
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3},
    }


def call_body(tool: str) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return completion({"content": None, "tool_calls": [call]}, "tool_calls")


def kit(bug: str = "") -> ProviderKit:
    return ProviderKit(
        make=lambda url: Plain(url, bug),
        key=KEY,
        call_body=call_body,
        text_body=lambda text: completion({"content": text}, "stop"),
        offered=lambda body: [tool["function"]["name"] for tool in body.get("tools", ())],
    )


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_a_sound_provider_passes(check: Any) -> None:
    await check(kit())


BUGS = {
    "endpoint": "info_is_sound",
    "paid": "info_is_sound",
    "rename": "tool_names_are_the_requests",
    "near names": "strange_names_are_left_as_they_are",
    "invents": "text_is_text",
    "always tools": "message_rounds_offer_no_tools",
    "force": "a_forced_tool_is_forced",
    "drops settings": "settings_are_sent_and_told",
    "usage": "usage_is_counted",
    "extras": "replies_can_be_stored",
    "history": "histories_are_taken",
    "serial": "calls_run_beside_each_other",
    "repr": "the_key_is_sent_and_never_shown",
    "log": "the_key_is_sent_and_never_shown",
    "close": "closing_without_a_call_works",
    "kinds": "error_statuses_are_failures",
    "error key": "error_statuses_are_failures",
    "retry": "error_statuses_are_failures",
    "waits": "waits_are_kept",
    "raises": "malformed_replies_never_raise",
    "cancel": "cancelling_frees_the_connection",
    "impatient": "a_provider_never_ends_a_call_itself",
}


@pytest.mark.parametrize(("bug", "name"), BUGS.items(), ids=list(BUGS))
async def test_each_fault_is_caught(bug: str, name: str) -> None:
    (check,) = [check for check in PROVIDER_CHECKS if check_name(check) == name]
    with pytest.raises((AssertionError, RuntimeError, TimeoutError)):
        await check(kit(bug))


async def test_all_checks_run_without_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [
        check
        for check in PROVIDER_CHECKS
        if check_name(check) in ("text_is_text", "waits_are_kept")
    ]
    monkeypatch.setattr("coordbench.testing.providers.PROVIDER_CHECKS", some)
    assert await run_checks(kit()) == {}
    failed = await run_checks(kit("waits"))
    assert list(failed) == ["waits_are_kept"]
    assert "not 37" in failed["waits_are_kept"]
