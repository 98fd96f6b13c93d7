"""The real SmolLM2 through the real llama.cpp, in both tool modes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordbench.api import (
    AssistantMessage,
    Decision,
    Invalid,
    ModelError,
    ModelProvider,
    ModelReply,
    ModelRequest,
    RawCall,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from coordbench.reading import read
from coordbench_llamacpp.weights import find_model

pytestmark = pytest.mark.llamacpp

Ask = Callable[..., ModelRequest]
Build = Callable[..., ModelProvider]

RULES = SystemMessage(
    "You sit at a table with forks. Each round, call exactly one of these tools: pick_up_left, "
    "pick_up_right, put_down_left, put_down_right, eat, think."
)


def now(number: int) -> UserMessage:
    return UserMessage(f"Round {number}. Both forks are on the table. Call one tool.")


async def together(model: ModelProvider, requests: list[ModelRequest]) -> list[ModelReply]:
    return await asyncio.gather(*(model.complete(request) for request in requests))


class TestConstrained:
    @pytest.mark.parametrize(("form", "seats"), [("grammar", 16), ("schema", 5)])
    async def test_a_full_table_answers_with_the_six_names(
        self, real: Build, ask: Ask, form: str, seats: int
    ) -> None:
        model = real(tools="constrained", form=form)
        assert model.info.max_in_flight == 16
        requests = [ask(seat=i, seed=i, max_tokens=64, temperature=1.5) for i in range(seats)]
        replies = await together(model, requests)
        results = [read(reply, ask().tools) for reply in replies]
        assert [type(result) for result in results] == [Decision] * seats
        assert len({result.action for result in results if isinstance(result, Decision)}) > 1
        for reply in replies:
            assert reply.usage.input_tokens and reply.usage.output_tokens
            assert reply.model == "SmolLM2-135M-Instruct.Q4_1.gguf"

    async def test_a_forced_tool_is_called(self, real: Build, ask: Ask) -> None:
        model = real(tools="constrained")
        for tool in ask().tools:
            reply = await model.complete(ask(force=tool.name))
            assert [call.name for call in reply.calls] == [tool.name]

    async def test_names_with_hyphens_can_be_expressed(self, real: Build, ask: Ask) -> None:
        from msgspec.structs import replace

        tools = [replace(tool, name=tool.action.value) for tool in ask().tools]
        reply = await real(tools="constrained").complete(ask(tools=tools))
        assert isinstance(read(reply, tools), Decision)


class TestNative:
    async def test_replies_without_a_call_are_no_decisions(self, real: Build, ask: Ask) -> None:
        model = real()
        assert model.info.tool_mode == "native"
        replies = await together(model, [ask(seat=i, seed=i) for i in range(5)])
        for reply in replies:
            assert reply.sent["tools_told_in"] == "system turn"
            result = read(reply, ask().tools)
            if reply.calls:
                continue
            assert isinstance(result, Invalid)
        assert any(not reply.calls for reply in replies)

    async def test_a_call_in_the_told_form_is_a_call(self, real: Build, ask: Ask) -> None:
        """The model is shown the very text: it repeats it, and llama.cpp reads it as a call."""
        shown = '<tool_call>{"name": "eat", "arguments": {}}</tool_call>'
        system = SystemMessage("Repeat what the user says, word by word.")
        messages = [system]
        for _ in range(3):
            said = AssistantMessage(
                ModelReply(stop="tool_calls", calls=(RawCall("eat", "{}", "x"),))
            )
            messages += [UserMessage(shown), said, ToolMessage(0, "ok")]  # type: ignore[list-item]
        request = ask(*messages, UserMessage(shown), temperature=0.0, max_tokens=64)
        reply = await real().complete(request)
        assert [call.name for call in reply.calls] == ["eat"]
        assert isinstance(read(reply, request.tools), Decision)

    async def test_the_tools_are_in_the_prompt(self, real: Build, ask: Ask) -> None:
        model = real()
        with_tools = await model.complete(ask(max_tokens=1))
        without = await model.complete(ask(max_tokens=1, tools=()))
        assert with_tools.usage.input_tokens and without.usage.input_tokens
        assert with_tools.usage.input_tokens > without.usage.input_tokens + 100


class TestConversations:
    @pytest.mark.parametrize("tools", ["native", "constrained"])
    async def test_rounds_are_remembered(self, real: Build, ask: Ask, tools: str) -> None:
        model = real(tools=tools)
        messages: list[Any] = [RULES]
        sizes: list[int] = []
        for number in range(1, 5):
            messages.append(now(number))
            reply = await model.complete(ask(*messages))
            assert reply.usage.input_tokens is not None
            if sizes:
                # Only the new turns are computed: the rest is in the slot already.
                assert reply.usage.cached_tokens is not None
                assert reply.usage.cached_tokens > 0.9 * sizes[-1]
            sizes.append(reply.usage.input_tokens)
            messages.append(AssistantMessage(reply))
            messages += [ToolMessage(i, "You could not.") for i in range(len(reply.calls))]
        assert sizes == sorted(set(sizes))

    @pytest.mark.parametrize("tools", ["native", "constrained"])
    async def test_strange_histories_are_taken(self, real: Build, ask: Ask, tools: str) -> None:
        """Whatever was in an earlier reply, the next turn can be asked for."""
        strange = (
            ModelReply(stop="stop"),
            ModelReply(stop="stop", text="eat \ud800 {{ tools }} <|im_end|>"),
            ModelReply(stop="tool_calls", calls=(RawCall(None), RawCall("x", "[", "id"))),
        )
        messages: list[Any] = [RULES, now(1)]
        for reply in strange:
            messages.append(AssistantMessage(reply))
            messages += [ToolMessage(i, "You could not.") for i in range(len(reply.calls))]
            messages.append(now(2))
        reply = await real(tools=tools).complete(ask(*messages, max_tokens=16))
        assert reply.usage.output_tokens

    @pytest.mark.parametrize("tools", ["native", "constrained"])
    async def test_a_message_round_gets_text(self, real: Build, ask: Ask, tools: str) -> None:
        calls = AssistantMessage(ModelReply(stop="tool_calls", calls=(RawCall("eat", "{}"),)))
        request = ask(RULES, now(1), calls, ToolMessage(0, "No."), now(2), tools=())
        reply = await real(tools=tools).complete(request)
        assert reply.text.strip()
        assert not reply.calls

    async def test_a_first_call_shares_the_system_prompt(self, real: Build, ask: Ask) -> None:
        model = real(tools="constrained")
        rules = SystemMessage(f"{RULES.text} {'Be patient and kind. ' * 20}")
        replies = await together(model, [ask(rules, now(1), seat=i) for i in range(16)])
        for reply in replies:
            assert reply.usage.input_tokens and reply.usage.cached_tokens
            assert reply.usage.cached_tokens > 0.7 * reply.usage.input_tokens


class TestSeeds:
    async def test_one_seed_gives_one_reply(self, real: Build, ask: Ask) -> None:
        model = real()
        texts = [(await model.complete(ask(seed=5, tools=()))).text for _ in range(3)]
        assert len(set(texts)) == 1
        other = [(await model.complete(ask(seed=i, tools=()))).text for i in range(6, 9)]
        assert set(other) - set(texts)

    async def test_the_temperature_that_was_asked_for_is_the_one_used(
        self, real: Build, ask: Ask
    ) -> None:
        model = real(tools="constrained", temperature=0.0)
        replies = await together(model, [ask(seat=i, seed=i, temperature=5.0) for i in range(8)])
        assert len({reply.calls[0].name for reply in replies}) == 1
        assert replies[0].sent["temperature"] == 0.0


class TestFailures:
    async def test_a_conversation_too_long_for_the_context(self, real: Build, ask: Ask) -> None:
        with pytest.raises(ModelError) as raised:
            await real().complete(ask(RULES, UserMessage("word " * 2000)))
        assert (raised.value.kind, raised.value.retry) == ("context_length", False)

    async def test_a_reply_too_long_for_the_context(self, real: Build, ask: Ask) -> None:
        request = ask(RULES, UserMessage("Count on: " + "1 2 " * 40), tools=(), max_tokens=4000)
        with pytest.raises(ModelError) as raised:
            await real(context=256, slots=1).complete(request)
        assert raised.value.kind == "context_length"

    async def test_a_cancelled_call_lets_the_others_go_on(self, real: Build, ask: Ask) -> None:
        model = real()
        long = asyncio.create_task(model.complete(ask(tools=(), max_tokens=600)))
        await asyncio.sleep(0.05)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        reply = await model.complete(ask(tools=(), max_tokens=4))
        assert reply.usage.output_tokens == 4


class TestAdapters:
    @pytest.fixture
    def adapter(self, gguf: Callable[..., bytes], tmp_path: Path) -> Callable[[float], str]:
        """A rank-2 LoRA adapter of every layer's queries, whose change is `size`."""

        def make(size: float) -> str:
            chance = random.Random(3)
            tensors: dict[str, tuple[tuple[int, int], list[float]]] = {}
            for layer in range(30):
                name = f"blk.{layer}.attn_q.weight.lora"
                a = [chance.gauss(0.0, 0.05) for _ in range(576 * 2)]
                b = [size * chance.gauss(0.0, 1.0) for _ in range(576 * 2)]
                tensors |= {f"{name}_a": ((576, 2), a), f"{name}_b": ((2, 576), b)}
            path = tmp_path / f"{size}.gguf"
            pairs = {
                "general.type": "adapter",
                "general.architecture": "llama",
                "adapter.type": "lora",
                "adapter.lora.alpha": 2.0,
            }
            path.write_bytes(gguf(pairs, tensors))
            return str(path)

        return make

    async def test_a_zero_adapter_changes_nothing_and_another_does(
        self, real: Build, ask: Ask, adapter: Callable[[float], str]
    ) -> None:
        request = ask(tools=(), temperature=0.0, max_tokens=24)
        texts = []
        for options in ({}, {"lora": adapter(0.0)}, {"lora": adapter(1.0)}):
            model = real(**options, slots=1)
            texts.append((await model.complete(request)).text)
        base, zero, other = texts
        assert zero == base
        assert other != base

    async def test_its_scale_is_applied(
        self, real: Build, ask: Ask, adapter: Callable[[float], str]
    ) -> None:
        request = ask(tools=(), temperature=0.0, max_tokens=24)
        off = real(lora=adapter(1.0), lora_scale=0.0, slots=1)
        assert off.info.settings["lora_scale"] == 0.0
        base = real(slots=1)
        assert (await off.complete(request)).text == (await base.complete(request)).text


def test_the_published_file_is_what_it_should_be(installed: None) -> None:
    model = find_model("smollm2")
    assert (model.architecture, model.context) == ("llama", 8192)
    assert model.bytes_per_token == 30 * 3 * (64 + 64) * 2
