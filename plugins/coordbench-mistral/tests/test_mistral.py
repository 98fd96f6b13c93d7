"""The Mistral plugin through the real SDK, against a local server that speaks its wire format."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coordbench.api import ModelError, ModelReply, ModelRequest, RawCall, UsageError
from coordbench.testing import (
    PROVIDER_CHECKS,
    ProviderKit,
    StubRequest,
    StubResponse,
    StubServer,
    check_name,
    replay_case,
)
from coordbench.testing.chat_bodies import ask as ask_at
from coordbench.testing.chat_bodies import (
    chat_body,
    chat_call,
    chat_chunk,
    chat_offered,
    chat_text,
    event_stream,
    second_round,
)
from coordbench.testing.provider_kit import make_request
from coordbench_mistral.model import MistralModel
from coordbench_mistral.plugin import MistralOptions, coordbench_models, key_of, server_url

KEY = "key-0123456789abcdef"
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "provider_cases.jsonl"


def model_at(url: str, *, typed: bool = False, **options: Any) -> MistralModel:
    """`typed`: as with an SDK whose `do_request_async` takes other arguments."""
    with pytest.MonkeyPatch.context() as patch:
        if typed:
            patch.setattr("coordbench_mistral.client._hook_context", lambda sdk: None)
        return MistralModel("mistral-test", MistralOptions(base_url=url, **options), api_key=KEY)


def kit(*, typed: bool) -> ProviderKit:
    return ProviderKit(
        make=lambda url: model_at(url, typed=typed),
        key=KEY,
        call_body=chat_call,
        text_body=chat_text,
        offered=chat_offered,
    )


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance(check: Any) -> None:
    await check(kit(typed=False))


@pytest.mark.slow
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance_the_typed_way(check: Any) -> None:
    await check(kit(typed=True))


def reported_cases() -> list[Any]:
    if not CASES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip("no folder of shared cases beside it"))]
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    mine = [case for case in cases if case["input"].get("api") == "mistral.chat"]
    assert len(mine) >= 7
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", reported_cases())
def test_reported_cases_through_the_sdk(case: dict[str, Any]) -> None:
    outcome = replay_case(case)
    assert outcome.status == "passed", outcome.line()


async def ask(
    answer: Any, request: ModelRequest | None = None, **options: Any
) -> tuple[ModelReply, StubRequest]:
    return await ask_at(lambda url: model_at(url, **options), answer, request)


@pytest.mark.parametrize("typed", [False, True], ids=["cheap", "typed"])
class TestRequests:
    async def test_the_request(self, typed: bool) -> None:
        reply, asked = await ask(chat_call("eat"), typed=typed)
        body = asked.json()
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert "mistral" in asked.headers["user-agent"]
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        settings = {key: body[key] for key in set(reply.sent) - {"seed"}}
        assert settings == {
            "temperature": 0.25,
            "top_p": 0.5,
            "max_tokens": 321,
            "random_seed": 11,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        }
        assert reply.sent == {**settings, "seed": 11}

    async def test_a_tool_may_be_required_or_forced(self, typed: bool) -> None:
        _, asked = await ask(chat_call("eat"), typed=typed, tools="required")
        assert asked.json()["tool_choice"] == "any"
        _, asked = await ask(chat_call("eat"), make_request(force="eat"), typed=typed)
        assert asked.json()["tool_choice"]["function"]["name"] == "eat"

    async def test_ids_and_roles_are_as_the_api_demands(self, typed: bool) -> None:
        earlier = ModelReply(
            stop="tool_calls",
            calls=(
                RawCall("eat", "{}", id="Abc123xyZ"),
                RawCall("eat", "{}", id="call_openai_style"),
                RawCall("eat", "{}", id="null"),
                RawCall("eat", {"a": 1}, id="Abc123xyZ"),
            ),
        )
        request = make_request(messages=second_round(earlier), round=2)
        _, asked = await ask(chat_call("eat"), request, typed=typed)
        messages = asked.json()["messages"]
        assert [message["role"] for message in messages] == [
            "system",
            "user",
            "assistant",
            *["tool"] * 4,
            "assistant",
            "user",
        ]
        ids = [call["id"] for call in messages[2]["tool_calls"]]
        assert ids[0] == "Abc123xyZ"
        assert len(set(ids)) == 4
        assert all(len(one) == 9 and one.isalnum() for one in ids)
        assert [message["tool_call_id"] for message in messages[3:7]] == ids

    async def test_a_stream_is_put_together(self, typed: bool) -> None:
        delta = {
            "tool_calls": [{"id": "c12345678", "function": {"name": "eat", "arguments": "{}"}}]
        }
        chunks = (chat_chunk(delta), chat_chunk({"content": ""}, "tool_calls"))
        reply, asked = await ask(event_stream(*chunks), typed=typed, stream=True)
        assert asked.json()["stream"] is True
        assert [(call.name, call.id) for call in reply.calls] == [("eat", "c12345678")]
        with pytest.raises(ModelError) as caught:
            await ask(event_stream(*chunks[:1], done=False), typed=typed, stream=True)
        assert caught.value.kind == "stream_incomplete"

    async def test_what_the_sdks_types_refuse_is_read_by_our_rules(self, typed: bool) -> None:
        odd = chat_call("eat")
        odd["choices"][0]["finish_reason"] = "a_new_reason"
        odd["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = None
        del odd["usage"], odd["created"]
        reply, _ = await ask(odd, typed=typed)
        assert (reply.stop_native, reply.calls[0].arguments) == ("a_new_reason", None)


async def test_thinking_is_reasoning() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "two forks"}]},
        {"type": "text", "text": "I wait."},
    ]
    reply, _ = await ask(chat_body({"role": "assistant", "content": content}, "stop"))
    assert (reply.text, reply.reasoning) == ("I wait.", "two forks")


async def test_what_is_left_out_is_not_sent_and_not_claimed() -> None:
    reply, asked = await ask(chat_call("eat"), omit="seed+max_tokens")
    assert not {"random_seed", "seed", "max_tokens"} & (set(asked.json()) | set(reply.sent))


async def test_a_redirect_is_not_followed() -> None:
    with StubServer(lambda _: StubResponse(body=chat_call("eat"))) as other:
        with pytest.raises(ModelError) as caught:
            await ask(StubResponse(status=307, headers={"location": other.url}, body={}))
        assert (caught.value.kind, other.calls) == ("config", 0)


async def test_the_sdk_logs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MISTRAL_DEBUG", "1")
    await ask(chat_call("eat"))
    said = capsys.readouterr()
    assert "Headers" not in said.out + said.err


async def test_an_injected_client_is_used_and_left_open() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=chat_call("eat"))

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        model = MistralModel("m", MistralOptions(), api_key=KEY, http_client=http)
        assert (await model.complete(make_request())).calls[0].name == "eat"
        await model.aclose()
        assert str(seen[0].url) == "https://api.mistral.ai/v1/chat/completions"
        assert not http.is_closed


async def test_hundreds_of_calls_share_the_pool() -> None:
    with StubServer(lambda _: StubResponse(body=chat_call("eat"), together=200)) as server:
        model = model_at(server.url, concurrency=200)
        replies = await asyncio.gather(*(model.complete(make_request()) for _ in range(200)))
        await model.aclose()
        assert all(reply.calls[0].name == "eat" for reply in replies)
        assert server.most_in_flight == 200


class TestServers:
    def test_a_missing_key_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
        (offer,) = coordbench_models()
        assert offer.check is not None
        with pytest.raises(UsageError, match="MISTRAL_API_KEY is not set"):
            offer.check("mistral-large-latest", MistralOptions())
        offer.check("m", MistralOptions(base_url="http://127.0.0.1:1"))

    def test_the_key_goes_to_mistral_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MISTRAL_API_KEY", KEY)
        assert key_of("m", MistralOptions()) == KEY
        assert key_of("m", MistralOptions(base_url="https://api.eu.mistral.ai/v1")) == KEY
        assert key_of("m", MistralOptions(base_url="http://localhost:8000")) == ""
        with pytest.raises(UsageError, match="api_key_env"):
            key_of("m", MistralOptions(base_url="https://mistral.ai.example.com"))

    def test_the_path_is_added_once(self) -> None:
        for url in ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"):
            assert server_url(MistralOptions(base_url=url)) == "http://h:1"

    def test_only_this_machine_is_free(self) -> None:
        assert MistralModel("m", MistralOptions(), api_key=KEY).info.paid
        assert not model_at("http://127.0.0.1:1").info.paid


def test_listing_plugins_imports_no_sdk() -> None:
    code = (
        "import sys, coordbench_mistral.plugin as p; p.coordbench_models(); "
        "sys.exit(any(m.split('.')[0] in ('mistralai', 'httpx2') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
