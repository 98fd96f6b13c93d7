"""How well a perfect team could do: exact bounds, with a schedule as witness.

All of it holds for simultaneous order without `release_after_eating`: put-downs come before
pick-ups, and who holds both forks may eat every round.

The exact search treats each seat by itself. A plan of one seat is the set of rounds in which it
occupies its left fork, the set in which it occupies its right one (a fork put down in round t is
free in round t), and the rounds in which it eats. Neighbours are compatible where their
occupations of the shared fork are disjoint, and a team is a closed walk of length N over
compatible plans (the transfer-matrix method, Stanley, *Enumerative Combinatorics* I, 4.7).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from coordbench.data.actions import Action
from coordbench.data.errors import UsageError
from coordbench.data.spec import Rules
from coordbench.tables.table import ON_TABLE, is_deadlock

__all__ = ["Schedule", "fair_schedule", "fewest_rounds", "most_meals", "schedule"]

Schedule = tuple[tuple[Action, ...], ...]
"""Actions by round, then by seat: shape (rounds, N)."""

_MOST_EXACT_MEALS = 2
_SEARCH_LIMIT = 16


class _Plan(NamedTuple):
    """One seat's plan. Bit t of a mask is round t + 1."""

    left: int
    right: int
    eats: int


def most_meals(n: int, rounds: int, rules: Rules) -> int:
    """The most meals that N seats can have in `rounds` rounds: floor(N/2) * (rounds - 2).

    At most floor(N/2) seats hold both their forks at once, and nobody before the end of round 2,
    so nobody eats before round 3: the bound. Seats 0, 2, 4, ... picking up in rounds 1 and 2 and
    eating from then on reach it.
    """
    _check(rules)
    return (n // 2) * max(0, rounds - 2)


@lru_cache(maxsize=256)
def fewest_rounds(n: int, meals_each: int, rules: Rules) -> int:
    """The fewest rounds in which every seat can eat `meals_each` times; exact.

    Raises
    ------
    UsageError
        More than two meals each: the search would take too long.
    """
    return len(schedule(n, meals_each, rules))


@lru_cache(maxsize=256)
def schedule(n: int, meals_each: int, rules: Rules) -> Schedule:
    """A shortest schedule in which every seat eats `meals_each` times; exact.

    Returns
    -------
    Schedule
        Shape (fewest rounds, N).
    """
    _check(rules)
    if not 1 <= meals_each <= _MOST_EXACT_MEALS:
        raise UsageError(f"the exact search covers 1 or 2 meals each, not {meals_each}")
    for rounds in range(2 + meals_each, _SEARCH_LIMIT + 1):
        plans = _plans(rounds, meals_each)
        walk = _closed_walk(plans, n)
        if walk is not None:
            rows = [_actions(plan, rounds) for plan in walk]
            return tuple(tuple(row[round_] for row in rows) for round_ in range(rounds))
    raise UsageError(f"no schedule within {_SEARCH_LIMIT} rounds")


@lru_cache(maxsize=64)
def fair_schedule(n: int, rounds: int, rules: Rules) -> Schedule:
    """A schedule that feeds the worst-fed seat as often as this construction can, then all.

    The exact shortest schedules for one and two meals each are stretched: each meal becomes a
    row of m meals, forks go from hand to hand in the same order, and every action is taken as
    early as that order allows. The best stretch that fits is extended by seats that eat on to the
    end. Exact for up to two meals each (and so for `rounds` below the fewest for three); above
    that a lower bound on the optimum.

    Returns
    -------
    Schedule
        Shape (rounds, N).
    """
    _check(rules)
    best = _greedy_pairs(n, rounds)
    best_key = _key(best, n)
    for meals_each in range(1, _MOST_EXACT_MEALS + 1):
        if 2 + meals_each > rounds:
            break
        pattern = _pattern(n, meals_each, rules)
        for stretch in range(1, rounds):
            made = _play_out(pattern, n, rounds, stretch)
            key = _key(made, n)
            if key > best_key:
                best, best_key = made, key
            elif stretch > 1 and not key[0]:
                break
    return best


def _check(rules: Rules) -> None:
    if rules.order != "simultaneous" or rules.release_after_eating:
        raise UsageError(
            "the optimum is known for simultaneous order without release_after_eating only"
        )


def _key(made: Schedule, n: int) -> tuple[int, int, int]:
    meals = [sum(row[seat] is Action.EAT for row in made) for seat in range(n)]
    return min(meals), sum(1 for count in meals if count), sum(meals)


@lru_cache(maxsize=64)
def _plans(rounds: int, meals: int) -> tuple[_Plan, ...]:
    """Every plan of one seat worth trying: each stretch of holding a fork covers a meal, and no
    other plan occupies a part of the same rounds only.
    """
    found: dict[tuple[int, int], int] = {}
    for plan in _walk_plans(rounds, meals):
        found.setdefault((plan.left, plan.right), plan.eats)
    plans = [_Plan(left, right, eats) for (left, right), eats in found.items()]
    plans.sort(key=lambda plan: (plan.left.bit_count() + plan.right.bit_count(), plan))
    kept: list[_Plan] = []
    for plan in plans:
        if not any(
            other.left & ~plan.left == 0 and other.right & ~plan.right == 0 for other in kept
        ):
            kept.append(plan)
    return tuple(kept)


def _walk_plans(rounds: int, meals: int) -> Iterator[_Plan]:
    """Depth first over the four things a seat can do in a round: wait, turn a fork, eat."""
    stack = [(0, 0, 0, 0, False, False, False, False)]
    while stack:
        t, left, right, eats, has_left, has_right, used_left, used_right = stack.pop()
        eaten = eats.bit_count()
        if eaten == meals:
            # Forks go down one a round: whichever goes last is occupied for one round more.
            busy = 1 << t if t < rounds else 0
            yield _Plan(left, right | busy, eats)
            yield _Plan(left | busy, right, eats)
            continue
        if rounds - t < (meals - eaten) + (not has_left) + (not has_right):
            continue
        bit = 1 << t
        keep_left, keep_right = left | bit * has_left, right | bit * has_right
        stack.append(
            (t + 1, keep_left, keep_right, eats, has_left, has_right, used_left, used_right)
        )
        if has_left and has_right:
            stack.append((t + 1, keep_left, keep_right, eats | bit, True, True, True, True))
        if not has_left:
            stack.append((t + 1, left | bit, keep_right, eats, True, has_right, False, used_right))
        elif used_left:
            stack.append((t + 1, left, keep_right, eats, False, has_right, False, used_right))
        if not has_right:
            stack.append((t + 1, keep_left, right | bit, eats, has_left, True, used_left, False))
        elif used_right:
            stack.append((t + 1, keep_left, right, eats, has_left, False, used_left, False))


def _closed_walk(plans: tuple[_Plan, ...], n: int) -> list[_Plan] | None:
    """Plans for seats 0..n-1 in which all neighbours are compatible, and in no round of which
    every seat holds exactly one fork: that would be a deadlock, also while forks change hands.
    """
    import numpy as np

    if not plans:
        return None
    rights = np.array([plan.right for plan in plans])
    lefts = np.array([plan.left for plan in plans])
    fits = (rights[:, None] & lefts[None, :]) == 0
    singles = lefts ^ rights
    for start in np.flatnonzero(np.diagonal(_power(fits, n))):
        walk = _walk_from(int(start), fits, singles, n)
        if walk is not None:
            return [plans[index] for index in walk]
    return None


def _walk_from(start: int, fits: Any, singles: Any, n: int) -> list[int] | None:
    """A closed walk from one plan. Layers map the rounds in which all seats so far hold one fork
    to the plans that the next seat can then have.
    """
    import numpy as np

    groups = {int(value): singles == value for value in np.unique(singles)}
    first = np.zeros(len(fits), dtype=bool)
    first[start] = True
    layers: list[dict[int, Any]] = [{int(singles[start]): first}]
    for _ in range(n - 1):
        layer: dict[int, Any] = {}
        for common, reached in layers[-1].items():
            following = reached @ fits
            for single, members in groups.items():
                chosen = following & members
                if chosen.any():
                    key = common & single
                    layer[key] = chosen | layer[key] if key in layer else chosen
        layers.append(layer)
    closing = layers[-1].get(0)
    if closing is None or not (closing & fits[:, start]).any():
        return None
    walk, common = [int(np.flatnonzero(closing & fits[:, start])[0])], 0
    for layer in reversed(layers[:-1]):
        after, single = walk[-1], int(singles[walk[-1]])
        for key, reached in layer.items():
            before = reached & fits[:, after]
            if key & single == common and before.any():
                walk.append(int(np.flatnonzero(before)[0]))
                common = key
                break
    return walk[::-1]


def _power(matrix: Any, exponent: int) -> Any:
    """Boolean matrix power by squaring."""
    import numpy as np

    result = np.eye(len(matrix), dtype=np.float32)
    base = matrix.astype(np.float32)
    while exponent:
        if exponent & 1:
            result = ((result @ base) > 0).astype(np.float32)
        base = ((base @ base) > 0).astype(np.float32)
        exponent >>= 1
    return result > 0


def _actions(plan: _Plan, rounds: int) -> list[Action]:
    """The actions that a plan's masks stand for, round by round."""
    row = []
    for t in range(rounds):
        bit, before = 1 << t, (1 << t) >> 1
        had_left, has_left = bool(plan.left & before), bool(plan.left & bit)
        had_right, has_right = bool(plan.right & before), bool(plan.right & bit)
        if plan.eats & bit:
            row.append(Action.EAT)
        elif has_left != had_left:
            row.append(Action.PICK_UP_LEFT if has_left else Action.PUT_DOWN_LEFT)
        elif has_right != had_right:
            row.append(Action.PICK_UP_RIGHT if has_right else Action.PUT_DOWN_RIGHT)
        else:
            row.append(Action.THINK)
    return row


class _Pattern(NamedTuple):
    """Who does what in which order, without times.

    Attributes
    ----------
    scripts : tuple of tuple of Action
        Each seat's actions without waits; a row of meals is one `eat`.
    holders : tuple of tuple of int
        Seats in the order in which they hold each fork.
    """

    scripts: tuple[tuple[Action, ...], ...]
    holders: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=64)
