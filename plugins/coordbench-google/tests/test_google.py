"""Gemini models: what is sent, what is made of what comes back, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest

from coordbench.api import (
    AssistantMessage,
    ModelError,
    ModelReply,
    ModelRequest,
    RawCall,
    SystemMessage,
    ToolMessage,
    UsageError,
    UserMessage,
)
from coordbench.testing import StubRequest, StubResponse, StubServer, replay_case
from coordbench.testing.provider_kit import make_request, make_tools
from coordbench_google.cases import CASE_APIS
from coordbench_google.client import Sender
from coordbench_google.model import GoogleModel
from coordbench_google.options import GoogleOptions
from coordbench_google.plugin import coordbench_models
from coordbench_google.request import request_body

KEY = "AIza-tests-0123456789abcdef"
CASES = Path(__file__).resolve().parents[4] / "shared/cases/provider_cases.jsonl"
EAT = {"functionCall": {"name": "eat", "args": {}}}
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}


def response(*parts: Any, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    body = {"candidates": [candidate], "usageMetadata": USAGE, "responseId": "r-1"}
    return body | {"modelVersion": "gemini-test-001"} | more


def error(code: int, status: str, message: str = "no", **more: Any) -> StubResponse:
    body = {"error": {"code": code, "status": status, "message": message, **more}}
    return StubResponse(status=code, body=body)


async def ask(
    answer: Any, request: ModelRequest | None = None, **options: Any
) -> tuple[ModelReply, StubRequest]:
    """The reply to one call, and the request that was made for it."""
    made = answer if isinstance(answer, StubResponse) else StubResponse(body=answer)
    with StubServer(lambda _: made) as server:
        model = GoogleModel(
            "gemini-test", GoogleOptions(base_url=server.url, **options), api_key=KEY
        )
        try:
            reply = await model.complete(request or make_request())
        finally:
            await model.aclose()
        return reply, server.requests[-1]


async def reply_to(body: Any) -> ModelReply:
    return (await ask(body))[0]


def body_for(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return request_body(GoogleOptions(**options), request)[0]


def history(*replies: ModelReply, tools: Any = None) -> ModelRequest:
    messages: list[Any] = [SystemMessage("You are P1.")]
    for at, reply in enumerate(replies, start=1):
        messages += [UserMessage(f"Round {at}."), AssistantMessage(reply)]
        messages += [ToolMessage(index, f"did {index}") for index in range(len(reply.calls))]
    messages.append(UserMessage("Now."))
    return make_request(tools, messages=messages, round=len(replies) + 1)


class TestRequest:
    async def test_goes_to_generate_content(self) -> None:
        reply, asked = await ask(response(EAT))
        body = asked.json()
        assert asked.path == "/v1/models/gemini-test:generateContent"
        assert asked.headers["x-goog-api-key"] == KEY
        assert set(body) == {
            "contents",
            "systemInstruction",
            "generationConfig",
            "tools",
            "toolConfig",
        }
        assert body["generationConfig"] == {
            "temperature": 0.25,
            "topP": 0.5,
            "maxOutputTokens": 321,
            "seed": 11,
        }
        assert body["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
        assert reply.sent == {
            "temperature": 0.25,
            "top_p": 0.5,
            "max_tokens": 321,
            "seed": 11,
            "tool_choice": "auto",
        }

    def test_tools_without_parameters_declare_none(self) -> None:
        (tool,) = body_for(make_request())["tools"]
        assert all(set(one) == {"name", "description"} for one in tool["functionDeclarations"])

    def test_what_is_left_out_is_not_sent_and_not_claimed(self) -> None:
        body, sent = request_body(GoogleOptions(omit="seed+top_p"), make_request())
        assert set(body["generationConfig"]) == {"temperature", "maxOutputTokens"}
        assert not {"seed", "top_p"} & set(sent)

    def test_thinking(self) -> None:
        body, sent = request_body(
            GoogleOptions(thinking_level="low", thoughts=True), make_request()
        )
        config = body["generationConfig"]["thinkingConfig"]
        assert config == {"thinkingLevel": "LOW", "includeThoughts": True}
        assert sent["thinking_level"] == "low"
        body, sent = request_body(GoogleOptions(thinking_budget=0), make_request())
        assert body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}
        assert sent["thinking_budget"] == 0

    def test_a_call_may_be_required_or_forced(self) -> None:
        required = body_for(make_request(), tools="required")
        assert required["toolConfig"]["functionCallingConfig"] == {"mode": "ANY"}
        forced = body_for(make_request(force="eat"))
        assert forced["toolConfig"]["functionCallingConfig"] == {
            "mode": "ANY",
            "allowedFunctionNames": ["eat"],
        }

    @pytest.mark.parametrize(
        ("base", "options", "path"),
        [
            ("", {}, "/v1/models/gemini-test"),
            ("/v1beta", {}, "/v1beta/models/gemini-test"),
            ("/gateway/v1alpha/", {}, "/gateway/v1alpha/models/gemini-test"),
            ("", {"api_version": "v1beta"}, "/v1beta/models/gemini-test"),
        ],
    )
    async def test_the_version_may_stand_in_the_address(
        self, base: str, options: dict[str, Any], path: str
    ) -> None:
        with StubServer(lambda _: StubResponse(body=response(EAT))) as server:
            named = GoogleOptions(base_url=server.url + base, **options)
            for model in ("gemini-test", "models/gemini-test"):
                made = GoogleModel(model, named, api_key=KEY)
                await made.complete(make_request())
                await made.aclose()
                assert made.info.model == "gemini-test"
                assert server.requests[-1].path == f"{path}:generateContent"


class TestHistory:
    def reply(self, *calls: RawCall, text: str = "", **more: Any) -> ModelReply:
        return ModelReply(stop="tool_calls" if calls else "stop", calls=calls, text=text, **more)

    def turns(self, *replies: ModelReply) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = body_for(history(*replies))["contents"]
        return contents

    async def test_signatures_go_back_on_the_part_they_came_on(self) -> None:
        parts = [
            {"text": "Both."},
            {**EAT, "thoughtSignature": "c2lnLTE="},
            {"functionCall": {"name": "think", "args": {}}},
            {"text": "", "thoughtSignature": "c2lnLTI="},
        ]
        first = await reply_to(response({"text": "Hm.", "thought": True}, *parts))
        assert self.turns(first)[1] == {"role": "model", "parts": parts}
        assert (first.reasoning, first.text) == ("Hm.", "Both.")

    async def test_every_call_is_answered_right_behind_and_ids_are_the_apis_own(self) -> None:
        calls = [EAT, {"functionCall": {"name": "default_api.eat", "id": "own-1"}}]
        turns = self.turns(await reply_to(response(*calls)))
        assert [turn["role"] for turn in turns] == ["user", "model", "user", "user"]
        assert turns[1]["parts"] == [
            EAT,
            {"functionCall": {"name": "default_api.eat", "args": {}, "id": "own-1"}},
        ]
        assert turns[2]["parts"] == [
            {"functionResponse": {"name": "eat", "response": {"output": "did 0"}}},
            {
                "functionResponse": {
                    "name": "default_api.eat",
                    "response": {"output": "did 1"},
                    "id": "own-1",
                }
            },
        ]
        assert turns[3]["parts"] == [{"text": "Now."}]

    def test_no_turn_is_empty(self) -> None:
        for empty in (self.reply(), self.reply(text=" "), ModelReply(stop="refused")):
            assert self.turns(empty)[1]["parts"] == [{"text": "(no answer)"}]

    async def test_what_is_no_call_of_ours_is_not_replayed(self) -> None:
        first = await reply_to(response({"toolCall": {"toolType": "GOOGLE_SEARCH"}}, {"text": "x"}))
        turns = self.turns(first)
        assert [turn["parts"] for turn in turns[1:]] == [[{"text": "x"}], [{"text": "Now."}]]

    def test_names_and_arguments_that_the_api_would_refuse(self) -> None:
        calls = (RawCall("no such\ntool", '{"a": ', "x"), RawCall(None, {"a": float("nan")}))
        turns = self.turns(self.reply(*calls))
        made = [part["functionCall"] for part in turns[1]["parts"]]
        assert made[0] == {"name": "no_such_tool", "args": {}, "id": "x"}
        assert made[1]["name"] == "unknown"
        assert "NaN" not in json.dumps(turns)

    def test_a_message_round_declares_the_tools_of_earlier_calls_and_allows_none(self) -> None:
        body = body_for(history(self.reply(RawCall("eat", {}, "a")), tools=()))
        assert body["tools"] == [{"functionDeclarations": [{"name": "eat"}]}]
        assert body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
        assert "tools" not in body_for(history(self.reply(text="hi"), tools=()))

    def test_a_conversation_may_begin_and_end_anyhow(self) -> None:
        reply = AssistantMessage(self.reply(text="hi"))
        for messages in ((), (reply,), (reply, reply), (UserMessage("a"), reply)):
            turns = body_for(make_request(messages=messages))["contents"]
            roles = [turn["role"] for turn in turns]
            assert roles[0] == roles[-1] == "user"
            assert all(one != other for one, other in pairwise(roles))

    async def test_a_lone_surrogate_is_sent_escaped(self) -> None:
        _, asked = await ask(response(EAT), history(self.reply(text="half \ud83d")))
        assert asked.json()["contents"][1]["parts"][0]["text"] == "half \\ud83d"


class TestReply:
    @pytest.mark.parametrize(
        ("usage", "into", "output", "reasoning"),
        [
            (USAGE, 100, 10, None),
            ({**USAGE, "thoughtsTokenCount": 20, "totalTokenCount": 130}, 100, 30, 20),
            ({**USAGE, "thoughtsTokenCount": 4}, 100, 10, 4),  # the total says: counted already
            ({"promptTokenCount": 100, "thoughtsTokenCount": 62}, 100, 62, 62),
            ({**USAGE, "toolUsePromptTokenCount": 5}, 105, 10, None),
            ({}, None, None, None),
            ("none", None, None, None),
        ],
    )
    async def test_output_counts_the_thinking(
        self, usage: Any, into: int | None, output: int | None, reasoning: int | None
    ) -> None:
        found = (await reply_to(response(EAT, usageMetadata=usage))).usage
        assert (found.input_tokens, found.output_tokens) == (into, output)
        assert found.reasoning_tokens == reasoning

    @pytest.mark.parametrize(
        ("word", "stop"),
        [
            ("STOP", "tool_calls"),
            ("MAX_TOKENS", "length"),
            ("CONTINUATION", "length"),
            ("SAFETY", "refused"),
            ("RECITATION", "refused"),
            ("SPII", "refused"),
            ("MODEL_ARMOR", "refused"),
            ("MALFORMED_FUNCTION_CALL", "malformed"),
            ("UNEXPECTED_TOOL_CALL", "malformed"),
            ("MALFORMED_SOMETHING_NEW", "malformed"),
            ("OTHER", "unknown"),
            ("A_WORD_OF_NEXT_YEAR", "unknown"),
        ],
    )
    async def test_finish_reasons(self, word: str, stop: str) -> None:
        reply = await reply_to(response(EAT, finish=word))
        assert (reply.stop, reply.stop_native) == (stop, word)

    @pytest.mark.parametrize(
        ("word", "kind", "scope"),
        [
            ("MISSING_THOUGHT_SIGNATURE", "history", "episode"),
            ("PUP_LIMITED_DISABLED", "auth", "run"),
        ],
    )
    async def test_finish_reasons_that_are_no_models(
        self, word: str, kind: str, scope: str
    ) -> None:
        with pytest.raises(ModelError) as caught:
            await ask(response(finish=word))
        assert (caught.value.kind, caught.value.scope) == (kind, scope)

    async def test_a_blocked_prompt_is_refused(self) -> None:
        feedback = {"blockReason": "SAFETY", "blockReasonMessage": "not this"}
        reply = await reply_to({"promptFeedback": feedback, "usageMetadata": USAGE})
        assert (reply.stop, reply.stop_native) == ("refused", "SAFETY")
        assert reply.refusal == "the prompt was blocked: not this"
        assert reply.usage.input_tokens == 100

    async def test_no_candidate_is_the_providers_failure(self) -> None:
        for body in ({"usageMetadata": USAGE}, {"candidates": [], "modelVersion": "m"}):
            with pytest.raises(ModelError) as caught:
                await ask(body)
            assert (caught.value.kind, caught.value.retry) == ("provider_error", True)

    async def test_code_that_calls_a_tool_is_markup_in_text(self) -> None:
        code = {"language": "PYTHON", "code": "print(default_api.eat())"}
        reply = await reply_to(response({"executableCode": code}))
        assert reply.calls == ()
        assert "default_api.eat()" in reply.text

    async def test_what_the_model_thought_is_no_call(self) -> None:
        reply = await reply_to(response({**EAT, "thought": True}))
        assert reply.calls == ()


class TestFailures:
    async def failure(self, answer: StubResponse) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await ask(answer)
        return caught.value

    async def test_quotas(self) -> None:
        def violated(name: str) -> dict[str, Any]:
            return {"violations": [{"quotaId": f"GenerateRequestsPer{name}PerProjectPerModel"}]}

        wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
        day = await self.failure(error(429, "RESOURCE_EXHAUSTED", details=[violated("Day"), wait]))
        assert (day.kind, day.scope) == ("quota", "run")
        minute = await self.failure(
            error(429, "RESOURCE_EXHAUSTED", details=[violated("Minute"), wait])
        )
        assert (minute.kind, minute.retry, minute.wait_s) == ("rate_limit", True, 34.5)

    async def test_a_page_in_place_of_json_keeps_its_status(self) -> None:
        for kind in ("text/html", "application/json"):
            made = await self.failure(
                StubResponse(status=503, headers={"content-type": kind}, body=b"<p>later</p>")
            )
            assert (made.kind, made.status, made.message) == ("server_error", 503, "later")

    async def test_a_lost_connection_is_tried_once(self) -> None:
        with StubServer(lambda _: StubResponse(fault="reset")) as server:
            model = GoogleModel("m", GoogleOptions(base_url=server.url), api_key=KEY)
            with pytest.raises(ModelError) as caught:
                await model.complete(make_request())
            await model.aclose()
            assert (caught.value.kind, server.calls) == ("network", 1)

    async def test_a_redirect_is_not_followed(self) -> None:
        with StubServer(lambda _: StubResponse(body=response(EAT))) as other:
            location = {"location": f"{other.url}/v1/models/gemini-test:generateContent"}
            made = await self.failure(StubResponse(status=307, headers=location, body={}))
            assert made.kind == "config"
            assert other.calls == 0


def as_events(*chunks: Any) -> StubResponse:
    lines = [it if isinstance(it, str) else json.dumps(it) for it in chunks]
    body = "".join(f"data: {line}\r\n\r\n" for line in lines).encode()
    return StubResponse(headers={"content-type": "text/event-stream"}, body=body)


class TestStream:
    async def test_is_put_together(self) -> None:
        signed = {**EAT, "thoughtSignature": "c2ln"}
        reply, asked = await ask(
            as_events(
                response({"text": "Hm", "thought": True}, finish=None),
                response({"text": ".", "thought": True}, {"text": "So"}, finish=None),
                response({"text": ":"}, signed, finish=None),
                response({"text": ""}, usageMetadata={**USAGE, "candidatesTokenCount": 12}),
            ),
            stream=True,
        )
        assert asked.path.endswith(":streamGenerateContent?alt=sse")
        assert (reply.reasoning, reply.text) == ("Hm.", "So:")
        assert [call.name for call in reply.calls] == ["eat"]
        assert (reply.stop, reply.usage.output_tokens) == ("tool_calls", 12)
        assert reply.native["parts"][1] == {"call": 0, "thoughtSignature": "c2ln"}

    @pytest.mark.parametrize(
        "chunks", [(response(EAT, finish=None),), (response(EAT, finish=None), '{"candi')]
    )
    async def test_that_ends_early_is_a_failure(self, chunks: tuple[Any, ...]) -> None:
        with pytest.raises(ModelError) as caught:
            await ask(as_events(*chunks), stream=True)
        assert (caught.value.kind, caught.value.retry) == ("stream_incomplete", True)

    async def test_may_be_blocked_or_hold_an_error(self) -> None:
        reply, _ = await ask(as_events({"promptFeedback": {"blockReason": "OTHER"}}), stream=True)
        assert reply.stop == "refused"
        failed = {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}
        with pytest.raises(ModelError) as caught:
            await ask(as_events(response(EAT, finish=None), failed), stream=True)
        assert caught.value.kind == "overloaded"

    async def test_a_server_may_answer_in_one_piece_or_with_a_list(self) -> None:
        for body in (response(EAT), [response({"text": "So"}, finish=None), response(EAT)]):
            reply, _ = await ask(body, stream=True)
            assert reply.calls[0].name == "eat"


class TestNames:
    @pytest.fixture(autouse=True)
    def no_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "LAN_KEY"):
            monkeypatch.delenv(name, raising=False)

    def offer(self) -> tuple[Callable[[str, Any], None], Callable[[str, Any], Any]]:
        (offer,) = coordbench_models()
        assert offer.check is not None
        return offer.check, offer.build

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, "GEMINI_API_KEY is not set"),
            ({"api_key_env": "LAN_KEY"}, "LAN_KEY is not set"),
            ({"base_url": "http://10.0.0.7:8000"}, "which variable holds the key"),
            ({"base_url": "nowhere"}, "no address"),
            ({"thinking_level": "low", "thinking_budget": 0}, "exclude each other"),
            ({"omit": "warmth"}, "no setting"),
        ],
    )
    def test_what_cannot_work_is_said_before_anything_is_built(
        self, options: dict[str, Any], words: str
    ) -> None:
        for refuse in self.offer():
            with pytest.raises(UsageError) as caught:
                refuse("gemini-test", GoogleOptions(**options))
            assert words in str(caught.value)

    async def test_a_server_on_this_machine_needs_no_key_and_gets_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
            monkeypatch.setenv(name, KEY)
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        _, build = self.offer()
        with StubServer(lambda _: StubResponse(body=response(EAT))) as server:
            model = build("m", GoogleOptions(base_url=server.url))
            assert not model.info.paid
            await model.complete(make_request())
            await model.aclose()
            assert KEY not in json.dumps(server.requests[0].headers)

    def test_the_model_and_its_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GOOGLE_API_KEY", KEY)
        _, build = self.offer()
        options = GoogleOptions(thinking_level="low", max_tokens=900, concurrency=7)
        info = build("gemini-3.8-flash", options).info
        assert (info.provider, info.model, info.paid) == ("google", "gemini-3.8-flash", True)
        assert info.endpoint == "https://generativelanguage.googleapis.com"
        assert (info.max_in_flight, info.tool_mode) == (7, "native")
        assert info.settings == {"thinking_level": "low", "max_tokens": 900}


class TestClient:
    async def test_an_injected_httpx2_client_is_used_and_left_open(self) -> None:
        seen: list[httpx2.Request] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            return httpx2.Response(200, json=response(EAT))

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            model = GoogleModel("m", GoogleOptions(), api_key=KEY, http_client=http)
            assert (await model.complete(make_request())).calls[0].name == "eat"
            await model.aclose()
            assert seen[0].url.host == "generativelanguage.googleapis.com"
            assert not http.is_closed

    async def test_an_injected_aiohttp_session_is_used_and_left_open(self) -> None:
        with StubServer(lambda _: StubResponse(body=response(EAT))) as server:
            async with aiohttp.ClientSession(headers={"x-mine": "yes"}) as session:
                options = GoogleOptions(base_url=server.url)
                model = GoogleModel("m", options, api_key=KEY, http_client=session)
                await model.complete(make_request())
                await model.aclose()
                assert not session.closed
            assert server.requests[0].headers["x-mine"] == "yes"

    async def test_an_sdk_without_the_cheap_way_sends_the_same(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results = []
        request = history(await reply_to(response({**EAT, "thoughtSignature": "c2ln"})))
        for cheap in (True, False):
            if not cheap:
                monkeypatch.setattr("coordbench_google.client._RAW", "no_such_method")
            results.append(await ask(response(EAT), request))
        (reply, asked), (other_reply, other_asked) = results
        assert reply == other_reply
        assert asked.json() == other_asked.json()
        assert asked.path == other_asked.path

    async def test_closing_without_a_call_opens_nothing(self) -> None:
        sender = Sender("http://127.0.0.1:1", "", KEY, None)
        await sender.aclose()
        assert sender._client is None


def reported_cases() -> list[Any]:
    if not CASES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip("no folder of shared cases beside it"))]
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    mine = [case for case in cases if case["input"].get("api") in CASE_APIS]
    assert mine
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", reported_cases())
def test_reported_cases_through_the_sdk(case: dict[str, Any]) -> None:
    outcome = replay_case(case)
    assert outcome.status == "passed", outcome.line()


# Refuses the network outside this machine, and says so where a library swallows the refusal.
GUARD = """
import sys
def guard(event, args):
    where = {"socket.connect": 1, "socket.getaddrinfo": 0}.get(event)
    host = args[where] if where is not None else None
    if isinstance(host, tuple): host = host[0]
    if isinstance(host, bytes): host = host.decode()
    if isinstance(host, str) and host not in ("127.0.0.1", "::1", "localhost"):
        print("NETWORK", event, host, file=sys.stderr)
        raise OSError(f"no network in this test: {host}")
