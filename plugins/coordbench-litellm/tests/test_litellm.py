"""The litellm plugin through litellm itself, against a local server that speaks three formats."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coordbench.api import ModelError, ModelReply, ModelRequest, UsageError
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
from coordbench.testing.chat_bodies import chat_call, chat_offered, chat_text, second_round
from coordbench.testing.provider_kit import make_request
from coordbench_litellm.client import HANDLER_PROVIDERS, SDK_PROVIDERS
from coordbench_litellm.model import LitellmModel
from coordbench_litellm.plugin import LitellmOptions, coordbench_models, key_of

pytestmark = pytest.mark.slow

KEY = "key-0123456789abcdef"
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "provider_cases.jsonl"
SPOKEN_BY = {
    "openai.chat": "litellm.chat",
    "openai-compatible.chat": "litellm.chat",
    "vllm.chat": "litellm.chat",
    "openrouter.chat": "litellm.chat",
    "anthropic.messages": "litellm.anthropic",
    "gemini.generateContent": "litellm.gemini",
    "mistral.chat": "litellm.mistral",
}


def model_at(url: str, target: str = "openai/gpt-test", **options: Any) -> LitellmModel:
    path = "" if target.startswith(("anthropic/", "gemini/")) else "/v1"
    return LitellmModel(target, LitellmOptions(base_url=url + path, **options), api_key=KEY)


def message(*content: dict[str, Any], stop: str = "tool_use") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(content),
        "stop_reason": stop,
        "usage": {"input_tokens": 5, "output_tokens": 3},
    }


def candidate(*parts: dict[str, Any], stop: str = "STOP") -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": stop}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
        "modelVersion": "gemini-test",
        "responseId": "resp_1",
    }


def tool_use(name: str) -> dict[str, Any]:
    return message({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}})


def function_call(name: str) -> dict[str, Any]:
    return candidate({"functionCall": {"name": name, "args": {}}})


KITS: dict[str, tuple[Any, Any, Any]] = {
    "openai/gpt-test": (chat_call, chat_text, chat_offered),
    "hosted_vllm/qwen": (chat_call, chat_text, chat_offered),
    "anthropic/claude-test": (
        tool_use,
        lambda text: message({"type": "text", "text": text}, stop="end_turn"),
        lambda body: [tool["name"] for tool in body.get("tools", ())],
    ),
    "gemini/gemini-test": (
        function_call,
        lambda text: candidate({"text": text}),
        lambda body: [
            declared["name"]
            for tool in body.get("tools", ())
            for declared in tool.get("functionDeclarations") or tool["function_declarations"]
        ],
    ),
}


def kit(target: str) -> ProviderKit:
    call_body, text_body, offered = KITS[target]
    return ProviderKit(
        make=lambda url: model_at(url, target),
        key=KEY,
        call_body=call_body,
        text_body=text_body,
        offered=offered,
    )


@pytest.mark.parametrize("target", KITS)
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance(check: Any, target: str) -> None:
    await check(kit(target))


def reported_cases() -> list[Any]:
    """Those of the formats that litellm speaks; it is asked for no streams here."""
    if not CASES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip("no folder of shared cases beside it"))]
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    mine = [
        {**case, "input": {**case["input"], "api": SPOKEN_BY[case["input"]["api"]]}}
        for case in cases
        if case["input"].get("api") in SPOKEN_BY
        and "sse" not in case["input"]
        # Of the request's own form, which is litellm's here: `function_response`.
        and not (
            case["input"]["api"].startswith("gemini") and case["input"].get("kind") == "history"
        )
    ]
    assert len(mine) >= 80
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", reported_cases())
def test_reported_cases_through_litellm(case: dict[str, Any]) -> None:
    outcome = replay_case(case)
    assert outcome.status == "passed", outcome.line()


async def ask(
    answer: Any,
    request: ModelRequest | None = None,
    target: str = "openai/gpt-test",
    **options: Any,
) -> tuple[ModelReply, StubRequest]:
    return await ask_at(lambda url: model_at(url, target, **options), answer, request)


class TestRequests:
    async def test_the_request(self) -> None:
        reply, asked = await ask(chat_call("eat"))
        body = asked.json()
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        del body["messages"], body["tools"], body["model"]
        assert body == {
            "temperature": 0.25,
            "top_p": 0.5,
            "max_tokens": 321,
            "seed": 11,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        }
        assert reply.sent == body

    async def test_what_went_out_under_another_name_is_told(self) -> None:
        reply, asked = await ask(tool_use("eat"), target="anthropic/claude-test")
        assert asked.json()["tool_choice"]["disable_parallel_tool_use"] is True
        assert reply.sent["tool_choice.disable_parallel_tool_use"] is True
        assert "seed" not in reply.sent
        assert "seed" not in asked.json()
        reply, _ = await ask(function_call("eat"), target="gemini/gemini-test")
        assert reply.sent["seed"] == 11
        assert "parallel_tool_calls" not in reply.sent

    async def test_a_setting_that_the_provider_does_not_have_is_an_error(self) -> None:
        with pytest.raises(ModelError, match="omit=top_p") as caught:
            await ask(chat_call("eat"), target="openai/o3-mini")
        assert (caught.value.kind, caught.value.scope) == ("config", "run")
        reply, asked = await ask(
            chat_call("eat"), target="openai/o3-mini", omit="temperature+top_p"
        )
        assert not {"temperature", "top_p"} & (set(asked.json()) | set(reply.sent))

    async def test_a_tool_may_be_required_or_forced(self) -> None:
        _, asked = await ask(chat_call("eat"), tools="required")
        assert asked.json()["tool_choice"] == "required"
        _, asked = await ask(chat_call("eat"), make_request(force="eat"))
        assert asked.json()["tool_choice"]["function"]["name"] == "eat"

    async def test_ids_and_roles_are_as_mistral_demands(self) -> None:
        first, _ = await ask(chat_call("eat"))
        request = make_request(messages=second_round(first), round=2)
        _, asked = await ask(chat_call("eat"), request, target="mistral/mistral-test")
        turns = asked.json()["messages"]
        assert [turn["role"] for turn in turns[2:]] == ["assistant", "tool", "assistant", "user"]
        assert len(turns[2]["tool_calls"][0]["id"]) == 9
        assert asked.json()["random_seed"] == 11


class TestHistories:
    async def test_thinking_goes_back_with_its_signature(self) -> None:
        thought = {"type": "thinking", "thinking": "two forks", "signature": "SIG"}
        called = {"type": "tool_use", "id": "toolu_1", "name": "eat", "input": {}}
        reply, _ = await ask(message(thought, called), target="anthropic/claude-test")
        assert (reply.reasoning, reply.stop_native) == ("two forks", "tool_use")
        request = make_request(messages=second_round(reply), round=2)
        _, asked = await ask(tool_use("eat"), request, target="anthropic/claude-test")
        assert asked.json()["messages"][1]["content"] == [thought, called]

    async def test_so_do_thought_signatures(self) -> None:
        part = {"functionCall": {"name": "eat", "args": {}}, "thoughtSignature": "U0lH"}
        reply, _ = await ask(candidate(part), target="gemini/gemini-test")
        request = make_request(messages=second_round(reply), round=2)
        _, asked = await ask(function_call("eat"), request, target="gemini/gemini-test")
        assert asked.json()["contents"][1]["parts"][0]["thoughtSignature"] == "U0lH"


class TestReplies:
    async def test_the_servers_own_word_counts(self) -> None:
        reply, _ = await ask(
            candidate({"text": "no"}, stop="PROHIBITED_CONTENT"), target="gemini/gemini-test"
        )
        assert (reply.stop, reply.stop_native) == ("refused", "PROHIBITED_CONTENT")
        reply, _ = await ask(
            message({"type": "text", "text": "I"}, stop="max_tokens"),
            target="anthropic/claude-test",
        )
        assert (reply.stop, reply.stop_native) == ("length", "max_tokens")

    async def test_ids_and_counts_that_litellm_makes_up_are_left_out(self) -> None:
        reply, _ = await ask(tool_use("eat"), target="anthropic/claude-test")
        assert (reply.request_id, reply.usage.reasoning_tokens) == ("msg_1", None)

    @pytest.mark.parametrize("target", KITS)
    async def test_waiting_times_and_statuses_survive(self, target: str) -> None:
        slow = StubResponse(status=429, headers={"retry-after": "7"}, body={"error": {}})
        with pytest.raises(ModelError) as caught:
            await ask(slow, target=target)
        assert (caught.value.kind, caught.value.wait_s) == ("rate_limit", 7.0)
        with pytest.raises(ModelError) as caught:
            await ask(StubResponse(status=529, body={"error": {}}), target=target)
        assert (caught.value.kind, caught.value.retry) == ("overloaded", True)

    @pytest.mark.parametrize("target", KITS)
    async def test_a_redirect_is_not_followed(self, target: str) -> None:
        with StubServer(lambda _: StubResponse(body=chat_call("eat"))) as other:
            moved = StubResponse(status=307, headers={"location": other.url}, body={})
            with pytest.raises(ModelError) as caught:
                await ask(moved, target=target)
            assert (caught.value.kind, other.calls) == ("config", 0)

    @pytest.mark.parametrize("usage", [{}, {"usageMetadata": {}}], ids=["uncounted", "counted"])
    async def test_a_blocked_prompt_is_a_refusal(self, usage: dict[str, Any]) -> None:
        blocked = {"promptFeedback": {"blockReason": "SAFETY"}, **usage}
        reply, _ = await ask(blocked, target="gemini/gemini-test")
        assert (reply.stop, reply.stop_native) == ("refused", "SAFETY")


@pytest.mark.parametrize("provider", sorted(HANDLER_PROVIDERS | SDK_PROVIDERS))
async def test_the_clients_that_are_handed_over_are_used(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever comes of it: only what they see can be read by our own rule."""
    for name in ("SNOWFLAKE_ACCOUNT_ID", "DATABRICKS_API_KEY"):
        monkeypatch.setenv(name, "none")
    teapot = StubResponse(status=418, headers={"retry-after": "3"}, body={"error": {"code": "x"}})
    request = make_request((), seed=None)
    with pytest.raises(ModelError) as caught:
        await ask(teapot, request, target=f"{provider}/some-model", omit="temperature+top_p")
    assert caught.value.status == 418


