"""The rules of reading, in their order of precedence."""

from __future__ import annotations

from typing import Any

import pytest

from coordbench.api import (
    Action,
    Decision,
    Invalid,
    InvalidReason,
    ModelReply,
    RawCall,
    Tool,
    Usage,
)
from coordbench.reading import read

TOOLS = tuple(Tool(action.value, action, "") for action in Action)
MARKUP = '<tool_call>{"name": "eat", "arguments": {}}</tool_call>'


def call(name: str | None = "eat", arguments: Any = "{}", **fields: Any) -> RawCall:
    return RawCall(name, arguments, **({"id": "call_1"} | fields))


def calling(*calls: RawCall, **fields: Any) -> ModelReply:
    return ModelReply(**({"stop": "tool_calls", "calls": calls} | fields))


def saying(text: str, **fields: Any) -> ModelReply:
    return ModelReply(**({"stop": "stop", "text": text} | fields))


def reason(reply: ModelReply, *, recover: bool = False) -> InvalidReason:
    result = read(reply, TOOLS, recover=recover)
    assert isinstance(result, Invalid), result
    return result.reason


def decided(action: str, *flags: str) -> Decision:
    return Decision(Action(action), frozenset(flags))


class TestPrecedence:
    """Each line beats all lines below it, in both modes."""

    LADDER: tuple[tuple[InvalidReason | None, dict[str, Any]], ...] = (
        (InvalidReason.PROVIDER_MALFORMED, {"stop": "malformed"}),
        (InvalidReason.REFUSED, {"refusal": "I won't."}),
        (InvalidReason.REFUSED, {"stop": "refused"}),
        (InvalidReason.TRUNCATED, {"stop": "length"}),
        (InvalidReason.TRUNCATED, {"max_tokens": 10, "usage": Usage(output_tokens=10)}),
        (InvalidReason.MULTIPLE_CALLS, {"calls": (call("wait"), call("eat", "[]"))}),
        (InvalidReason.UNKNOWN_TOOL, {"calls": (call("wait", "[]"),)}),
        (None, {"calls": (call("eat"),)}),
        (InvalidReason.TOOL_CALL_IN_TEXT, {"text": MARKUP}),
        (InvalidReason.NO_TOOL_CALL, {"text": "I wait."}),
        (InvalidReason.EMPTY_RESPONSE, {}),
    )

    @pytest.mark.parametrize("recover", [False, True])
    @pytest.mark.parametrize("high", range(len(LADDER)))
    def test_the_first_that_holds(self, high: int, recover: bool) -> None:
        wanted = self.LADDER[high][0]
        fields: dict[str, Any] = {"stop": "tool_calls"}
        for _, more in reversed(self.LADDER[high:]):
            fields |= more
        result = read(ModelReply(**fields), TOOLS, recover=recover)
        if wanted is None or (recover and wanted is InvalidReason.TOOL_CALL_IN_TEXT):
            assert isinstance(result, Decision)
            assert result.action is Action.EAT
        else:
            assert isinstance(result, Invalid)
            assert result.reason is wanted


class TestTruncation:
    @pytest.mark.parametrize(("used", "cut"), [(9, False), (10, True), (11, True), (None, False)])
    def test_reaching_the_cap_is_a_cut_although_a_call_is_there(
        self, used: int | None, cut: bool
    ) -> None:
        reply = calling(call(), max_tokens=10, usage=Usage(output_tokens=used))
        assert isinstance(read(reply, TOOLS), Invalid) is cut
        assert isinstance(read(reply, TOOLS, recover=True), Invalid) is cut

    def test_no_cap_no_cut(self) -> None:
        assert read(calling(call(), usage=Usage(output_tokens=5000)), TOOLS) == decided("eat")


