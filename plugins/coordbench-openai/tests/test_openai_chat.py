"""Chat completions: what goes out, and what is made of streams."""

from __future__ import annotations

from typing import Any

import pytest

from coordbench.api import ModelError, ModelReply, ModelRequest
from coordbench.testing import StubRequest, StubResponse, StubServer
from coordbench.testing.chat_bodies import ask as ask_at
from coordbench.testing.chat_bodies import (
    chat_call,
    chat_chunk,
    chat_text,
    event_stream,
    second_round,
)
from coordbench.testing.provider_kit import make_request
from coordbench_openai.model import OpenAIModel
from coordbench_openai.plugin import OpenAIOptions

KEY = "sk-0123456789abcdef"


def model_at(url: str, name: str = "gpt-test", **options: Any) -> OpenAIModel:
    return OpenAIModel(name, OpenAIOptions(base_url=f"{url}/v1", **options), api_key=KEY)


async def ask(
    answer: Any, request: ModelRequest | None = None, **options: Any
) -> tuple[ModelReply, StubRequest]:
    return await ask_at(lambda url: model_at(url, **options), answer, request)


class TestChat:
    async def test_the_request(self) -> None:
        reply, asked = await ask(chat_call("eat"))
        body = asked.json()
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["content-type"] == "application/json"
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        del body["messages"], body["tools"]
        assert body == {
            "model": "gpt-test",
            "temperature": 0.25,
            "top_p": 0.5,
            "max_tokens": 321,
            "seed": 11,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        }
        del body["model"]
        assert reply.sent == body
        assert (reply.model, reply.request_id) == ("test-2026", "chatcmpl-1")

    async def test_the_servers_own_request_id_is_kept(self) -> None:
        answer = StubResponse(body=chat_call("eat"), headers={"x-request-id": "req_9"})
        assert (await ask(answer))[0].request_id == "req_9"

    async def test_a_message_round_has_no_tools_and_no_tool_settings(self) -> None:
        _, asked = await ask(chat_text("hi"), make_request(()))
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(asked.json())

    async def test_a_tool_may_be_required_or_forced(self) -> None:
        _, asked = await ask(chat_call("eat"), tools="required")
        assert asked.json()["tool_choice"] == "required"
        _, asked = await ask(chat_call("eat"), make_request(force="eat"))
        assert asked.json()["tool_choice"] == {"type": "function", "function": {"name": "eat"}}

    async def test_the_name_overrides_the_task(self) -> None:
        reply, asked = await ask(
            chat_call("eat"), temperature=0.0, max_tokens=99, reasoning_effort="low"
        )
        body = asked.json()
        assert (body["temperature"], body["max_tokens"], body["reasoning_effort"]) == (0, 99, "low")
        assert (reply.max_tokens, reply.sent["reasoning_effort"]) == (99, "low")

    async def test_what_is_left_out_is_not_sent_and_not_claimed(self) -> None:
        reply, asked = await ask(chat_call("eat"), omit="temperature+seed+max_tokens")
        assert not {"temperature", "seed", "max_tokens"} & (set(asked.json()) | set(reply.sent))
        assert reply.max_tokens is None

    async def test_the_cap_may_go_by_its_newer_name(self) -> None:
        reply, asked = await ask(chat_call("eat"), cap="max_completion_tokens")
        assert asked.json()["max_completion_tokens"] == 321
        assert "max_tokens" not in asked.json()
        assert (reply.sent["max_tokens"], reply.sent["max_completion_tokens"]) == (321, 321)

    async def test_reasoning_goes_back_where_the_server_wants_it(self) -> None:
        first = chat_call("eat")
        first["choices"][0]["message"]["reasoning_content"] = "two forks"
        reply, _ = await ask(first)
        request = make_request(messages=second_round(reply), round=2)
        _, asked = await ask(chat_call("eat"), request)
        assert "reasoning_content" not in asked.json()["messages"][2]
        _, asked = await ask(chat_call("eat"), request, reasoning_field="reasoning_content")
        assert asked.json()["messages"][2]["reasoning_content"] == "two forks"

    @pytest.mark.parametrize(
        ("message", "help_"),
        [
            ("Unsupported value: 'temperature' does not support 0.7.", "omit=temperature"),
            ("'max_tokens' is not supported. Use 'max_completion_tokens'.", "cap=max_completion"),
        ],
    )
    async def test_a_refused_setting_is_an_error_that_says_what_to_do(
        self, message: str, help_: str
    ) -> None:
        error = {"error": {"message": message, "code": "unsupported_value", "param": "x"}}
        with pytest.raises(ModelError, match=help_) as caught:
            await ask(StubResponse(status=400, body=error))
        assert (caught.value.kind, caught.value.scope) == ("config", "run")

    async def test_a_redirect_is_not_followed(self) -> None:
        with StubServer(lambda _: StubResponse(body=chat_call("eat"))) as other:
            location = {"location": f"{other.url}/v1/chat/completions"}
            with pytest.raises(ModelError) as caught:
                await ask(StubResponse(status=307, headers=location, body={}))
            assert caught.value.kind == "config"
            assert other.calls == 0


CALL_CHUNKS = (
    chat_chunk(
        {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "function": {"name": "eat"}}]}
    ),
    chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
    chat_chunk({}, "tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
)


class TestStream:
    async def test_is_put_together(self) -> None:
        reply, asked = await ask(event_stream(*CALL_CHUNKS), stream=True)
        assert asked.json()["stream"] is True
        assert [(call.name, call.arguments, call.id) for call in reply.calls] == [
            ("eat", "{}", "c1")
        ]
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 2)

    async def test_that_ends_early_is_a_failure(self) -> None:
        for answer in (
            event_stream(*CALL_CHUNKS[:2], done=False),
            event_stream(*CALL_CHUNKS, cut=True),
        ):
            with pytest.raises(ModelError) as caught:
                await ask(answer, stream=True)
            assert (caught.value.kind, caught.value.retry) == ("stream_incomplete", True)

    async def test_a_server_may_answer_in_one_piece(self) -> None:
        reply, _ = await ask(chat_call("eat"), stream=True)
        assert reply.calls[0].name == "eat"

    async def test_a_gateways_page_is_no_stream(self) -> None:
        page = StubResponse(headers={"content-type": "text/html"}, body=b"<p>hello</p>")
        with pytest.raises(ModelError) as caught:
            await ask(page, stream=True)
        assert caught.value.kind == "invalid_body"

    async def test_error_statuses_are_failures(self) -> None:
        with pytest.raises(ModelError) as caught:
            await ask(StubResponse(status=429, headers={"retry-after": "3"}), stream=True)
        assert (caught.value.kind, caught.value.wait_s) == ("rate_limit", 3.0)
