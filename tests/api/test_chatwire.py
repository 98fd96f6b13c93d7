"""Chat completion bodies as replies: nothing is lost, nothing is read into them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordbench.api import ModelError, ModelReply, RawCall, Usage
from coordbench.api.chatwire import decode_body, reply_from_chat, stop_reason, usage_from_chat
from coordbench.api.reasoningtext import split_reasoning


def body(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish} | more.pop("choice", {})
    return {"id": "cmpl-1", "model": "m-1", "choices": [choice], **more}


def function(name: Any = "eat", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    inner = {"name": name, "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": inner} | more


class TestReply:
    def test_a_clean_call(self) -> None:
        usage = {"prompt_tokens": 212, "completion_tokens": 19, "total_tokens": 231}
        message = {"role": "assistant", "content": None, "tool_calls": [function()]}
        reply = reply_from_chat(
            body(message, "tool_calls", usage=usage), max_tokens=100, sent={"temperature": 0}
        )
        assert reply == ModelReply(
            stop="tool_calls",
            stop_native="tool_calls",
            calls=(RawCall("eat", "{}", "call_1"),),
            usage=Usage(212, 19),
            max_tokens=100,
            request_id="cmpl-1",
            model="m-1",
            sent={"temperature": 0},
        )

    def test_the_header_says_the_request_id_better(self) -> None:
        assert reply_from_chat(body({}), request_id="req_9").request_id == "req_9"

    @pytest.mark.parametrize("content", ["Hi.", [{"type": "text", "text": "Hi."}], ["H", "i."]])
    def test_text_in_every_form(self, content: Any) -> None:
        assert reply_from_chat(body({"content": content})).text == "Hi."

    def test_refusals(self) -> None:
        assert reply_from_chat(body({"refusal": "No."})).refusal == "No."
        part = {"type": "refusal", "refusal": "No."}
        assert reply_from_chat(body({"content": [part]})).refusal == "No."
        assert reply_from_chat(body({"content": "Hi.", "refusal": ""})).refusal is None

    @pytest.mark.parametrize(
        "message",
        [
            {"content": None, "reasoning_content": "Hm."},
            {"content": "", "reasoning": "Hm."},
            {"thinking": "Hm."},
            {"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
            {"content": "<think>\nHm.\n</think>\n\n"},
            {"content": "Hm.</think>"},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
            {"content": [{"type": "thinking", "thinking": "Hm."}]},
        ],
    )
    def test_reasoning_is_kept_apart(self, message: dict[str, Any]) -> None:
        reply = reply_from_chat(body(message))
        assert (reply.text, reply.reasoning) == ("", "Hm.")

    def test_reasoning_and_text_together(self) -> None:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        reply = reply_from_chat(body({"content": [thought, {"type": "text", "text": "Hi."}]}))
        assert (reply.text, reply.reasoning) == ("Hi.", "Hm.")

    def test_reasoning_is_kept_for_the_next_turn(self) -> None:
        details = [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln"}]
        reply = reply_from_chat(body({"content": "Hi.", "reasoning_details": details}))
        assert reply.native == {"reasoning_details": details}

    def test_logprobs_and_token_ids_are_kept(self) -> None:
        more = {"logprobs": {"content": [{"token": "a", "logprob": -0.1}]}, "token_ids": [1, 2]}
        assert reply_from_chat(body({"content": "Hi."}, choice=more)).extras == more


class TestCalls:
    def test_raw_as_they_came(self) -> None:
        various: tuple[Any, ...] = ("", None, {}, [], "{bad", 7)
        for arguments in various:
            message = {"tool_calls": [function(arguments=arguments)]}
            (call,) = reply_from_chat(body(message)).calls
            assert call.arguments == arguments

    def test_without_an_id(self) -> None:
        for missing in ({"id": None}, {"id": 7}):
            (call,) = reply_from_chat(body({"tool_calls": [function(**missing)]})).calls
            assert call.id is None

    def test_the_old_field(self) -> None:
        old = {"function_call": {"name": "eat", "arguments": "{}"}}
        (call,) = reply_from_chat(body(old, "function_call")).calls
        assert call == RawCall("eat", "{}", None, "legacy")
        both = reply_from_chat(body(old | {"tool_calls": [function("think")]}))
        assert [call.name for call in both.calls] == ["think"]
        assert reply_from_chat(body({"function_call": None})).calls == ()

    def test_a_kind_that_was_not_asked_for(self) -> None:
        custom = {"id": "call_1", "type": "custom", "custom": {"name": "eat", "input": "x"}}
        (call,) = reply_from_chat(body({"tool_calls": [custom]})).calls
        assert call == RawCall("eat", "x", "call_1", "custom")

    def test_those_a_client_library_gave_up_on(self) -> None:
        broken = {"name": "eat", "args": "{bad", "id": "call_1", "error": "no JSON"}
        (call,) = reply_from_chat(body({"tool_calls": [], "invalid_tool_calls": [broken]})).calls
        assert call == RawCall("eat", "{bad", "call_1", "broken")

    @pytest.mark.parametrize("item", [None, "eat", 7, [], {"type": "function"}, {}])
    def test_what_is_no_call_is_still_counted(self, item: Any) -> None:
        (call,) = reply_from_chat(body({"tool_calls": [item]})).calls
        assert call.kind != "function"
        assert call.name is None


class TestErrorsInDisguise:
    @pytest.mark.parametrize("whole", [None, "<html>", [], 7, {}, {"detail": "no"}])
    def test_no_completion_at_all(self, whole: Any) -> None:
        with pytest.raises(ModelError) as caught:
            reply_from_chat(whole)
        assert (caught.value.kind, caught.value.retry) == ("invalid_body", True)

    @pytest.mark.parametrize("message", [None, "Hi.", []])
    def test_no_message(self, message: Any) -> None:
        with pytest.raises(ModelError) as caught:
            reply_from_chat(body(message))
        assert caught.value.kind == "invalid_body"

    @pytest.mark.parametrize("choices", [None, [], "", {}])
    def test_no_choice(self, choices: Any) -> None:
        with pytest.raises(ModelError) as caught:
            reply_from_chat({"choices": choices})
        assert (caught.value.kind, caught.value.retry) == ("provider_error", True)

    @pytest.mark.parametrize("finish", ["error", "abort", "network_error", "failed"])
    def test_a_stop_reason_that_says_so(self, finish: str) -> None:
        with pytest.raises(ModelError) as caught:
            reply_from_chat(body({"content": "I will ea"}, finish))
        assert (caught.value.kind, caught.value.retry) == ("provider_error", True)

    @pytest.mark.parametrize(
        ("error", "kind", "retry", "scope"),
        [
            ({"code": 429, "message": "slow down"}, "rate_limit", True, "call"),
            ({"code": "rate_limit_exceeded", "message": ""}, "rate_limit", True, "call"),
            ({"code": 502, "message": "upstream"}, "provider_error", True, "call"),
            ({"code": 529, "message": "busy"}, "overloaded", True, "call"),
            ({"code": 402, "message": "pay"}, "quota", False, "run"),
            ({"code": 401, "message": "who?"}, "auth", False, "run"),
            ({"code": "server_error", "message": "failed"}, "provider_error", True, "call"),
            ({"code": "context_length_exceeded"}, "context_length", False, "episode"),
            ("model is loading", "provider_error", True, "call"),
        ],
    )
    def test_an_error_object(self, error: Any, kind: str, retry: bool, scope: str) -> None:
        with pytest.raises(ModelError) as caught:
            reply_from_chat({"error": error, "choices": None})
        got = caught.value
        assert (got.kind, got.retry, got.scope) == (kind, retry, scope)

    def test_an_unexplained_400_inside_depends_on_the_turn(self) -> None:
        error = {"error": {"code": 400, "message": "no"}}
        for turn, kind in ((1, "config"), (2, "history")):
            with pytest.raises(ModelError) as caught:
                reply_from_chat(error, turn=turn)
            assert caught.value.kind == kind

    def test_on_a_choice_it_is_always_the_upstream(self) -> None:
        half = body({"content": "I will ea"}, "error", choice={"error": {"code": 429}})
        with pytest.raises(ModelError) as caught:
            reply_from_chat(half)
        assert (caught.value.kind, caught.value.status) == ("provider_error", 429)

    def test_a_filter_is_a_refusal_and_no_outage(self) -> None:
        reply = reply_from_chat(
            {"error": {"code": 403, "message": "Your input was flagged by moderation"}},
            max_tokens=5,
        )
        assert reply.stop == "refused"
        assert reply.refusal
        assert reply.max_tokens == 5

    def test_an_error_of_vllm(self) -> None:
        with pytest.raises(ModelError):
            reply_from_chat({"object": "error", "message": "engine died", "code": 500})


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("some_new_context_window_reason", "length"),
        ("content_filter", "refused"),
        ("guardrail_intervened", "refused"),
        ("PROHIBITED_CONTENT", "refused"),
        ("MALFORMED_FUNCTION_CALL", "malformed"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "malformed"),
        ("error", None),
        ("cancelled", None),
        ("a word of tomorrow", "unknown"),
        (None, "unknown"),
    ],
)
def test_stop_reasons(word: str | None, stop: str | None) -> None:
    assert stop_reason(word) == stop


def test_the_upstream_word_of_a_router_tells_more() -> None:
    upstream = {"native_finish_reason": "MALFORMED_FUNCTION_CALL"}
    for finish in ("stop", "error", "tool_calls"):
        reply = reply_from_chat(body({"content": ""}, finish, choice=upstream))
        assert (reply.stop, reply.stop_native) == ("malformed", "MALFORMED_FUNCTION_CALL")
    plain = {"native_finish_reason": "completed"}
    assert reply_from_chat(body({"content": ""}, "stop", choice=plain)).stop_native == "stop"


def test_a_missing_stop_reason() -> None:
    assert reply_from_chat(body({"content": "Hi."}, None)).stop == "unknown"
    assert reply_from_chat(body({"tool_calls": [function()]}, None)).stop == "tool_calls"


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (None, Usage()),
        ({"prompt_tokens": None}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 3}, Usage(9, 3)),
        ({"prompt_tokens": 9.0, "completion_tokens": -1}, Usage(9)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 5, 4, 3),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": 17,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 8, None, 3),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(9, None, 4)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(9)),
        ("many", Usage()),
    ],
)
def test_usage(usage: Any, wanted: Usage) -> None:
    assert usage_from_chat(usage) == wanted


@pytest.mark.parametrize(
    ("text", "visible", "reasoning"),
    [
        ("I think so.", "I think so.", ""),
        ("  kept as it is \n", "  kept as it is \n", ""),
        ("<think>a</think>b", "b", "a"),
        ("\n<think>\na\n</think>\n\nb\n", "b", "a"),
        ("<think>a</think>b<think>c</think>d", "bd", "a\nc"),
        ("a</think>b", "b", "a"),
        ("<think>never closed", "", "never closed"),
        ("first <think>never closed", "first", "never closed"),
        ("<think></think>b", "b", ""),
        ("<thinking>a</thinking>b", "b", "a"),
        ("[THINK]a[/THINK]b", "b", "a"),
        ("<seed:think>a</seed:think>b", "b", "a"),
        ("\u25c1think\u25b7a\u25c1/think\u25b7b", "b", "a"),
        ("<|START_THINKING|>a<|END_THINKING|>b", "b", "a"),
        ("<|channel|>analysis<|message|>a<|end|>b", "b", "a"),
        ("<think>a<reasoning>b</think>c", "c", "a<reasoning>b"),
        ("a<reasoning>b</think>c", "c", "a\nb"),
    ],
)
def test_reasoning_in_the_text(text: str, visible: str, reasoning: str) -> None:
    assert split_reasoning(text) == (visible, reasoning)


class TestDecoding:
    @pytest.mark.parametrize(
        ("data", "value"),
        [
            (b'{"a": 1}', {"a": 1}),
            ('{"a": 1}', {"a": 1}),
            (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
            (b'{"a": "\\ud83d"}', {"a": "\ud83d"}),
        ],
    )
    def test_json(self, data: bytes | str, value: Any) -> None:
        assert decode_body(data) == value

    @pytest.mark.parametrize(
        "data", [b"", b"<!doctype html><p>hello</p>", b'{"a": ', b"\xff\xfe", b"[" * 100_000]
    )
    def test_anything_else(self, data: bytes) -> None:
        with pytest.raises(ModelError) as caught:
            decode_body(data)
        assert (caught.value.kind, caught.value.retry) == ("invalid_body", True)


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "content",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "type",
                    "custom",
                    "function_call",
                    "refusal",
                    "reasoning",
                    "thinking",
                    "text",
                    "error",
                    "code",
                    "finish_reason",
                    "message",
                    "usage",
                    "choices",
                    "details",
                    "metadata",
                    "status",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(JSON_VALUES, JSON_VALUES, JSON_VALUES, JSON_VALUES)
def test_any_body_is_a_reply_or_a_failure(
    message: Any, finish: Any, usage: Any, error: Any
) -> None:
    bodies = [message, {"error": error}, {"choices": message}, {"choices": [message]}]
    bodies += [body(message, finish, usage=usage), body(message, choice={"error": error})]
    if isinstance(message, dict):
        bodies.append(body({"content": message, "tool_calls": [message]}, finish))
    for whole in bodies:
        try:
            reply = reply_from_chat(whole)
        except ModelError:
            continue
        assert isinstance(reply, ModelReply)
        json.dumps([reply.text, reply.reasoning, reply.refusal])
