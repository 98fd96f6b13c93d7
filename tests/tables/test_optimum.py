"""The exact optimum: witnesses on the real table, a search that knows no tricks, a solver."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordbench.api import UsageError
from coordbench.data.actions import Action
from coordbench.data.spec import Rules
from coordbench.tables.optimum import (
    Schedule,
    fair_schedule,
    fewest_rounds,
    most_meals,
    schedule,
)
from coordbench.tables.optimum_plans import Timing, seat_plans
from coordbench.tables.optimum_ring import best_ring
from coordbench.tables.table import Table, TableState

TIMINGS: dict[str, dict[str, Any]] = {
    "simultaneous": {},
    "fixed": {"order": "sequential"},
    "rotating": {"order": "sequential", "turn_order": "rotating"},
    "random": {"order": "sequential", "turn_order": "random"},
}
TIMINGS |= {f"{name}-release": {**kw, "release_after_eating": True} for name, kw in TIMINGS.items()}
KNOWN_TURNS = [name for name in TIMINGS if not name.startswith("random")]


def rules_of(timing: str, rounds: int) -> Rules:
    return Rules(rounds=rounds, **TIMINGS[timing])


def play(made: Schedule, n: int, rules: Rules, seed: int = 0) -> tuple[tuple[int, ...], int, int]:
    """(meals, refused actions, deadlocks) of a schedule on the real table."""
    table = Table(n, rules, seed)
    state, refused, deadlocks = table.start(), 0, 0
    while state.round < len(made):
        row = made[state.round]
        transition = table.step(state, {seat: row[seat] for seat in table.to_act(state)})
        state = transition.state
        deadlocks += transition.deadlock
        refused += sum(not effect.applied for effect in transition.effects)
    return state.meals, refused, deadlocks


def key(meals: tuple[int, ...]) -> tuple[int, int, int]:
    return min(meals), sum(1 for count in meals if count), sum(meals)


def search(n: int, rules: Rules, cap: int) -> list[set[TableState]]:
    """Every state after each round, by brute force over joint play; meals are counted up to `cap`.

    A deadlock ends play.
    """
    table = Table(n, rules, 0)
    layers = [{table.start()}]
    while len(layers) <= rules.rounds:
        frontier = layers[-1]
        for _ in range(1 if rules.order == "simultaneous" else n):
            reached: set[TableState] = set()
            for state in frontier:
                seats = table.to_act(state)
                useful = [_useful(table, state, seat) for seat in seats]
                for row in product(*useful):
                    after = table.step(state, dict(zip(seats, row, strict=True)))
                    if not after.deadlock:
                        meals = tuple(min(count, cap) for count in after.state.meals)
                        reached.add(after.state._replace(meals=meals))
            frontier = reached
        layers.append(frontier)
    return layers


def _useful(table: Table, state: TableState, seat: int) -> list[Action]:
    left, right = table.view(state, seat)
    actions = [Action.THINK]
    if left == right == "mine":
        actions.append(Action.EAT)
    for view, up, down in (
        (left, Action.PICK_UP_LEFT, Action.PUT_DOWN_LEFT),
        (right, Action.PICK_UP_RIGHT, Action.PUT_DOWN_RIGHT),
    ):
        # A taken fork may be put down in this very round.
        actions.append(down if view == "mine" else up)
    return actions


@pytest.mark.parametrize("timing", KNOWN_TURNS)
@pytest.mark.parametrize(("n", "meals_each"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_the_fewest_rounds_equal_those_of_a_search_over_all_joint_play(
    timing: str, n: int, meals_each: int
) -> None:
    rounds = fewest_rounds(n, meals_each, rules_of(timing, 30))
    rules = Rules(rounds=rounds, conflict="nobody", **TIMINGS[timing])
    layers = search(n, rules, meals_each)
    worst = [max(min(state.meals) for state in layer) for layer in layers]
    assert worst.index(meals_each) == rounds


@pytest.mark.parametrize("timing", KNOWN_TURNS)
@pytest.mark.parametrize(("n", "rounds"), [(2, 7), (3, 6)])
def test_most_meals_and_the_fair_schedule_equal_a_search_over_all_joint_play(
    timing: str, n: int, rounds: int
) -> None:
    rules = Rules(rounds=rounds, conflict="nobody", **TIMINGS[timing])
    for played, layer in enumerate(search(n, rules, rounds)[1:], start=1):
        assert most_meals(n, played, rules) == max(sum(state.meals) for state in layer)
        made = fair_schedule(n, played, rules)
        assert key(play(made, n, rules)[0]) == max(key(state.meals) for state in layer)


def test_seats_fed_in_four_and_five_rounds_equal_a_search_over_all_joint_play() -> None:
    rules = Rules(rounds=4, conflict="nobody")
    fed = [max(sum(state.meals) for state in layer) for layer in search(5, rules, 1)]
    assert fed[3:] == [2, 2]
    assert key(play(fair_schedule(5, 4, rules), 5, rules)[0]) == (0, 2, 4)
    assert key(play(fair_schedule(5, 5, rules), 5, rules)[0]) == (0, 3, 5)


def solve(n: int, rounds: int) -> tuple[int, int]:
    """(most meals of the worst-fed seat, most meals in all beside that) by integer programs over
    what each seat holds and does in each round.
    """
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    lefts, rights, eats = np.arange(3 * n * rounds).reshape(3, n, rounds)
    worst = 3 * n * rounds
    rows: list[Any] = []
    limits: list[float] = []

    def limit(most: float, **terms: Any) -> None:
        row = np.zeros(worst + 1)
        for indices, factor in terms.values():
            row[indices] += factor
        rows.append(row)
        limits.append(most)

    for seat in range(n):
        limit(0, worst=(worst, 1), meals=(eats[seat], -1))
        for t in range(rounds):
            limit(0, eat=(eats[seat, t], 1), left=(lefts[seat, t], -1))
            limit(0, eat=(eats[seat, t], 1), right=(rights[seat, t], -1))
            limit(1, mine=(rights[seat, t], 1), its=(lefts[(seat + 1) % n, t], 1))
            for a, b in product((1, -1), repeat=2):
                terms = {"eat": (eats[seat, t], 1), "l": (lefts[seat, t], a)}
                terms["r"] = (rights[seat, t], b)
                if t:
                    terms["l0"] = (lefts[seat, t - 1], -a)
                    terms["r0"] = (rights[seat, t - 1], -b)
                limit(1, **terms)
    for t in range(rounds):
        limit(n - 1, left=(lefts[:, t], 1), right=(rights[:, t], -1))
        limit(n - 1, left=(lefts[:, t], -1), right=(rights[:, t], 1))

    def best(objective: Any, least: int) -> int:
        low, high = np.zeros(worst + 1), np.ones(worst + 1)
        low[worst], high[worst] = least, rounds
        found = milp(
            -objective,
            constraints=LinearConstraint(np.array(rows), -np.inf, limits),
            integrality=np.ones(worst + 1),
            bounds=Bounds(low, high),
        )
        assert found.status == 0
        return round(-float(found.fun))

    least = best(np.eye(worst + 1)[worst], 0)
    meals = np.zeros(worst + 1)
    meals[eats.ravel()] = 1
    return least, best(meals, least)


@pytest.mark.parametrize(("n", "rounds"), [(3, 10), (4, 8), (4, 9), (5, 7), (5, 12)])
def test_the_fair_schedule_equals_an_integer_program(n: int, rounds: int) -> None:
    rules = Rules(rounds=rounds)
    least, _, total = key(play(fair_schedule(n, rounds, rules), n, rules)[0])
    assert (least, total) == solve(n, rounds)


@pytest.mark.parametrize(
    ("timing", "n", "rounds"),
    [
        ("simultaneous", 2, (7, 9, 11, 13, 15)),
        ("simultaneous", 3, (7, 10, 13, 16)),
        ("simultaneous", 4, (7, 9, 11, 13)),
        ("simultaneous", 5, (7, 10, 12, 14)),
        ("simultaneous", 10, (7, 9, 11, 13)),
        ("simultaneous", 15, (7, 10, 12, 14)),
        ("fixed", 5, (7, 10, 13)),
        ("rotating", 15, (7, 10, 12)),
        ("random", 5, (9, 12, 14)),
        ("simultaneous-release", 5, (7, 12, 17)),
        ("fixed-release", 5, (5, 10, 14)),
    ],
)
def test_the_shortest_schedules_feed_everybody_on_the_real_table(
    timing: str, n: int, rounds: tuple[int, ...]
) -> None:
    rules = rules_of(timing, 30)
    assert tuple(fewest_rounds(n, each, rules) for each in range(1, len(rounds) + 1)) == rounds
    for each in range(1, len(rounds) + 1):
        assert play(schedule(n, each, rules), n, rules) == ((each,) * n, 0, 0)


@settings(max_examples=60, deadline=None)
@given(
    timing=st.sampled_from(list(TIMINGS)),
    n=st.integers(2, 9),
    rounds=st.integers(1, 26),
    seed=st.integers(0, 2**31 - 1),
)
def test_the_fair_schedule_is_never_refused_and_never_in_a_deadlock(
    timing: str, n: int, rounds: int, seed: int
) -> None:
    rules = rules_of(timing, rounds)
    made = fair_schedule(n, rounds, rules)
    assert len(made) == rounds
    _, refused, deadlocks = play(made, n, rules, seed)
    assert (refused, deadlocks) == (0, 0)


@pytest.mark.parametrize(
    ("n", "rounds", "least"),
    [
        (2, 30, 12),
        (3, 30, 8),
        # Optimal by integer programs that take from seconds to a minute.
        (5, 14, 4),
        (5, 17, 5),
        (5, 20, 6),
        (5, 24, 8),
        (5, 30, 10),
        (10, 15, 5),
        (10, 30, 12),
        (15, 30, 12),
        (50, 200, 97),
    ],
)
def test_long_fair_schedules_keep_the_worst_fed_seat_fed(n: int, rounds: int, least: int) -> None:
    rules = Rules(rounds=rounds)
    meals, refused, deadlocks = play(fair_schedule(n, rounds, rules), n, rules)
    assert min(meals) == least
    assert (refused, deadlocks) == (0, 0)
    assert sum(meals) <= most_meals(n, rounds, rules)


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_longer_episode_never_feeds_the_worst_fed_seat_less(timing: str) -> None:
    for n in (2, 5, 6):
        least = [
            min(play(fair_schedule(n, rounds, rules), n, rules)[0])
            for rounds in range(1, 31)
            for rules in [rules_of(timing, rounds)]
        ]
        assert least == sorted(least)


@pytest.mark.parametrize("n", [2, 3])
def test_the_closed_forms_with_release_equal_the_search(n: int) -> None:
    timing = Timing("simultaneous", True)
    for rounds in range(1, 13):
        plans = seat_plans(rounds, 0, rounds, timing)
        team = best_ring(n, plans, rounds, timing, [plan.eats.bit_count() for plan in plans])
        assert team is not None
        found = sum(plan.eats.bit_count() for plan in team)
        assert found == most_meals(n, rounds, rules_of("simultaneous-release", rounds))


def test_what_cannot_be_searched_is_said() -> None:
    rules = rules_of("simultaneous-release", 30)
    with pytest.raises(UsageError, match="up to 12 rounds, not for 30") as caught:
        most_meals(5, 30, rules)
    assert "another normaliser" in str(caught.value)
    with pytest.raises(UsageError, match="6 meals each of 5 seats"):
        fewest_rounds(5, 6, Rules(rounds=30))
    with pytest.raises(UsageError, match="4 meals each"):
        fewest_rounds(5, 4, rules)
    with pytest.raises(UsageError, match="at least 1 meal"):
        fewest_rounds(5, 0, Rules(rounds=30))
