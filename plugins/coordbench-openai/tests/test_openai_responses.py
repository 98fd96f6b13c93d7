"""The Responses API: what goes out, what its items say, and histories with reasoning."""

from __future__ import annotations

from typing import Any

import pytest

from coordbench.api import ModelError, ModelReply, ModelRequest
from coordbench.testing import PROVIDER_CHECKS, ProviderKit, StubRequest, check_name
from coordbench.testing.chat_bodies import ask as ask_at
from coordbench.testing.chat_bodies import event_stream, second_round
from coordbench.testing.provider_kit import make_request
from coordbench_openai.model import OpenAIModel
from coordbench_openai.plugin import OpenAIOptions
from coordbench_openai.responses import ResponsesWire
from coordbench_openai.servers import server_of

KEY = "sk-0123456789abcdef"


def model_at(url: str, name: str = "gpt-test", **options: Any) -> OpenAIModel:
    return OpenAIModel(
        name, OpenAIOptions(base_url=f"{url}/v1", api="responses", **options), api_key=KEY
    )


async def ask(
    answer: Any, request: ModelRequest | None = None, **options: Any
) -> tuple[ModelReply, StubRequest]:
    return await ask_at(lambda url: model_at(url, **options), answer, request)


def response_body(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-test-2026",
        "status": "completed",
        "output": list(output),
        "usage": {
            "input_tokens": 200,
            "input_tokens_details": {"cached_tokens": 128},
            "output_tokens": 40,
            "output_tokens_details": {"reasoning_tokens": 30},
        },
        **more,
    }


def function_call(tool: str, call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": tool,
        "arguments": "{}",
        **more,
    }


def output_text(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


KIT = ProviderKit(
    make=model_at,
    key=KEY,
    call_body=lambda tool: response_body(function_call(tool)),
    text_body=lambda text: response_body(output_text(text)),
    offered=lambda body: [tool["name"] for tool in body.get("tools", ())],
)


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance(check: Any) -> None:
    await check(KIT)


class TestResponses:
    async def test_the_request(self) -> None:
        reply, asked = await ask(response_body(function_call("eat")), reasoning_effort="low")
        body = asked.json()
        assert asked.path == "/v1/responses"
        assert [item["role"] for item in body["input"]] == ["system", "user"]
        assert body["tools"][0]["name"] == "pick_up_left"
        del body["input"], body["tools"], body["model"]
        assert body == {
            "temperature": 0.25,
            "top_p": 0.5,
            "max_output_tokens": 321,
            "store": False,
            "reasoning": {"effort": "low"},
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        }
        assert reply.sent == {**body, "max_tokens": 321}
        assert "seed" not in reply.sent

    async def test_tokens_are_counted(self) -> None:
        reply, _ = await ask(response_body(function_call("eat")))
        usage = reply.usage
        assert (usage.input_tokens, usage.output_tokens) == (200, 40)
        assert (usage.cached_tokens, usage.reasoning_tokens) == (128, 30)

    @pytest.mark.parametrize(
        ("name", "asks"),
        [
            ("gpt-5.4", True),
            ("gpt-5-mini", True),
            ("o4-mini", True),
            ("ft:o4-mini:acme", True),
            ("gpt-5-chat-latest", False),
            ("gpt-4o", False),
        ],
    )
    def test_only_models_that_reason_are_asked_for_their_reasoning(
        self, name: str, asks: bool
    ) -> None:
        wire = ResponsesWire(name, OpenAIOptions(api="responses"), server_of(""))
        assert ("include" in wire.body(make_request())[0]) is asks

    async def test_reasoning_is_replayed_before_the_call_that_it_led_to(self) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
        reply, _ = await ask(response_body(thought, output_text("So:"), function_call("eat")))
        request = make_request(messages=second_round(reply), round=2)
        _, asked = await ask(response_body(function_call("eat")), request)
        assert asked.json()["input"][2:] == [
            thought,
            {"role": "assistant", "content": "So:"},
            {"type": "function_call", "call_id": "call_1", "name": "eat", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "result 0"},
            {"role": "user", "content": "Round 2."},
        ]

    async def test_reasoning_that_no_server_would_know_again_is_left_out(self) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "hm"}]}
        reply, _ = await ask(response_body(thought, function_call("eat")))
        assert (reply.reasoning, reply.native) == ("hm", None)
        request = make_request(messages=second_round(reply), round=2)
        _, asked = await ask(response_body(function_call("eat")), request)
        assert [item.get("type") for item in asked.json()["input"][2:4]] == [
            "function_call",
            "function_call_output",
        ]

    async def test_an_unfinished_call_is_a_cut_whatever_the_status(self) -> None:
        reply, _ = await ask(response_body(function_call("eat", status="incomplete")))
        assert reply.stop == "length"

    async def test_a_filter_that_ended_it_is_a_refusal(self) -> None:
        reply, _ = await ask(
            response_body(status="incomplete", incomplete_details={"reason": "content_filter"})
        )
        assert (reply.stop, reply.stop_native) == ("refused", "content_filter")


class TestStream:
    async def test_of_the_responses_api_ends_with_the_response(self) -> None:
        whole = {"type": "response.completed", "response": response_body(function_call("eat"))}
        created = {"type": "response.created", "response": response_body(status="in_progress")}
        reply, _ = await ask(event_stream(created, whole, done=False), stream=True)
        assert reply.calls[0].name == "eat"
        with pytest.raises(ModelError) as caught:
            await ask(event_stream(created, done=False), stream=True)
        assert caught.value.kind == "stream_incomplete"

    async def test_of_the_responses_api_may_hold_an_error(self) -> None:
        for event in (
            {"type": "error", "code": "rate_limit_exceeded", "message": "slow"},
            {
                "type": "response.failed",
                "response": response_body(
                    status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}
                ),
            },
        ):
            with pytest.raises(ModelError) as caught:
                await ask(event_stream(event, done=False), stream=True)
            assert caught.value.kind == "rate_limit"
