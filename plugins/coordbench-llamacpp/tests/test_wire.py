"""What is asked of llama.cpp, and what its answers become, without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordbench.api import (
    Action,
    AssistantMessage,
    Decision,
    Invalid,
    ModelError,
    ModelProvider,
    ModelReply,
    ModelRequest,
    RawCall,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.reading import read
from coordbench.testing import (
    PROVIDER_CHECKS,
    ProviderKit,
    StubRequest,
    StubResponse,
    StubServer,
    check_name,
)
from coordbench.testing.chat_bodies import chat_call, chat_offered, chat_text
from coordbench_llamacpp.gguf import ModelFile
from coordbench_llamacpp.model import LlamaCpp
from coordbench_llamacpp.options import LlamaCppOptions
from coordbench_llamacpp.server import Endpoint, LlamaServer, ServerSpec
from coordbench_llamacpp.slots import Slots
from coordbench_llamacpp.wire import constrained_body, constrained_reply, native_body

Ask = Callable[..., ModelRequest]

KEY = "key-0123456789"
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "provider_cases.jsonl"
PLAYED = (
    SystemMessage("The rules."),
    UserMessage("Round 1."),
    AssistantMessage(ModelReply(stop="tool_calls", calls=(RawCall("eat", "{}", "random-id"),))),
    ToolMessage(0, "You could not eat."),
    UserMessage("Round 2."),
    AssistantMessage(ModelReply(stop="stop", text="I would like to eat.")),
    UserMessage("You did nothing.\n\nRound 3."),
)


class Standing(LlamaServer):
    """A server that already stands somewhere. It has no slots, so calls go straight to the chat."""

    def __init__(self, url: str, tools: bool = True) -> None:
        model = ModelFile(Path(f"/models/{url[-5:]}.gguf"), "model", "llama", context=512)
        super().__init__(ServerSpec(model, "{{ tools }}"))
        self.users = 1
        self._at = Endpoint(url, KEY, tools, 512, Slots(0, Path()))

    def running(self) -> Endpoint | None:
        return self._at

    def end_of(self, endpoint: Endpoint) -> ModelError | None:
        return None


def model_at(url: str, *, server_tools: bool = True, **options: Any) -> LlamaCpp:
    server = Standing(url, server_tools)
    return LlamaCpp("m", server, LlamaCppOptions(**options), told=False)


KIT = ProviderKit(
    make=model_at, key=KEY, call_body=chat_call, text_body=chat_text, offered=chat_offered
)

# llama.cpp has no choice of a named tool. Only that tool is offered then, and a call required,
# which is tested below.
CHECKS = [check for check in PROVIDER_CHECKS if check_name(check) != "a_forced_tool_is_forced"]


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
async def test_conformance(check: Any) -> None:
    await check(KIT)


def reported_cases() -> list[Any]:
    if not CASES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip("no folder of shared cases beside it"))]
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    mine = [case for case in cases if case["provider"] == "llamacpp" and case["group"] == "a"]
    assert mine
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", reported_cases())
async def test_reported_cases(case: Mapping[str, Any], ask: Ask) -> None:
    tools = tuple(Tool(action.value, action, "") for action in Action)
    body = case["input"]["body"]
    with StubServer(lambda _: StubResponse(body=body)) as server:
        reply = await asked(model_at(server.url), ask(tools=tools))
    expected = case["expect"]
    assert read(reply, tools) == Decision(Action(expected["action"]), frozenset(expected["flags"]))


async def asked(model: ModelProvider, request: ModelRequest) -> ModelReply:
    try:
        return await model.complete(request)
    finally:
        await model.aclose()


class TestSampling:
    async def test_every_setting_goes_out_and_is_reported(self, ask: Ask) -> None:
        with StubServer(lambda _: StubResponse(body=chat_call("eat"))) as server:
            reply = await asked(model_at(server.url), ask(seed=7, temperature=0.3, max_tokens=40))
            body = server.requests[-1].json()
        settings = {
            "temperature": 0.3,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repeat_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "max_tokens": 40,
            "seed": 7,
            "samplers": ["temperature", "top_p"],
            "parallel_tool_calls": False,
        }
        assert settings.items() <= reply.sent.items()
        assert settings.items() <= body.items()
        assert body["cache_prompt"] is True
        assert reply.max_tokens == 40

    async def test_options_take_the_place_of_the_tasks(self, ask: Ask) -> None:
        with StubServer(lambda _: StubResponse(body=chat_call("eat"))) as server:
            model = model_at(server.url, temperature=0.0, max_tokens=12)
            reply = await asked(model, ask(seed=None))
            body = server.requests[-1].json()
        assert (body["temperature"], body["max_tokens"]) == (0.0, 12)
        assert "seed" not in body
        assert "seed" not in reply.sent
        assert model.info.settings == {"temperature": 0.0, "max_tokens": 12}


class TestNative:
    def test_tools_and_history_are_in_the_chat_format(self, ask: Ask) -> None:
        body = native_body(ask(*PLAYED))
        assert [tool["function"]["name"] for tool in body["tools"]][-1] == "think"
        assert body["tool_choice"] == "auto"
        roles = [message["role"] for message in body["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "user", "assistant", "user"]
        (call,) = body["messages"][2]["tool_calls"]
        assert call["id"] == body["messages"][3]["tool_call_id"]
        # Mistral's template takes ids of nine letters and digits only.
        assert len(call["id"]) == 9

    def test_one_tool_can_be_forced(self, ask: Ask) -> None:
        body = native_body(ask(force="eat"))
        assert [tool["function"]["name"] for tool in body["tools"]] == ["eat"]
        assert body["tool_choice"] == "required"

    def test_a_message_round_offers_no_tools(self, ask: Ask) -> None:
        assert set(native_body(ask(*PLAYED, tools=()))) == {"messages"}

    async def test_a_template_that_takes_no_tools_is_a_failure(self, ask: Ask) -> None:
        with StubServer(lambda _: StubResponse(body=chat_text("eat"))) as server:
            model = model_at(server.url, server_tools=False)
            with pytest.raises(ModelError, match="no form of tool calls") as raised:
                await asked(model, ask())
            assert (raised.value.kind, raised.value.scope) == ("config", "cell")
            assert server.calls == 0
            constrained = model_at(server.url, server_tools=False, tools="constrained")
            assert (await asked(constrained, ask())).calls[0].name == "eat"

    async def test_a_call_that_breaks_off_is_the_models_doing(self, ask: Ask) -> None:
        words = "The model produced output that does not match the expected peg-native format"
        error = {"error": {"code": 500, "message": words, "type": "server_error"}}
        with StubServer(lambda _: StubResponse(status=500, body=error)) as server:
            request = ask()
            reply = await asked(model_at(server.url), request)
        result = read(reply, request.tools)
        assert isinstance(result, Invalid)
        assert result.reason == "provider_malformed"
        assert words in result.detail


class TestConstrained:
    def test_the_names_are_a_grammar(self, ask: Ask) -> None:
        body = constrained_body(ask(), "grammar")
        assert body["grammar"] == (
            'root ::= "pick_up_left" | "pick_up_right" | "put_down_left" | "put_down_right" '
            '| "eat" | "think"'
        )
        assert "tools" not in body

    def test_or_a_schema(self, ask: Ask) -> None:
        schema = constrained_body(ask(), "schema")["json_schema"]
        assert schema["properties"]["tool"]["enum"][4] == "eat"
        assert schema["required"] == ["tool"]

    def test_one_tool_can_be_forced(self, ask: Ask) -> None:
        assert constrained_body(ask(force="eat"), "grammar")["grammar"] == 'root ::= "eat"'

    def test_the_prompt_of_the_task_stays_as_it_is(self, ask: Ask) -> None:
        request = ask()
        texts = [message.text for message in request.messages]  # type: ignore[union-attr]
        body = constrained_body(request, "grammar")
        assert [message["content"] for message in body["messages"]] == texts

    def test_a_prompt_that_names_no_tools_is_told_them(self, ask: Ask) -> None:
        for messages in (PLAYED, PLAYED[1:]):
            system = constrained_body(ask(*messages), "grammar")["messages"][0]
            assert system["role"] == "system"
            assert "pick_up_left, pick_up_right, put_down_left" in system["content"]

    @pytest.mark.parametrize(("form", "said"), [("grammar", "eat"), ("schema", '{"tool": "eat"}')])
    def test_history_is_text(self, ask: Ask, form: str, said: str) -> None:
        messages = constrained_body(ask(*PLAYED, tools=()), form)["messages"]
        assert [(message["role"], message["content"]) for message in messages] == [
            ("system", "The rules."),
            ("user", "Round 1."),
            ("assistant", said),
            ("user", "You could not eat.\n\nRound 2."),
            ("assistant", "I would like to eat."),
            ("user", "You did nothing.\n\nRound 3."),
        ]

    @pytest.mark.parametrize(("form", "text"), [("grammar", "eat"), ("schema", '{ "tool":"eat"}')])
    def test_a_reply_in_the_form_is_a_call(self, ask: Ask, form: str, text: str) -> None:
        request = ask()
        reply = constrained_reply(ModelReply(stop="stop", text=text), request, form)
        assert read(reply, request.tools) == Decision(Action.EAT)

    @pytest.mark.parametrize(
        ("form", "text", "reason"),
        [
            ("grammar", "I eat", "no_tool_call"),
            ("grammar", "eat ", "no_tool_call"),
            ("grammar", "", "empty_response"),
            ("grammar", '{"tool": "eat"}', "no_tool_call"),
            ("schema", "eat", "no_tool_call"),
            ("schema", '{"tool": "dance"}', "no_tool_call"),
            ("schema", '{"tool": ["eat"]}', "no_tool_call"),
            ("schema", '{"tool": "eat", "why": "x"}', "no_tool_call"),
        ],
    )
    def test_a_constraint_that_was_not_kept_is_no_decision(
        self, ask: Ask, form: str, text: str, reason: str
    ) -> None:
        request = ask()
        reply = constrained_reply(ModelReply(stop="stop", text=text), request, form)
        result = read(reply, request.tools)
        assert isinstance(result, Invalid)
        assert result.reason == reason

    def test_a_name_may_stand_alone_in_a_block_of_reasoning_that_the_template_opened(
        self, ask: Ask
    ) -> None:
        request = ask()
        reply = ModelReply(stop="stop", reasoning="eat", native={"reasoning_content": "eat"})
        made = constrained_reply(reply, request, "grammar")
        assert read(made, request.tools) == Decision(Action.EAT)
        assert (made.reasoning, made.native) == ("", None)
        for text, reasoning in (("so", "eat"), ("", "I eat"), ("eat", "so")):
            reply = ModelReply(stop="stop", text=text, reasoning=reasoning)
            assert not constrained_reply(reply, request, "grammar").calls

    def test_a_reply_that_was_cut_is_no_decision(self, ask: Ask) -> None:
        request = ask()
        reply = constrained_reply(ModelReply(stop="length", text="eat"), request, "grammar")
        result = read(reply, request.tools)
        assert isinstance(result, Invalid)
        assert result.reason == "truncated"

    def test_a_forced_tool_and_no_other(self, ask: Ask) -> None:
        request = ask(force="think")
        assert not constrained_reply(ModelReply(stop="stop", text="eat"), request, "grammar").calls


class TestContext:
    async def test_a_prompt_that_is_too_long_is_a_failure(self, ask: Ask) -> None:
        error = {
            "error": {
                "code": 400,
                "message": "request (916 tokens) exceeds the available context size (512 tokens)",
                "type": "exceed_context_size_error",
            }
        }
        answer = StubResponse(status=400, body=error)
        with StubServer(lambda _: answer) as server, pytest.raises(ModelError) as raised:
            await asked(model_at(server.url), ask())
        assert (raised.value.kind, raised.value.scope) == ("context_length", "episode")

    async def test_so_is_a_reply_that_the_context_cuts_short(self, ask: Ask) -> None:
        def answer(request: StubRequest) -> StubResponse:
            body = chat_text("and then")
            body["choices"][0]["finish_reason"] = "length"
            return StubResponse(body=body)

        with StubServer(answer) as server:
            with pytest.raises(ModelError, match="context=N") as raised:
                await asked(model_at(server.url), ask(max_tokens=32))
            assert raised.value.kind == "context_length"
            # Nine tokens were given: here they are all that was asked for.
            reply = await asked(model_at(server.url), ask(max_tokens=9))
            assert reply.stop == "length"