class TestRefusal:
    def test_an_empty_refusal_field_is_none(self) -> None:
        for nothing in (None, "", "  "):
            assert read(calling(call(), refusal=nothing), TOOLS) == decided("eat")

    def test_its_words_are_kept(self) -> None:
        result = read(saying("", refusal="I won't."), TOOLS)
        assert result == Invalid(InvalidReason.REFUSED, "I won't.")


class TestCalls:
    def test_the_call_is_the_decision_whatever_the_text_says(self) -> None:
        reply = calling(call("put-down-right"), text="I should eat now.", reasoning=MARKUP)
        assert read(reply, TOOLS) == decided("put-down-right")

    @pytest.mark.parametrize("stop", ["stop", "tool_calls", "unknown"])
    def test_the_stop_reason_need_not_promise_it(self, stop: str) -> None:
        assert read(calling(call(), stop=stop), TOOLS) == decided("eat")

    def test_think_is_a_call_like_any_other(self) -> None:
        assert read(calling(call("think")), TOOLS) == decided("think")

    def test_the_same_call_again_is_one(self) -> None:
        reply = calling(call(id="a"), call(id="b"), call(id="c"))
        assert read(reply, TOOLS) == decided("eat", "duplicate_calls")

    def test_different_calls_are_none_or_the_first(self) -> None:
        reply = calling(call("pick-up-left", id="a"), call("pick-up-right", id="b"))
        assert reason(reply) is InvalidReason.MULTIPLE_CALLS
        assert read(reply, TOOLS, recover=True) == decided("pick-up-left", "multiple_calls")

    def test_only_the_first_of_different_calls_is_looked_into(self) -> None:
        reply = calling(call("eat", id="a"), call("think", "[]", id="b"))
        assert read(reply, TOOLS, recover=True) == decided("eat", "multiple_calls")

    def test_a_strange_one_among_them_is_not_dropped(self) -> None:
        for first, second in (("wait", "eat"), ("eat", "wait")):
            reply = calling(call(first, id="a"), call(second, id="b"))
            for recover in (False, True):
                assert reason(reply, recover=recover) is InvalidReason.MULTIPLE_CALLS

    def test_two_spellings_of_one_name_are_one_call_when_recovering(self) -> None:
        reply = calling(call("pick-up-left", id="a"), call("pick_up_left", id="b"))
        assert reason(reply) is InvalidReason.MULTIPLE_CALLS
        assert read(reply, TOOLS, recover=True) == decided(
            "pick-up-left", "duplicate_calls", "name_normalised"
        )

    def test_each_of_the_same_calls_must_be_readable(self) -> None:
        reply = calling(call(id="a"), call(arguments="{bad", id="b"))
        assert reason(reply) is InvalidReason.MALFORMED_ARGUMENTS
        assert read(reply, TOOLS, recover=True) == decided(
            "eat", "duplicate_calls", "bad_arguments"
        )

    def test_a_kind_that_was_not_declared(self) -> None:
        for recover in (False, True):
            assert reason(calling(call(kind="custom")), recover=recover) is (
                InvalidReason.UNKNOWN_TOOL
            )
            both = calling(call(id="a"), call(kind="custom", id="b"))
            assert reason(both, recover=recover) is InvalidReason.MULTIPLE_CALLS

    def test_the_old_field_has_no_id_to_miss(self) -> None:
        reply = calling(call(kind="legacy", id=None))
        assert read(reply, TOOLS) == decided("eat", "legacy_function_call")

    @pytest.mark.parametrize("missing", [None, "", "null"])
    def test_a_missing_id_is_flagged(self, missing: str | None) -> None:
        assert read(calling(call(id=missing)), TOOLS) == decided("eat", "minted_id")

    def test_a_call_that_a_client_library_gave_up_on(self) -> None:
        reply = calling(call(arguments="{broken", kind="broken"))
        assert reason(reply) is InvalidReason.MALFORMED_ARGUMENTS
        assert read(reply, TOOLS, recover=True) == decided("eat", "bad_arguments")
        assert reason(calling(call("wait", kind="broken")), recover=True) is (
            InvalidReason.UNKNOWN_TOOL
        )


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "form", "flags"),
        [
            ("{}", "text", ()),
            (" { } ", "text", ()),
            ("", "text", ("empty_arguments",)),
            ("  \n", "text", ("empty_arguments",)),
            ("null", "text", ("empty_arguments",)),
            (None, "text", ("empty_arguments",)),
            ('{"why": "hungry"}', "text", ("extra_arguments",)),
            ({}, "text", ("arguments_object",)),
            ({"why": "hungry"}, "text", ("arguments_object", "extra_arguments")),
            ({}, "object", ()),
            (None, "object", ("empty_arguments",)),
            ("", "object", ("empty_arguments",)),
            ({"why": "hungry"}, "object", ("extra_arguments",)),
            ("{}", "object", ("arguments_not_object",)),
            ('{"why": 1}', "object", ("arguments_not_object", "extra_arguments")),
        ],
    )
    def test_what_can_be_read(self, arguments: Any, form: Any, flags: tuple[str, ...]) -> None:
        for recover in (False, True):
            result = read(calling(call(arguments=arguments, form=form)), TOOLS, recover=recover)
            assert result == decided("eat", *flags)

    @pytest.mark.parametrize("form", ["text", "object"])
    @pytest.mark.parametrize(
        "arguments",
        ["[]", '"{}"', "{", "{}{}", "{'why': 1}", '{"n": NaN}', "7", "true", "none", [], 7, True],
    )
    def test_what_cannot(self, arguments: Any, form: Any) -> None:
        reply = calling(call(arguments=arguments, form=form))
        assert reason(reply) is InvalidReason.MALFORMED_ARGUMENTS
        assert read(reply, TOOLS, recover=True) == decided("eat", "bad_arguments")


