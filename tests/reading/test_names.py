"""Names by code point in strict mode; the same words in another spelling in recover mode."""

from __future__ import annotations

import pytest

from coordbench.api import Action, Decision, Invalid, InvalidReason, ModelReply, RawCall, Tool
from coordbench.reading import read

TOOLS = tuple(Tool(action.value, action, "") for action in Action)


def called(name: str | None) -> ModelReply:
    return ModelReply(stop="tool_calls", calls=(RawCall(name, "{}", "call_1"),))


@pytest.mark.parametrize("action", Action)
def test_exact_names(action: Action) -> None:
    assert read(called(action.value), TOOLS) == Decision(action)


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("pick_up_left", Action.PICK_UP_LEFT),
        ("pick up left", Action.PICK_UP_LEFT),
        ("pick\u2011up\u2011left", Action.PICK_UP_LEFT),
        ("pick\u2010up\u2212left", Action.PICK_UP_LEFT),
        ("put\u2013down\u2014right", Action.PUT_DOWN_RIGHT),
        ("pick-up\u200b-left", Action.PICK_UP_LEFT),
        ("PickUpLeft", Action.PICK_UP_LEFT),
        ("pickUpLeft", Action.PICK_UP_LEFT),
        ("pickup_left", Action.PICK_UP_LEFT),
        ("putdownright", Action.PUT_DOWN_RIGHT),
        ("PICK-UP-LEFT", Action.PICK_UP_LEFT),
        ("Eat", Action.EAT),
        (" think\n", Action.THINK),
        ("eat()", Action.EAT),
        ("functions.pick-up-right", Action.PICK_UP_RIGHT),
        ("functions.eat:0", Action.EAT),
        ("default_api.eat", Action.EAT),
        ("default_api:eat", Action.EAT),
        ("tools.functions.eat", Action.EAT),
        ("mcp__table__pick_up_left", Action.PICK_UP_LEFT),
        ("mcp__dining-table__eat", Action.EAT),
    ],
)
def test_near_misses(name: str, action: Action) -> None:
    strict = read(called(name), TOOLS)
    assert isinstance(strict, Invalid)
    assert strict.reason is InvalidReason.UNKNOWN_TOOL
    assert read(called(name), TOOLS, recover=True) == Decision(
        action, frozenset({"name_normalised"})
    )


@pytest.mark.parametrize(
    "name",
    [
        "wait",
        "noop",
        "thinking",
        "pick-left",
        "left-pick-up",
        "pick-up-left-fork",
        "pick-up",
        "e-a-t",
        "th ink",
        "p-i-c-k-up-left",
        "-eat",
        "\u0435at",  # a Cyrillic letter
        'pick-up-left"/>\n<invoke',
        "eat<|channel|>commentary",
        "evil.eat",
        "",
        None,
        "eat" * 1000,
    ],
)
def test_never_a_synonym_nor_a_fragment(name: str | None) -> None:
    for recover in (False, True):
        result = read(called(name), TOOLS, recover=recover)
        assert isinstance(result, Invalid)
        assert result.reason is InvalidReason.UNKNOWN_TOOL


def test_the_unknown_name_is_told() -> None:
    result = read(called("wait"), TOOLS)
    assert isinstance(result, Invalid)
    assert result.detail == "wait"


def test_only_offered_tools_are_known() -> None:
    eat_only = tuple(tool for tool in TOOLS if tool.action is Action.EAT)
    for recover in (False, True):
        assert isinstance(read(called("think"), eat_only, recover=recover), Invalid)
    assert isinstance(read(called("think"), (), recover=True), Invalid)


def test_a_tool_may_have_any_wire_name() -> None:
    tools = (Tool("take_a_meal", Action.EAT, ""), Tool("ponder", Action.THINK, ""))
    assert read(called("take_a_meal"), tools) == Decision(Action.EAT)
    near = Decision(Action.EAT, frozenset({"name_normalised"}))
    assert read(called("take-a-meal"), tools, recover=True) == near
    assert read(called("eat"), tools, recover=True) == near
    assert isinstance(read(called("eat"), tools), Invalid)


def test_tables_of_different_tools_do_not_mix() -> None:
    other = tuple(Tool(action.value.replace("-", "_"), action, "") for action in Action)
    for _ in range(3):
        assert isinstance(read(called("pick_up_left"), TOOLS), Invalid)
        assert isinstance(read(called("pick_up_left"), other), Decision)
        assert isinstance(read(called("pick_up_left"), list(other)), Decision)
        assert isinstance(read(called("pick-up-left"), list(other)), Invalid)
