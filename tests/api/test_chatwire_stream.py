"""Streams, put together: a stream that just ends is no reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordbench.api import ModelError, RawCall, Usage
from coordbench.api.chatwire import reply_from_chat, reply_from_chat_stream


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "m-1", "choices": [choice], **more})


def piece(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    part: dict[str, Any] = {key: fields.pop(key) for key in ("id", "type") if key in fields}
    part["function"] = fields
    return {"tool_calls": [part if index is None else {"index": index} | part]}


END = chunk(finish="tool_calls")


def calls(*lines: str) -> list[tuple[str | None, Any, str | None]]:
    reply = reply_from_chat_stream([*lines, END, "[DONE]"])
    return [(call.name, call.arguments, call.id) for call in reply.calls]


def test_a_call_in_pieces() -> None:
    reply = reply_from_chat_stream(
        [
            ": a comment to keep the line open",
            "event: message",
            "data: " + chunk({"role": "assistant", "content": None}),
            "",
            "data: " + chunk(piece(id="call_1", type="function", name="eat", arguments="")),
            "data: " + chunk(piece(arguments='{"a"')),
            "data:" + chunk(piece(arguments=": 1}")),
            "data: " + END,
            json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}),
            "data: [DONE]",
            "data: not read any more",
        ],
        max_tokens=7,
        request_id="req_1",
    )
    assert reply.calls == (RawCall("eat", '{"a": 1}', "call_1"),)
    assert (reply.stop, reply.usage, reply.max_tokens) == ("tool_calls", Usage(9, 3), 7)
    assert (reply.request_id, reply.model) == ("req_1", "m-1")


def test_text_and_reasoning_in_pieces() -> None:
    lines = [
        chunk({"reasoning_content": "H"}),
        chunk({"reasoning_content": "m."}),
        chunk({"content": "<thi"}),
        chunk({"content": "nk>Well.</think>Hi"}),
        chunk({"content": "."}, "stop"),
    ]
    reply = reply_from_chat_stream(lines)
    assert (reply.text, reply.reasoning, reply.stop) == ("Hi.", "Hm.\nWell.", "stop")


def test_parts_in_pieces() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
    lines = [chunk({"content": thought}), chunk({"content": "Hi."}), chunk(finish="stop")]
    reply = reply_from_chat_stream(lines)
    assert (reply.text, reply.reasoning) == ("Hi.", "Hm.")


def test_the_old_field_in_pieces() -> None:
    lines = [
        chunk({"function_call": {"name": "eat", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk(finish="function_call"),
    ]
    assert reply_from_chat_stream(lines).calls == (RawCall("eat", "{}", None, "legacy"),)


def test_two_calls_interleaved() -> None:
    assert calls(
        chunk(piece(0, id="a", name="eat", arguments="")),
        chunk(piece(1, id="b", name="think", arguments="{")),
        chunk(piece(0, arguments="{}")),
        chunk(piece(1, arguments="}")),
    ) == [("eat", "{}", "a"), ("think", "{}", "b")]


def test_two_whole_calls_under_one_index_stay_two() -> None:
    assert calls(
        chunk(piece(0, id="a", name="eat", arguments="{}")),
        chunk(piece(0, id="b", name="think", arguments="{}")),
    ) == [("eat", "{}", "a"), ("think", "{}", "b")]


def test_calls_without_an_index() -> None:
    assert calls(
        chunk(piece(None, id="a", name="eat", arguments="{")),
        chunk(piece(None, arguments="}")),
        chunk(piece(None, id="b", name="think", arguments="{}")),
    ) == [("eat", "{}", "a"), ("think", "{}", "b")]


def test_a_name_that_is_repeated_or_cut() -> None:
    assert calls(
        chunk(piece(id="a", name="eat", arguments="{")),
        chunk(piece(id="a", name="eat", arguments="}")),
    ) == [("eat", "{}", "a")]
    assert calls(
        chunk(piece(id="a", name="pick-up")), chunk(piece(name="-left", arguments="{}"))
    ) == [("pick-up-left", "{}", "a")]


def test_arguments_as_an_object() -> None:
    assert calls(chunk(piece(id="a", name="eat", arguments={}))) == [("eat", {}, "a")]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [": ping"],
        [chunk({"content": "I will"})],
        [chunk(piece(id="a", name="eat", arguments="{}"))],
        [chunk(piece(id="a", name="eat", arguments="{}")), "[DONE]"],
        [chunk({"content": "I will"}), '{"id": "c1", "choi'],
    ],
)
def test_a_stream_that_just_ends(lines: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        reply_from_chat_stream(lines)
    assert (caught.value.kind, caught.value.retry) == ("stream_incomplete", True)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (json.dumps({"error": {"code": 429, "message": "slow down"}}), "rate_limit"),
        (json.dumps({"error": {"code": "server_error"}, "choices": []}), "provider_error"),
        (chunk({"content": ""}, "error"), "provider_error"),
        (json.dumps({"choices": [{"error": {"code": 504}}]}), "provider_error"),
        ("[1]", "invalid_body"),
    ],
)
def test_an_error_within_the_stream(line: str, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        reply_from_chat_stream([chunk({"content": "I will"}), line, END, "[DONE]"])
    assert caught.value.kind == kind


def test_other_choices_are_not_mixed_in() -> None:
    other = json.dumps({"choices": [{"index": 1, "delta": {"content": "no"}}]})
    assert reply_from_chat_stream([chunk({"content": "yes"}), other, END]).text == "yes"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(min_value=1, max_value=9), max_size=12))
def test_streamed_or_whole_is_the_same(cuts: list[int]) -> None:
    text, arguments = "<think>Hm.</think>I eat now.", '{"why": "hungry"}'
    whole = reply_from_chat(
        {
            "id": "c1",
            "model": "m-1",
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {
                        "content": text,
                        "tool_calls": [
                            {"id": "a", "function": {"name": "eat", "arguments": arguments}}
                        ],
                    },
                }
            ],
        }
    )
    lines = [chunk({"content": part}) for part in _cut(text, cuts)]
    lines.append(chunk(piece(id="a", name="eat", arguments="")))
    lines += [chunk(piece(arguments=part)) for part in _cut(arguments, cuts)]
    assert reply_from_chat_stream([*lines, END]) == whole


def _cut(text: str, cuts: list[int]) -> list[str]:
    parts = []
    for size in cuts:
        parts.append(text[:size])
        text = text[size:]
    return [*parts, text]


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "index",
                    "type",
                    "content",
                    "finish_reason",
                    "function_call",
                    "custom",
                    "error",
                    "usage",
                    "id",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(JSON_VALUES, max_size=3), JSON_VALUES)
def test_any_stream_is_a_reply_or_a_failure(chunks: list[Any], delta: Any) -> None:
    lines = [json.dumps(value) for value in chunks]
    inner = [
        json.dumps({"choices": [{"delta": value, "finish_reason": "stop"}]})
        for value in (delta, {"tool_calls": [delta]}, {"tool_calls": delta}, {"content": delta})
    ]
    for stream in (lines, inner, [*lines, END], [*inner, *lines]):
        try:
            reply_from_chat_stream(stream)
        except ModelError:
            continue
