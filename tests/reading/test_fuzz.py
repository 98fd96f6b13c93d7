"""Reading never raises, never invents a decision, and takes time linear in the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordbench.api import Action, Decision, Invalid, ModelReply, RawCall, Tool, Usage
from coordbench.reading import read
from coordbench.reading.forms import FoundCall
from coordbench.reading.markup import find_markup

TOOLS = tuple(Tool(action.value, action, "") for action in Action)

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=60)
PIECES = st.sampled_from(
    [
        *(action.value for action in Action),
        "pick_up_left",
        "functions.",
        "default_api.",
        "wait",
        "<tool_call>",
        "</tool_call>",
        "<function=",
        "</function>",
        "<function_calls>",
        '<invoke name="',
        '">',
        "</invoke>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        "<|channel|>analysis<|message|>",
        "<|channel|>commentary to=",
        "<|message|>",
        "<|end|>",
        "<think>",
        "</think>",
        "```tool_code\n",
        "```json\n",
        "```",
        "print(",
        "()",
        "functools[",
        "<tools>",
        "call:",
        '{"name": "eat", "arguments": {}}',
        '{"name": "',
        '", "arguments": ',
        "{}",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        '"',
        ",",
        ";",
        "\n",
        " ",
        "\uff5c",
        "\u2581",
        "\ud83d",
    ]
)
MARKUP_TEXT = st.lists(st.one_of(PIECES, ANY_TEXT), max_size=14).map("".join)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | MARKUP_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.none() | MARKUP_TEXT
CALLS = st.builds(
    RawCall,
    name=NAMES,
    arguments=st.one_of(JSON_VALUES, st.just("{}"), JSON_VALUES.map(json.dumps)),
    id=st.none() | ANY_TEXT,
    kind=st.sampled_from(["function", "legacy", "broken", "custom", "unreadable", ""]),
    form=st.sampled_from(["text", "object"]),
)
COUNTS = st.none() | st.integers(min_value=0, max_value=20)
REPLIES = st.builds(
    ModelReply,
    stop=st.sampled_from(["stop", "tool_calls", "length", "refused", "malformed", "unknown"]),
    stop_native=st.none() | ANY_TEXT,
    calls=st.lists(CALLS, max_size=3).map(tuple),
    text=MARKUP_TEXT,
    reasoning=MARKUP_TEXT,
    refusal=st.none() | st.just("") | ANY_TEXT,
    usage=st.builds(Usage, output_tokens=COUNTS),
    max_tokens=COUNTS,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(REPLIES)
def test_any_reply_is_read(reply: ModelReply) -> None:
    strict, recovered = read(reply, TOOLS), read(reply, TOOLS, recover=True)
    for result in (strict, recovered):
        assert isinstance(result, Decision | Invalid)
        if isinstance(result, Invalid):
            result.detail.encode()
            assert len(result.detail) <= 200
    # Recovering only adds decisions: what strict mode decides, it decides too.
    if isinstance(strict, Decision):
        assert strict == recovered
        assert reply.calls
        assert any(call.name == strict.action.value for call in reply.calls)
        assert not strict.flags & {"from_text", "name_normalised", "multiple_calls"}
    if isinstance(recovered, Decision) and not reply.calls:
        assert "from_text" in recovered.flags
        assert reply.text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(MARKUP_TEXT)
def test_reasoning_never_decides(text: str) -> None:
    for reply in (
        ModelReply(stop="stop", reasoning=text),
        ModelReply(stop="stop", text=f"<think>{text.replace('</think>', '')}</think>"),
        ModelReply(stop="stop", text=f"{text.replace('<think>', '')}</think>"),
    ):
        assert isinstance(read(reply, TOOLS, recover=True), Invalid)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(st.characters(categories=["L", "N", "Zs"], include_characters=".,:;!?'-_\n")))
def test_prose_never_decides(text: str) -> None:
    names = " ".join(action.value for action in Action)
    for words in (text, f"{names} {text}", f"{text}\n{names}"):
        assert isinstance(read(ModelReply(stop="stop", text=words), TOOLS, recover=True), Invalid)


@settings(deadline=None, derandomize=True)
@given(st.sampled_from(Action), st.sampled_from(Action))
def test_two_calls_decide_only_where_they_agree(one: Action, other: Action) -> None:
    calls = (RawCall(one.value, "{}", "a"), RawCall(other.value, "{}", "b"))
    result = read(ModelReply(stop="tool_calls", calls=calls), TOOLS)
    assert isinstance(result, Decision) is (one is other)


DEEP = 200_000
LONG = 1 << 18


@pytest.mark.parametrize(
    "arguments",
    [
        "[" * DEEP + "]" * DEEP,
        '{"a":' * DEEP + "1" + "}" * DEEP,
        "{" * DEEP,
        "9" * LONG,
        '{"why": "' + "a" * LONG + '"}',
    ],
    ids=["lists", "objects", "braces", "digits", "text"],
)
def test_huge_arguments_are_read(arguments: str) -> None:
    for form in ("text", "object"):
        reply = ModelReply(
            stop="tool_calls",
            calls=(RawCall("eat", arguments, "a", form=form),),
        )
        assert isinstance(read(reply, TOOLS), Decision | Invalid)
        assert isinstance(read(reply, TOOLS, recover=True), Decision)


def test_arguments_nested_too_deep_to_show() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    reply = ModelReply(stop="tool_calls", calls=(RawCall("eat", value, "a"),))
    assert isinstance(read(reply, TOOLS), Invalid)
    while value:  # Freeing it in one go would recurse as deep.
        value = value[0]


HOSTILE = {
    "prose": "eat or think ",
    "open": "<tool_call>",
    "open object": '<tool_call>{"a',
    "open list": '<tool_call>["", "',
    "braces": "{",
    "brackets": "[",
    "objects": '{"a": ',
    "python": "[eat(",
    "python list": "[eat(),",
    "python words": "[eat(a",
    "invoke": '<invoke name="',
    "function": "<function=",
    "function names": "<function=eat>",
    "spaces": " ",
    "space calls": "<function      ",
    "fences": "```json\n",
    "code": "```tool_code\neat(",
    "code lines": "```tool_code\neat()\n",
    "deepseek": "<\uff5ctool\u2581call\u2581begin\uff5c>",
    "kimi": '<|open|>call tool="',
    "harmony": "commentary to=",
    "think": "<think>",
    "unthink": "</think>",
    "half think": "<think>a</think>",
    "mistral": "[TOOL_CALLS]eat",
    "mistral args": "[TOOL_CALLS]eat[CALL_ID]",
    "semicolons": '{"name": "eat", "arguments": {}};',
    "tails": "[eat()] `;,",
    "api": "default_api.eat(",
    "functools": "functools ",
    "tags": "<" + "a" * 30,
    "open attributes": "<invoke name=a ",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_end(piece: str) -> None:
    """At this length any search that is worse than linear would never end."""
    whole = piece * (LONG // len(piece))
    for reply in (ModelReply(stop="stop", text=whole), ModelReply(stop="stop", reasoning=whole)):
        assert isinstance(read(reply, TOOLS, recover=True), Decision | Invalid)


def test_what_is_found_is_what_was_written() -> None:
    found = find_markup("<function=eat>\n</function>", lambda name: name == "eat")
    assert found.calls == (FoundCall("eat", {}),)
