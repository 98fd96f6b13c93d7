"""Scripted policies keep their promises on the real table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from support.episodes import PROMPT

from coordbench.api import (
    Action,
    ModelReply,
    ModelRequest,
    NoOptions,
    Observation,
    Rules,
    Sampling,
    UsageError,
)
from coordbench.data.seeds import call_seed
from coordbench.engine.prompts import tools_for
from coordbench.models.script import POLICIES, build_script
from coordbench.reading import read
from coordbench.tables.optimum import fair_schedule
from coordbench.tables.table import Table

TOOLS = tools_for(PROMPT)


def play(policy: str, n: int, rules: Rules, seed: int = 3) -> tuple[Any, Counter[str], bool]:
    """(final state, outcome counts, whether the last step was a deadlock)."""
    act = POLICIES[policy]
    table = Table(n, rules, seed)
    state, transition = table.start(), None
    last: list[Any] = [None] * n
    counts: Counter[str] = Counter()
    while not table.is_over(state, transition):
        actions = {}
        for seat in table.to_act(state):
            left, right = table.view(state, seat)
            view = Observation(
                seat, n, state.round + 1, rules, left, right, state.meals[seat], last[seat]
            )
            actions[seat] = act(view, call_seed(seed, state.round + 1, seat))
        transition = table.step(state, actions)
        state = transition.state
        for effect in transition.effects:
            last[effect.seat] = effect
            counts["changed"] += effect.changed
            counts["refused"] += effect.cause is not None
            counts[str(effect.action)] += 1
    return state, counts, bool(transition and transition.deadlock)


@pytest.mark.parametrize("policy", ["silent", "idle", "busy-idle"])
@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_do_nothing_policies_change_nothing(policy: str, order: Any) -> None:
    state, counts, _ = play(policy, 5, Rules(rounds=12, order=order))
    assert counts["changed"] == 0
    assert state.meals == (0,) * 5


def test_silent_makes_no_call_idle_thinks_and_busy_idle_is_refused() -> None:
    rules = Rules(rounds=10)
    assert set(play("silent", 5, rules)[1]) == {"changed", "refused", "None"}
    assert play("idle", 5, rules)[1]["think"] == 50
    assert play("busy-idle", 5, rules)[1]["refused"] == 50


@pytest.mark.parametrize("policy", ["resource-order", "parity"])
@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
@pytest.mark.parametrize(
    "rules",
    [
        Rules(rounds=120),
        Rules(rounds=120, conflict="lowest-seat"),
        Rules(rounds=120, order="sequential"),
        Rules(rounds=120, order="sequential", turn_order="rotating"),
        Rules(rounds=120, order="sequential", release_after_eating=True),
    ],
    ids=["simultaneous", "lowest-seat", "fixed", "rotating", "fixed-release"],
)
def test_ordered_policies_never_deadlock_and_feed_everybody(
    policy: str, n: int, rules: Rules
) -> None:
    for seed in range(3):
        state, _, deadlock = play(policy, n, rules, seed)
        assert not deadlock
        assert min(state.meals) > 0


@pytest.mark.parametrize("policy", ["resource-order", "parity"])
@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
@pytest.mark.parametrize(
    "rules",
    [
        Rules(rounds=60, conflict="nobody"),
        Rules(rounds=60, release_after_eating=True),
        Rules(rounds=60, order="sequential", turn_order="random"),
    ],
    ids=["nobody", "release", "random"],
)
def test_ordered_policies_never_deadlock_even_where_they_can_starve(
    policy: str, n: int, rules: Rules
) -> None:
    state, _, deadlock = play(policy, n, rules)
    assert not deadlock
    assert state.round == 60


@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
def test_grab_left_deadlocks_at_once(n: int) -> None:
    state, _, deadlock = play("grab-left", n, Rules(rounds=30))
    assert deadlock
    assert state.round == 1


def test_grab_left_holds_its_fork_for_ever_where_play_goes_on() -> None:
    state, counts, _ = play("grab-left", 5, Rules(rounds=30, on_deadlock="continue"))
    assert state.meals == (0,) * 5
    assert counts["changed"] == 5
    assert counts["refused"] == 29 * 5


@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
def test_polite_backoff_leaves_deadlocks_and_feeds_everybody(n: int) -> None:
    rules = Rules(rounds=80, on_deadlock="continue")
    assert min(min(play("polite-backoff", n, rules, seed)[0].meals) for seed in range(4)) > 0


@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
@pytest.mark.parametrize("order", [{}, {"order": "sequential"}], ids=["simultaneous", "fixed"])
def test_optimal_eats_more_than_the_others(n: int, order: dict[str, Any]) -> None:
    rules = Rules(rounds=24, **order)
    state, _, _ = play("optimal", n, rules)
    assert min(state.meals) >= 4
    for other in POLICIES:
        assert sum(state.meals) >= sum(play(other, n, rules)[0].meals)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
@pytest.mark.parametrize("release", [False, True], ids=["kept", "release"])
@pytest.mark.parametrize(
    "order",
    [
        {},
        {"order": "sequential"},
        {"order": "sequential", "turn_order": "rotating"},
        {"order": "sequential", "turn_order": "random"},
    ],
    ids=["simultaneous", "fixed", "rotating", "random"],
)
def test_optimal_plays_the_fair_schedule_without_a_refusal(
    n: int, release: bool, order: dict[str, Any]
) -> None:
    rules = Rules(rounds=12, release_after_eating=release, **order)
    state, counts, deadlock = play("optimal", n, rules)
    rows = fair_schedule(n, 12, rules)
    assert state.meals == tuple(sum(row[seat] is Action.EAT for row in rows) for seat in range(n))
    assert min(state.meals) > 0
    assert not deadlock
    assert counts["refused"] == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "rules",
    [
        Rules(rounds=8, order="sequential", turn_order="random"),
        Rules(rounds=8, release_after_eating=True),
        Rules(rounds=8, conflict="nobody", on_deadlock="continue"),
    ],
    ids=["sequential", "release", "continue"],
)
def test_every_policy_plays_under_every_rule_and_by_its_seed(policy: str, rules: Rules) -> None:
    first, again = play(policy, 4, rules), play(policy, 4, rules)
    assert first[0] == again[0]
    assert first[0].round == 8 or first[2]


def test_random_uses_all_six_tools_about_equally() -> None:
    counts = play("random", 15, Rules(rounds=200, on_deadlock="continue"))[1]
    assert all(400 < counts[action.value] < 600 for action in Action)


def test_random_legal_takes_every_tool_that_its_view_allows_about_equally() -> None:
    both = {"think", "put-down-left", "put-down-right", "eat"}
    none = {"think", "pick-up-left", "pick-up-right"}
    for left, right, legal in (
        ("mine", "mine", both),
        ("free", "free", none),
        ("taken", "free", {"think", "pick-up-right"}),
        ("taken", "taken", {"think"}),
    ):
        view = Observation(1, 5, 3, Rules(rounds=12), left, right, 0)  # type: ignore[arg-type]
        drawn = Counter(str(POLICIES["random-legal"](view, seed)) for seed in range(1200))
        assert set(drawn) == legal
        assert min(drawn.values()) > 0.8 * 1200 / len(legal)


def test_random_legal_is_refused_only_for_what_it_cannot_see() -> None:
    # Turn by turn a view is never out of date, so nothing is refused.
    rules = Rules(rounds=60, order="sequential", on_deadlock="continue")
    assert play("random-legal", 5, rules)[1]["refused"] == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("names", ["underscore", "hyphen"])
async def test_names_come_from_the_request_and_are_read_back(policy: str, names: Any) -> None:
    tools = tools_for(msgspec.structs.replace(PROMPT, tool_names=names))
    model = build_script(policy, NoOptions())
    view = Observation(0, 5, 1, Rules(rounds=12), "free", "free", 0)
    reply: ModelReply = await model.complete(
        ModelRequest(messages=(), tools=tools, sampling=Sampling(), seed=5, observation=view)
    )
    expected = POLICIES[policy](view, 5)
    result = read(reply, tools)
    assert getattr(result, "action", None) == expected


def test_an_unknown_policy_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="no scripted policy 'resource-oder'") as caught:
        build_script("resource-oder", NoOptions())
    assert "script/resource-order" in str(caught.value)
    with pytest.raises(UsageError, match="needs a policy") as caught:
        build_script("", NoOptions())
    assert all(policy in str(caught.value) for policy in POLICIES)


async def test_a_message_round_and_a_missing_tool_get_an_answer_without_a_call() -> None:
    model = build_script("optimal", NoOptions())
    view = Observation(0, 5, 1, Rules(rounds=12), "free", "free", 0)
    think_only = tuple(tool for tool in TOOLS if tool.action is Action.THINK)
    for tools in ((), think_only):
        for round_ in range(1, 13):
            request = ModelRequest(
                messages=(),
                tools=tools,
                sampling=Sampling(),
                seed=5,
                observation=msgspec.structs.replace(view, round=round_),
            )
            reply = await model.complete(request)
            assert [call.name for call in reply.calls] in ([], ["think"] if tools else [])
            assert reply.text == ""
    assert model.info.instant
    assert not model.info.reads_text
    assert not model.info.paid


async def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    views = [
        Observation(seat, 5, round_, Rules(rounds=12), "mine", "free", 0)
        for seat in range(5)
        for round_ in range(1, 13)
    ]
    for policy in POLICIES:
        there: list[ModelReply] = []
        back: list[ModelReply] = []
        for made, order in ((there, views), (back, views[::-1])):
            model = build_script(policy, NoOptions())
            for view in order:
                request = ModelRequest(
                    messages=(), tools=TOOLS, sampling=Sampling(), seed=9, observation=view
                )
                made.append(await model.complete(request))
        assert there == back[::-1]
