"""Claude models: what is sent, what is made of what comes back, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from coordbench_anthropic import client as client_module
from coordbench_anthropic.cases import CASE_APIS
from coordbench_anthropic.model import AnthropicModel
from coordbench_anthropic.options import AnthropicOptions
from coordbench_anthropic.plugin import coordbench_models
from coordbench_anthropic.request import request_body

KEY = "sk-ant-tests-0123456789abcdef"
CASES = Path(__file__).resolve().parents[4] / "shared/cases/provider_cases.jsonl"
EAT = {"type": "tool_use", "id": "toolu_01", "name": "eat", "input": {}}
OLD: dict[str, Any] = {"api_version": "2023-06-01"}


def message(*content: Any, stop: str | None = "tool_use", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 10}
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test"}
    return body | {"content": list(content), "stop_reason": stop, "usage": usage} | more


async def ask(
    answer: Any, request: ModelRequest | None = None, **options: Any
) -> tuple[ModelReply, StubRequest]:
    """The reply to one call, and the last request that was made for it."""

    def respond(asked: StubRequest) -> StubResponse:
        made = answer(asked) if callable(answer) else answer
        return made if isinstance(made, StubResponse) else StubResponse(body=made)

    with StubServer(respond) as server:
        model = AnthropicModel(
            "claude-test", AnthropicOptions(base_url=server.url, **options), api_key=KEY
        )
        try:
            reply = await model.complete(request or make_request())
        finally:
            await model.aclose()
        return reply, server.requests[-1]


async def reply_to(body: Any) -> ModelReply:
    return (await ask(body))[0]


def body_for(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return request_body("claude-test", AnthropicOptions(**options), request)[0]


def history(*replies: ModelReply, tools: Any = None) -> ModelRequest:
    messages: list[Any] = [SystemMessage("You are P1.")]
    for at, reply in enumerate(replies, start=1):
        messages += [UserMessage(f"Round {at}."), AssistantMessage(reply)]
        messages += [ToolMessage(index, f"did {index}") for index in range(len(reply.calls))]
    messages.append(UserMessage("Now."))
    return make_request(tools, messages=messages, round=len(replies) + 1)


class TestRequest:
    async def test_goes_to_the_messages_api(self) -> None:
        reply, asked = await ask(message(EAT))
        body = asked.json()
        assert asked.path == "/v1/messages"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["anthropic-version"] >= "2026-10-21"
        assert set(body) == {
            "model",
            "max_tokens",
            "system",
            "messages",
            "tools",
            "tool_choice",
        }
        assert body["max_tokens"] == 321
        assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
        assert reply.sent == {
            "max_tokens": 321,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        }

    def test_the_tools_and_the_system_prompt_are_marked_for_the_cache(self) -> None:
        mark = {"type": "ephemeral"}
        body = body_for(make_request())
        assert body["system"][0]["cache_control"] == mark
        assert ["cache_control" in tool for tool in body["tools"]] == [False] * 5 + [True]
        body = body_for(make_request(), cache=False)
        assert "cache_control" not in json.dumps(body)

    def test_sampling_goes_out_where_the_api_takes_it(self) -> None:
        assert "temperature" not in body_for(make_request())
        body, sent = request_body("m", AnthropicOptions(**OLD), make_request())
        assert (body["temperature"], body["top_p"]) == (0.25, 0.5)
        assert (sent["temperature"], sent["top_p"]) == (0.25, 0.5)
        body, sent = request_body("m", AnthropicOptions(**OLD, omit="top_p"), make_request())
        assert "top_p" not in body
        assert "top_p" not in sent
        assert "temperature" not in body_for(
            make_request(), **OLD, thinking_budget=1024, max_tokens=2000
        )

    async def test_the_older_api_is_asked_for_by_its_header(self) -> None:
        _, asked = await ask(message(EAT), **OLD)
        assert asked.headers["anthropic-version"] == "2023-06-01"

    def test_thinking_and_effort(self) -> None:
        body, sent = request_body("m", AnthropicOptions(thinking="off"), make_request())
        assert body["thinking"] == {"type": "disabled"}
        assert sent["thinking"] == "disabled"
        body = body_for(make_request(), thinking="adaptive", effort="low")
        assert body["thinking"] == {"type": "adaptive"}
        assert body["output_config"] == {"effort": "low"}
        body = body_for(make_request(), thinking_budget=1024, max_tokens=1500)
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 1024}

    def test_a_budget_that_the_tasks_cap_leaves_no_room_for(self) -> None:
        with pytest.raises(ModelError, match="larger max_tokens") as caught:
            body_for(make_request(), thinking_budget=1024)
        assert (caught.value.kind, caught.value.scope) == ("config", "run")

    def test_a_call_may_be_required_or_forced(self) -> None:
        required = body_for(make_request(), tools="required")
        assert required["tool_choice"]["type"] == "any"
        forced = body_for(make_request(force="eat"))
        assert forced["tool_choice"] == {
            "type": "tool",
            "name": "eat",
            "disable_parallel_tool_use": True,
        }

    async def test_a_model_that_takes_no_forced_call_is_asked_without(self) -> None:
        def answer(asked: StubRequest) -> StubResponse:
            if asked.json()["tool_choice"]["type"] == "tool":
                text = "tool_choice: forcing a tool is not supported by this model"
                error = {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": text},
                }
                return StubResponse(status=400, body=error)
            return StubResponse(body=message(EAT))

        with StubServer(answer) as server:
            model = AnthropicModel("m", AnthropicOptions(base_url=server.url), api_key=KEY)
            for _ in range(2):
                reply = await model.complete(make_request(force="eat"))
                assert reply.calls[0].name == "eat"
                assert reply.sent["tool_choice"] == "auto"
            await model.aclose()
            assert server.calls == 3  # it was found out once

    async def test_other_refusals_of_a_forced_call_stay_refusals(self) -> None:
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
        with pytest.raises(ModelError, match="no"):
            await ask(StubResponse(status=400, body=error), make_request(force="eat"))

    def test_nothing_is_forced_while_the_model_is_asked_to_think(self) -> None:
        model = AnthropicModel("m", AnthropicOptions(thinking="adaptive"), api_key=KEY)
        assert model._forcing is False


class TestHistory:
    def reply(self, *calls: RawCall, text: str = "", **more: Any) -> ModelReply:
        return ModelReply(stop="tool_calls" if calls else "stop", calls=calls, text=text, **more)

    def turns(self, *replies: ModelReply) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = body_for(history(*replies))["messages"]
        roles = [turn["role"] for turn in messages]
        assert roles == ["user", "assistant"] * len(replies) + ["user"]
        return messages

    def test_results_stand_first_in_the_next_turn(self) -> None:
        calls = (RawCall("eat", {}, "a", form="object"), RawCall("think", {}, "b", form="object"))
        turns = self.turns(self.reply(*calls, text="Both!"))
        assert [block["type"] for block in turns[1]["content"]] == ["text", "tool_use", "tool_use"]
        assert turns[2]["content"] == [
            {"type": "tool_result", "tool_use_id": "a", "content": "did 0"},
            {"type": "tool_result", "tool_use_id": "b", "content": "did 1"},
            {"type": "text", "text": "Now."},
        ]

    def test_ids_that_the_api_would_refuse_are_made_anew_and_match(self) -> None:
        calls = (RawCall("eat", None), RawCall("eat", "{broken", "a b"), RawCall("eat", {}, "same"))
        turns = self.turns(self.reply(*calls), self.reply(RawCall("eat", {}, "same")))
        used = [b["id"] for t in turns for b in t["content"] if b["type"] == "tool_use"]
        answered = [b["tool_use_id"] for t in turns for b in t["content"] if "tool_use_id" in b]
        assert used == answered
        assert len(set(used)) == 4
        assert all(block["input"] == {} for block in turns[1]["content"])

    def test_no_turn_is_empty(self) -> None:
        for empty in (
            self.reply(),
            self.reply(text=" \n"),
            ModelReply(stop="refused", refusal="  "),
            self.reply(
                native={"content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
            ),
        ):
            content = self.turns(empty)[1]["content"]
            assert content[-1] == {"type": "text", "text": "(no answer)"}

    async def test_thinking_goes_back_with_its_signature_in_its_place(self) -> None:
        content = [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "b3Bh"},
            {"type": "text", "text": "So:"},
            {"type": "thinking", "thinking": "Yes.", "signature": "c2ln2"},
            EAT,
        ]
        first = await reply_to(message(*content))
        assert self.turns(first)[1]["content"] == content
        assert (first.reasoning, first.text) == ("Hm.\nYes.", "So:")

    async def test_thinking_without_a_signature_does_not(self) -> None:
        first = await reply_to(message({"type": "thinking", "thinking": "Hm."}, EAT))
        assert self.turns(first)[1]["content"] == [EAT]

    async def test_servers_tools_are_neither_replayed_nor_answered(self) -> None:
        own = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
        first = await reply_to(message(own, EAT))
        turns = self.turns(first)
        assert turns[1]["content"] == [EAT]
        assert [block["type"] for block in turns[2]["content"]] == ["tool_result", "text"]
        assert turns[2]["content"][0]["content"] == "did 1"

    def test_a_message_round_declares_the_tools_of_earlier_calls_and_allows_none(self) -> None:
        earlier = self.reply(RawCall("eat", {}, "a"), RawCall("no such\ntool", {}, "b"))
        body = body_for(history(earlier, tools=()))
        assert [tool["name"] for tool in body["tools"]] == ["eat", "no_such_tool"]
        assert body["tool_choice"] == {"type": "none"}
        assert "tools" not in body_for(history(self.reply(text="hi"), tools=()))

    def test_a_conversation_may_begin_and_end_anyhow(self) -> None:
        reply = AssistantMessage(self.reply(text="hi"))
        for messages in ((), (reply,), (reply, reply), (UserMessage("a"), UserMessage("b"), reply)):
            turns = body_for(make_request(messages=messages))["messages"]
            roles = [turn["role"] for turn in turns]
            assert roles[0] == roles[-1] == "user"
            assert all(one != other for one, other in pairwise(roles))


class TestReply:
    async def test_usage_counts_all_input(self) -> None:
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 30,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 5},
        }
        found = (await reply_to(message(EAT, usage=usage))).usage
        assert (found.input_tokens, found.cached_tokens) == (240, 200)
        assert (found.output_tokens, found.reasoning_tokens) == (7, 5)

    async def test_the_request_id_is_the_headers(self) -> None:
        answer = StubResponse(headers={"request-id": "req_9"}, body=message(EAT))
        assert (await ask(answer))[0].request_id == "req_9"
        assert (await reply_to(message(EAT))).request_id == "msg_1"

    @pytest.mark.parametrize(
        ("word", "stop"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("tool_use", "tool_calls"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("refusal", "refused"),
            ("pause_turn", "unknown"),
            ("a_word_of_next_year", "unknown"),
        ],
    )
    async def test_stop_reasons(self, word: str, stop: str) -> None:
        reply = await reply_to(message(EAT, stop=word))
        assert (reply.stop, reply.stop_native) == (stop, word)

    async def test_why_it_was_refused(self) -> None:
        details = {"type": "refusal", "category": "bio", "explanation": "Not this."}
        reply = await reply_to(message(stop="refusal", stop_details=details))
        assert reply.refusal == "bio: Not this."

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            ("overloaded_error", "overloaded"),
            ("rate_limit_error", "rate_limit"),
            ("authentication_error", "auth"),
            ("billing_error", "quota"),
            ("api_error", "provider_error"),
        ],
    )
    async def test_an_error_under_status_200(self, kind: str, expected: str) -> None:
        body = {"type": "error", "error": {"type": kind, "message": "no"}}
        with pytest.raises(ModelError) as caught:
            await ask(body)
        assert caught.value.kind == expected

    async def test_a_filter_that_answers_with_an_error_status_is_a_refusal(self) -> None:
        text = "Output blocked by content filtering policy"
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
        reply, _ = await ask(StubResponse(status=400, headers={"request-id": "r"}, body=error))
        assert (reply.stop, reply.request_id, reply.max_tokens) == ("refused", "r", 321)

    async def test_a_redirect_is_not_followed(self) -> None:
        with StubServer(lambda _: StubResponse(body=message(EAT))) as other:
            location = {"location": f"{other.url}/v1/messages"}
            with pytest.raises(ModelError) as caught:
                await ask(StubResponse(status=307, headers=location, body={}))
            assert caught.value.kind == "config"
            assert other.calls == 0


def as_events(*sent: Any) -> StubResponse:
    lines = [it if isinstance(it, str) else json.dumps(it) for it in sent]
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    return StubResponse(headers={"content-type": "text/event-stream"}, body=body)


START = {"type": "message_start", "message": message(stop=None)}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": EAT}
END = {
    "type": "message_delta",
    "delta": {"stop_reason": "tool_use"},
    "usage": {"output_tokens": 33},
}


class TestStream:
    async def streamed(self, *sent: Any) -> ModelReply:
        reply, asked = await ask(as_events(*sent), stream=True)
        assert asked.json()["stream"] is True
        return reply

    async def test_is_put_together(self) -> None:
        piece = {"type": "content_block_delta", "index": 0}
        pieces = [
            {**piece, "delta": {"type": "input_json_delta", "partial_json": it}}
            for it in ("", '{"a"', ": 1}")
        ]
        reply = await self.streamed(START, BLOCK, *pieces, END, {"type": "message_stop"})
        assert reply.calls == (RawCall("eat", {"a": 1}, "toolu_01", form="object"),)
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 33)
        assert (reply.stop, reply.model) == ("tool_calls", "claude-test")

    async def test_arguments_that_broke_off_are_kept_as_they_are(self) -> None:
        delta = {"type": "input_json_delta", "partial_json": '{"a": '}
        cut = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
        reply = await self.streamed(
            START, BLOCK, {"type": "content_block_delta", "index": 0, "delta": delta}, cut
        )
        assert (reply.stop, reply.calls[0].arguments) == ("length", '{"a": ')

    async def test_text_whose_beginning_was_left_out(self) -> None:
        delta = {"type": "text_delta", "text": "hello"}
        reply = await self.streamed(START, {"type": "content_block_delta", "delta": delta}, END)
        assert reply.text == "hello"

    @pytest.mark.parametrize("sent", [(), (START,), (START, BLOCK), (START, BLOCK, '{"type": "me')])
    async def test_that_ends_early_is_a_failure(self, sent: tuple[Any, ...]) -> None:
        with pytest.raises(ModelError) as caught:
            await self.streamed(*sent)
        assert (caught.value.kind, caught.value.retry) == ("stream_incomplete", True)

    async def test_may_hold_an_error(self) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
        with pytest.raises(ModelError) as caught:
            await self.streamed(START, BLOCK, error)
        assert (caught.value.kind, caught.value.retry) == ("overloaded", True)

    async def test_a_server_may_answer_in_one_piece(self) -> None:
        reply, _ = await ask(message(EAT), stream=True)
        assert reply.calls[0].name == "eat"

    async def test_a_gateways_page_is_no_stream(self) -> None:
        page = StubResponse(headers={"content-type": "text/html"}, body=b"<p>hello</p>")
        with pytest.raises(ModelError) as caught:
            await ask(page, stream=True)
        assert caught.value.kind == "invalid_body"


class TestNames:
    @pytest.fixture(autouse=True)
    def no_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "LAN_KEY"):
            monkeypatch.delenv(name, raising=False)

    def offer(self) -> tuple[Callable[[str, Any], None], Callable[[str, Any], Any]]:
        (offer,) = coordbench_models()
        assert offer.check is not None
        return offer.check, offer.build

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, "ANTHROPIC_API_KEY is not set"),
            ({"api_key_env": "LAN_KEY"}, "LAN_KEY is not set"),
            ({"base_url": "http://10.0.0.7:8000"}, "which variable holds the key"),
            ({"base_url": "nowhere"}, "no address"),
            ({"temperature": 0.2}, "api_version=2023-06-01"),
            ({"thinking": "adaptive", "tools": "required"}, "exclude each other"),
            ({"thinking": "adaptive", "thinking_budget": 1024}, "exclude each other"),
            ({**OLD, "thinking": "adaptive", "temperature": 0.2}, "exclude each other"),
            ({"thinking_budget": 2048, "max_tokens": 2048}, "no room"),
            ({"omit": "warmth"}, "no setting"),
        ],
    )
    def test_what_cannot_work_is_said_before_anything_is_built(
        self, options: dict[str, Any], words: str
    ) -> None:
        for refuse in self.offer():
            with pytest.raises(UsageError) as caught:
                refuse("claude-test", AnthropicOptions(**options))
            assert words in str(caught.value)

    async def test_a_server_on_this_machine_needs_no_key_and_gets_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
        check, build = self.offer()
        with StubServer(lambda _: StubResponse(body=message(EAT))) as server:
            options = AnthropicOptions(base_url=f"{server.url}/v1")
            check("m", options)
            model = build("m", options)
            assert not model.info.paid
            await model.complete(make_request())
            await model.aclose()
            assert server.requests[0].path == "/v1/messages"
            assert KEY not in json.dumps(server.requests[0].headers)

    def test_the_model_and_its_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        _, build = self.offer()
        options = AnthropicOptions(effort="low", max_tokens=900, concurrency=7, tools="required")
        info = build("claude-haiku-5-5", options).info
        assert (info.provider, info.model, info.paid) == ("anthropic", "claude-haiku-5-5", True)
        assert (info.endpoint, info.max_in_flight) == ("https://api.anthropic.com", 7)
        assert info.tool_mode == "required"
        assert info.settings == {"effort": "low", "max_tokens": 900}


class TestClient:
    async def test_an_injected_client_is_used_and_left_open(self) -> None:
        seen: list[httpx2.Request] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            return httpx2.Response(200, json=message(EAT))

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            model = AnthropicModel("m", AnthropicOptions(), api_key=KEY, http_client=http)
            assert (await model.complete(make_request())).calls[0].name == "eat"
            await model.aclose()
            assert str(seen[0].url) == "https://api.anthropic.com/v1/messages"
            assert not http.is_closed

    async def test_a_client_without_aiohttp_works_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(**_: Any) -> None:
            raise RuntimeError("install the aiohttp extra")

        monkeypatch.setattr(client_module, "DefaultAioHttpClient", missing)
        assert (await reply_to(message(EAT))).calls[0].name == "eat"


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
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC_")}
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
        done = run("run", "--model", "anthropic/claude-haiku-5-5", cwd=tmp_path)
        assert done.returncode == 2
        assert "ANTHROPIC_API_KEY" in done.stderr
        assert "Traceback" not in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_run_reaches_only_its_server_and_writes_no_key(self, tmp_path: Path) -> None:
        def answer(asked: StubRequest) -> StubResponse:
            body = asked.json()
            name = body["tool_choice"].get("name", "think")
            assert len(body["messages"]) % 2 == 1
            thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
            return StubResponse(body=message(thought, {**EAT, "name": name}))

        with StubServer(answer) as server:
            name = f"anthropic/claude-test,base_url={server.url},api_key_env=ANTHROPIC_API_KEY"
            done = run(
                *("run", "dining_philosophers", "--model", name, "--n", "2"),
                *("--episodes", "2", "--rounds", "3", "--out", "runs", "--yes"),
                cwd=tmp_path,
                ANTHROPIC_API_KEY=KEY,
            )
            assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert done.returncode == 0, done.stderr
        assert "NETWORK" not in done.stderr
        written = b"".join(
            path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()
        )
        assert KEY.encode() not in written
        assert KEY not in done.stdout + done.stderr
        assert b"temperature: asked for" in written

    def test_listing_plugins_imports_no_sdk(self) -> None:
        code = (
            "import sys, coordbench_anthropic.plugin as p; p.coordbench_models(); "
            "sys.exit(any(m.split('.')[0] in ('anthropic', 'httpx2', 'aiohttp') "
            "for m in sys.modules))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_tools_are_sent_as_they_are() -> None:
    tools = make_tools("-")
    body = body_for(make_request(tools))
    assert [tool["name"] for tool in body["tools"]] == [tool.name for tool in tools]
    assert all(tool["input_schema"]["type"] == "object" for tool in body["tools"])
