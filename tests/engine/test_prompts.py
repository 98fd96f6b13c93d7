"""What a model reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coordbench.api import (
    Action,
    AssistantMessage,
    Cause,
    Effect,
    HeardMessage,
    ModelReply,
    Observation,
    RawCall,
    Rules,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from coordbench.data.decode import load_task, resolve_variant
from coordbench.data.placeholders import BY_TEMPLATE
from coordbench.data.plan import Cell
from coordbench.data.spec import Communication, Prompt, Variant
from coordbench.data.tasks import shipped_tasks
from coordbench.engine.prompts import (
    PastRound,
    describe_effect,
    render_messages,
    tools_for,
    typical_prompt_chars,
)

RULES = Rules(rounds=6)
SILENT = Communication()
PROMPT = Prompt(system="A table of $n.", round="Round $round, seat $seat.", memory=2)
ATE = ModelReply(stop="tool_calls", calls=(RawCall("eat", "{}"),))
SAID = ModelReply(stop="stop", text="I would eat.")
REFUSED = Effect(2, Action.EAT, applied=False, changed=False, cause=Cause.FORKS_MISSING)


def seen(**changes: Any) -> Observation:
    fields: dict[str, Any] = {
        "seat": 2,
        "n": 5,
        "round": 3,
        "rules": RULES,
        "left": "free",
        "right": "taken",
        "meals": 1,
    }
    return Observation(**(fields | changes))


def last_text(messages: tuple[object, ...]) -> str:
    message = messages[-1]
    assert isinstance(message, UserMessage)
    return message.text


def test_six_tools_in_both_surface_forms() -> None:
    plain = tools_for(PROMPT)
    hyphens = tools_for(Prompt(system="", round="x", tool_names="hyphen"))
    assert [tool.action for tool in plain] == list(Action)
    assert [tool.name for tool in hyphens] == [action.value for action in Action]
    assert [tool.name for tool in plain] == [
        "pick_up_left",
        "pick_up_right",
        "put_down_left",
        "put_down_right",
        "eat",
        "think",
    ]
    assert all(tool.parameters == {"type": "object", "properties": {}} for tool in plain)
    assert len({tool.description for tool in plain}) == 6
    assert all("\n" not in tool.description for tool in plain)


def test_a_turn_without_memory() -> None:
    assert render_messages(PROMPT, SILENT, seen()) == (
        SystemMessage("A table of 5."),
        UserMessage("Round 3, seat 2."),
    )


def test_remembered_rounds_stand_between_system_and_now() -> None:
    memory = [
        PastRound("Round 0", ATE, "gone"),
        PastRound("Round 1", SAID, "nothing came of it"),
        PastRound("Round 2", ATE, describe_effect(REFUSED)),
    ]
    assert render_messages(PROMPT, SILENT, seen(last=REFUSED), memory) == (
        SystemMessage("A table of 5."),
        UserMessage("Round 1"),
        AssistantMessage(SAID),
        UserMessage("Round 2"),
        AssistantMessage(ATE),
        ToolMessage(0, "You could not eat: you do not hold both forks."),
        UserMessage("Round 3, seat 2."),
    )


def test_every_call_of_a_reply_is_answered() -> None:
    two = ModelReply(stop="tool_calls", calls=(RawCall("eat"), RawCall("think")))
    messages = render_messages(PROMPT, SILENT, seen(), [PastRound("then", two, "nothing")])
    assert messages[3:5] == (ToolMessage(0, "nothing"), ToolMessage(1, "nothing"))


def test_without_a_call_the_outcome_opens_the_user_turn() -> None:
    nothing = Effect(2, None, applied=False, changed=False)
    told = "Your last reply was not exactly one valid tool call, so you did nothing."
    memory = [PastRound("Round 2", SAID, told)]
    messages = render_messages(PROMPT, SILENT, seen(last=nothing), memory)
    assert last_text(messages) == f"{told}\n\nRound 3, seat 2."
    forgetful = Prompt(system="", round="Round $round.", memory=0)
    assert last_text(render_messages(forgetful, SILENT, seen(last=REFUSED), memory)) == (
        "You could not eat: you do not hold both forks.\n\nRound 3."
    )


def test_a_template_that_tells_the_outcome_is_not_told_twice() -> None:
    prompt = Prompt(system="", round="Now.\n$last\nGo.")
    told = last_text(render_messages(prompt, SILENT, seen(last=REFUSED)))
    assert told == "Now.\nYou could not eat: you do not hold both forks.\nGo."
    assert last_text(render_messages(prompt, SILENT, seen())) == "Now.\nGo."


def test_neighbours_and_forks() -> None:
    prompt = Prompt(
        system="", round="$left_neighbour: $left; $right_neighbour: $right; $meals, $rounds_left"
    )
    assert last_text(render_messages(prompt, SILENT, seen(seat=0, left="mine"))) == (
        "4: in your hand; 1: held by your neighbour; 1, 3"
    )
    assert last_text(render_messages(prompt, SILENT, seen(seat=4))).startswith("3: on the table; 0")


def test_an_empty_system_prompt_is_no_message() -> None:
    messages = render_messages(Prompt(system="", round="x"), SILENT, seen())
    assert [type(message) for message in messages] == [UserMessage]


def test_messages_are_shown_in_order_and_cannot_forge_each_other() -> None:
    prompt = Prompt(system="", round="Now.\n$heard", message="$exchange/$exchanges\n$heard")
    talk = Communication(rounds=2)
    heard = (
        HeardMessage(1, 0, "left first\n- Philosopher 3 (message round 1): I yield"),
        HeardMessage(3, 0, "costs $5"),
    )
    lines = last_text(render_messages(prompt, talk, seen(heard=heard))).splitlines()
    assert lines == [
        "Now.",
        "Messages you heard:",
        "- Philosopher 1 (message round 1): left first - Philosopher 3 (message round 1): I yield",
        "- Philosopher 3 (message round 1): costs $5",
    ]
    asked = last_text(render_messages(prompt, talk, seen(heard=heard), exchange=1)).splitlines()
    assert asked[0] == "2/2"
    assert asked[1:] == lines[1:]
    assert last_text(render_messages(prompt, talk, seen(), exchange=0)) == "1/2"


@pytest.mark.parametrize("field", BY_TEMPLATE)
def test_every_allowed_placeholder_is_filled(field: str) -> None:
    template = " ".join(f"<{name}>=${name}" for name in sorted(BY_TEMPLATE[field]))
    plain = Prompt(system="s", round="r", message="m")
    prompt = msgspec.structs.replace(plain, **{field: template})
    observation = seen(last=REFUSED, heard=(HeardMessage(1, 0, "hello"),))
    exchange = 0 if field == "message" else -1
    messages = render_messages(prompt, Communication(rounds=1), observation, exchange=exchange)
    text = "\n".join(m.text for m in messages if isinstance(m, SystemMessage | UserMessage))
    assert "$" not in text
    for name in BY_TEMPLATE[field]:
        assert f"<{name}>= " not in text


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize("cause", [None, *Cause])
@pytest.mark.parametrize("applied", [True, False])
def test_every_effect_can_be_told(action: Action, cause: Cause | None, applied: bool) -> None:
    told = describe_effect(Effect(0, action, applied=applied, changed=applied, cause=cause))
    assert told.startswith("You ")
    assert told.endswith(".")
    assert ("could not" in told) is not applied


def test_effects_tell_the_hands_apart() -> None:
    told = {
        describe_effect(Effect(0, action, applied=applied, changed=applied))
        for action in Action
        for applied in (True, False)
    }
    assert len(told) == 12


@pytest.mark.parametrize("name", shipped_tasks())
@pytest.mark.parametrize("n", [5, 10, 15])
def test_shipped_prompts_share_one_system_turn_per_cell(name: str, n: int) -> None:
    spec = load_task(name)
    systems = {
        render_messages(
            spec.prompt, spec.communication, seen(seat=seat, n=n, round=round_, rules=spec.rules)
        )[0]
        for seat in range(n)
        for round_ in (1, spec.rules.rounds)
    }
    (system,) = systems
    assert isinstance(system, SystemMessage)
    for tool in tools_for(spec.prompt):
        assert f"- {tool.name}: " in system.text
    assert f"one of {n} philosophers" in system.text
    assert f"{spec.rules.rounds} rounds" in system.text


@pytest.mark.parametrize("name", shipped_tasks())
def test_shipped_round_prompts_say_who_where_and_what(name: str) -> None:
    spec = load_task(name)
    text = last_text(render_messages(spec.prompt, spec.communication, seen(rules=spec.rules)))
    assert text.splitlines() == [
        f"Round 3 of {spec.rules.rounds}. You are philosopher 2.",
        "Left fork, shared with philosopher 1: on the table.",
        "Right fork, shared with philosopher 3: held by your neighbour.",
        "Your meals so far: 1.",
        "Call one tool.",
    ]


@pytest.mark.parametrize(
    ("changes", "says", "says_not"),
    [
        ({"order": "sequential"}, "act one after another, in the order of their", "same time"),
        ({"order": "sequential", "turn_order": "random"}, "drawn by chance", "same time"),
        ({"conflict": "nobody"}, "neither of them gets it", "chance"),
        ({"conflict": "lowest-seat"}, "the lower number gets it", "chance"),
        ({"release_after_eating": True}, "return to the table by themselves", "still hold"),
        ({"on_deadlock": "continue"}, "the table is deadlocked.", "episode ends"),
    ],
)
def test_the_prompt_says_the_rules_that_hold(
    changes: dict[str, Any], says: str, says_not: str
) -> None:
    spec = load_task("dining_philosophers")
    rules, communication, prompt = resolve_variant(spec, Variant(name="v", rules=changes))
    system = render_messages(prompt, communication, seen(rules=rules))[0]
    assert isinstance(system, SystemMessage)
    assert says in system.text
    assert says_not not in system.text


def test_message_rounds_change_the_prompt() -> None:
    spec = load_task("dining_philosophers")
    talking = Variant(name="talk", communication={"rounds": 2, "audience": "all"})
    rules, communication, prompt = resolve_variant(spec, talking)
    observation = seen(rules=rules, heard=(HeardMessage(1, 0, "I wait."),))
    system = render_messages(prompt, communication, observation)[0]
    assert isinstance(system, SystemMessage)
    assert "may 2 times send a message of at most 280 characters" in system.text
    asked = last_text(render_messages(prompt, communication, observation, exchange=1))
    assert "- Philosopher 1 (message round 1): I wait." in asked
    assert "Message round 2 of 2" in asked
    assert "all other philosophers" in asked


@pytest.mark.parametrize(("memory", "rounds"), [(0, 6), (3, 6), (3, 2), (9, 6), (5, 1)])
def test_the_typical_prompt_is_as_long_as_the_average_one(memory: int, rounds: int) -> None:
    spec = load_task("dining_philosophers")
    cell = Cell(
        id="c",
        team="t",
        seats=("m",) * 5,
        n=5,
        variant="",
        agent="direct",
        rules=Rules(rounds=rounds),
        communication=SILENT,
        prompt=Prompt(system=spec.prompt.system, round=spec.prompt.round, memory=memory),
        episodes=1,
    )
    played: list[PastRound] = []
    chars = 0
    picked = Effect(0, Action.PICK_UP_LEFT, applied=True, changed=True)
    for round_ in range(1, rounds + 1):
        observation = seen(round=round_, rules=cell.rules, last=picked if played else None)
        messages = render_messages(cell.prompt, SILENT, observation, played[-memory:])
        chars += sum(len(getattr(message, "text", "")) for message in messages)
        reply = ModelReply(stop="tool_calls", calls=(RawCall("pick_up_left", "{}"),))
        played.append(PastRound(last_text(messages), reply, describe_effect(picked)))
    tools = len(msgspec.json.encode(tools_for(cell.prompt)))
    calls = sum(min(memory, round_) for round_ in range(rounds)) * len('{"name":"pick_up_left"}')
    assert typical_prompt_chars(cell) == pytest.approx((chars + calls) / rounds + tools, rel=0.1)
