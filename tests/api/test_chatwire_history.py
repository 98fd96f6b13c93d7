"""The conversation as the API wants it back, whatever the model sent."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordbench.api import (
    Action,
    AssistantMessage,
    ChatMessage,
    ModelReply,
    RawCall,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.api.chatwire import messages_to_chat, reply_from_chat, tools_to_chat
from coordbench.api.chatwire_history import nine_characters


def talk(reply: ModelReply, *, results: int | None = None) -> list[ChatMessage]:
    answered = len(reply.calls) if results is None else results
    return [
        SystemMessage("You are philosopher 2."),
        UserMessage("Round 1."),
        AssistantMessage(reply),
        *(ToolMessage(index, "You ate one meal.") for index in range(answered)),
        UserMessage("Round 2."),
    ]


def calling(*calls: RawCall, **fields: Any) -> ModelReply:
    return ModelReply(stop="tool_calls", calls=calls, **fields)


def test_a_turn_and_its_result() -> None:
    assert messages_to_chat(talk(calling(RawCall("eat", "{}", "call_9")))) == [
        {"role": "system", "content": "You are philosopher 2."},
        {"role": "user", "content": "Round 1."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_9",
                    "type": "function",
                    "function": {"name": "eat", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_9", "content": "You ate one meal."},
        {"role": "user", "content": "Round 2."},
    ]


def test_every_call_is_answered_even_where_no_result_was_given() -> None:
    reply = calling(RawCall("eat", "{}", "a"), RawCall("wait", "{}", "b"))
    for given_results in (0, 1, 2):
        chat = messages_to_chat(talk(reply, results=given_results))
        assert [turn["role"] for turn in chat[3:]] == ["tool", "tool", "user"]
        assert [turn["tool_call_id"] for turn in chat[3:5]] == ["a", "b"]
    last = messages_to_chat([AssistantMessage(reply)])
    assert [turn["role"] for turn in last] == ["assistant", "tool", "tool"]


def test_a_result_without_a_call_is_left_out() -> None:
    chat = messages_to_chat(talk(ModelReply(stop="stop", text="I wait."), results=1))
    assert [turn["role"] for turn in chat] == ["system", "user", "assistant", "user"]


def test_ids_are_minted_where_they_are_missing_or_taken() -> None:
    reply = calling(*(RawCall("eat", "{}", one) for one in (None, "", "null", "a", "a")))
    chat = messages_to_chat(talk(reply))
    ids = [call["id"] for call in chat[2]["tool_calls"]]
    assert len(set(ids)) == 5
    assert ids[3] == "a"
    assert [turn["tool_call_id"] for turn in chat if turn["role"] == "tool"] == ids
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", one) for one in ids if one != "a")


def test_minted_ids_differ_between_turns() -> None:
    reply = calling(RawCall("eat", "{}", None))
    chat = messages_to_chat([*talk(reply), *talk(reply)])
    ids = [turn["tool_call_id"] for turn in chat if turn["role"] == "tool"]
    assert len(set(ids)) == 2


def test_an_api_that_is_strict_about_ids_and_order() -> None:
    """As Mistral is."""
    reply = calling(RawCall("eat", "{}", "call_openai_style"), RawCall("eat", "{}", "kR3vTz8Qa"))
    chat = messages_to_chat(talk(reply), keep_id=nine_characters, after_tool="Go on.")
    first, second = (call["id"] for call in chat[2]["tool_calls"])
    assert nine_characters(first)
    assert second == "kR3vTz8Qa"
    assert [turn["role"] for turn in chat[2:]] == [
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert chat[5]["content"] == "Go on."


def test_broken_arguments_and_names_are_replayed_as_the_api_allows() -> None:
    for arguments in ("{broken", "[]", "null", "", None, [1], {"n": float("nan")}, '{"n": NaN}'):
        chat = messages_to_chat(talk(calling(RawCall("eat", arguments, "a"))))
        assert chat[2]["tool_calls"][0]["function"]["arguments"] == "{}"
    kept = messages_to_chat(talk(calling(RawCall("eat", {"why": 1}, "a"))))
    assert json.loads(kept[2]["tool_calls"][0]["function"]["arguments"]) == {"why": 1}
    for name in ("functions.eat", 'eat"/>\n<invoke', "", None, "a" * 100, "pick\u2011up"):
        chat = messages_to_chat(talk(calling(RawCall(name, "{}", "a"))))
        sent = chat[2]["tool_calls"][0]["function"]["name"]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent)


def test_no_turn_is_empty() -> None:
    for reply in (
        ModelReply(stop="stop"),
        ModelReply(stop="stop", reasoning="Hm."),
        ModelReply(stop="refused", refusal="No."),
    ):
        assert messages_to_chat(talk(reply))[2]["content"]
    empty = messages_to_chat(talk(calling(RawCall("eat", "{}", "a"))), empty_content="")
    assert empty[2]["content"] == ""


def test_reasoning_goes_back_where_the_server_wants_it() -> None:
    body = {
        "choices": [
            {
                "finish_reason": "stop",
                "message": {"content": "Hi.", "reasoning_content": "Hm."},
            }
        ]
    }
    reply = reply_from_chat(body)
    assert messages_to_chat(talk(reply))[2] == {"role": "assistant", "content": "Hi."}
    back = messages_to_chat(talk(reply), reasoning_field="reasoning_content")
    assert back[2]["reasoning_content"] == "Hm."


def test_tools() -> None:
    tools = [Tool("eat", Action.EAT, "Eat one meal.")]
    (plain,) = tools_to_chat(tools)
    assert plain == {
        "type": "function",
        "function": {
            "name": "eat",
            "description": "Eat one meal.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    (strict,) = tools_to_chat(tools, strict=True)
    assert strict["function"]["strict"] is True
    assert strict["function"]["parameters"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert tools[0].parameters == {"type": "object", "properties": {}}


CALLS = st.builds(
    RawCall,
    name=st.none() | st.text(max_size=9),
    arguments=st.none() | st.text(max_size=9) | st.floats() | st.just({}),
    id=st.none() | st.sampled_from(["", "null", "a", "b", "kR3vTz8Qa"]),
    kind=st.sampled_from(["function", "custom", "legacy"]),
)
MESSAGES = st.lists(
    st.one_of(
        st.builds(UserMessage, st.text(max_size=5)),
        st.builds(
            AssistantMessage,
            st.builds(
                ModelReply,
                stop=st.just("stop"),
                calls=st.lists(CALLS, max_size=3).map(tuple),
                text=st.text(max_size=5),
            ),
        ),
        st.builds(ToolMessage, st.integers(min_value=0, max_value=3), st.text(max_size=5)),
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(MESSAGES)
def test_any_conversation_has_the_order_that_apis_demand(messages: list[ChatMessage]) -> None:
    chat = messages_to_chat(messages, keep_id=nine_characters, after_tool="Go on.")
    json.dumps(chat, allow_nan=False)
    waiting: list[str] = []
    for turn in chat:
        if turn["role"] == "tool":
            waiting.remove(turn["tool_call_id"])
            continue
        assert not waiting
        waiting = [call["id"] for call in turn.get("tool_calls", ())]
        assert len(set(waiting)) == len(waiting)
        assert turn.get("content") or turn.get("tool_calls") or turn["role"] == "user"
    assert not waiting