async def test_an_injected_client_is_used_and_left_open() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(str(request.url))
        return httpx2.Response(200, json=chat_call("eat"))

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        model = LitellmModel("openai/m", LitellmOptions(), api_key=KEY, http_client=http)
        assert (await model.complete(make_request())).calls[0].name == "eat"
        await model.aclose()
        assert seen == ["https://api.openai.com/v1/chat/completions"]
        assert not http.is_closed


async def test_hundreds_of_calls_share_the_pool() -> None:
    with StubServer(lambda _: StubResponse(body=chat_call("eat"), together=100)) as server:
        model = model_at(server.url, concurrency=100)
        replies = await asyncio.gather(*(model.complete(make_request()) for _ in range(100)))
        await model.aclose()
        assert all(reply.calls[0].name == "eat" for reply in replies)
        assert server.most_in_flight == 100


class TestNames:
    def test_a_missing_key_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        (offer,) = coordbench_models()
        assert offer.check is not None
        for target, variable in (
            ("groq/llama", "GROQ_API_KEY"),
            ("gemini/gemini-test", "GEMINI_API_KEY"),
        ):
            monkeypatch.delenv(variable, raising=False)
            monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
            with pytest.raises(UsageError, match=f"{variable} is not set"):
                offer.check(target, LitellmOptions())
        offer.check("groq/llama", LitellmOptions(base_url="http://127.0.0.1:1"))

    def test_a_key_that_only_litellm_knows_of_is_named_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("AI21_API_KEY", raising=False)
        with pytest.raises(UsageError, match="AI21_API_KEY is not set"):
            LitellmModel("ai21/jamba", LitellmOptions(), api_key=None)
        monkeypatch.setenv("AI21_API_KEY", "")
        with pytest.raises(UsageError, match="AI21_API_KEY is not set"):
            LitellmModel("ai21/jamba", LitellmOptions(), api_key=None)

    def test_a_name_without_a_provider_is_no_name(self) -> None:
        (offer,) = coordbench_models()
        assert offer.check is not None
        with pytest.raises(UsageError, match="says no provider"):
            offer.check("gpt-5.4", LitellmOptions())
        with pytest.raises(UsageError, match="LLM Provider NOT provided"):
            LitellmModel("nobody/x", LitellmOptions(), api_key=None)

    def test_a_key_goes_to_its_own_server_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROQ_API_KEY", KEY)
        assert key_of("groq/x", LitellmOptions()) == KEY
        with pytest.raises(UsageError, match="api_key_env"):
            key_of("groq/x", LitellmOptions(base_url="https://groq.example.com/v1"))

    def test_only_this_machine_is_free(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert LitellmModel("openai/gpt-4o", LitellmOptions(), api_key=KEY).info.paid
        assert not LitellmModel("ollama_chat/qwen3", LitellmOptions(), api_key=None).info.paid
        assert not model_at("http://127.0.0.1:1").info.paid


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_listing_plugins_imports_no_litellm() -> None:
    code = (
        "import sys, coordbench_litellm.plugin as p; p.coordbench_models(); "
        "sys.exit(any(m.split('.')[0] in ('litellm', 'openai') for m in sys.modules))"
    )
    assert python(code).returncode == 0


def test_an_env_file_nearby_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n", encoding="utf-8")
    code = (
        f"import os; os.chdir({str(tmp_path)!r})\n"
        "from coordbench_litellm.model import import_litellm; import_litellm()\n"
        "print(os.environ.get('FROM_DOTENV'), os.environ['LITELLM_LOCAL_MODEL_COST_MAP'])"
    )
    done = python(code)
    assert done.stdout.split() == ["None", "True"], done.stderr
