"""The exact optimum: bounds, witnesses on the real table, and a search that knows no tricks."""

from __future__ import annotations

from itertools import product

import pytest

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
from coordbench.tables.table import Table, TableState


def play(made: Schedule, n: int) -> tuple[tuple[int, ...], int, bool]:
    """(meals, refused actions, whether a deadlock occurred) of a schedule on the real table."""
    table = Table(n, Rules(rounds=len(made)), 0)
    state, refused, deadlock = table.start(), 0, False
    for row in made:
        transition = table.step(state, dict(enumerate(row)))
        state = transition.state
        deadlock |= transition.deadlock
        refused += sum(not effect.applied for effect in transition.effects)
    return state.meals, refused, deadlock


def search(n: int, rounds: int) -> tuple[int, dict[int, int]]:
    """By brute force over joint play: the most meals, and for each round the most of the worst-fed
    seat's meals. Deadlock ends an episode.
    """
    table = Table(n, Rules(rounds=rounds, conflict="nobody"), 0)
    frontier: set[TableState] = {table.start()}
    worst: dict[int, int] = {}
    for round_ in range(1, rounds + 1):
        reached: set[TableState] = set()
        for state in frontier:
            useful = [_useful(table, state, seat) for seat in range(n)]
            for row in product(*useful):
                transition = table.step(state, dict(enumerate(row)))
                if not transition.deadlock:
                    reached.add(transition.state)
        frontier = reached
        worst[round_] = max(min(state.meals) for state in frontier)
    return max(sum(state.meals) for state in frontier), worst


def _useful(table: Table, state: TableState, seat: int) -> list[Action]:
    left, right = table.view(state, seat)
    if left == right == "mine":
        return [Action.EAT, Action.PUT_DOWN_LEFT, Action.PUT_DOWN_RIGHT]
    actions = [Action.THINK]
    actions.append(Action.PUT_DOWN_LEFT if left == "mine" else Action.PICK_UP_LEFT)
    actions.append(Action.PUT_DOWN_RIGHT if right == "mine" else Action.PICK_UP_RIGHT)
    return actions


@pytest.mark.parametrize(("n", "rounds"), [(2, 6), (3, 7)])
def test_most_meals_equals_a_search_over_all_joint_play(n: int, rounds: int) -> None:
    most, worst = search(n, rounds)
    assert most == most_meals(n, rounds, Rules(rounds=rounds))
    first_fed = next((round_ for round_, meals in worst.items() if meals), None)
    expected = fewest_rounds(n, 1, Rules(rounds=rounds))
    assert first_fed == (expected if expected <= rounds else None)


@pytest.mark.parametrize(
    ("n", "meals_each", "rounds"),
    [
        (2, 1, 7),
        (3, 1, 7),
        (4, 1, 7),
        (5, 1, 7),
        (10, 1, 7),
        (15, 1, 7),
        (5, 2, 10),
        (10, 2, 9),
        (15, 2, 10),
    ],
)
def test_the_shortest_schedule_feeds_everybody_on_the_real_table(
    n: int, meals_each: int, rounds: int
) -> None:
    rules = Rules(rounds=30)
    assert fewest_rounds(n, meals_each, rules) == rounds
    meals, refused, deadlock = play(schedule(n, meals_each, rules), n)
    assert meals == (meals_each,) * n
    assert not refused
    assert not deadlock


@pytest.mark.parametrize("n", [2, 3, 5, 8, 15])
@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 7, 12, 30])
def test_the_fair_schedule_is_as_long_as_asked_and_never_refused(n: int, rounds: int) -> None:
    rules = Rules(rounds=rounds)
    made = fair_schedule(n, rounds, rules)
    assert len(made) == rounds
    meals, refused, deadlock = play(made, n)
    assert not refused
    assert not deadlock
    assert sum(meals) <= most_meals(n, rounds, rules)
    for each in (1, 2):
        if fewest_rounds(n, each, rules) <= rounds:
            assert min(meals) >= each


def test_rules_that_are_not_covered_are_refused() -> None:
    for rules in (Rules(rounds=5, order="sequential"), Rules(rounds=5, release_after_eating=True)):
        with pytest.raises(UsageError, match="simultaneous"):
            most_meals(5, 5, rules)
    with pytest.raises(UsageError, match="1 or 2 meals"):
        fewest_rounds(5, 3, Rules(rounds=30))