sys.addaudithook(guard)
from coordbench.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GEMINI_", "GOOGLE_"))}
    return subprocess.run(
        [sys.executable, "-c", GUARD, *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**clean, **env},
    )


class TestCommand:
    def test_without_a_key_the_variable_is_named_and_nothing_is_done(self, tmp_path: Path) -> None:
        done = run("run", "--model", "google/gemini-3.8-flash", cwd=tmp_path)
        assert done.returncode == 2
        assert "GEMINI_API_KEY" in done.stderr
        assert "Traceback" not in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_run_reaches_only_its_server_and_writes_no_key(self, tmp_path: Path) -> None:
        def answer(asked: StubRequest) -> StubResponse:
            body = asked.json()
            calling = body["toolConfig"]["functionCallingConfig"]
            name = calling.get("allowedFunctionNames", ["think"])[0]
            call = {"functionCall": {"name": name, "args": {}}, "thoughtSignature": "c2ln"}
            return StubResponse(body=response(call))

        with StubServer(answer) as server:
            name = f"google/gemini-test,base_url={server.url},api_key_env=GEMINI_API_KEY"
            done = run(
                *("run", "dining_philosophers", "--model", name, "--n", "2"),
                *("--episodes", "2", "--rounds", "3", "--out", "runs", "--yes"),
                cwd=tmp_path,
                GEMINI_API_KEY=KEY,
            )
            assert server.requests[-1].headers["x-goog-api-key"] == KEY
        assert done.returncode == 0, done.stderr
        assert "NETWORK" not in done.stderr
        written = b"".join(
            path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()
        )
        assert KEY.encode() not in written
        assert KEY not in done.stdout + done.stderr
        assert b"gemini-test-001" in written

    def test_listing_plugins_imports_no_sdk(self) -> None:
        code = (
            "import sys, coordbench_google.plugin as p; p.coordbench_models(); "
            "sys.exit(any(m.startswith(('google', 'httpx2', 'aiohttp')) for m in sys.modules))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_tools_are_sent_as_they_are() -> None:
    tools = make_tools("-")
    (made,) = body_for(make_request(tools))["tools"]
    assert [one["name"] for one in made["functionDeclarations"]] == [tool.name for tool in tools]
