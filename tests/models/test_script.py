"""Scripted policies keep their promises on the real table."""

from __future__ import annotations

from collections import Counter
from typing import Any

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


# At an even table parity can leave every seat with one fork while forks change hands, which counts
# as a deadlock like any other.
@pytest.mark.parametrize(
    ("policy", "n"),
    [("resource-order", n) for n in (3, 5, 10, 15)] + [("parity", n) for n in (3, 5, 15)],
)
def test_ordered_policies_never_deadlock_and_feed_everybody(policy: str, n: int) -> None:
    for seed in range(10):
        state, _, deadlock = play(policy, n, Rules(rounds=120), seed)
        assert not deadlock
        assert min(state.meals) > 0


@pytest.mark.parametrize("n", [2, 3, 5, 15])
def test_grab_left_deadlocks_at_once(n: int) -> None:
    state, _, deadlock = play("grab-left", n, Rules(rounds=30))
    assert deadlock
    assert state.round == 1


def test_polite_backoff_gets_everybody_fed() -> None:
    fed = [
        min(play("polite-backoff", 5, Rules(rounds=200, on_deadlock="continue"), s)[0].meals)
        for s in range(10)
    ]
    assert min(fed) > 0


@pytest.mark.parametrize("n", [2, 3, 5, 10, 15])
def test_optimal_is_never_refused_and_eats_more_than_the_others(n: int) -> None:
    rules = Rules(rounds=24)
    state, counts, deadlock = play("optimal", n, rules)
    assert not deadlock
    assert counts["refused"] == 0
    assert min(state.meals) >= 2
    for other in ("resource-order", "parity", "polite-backoff"):
        assert sum(state.meals) >= sum(play(other, n, rules)[0].meals)


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


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("names", ["underscore", "hyphen"])
async def test_names_come_from_the_request_and_are_read_back(policy: str, names: Any) -> None:
    import msgspec

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