def _pattern(n: int, meals_each: int, rules: Rules) -> _Pattern:
    scripts: list[list[Action]] = [[] for _ in range(n)]
    holders: list[list[int]] = [[] for _ in range(n)]
    for row in schedule(n, meals_each, rules):
        for seat, action in enumerate(row):
            if action is Action.THINK:
                continue
            if action is Action.EAT and scripts[seat][-1] is Action.EAT:
                continue
            scripts[seat].append(action)
            if action is Action.PICK_UP_LEFT:
                holders[seat].append(seat)
            elif action is Action.PICK_UP_RIGHT:
                holders[(seat + 1) % n].append(seat)
    for script in scripts:
        # The shortest schedule stops with the last meal; put-downs that it had no time for.
        for up, down in (
            (Action.PICK_UP_LEFT, Action.PUT_DOWN_LEFT),
            (Action.PICK_UP_RIGHT, Action.PUT_DOWN_RIGHT),
        ):
            if script.count(up) > script.count(down):
                script.append(down)
    return _Pattern(tuple(map(tuple, scripts)), tuple(map(tuple, holders)))


def _play_out(pattern: _Pattern, n: int, rounds: int, stretch: int) -> Schedule:
    """Play a pattern as early as its order allows, each meal `stretch` times, to the last round."""
    position = [0] * n
    eaten = [0] * n
    turn_of_fork = [0] * n
    holder = [ON_TABLE] * n
    made: list[tuple[Action, ...]] = []
    for _ in range(rounds):
        row = [Action.THINK] * n
        freed = [False] * n
        for seat, script in enumerate(pattern.scripts):
            if position[seat] < len(script) and script[position[seat]] in _PUT_DOWNS:
                action = script[position[seat]]
                if not _is_wanted(pattern, turn_of_fork, seat, n) and _may_eat(
                    script, position[seat], holder, seat, n
                ):
                    row[seat] = Action.EAT
                    continue
                fork = seat if action is Action.PUT_DOWN_LEFT else (seat + 1) % n
                freed[fork] = True
                row[seat] = action
        for fork in range(n):
            if freed[fork]:
                holder[fork] = ON_TABLE
                turn_of_fork[fork] += 1
        for seat, script in enumerate(pattern.scripts):
            if position[seat] >= len(script) or row[seat] is not Action.THINK:
                continue
            action = script[position[seat]]
            if action is Action.EAT:
                row[seat] = action
            elif action not in _PUT_DOWNS:
                fork = seat if action is Action.PICK_UP_LEFT else (seat + 1) % n
                order = pattern.holders[fork]
                mine = turn_of_fork[fork] < len(order) and order[turn_of_fork[fork]] == seat
                if mine and holder[fork] == ON_TABLE:
                    holder[fork] = seat
                    row[seat] = action
                    if is_deadlock(tuple(holder)):
                        holder[fork] = ON_TABLE
                        row[seat] = Action.THINK
        for seat, script in enumerate(pattern.scripts):
            if row[seat] is Action.THINK or position[seat] >= len(script):
                continue
            if script[position[seat]] is Action.EAT:
                eaten[seat] += 1
                if eaten[seat] % stretch:
                    continue
            elif row[seat] is Action.EAT:
                continue
            position[seat] += 1
        made.append(tuple(row))
    return tuple(made)


_PUT_DOWNS = (Action.PUT_DOWN_LEFT, Action.PUT_DOWN_RIGHT)


def _is_wanted(pattern: _Pattern, turn_of_fork: list[int], seat: int, n: int) -> bool:
    """Whether anybody is to hold one of the seat's forks after it."""
    return any(
        turn_of_fork[fork] + 1 < len(pattern.holders[fork]) for fork in (seat, (seat + 1) % n)
    )


def _may_eat(
    script: tuple[Action, ...], position: int, holder: list[int], seat: int, n: int
) -> bool:
    """Whether the seat still holds both forks: nothing was put down since its last meal."""
    both = holder[seat] == seat == holder[(seat + 1) % n]
    return both and script[position - 1] is Action.EAT


def _greedy_pairs(n: int, rounds: int) -> Schedule:
    """Every other seat picks up and eats to the end: the most meals, and the fallback."""
    made = []
    for round_ in range(rounds):
        row = [Action.THINK] * n
        for seat in range(0, n - 1, 2):
            row[seat] = (
                (Action.PICK_UP_LEFT, Action.PICK_UP_RIGHT)[round_] if round_ < 2 else Action.EAT
            )
        made.append(tuple(row))
    return tuple(made)