class TestNoCall:
    @pytest.mark.parametrize("stop", ["stop", "tool_calls", "unknown"])
    def test_prose(self, stop: str) -> None:
        reply = saying("Both neighbours look busy, so I wait this round out.", stop=stop)
        for recover in (False, True):
            assert reason(reply, recover=recover) is InvalidReason.NO_TOOL_CALL

    @pytest.mark.parametrize("text", ["", "  \n"])
    def test_nothing(self, text: str) -> None:
        for stop in ("stop", "tool_calls"):
            assert reason(saying(text, stop=stop)) is InvalidReason.EMPTY_RESPONSE

    @pytest.mark.parametrize(
        "fields",
        [
            {"reasoning": "I could think. Waiting seems safest."},
            {"text": "<think>I could think.</think>"},
            {"text": "<think>I could think. Waiting seems"},
            {"text": "I could think.</think>"},
            {"text": "<think></think>"},
        ],
    )
    def test_only_reasoning(self, fields: dict[str, str]) -> None:
        for recover in (False, True):
            assert reason(ModelReply(stop="stop", **fields), recover=recover) is (  # type: ignore[arg-type]
                InvalidReason.EMPTY_RESPONSE
            )

    def test_prose_after_reasoning(self) -> None:
        assert reason(saying("<think>Hm.</think>I eat.")) is InvalidReason.NO_TOOL_CALL

    def test_markup_in_reasoning_beside_prose(self) -> None:
        for recover in (False, True):
            result = read(saying("I wait.", reasoning=MARKUP), TOOLS, recover=recover)
            assert isinstance(result, Invalid)
            assert result.reason is InvalidReason.TOOL_CALL_IN_TEXT
            assert result.hint == ""


class TestDetail:
    def test_is_short_and_can_be_stored(self) -> None:
        result = read(saying("\ud83d" * 1000), TOOLS)
        assert isinstance(result, Invalid)
        assert len(result.detail) <= 200
        result.detail.encode()

    def test_tells_which_calls_there_were(self) -> None:
        result = read(calling(call("eat", id="a"), call("think", id="b")), TOOLS)
        assert isinstance(result, Invalid)
        assert result.detail == "eat, think"
