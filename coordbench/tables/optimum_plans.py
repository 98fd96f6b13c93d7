"""What one seat can do by itself: the plans from which perfect teams are put together.

A plan is the set of rounds in which the seat keeps its left fork from its neighbour, the same for
its right fork, and the rounds in which it eats. Less is better: whoever is compatible with a plan
is compatible with any plan that keeps the forks in a part of the same rounds. So only plans are
built in which forks are picked up as late, and put down as early, as the meals allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from coordbench.data.actions import Action
from coordbench.data.spec import Rules

__all__ = ["Plan", "Timing", "actions_of", "first_turn", "seat_plans", "timing_of"]


class Plan(NamedTuple):
    """One seat's plan. Bit t of a mask is round t + 1.

    Attributes
    ----------
    left, right : int
        Rounds in which the seat has the fork after its own action. In simultaneous order with
        `release_after_eating` also the rounds in which it eats: nobody else can take it then.
    eats : int
        Rounds in which the seat eats.
    """

    left: int
    right: int
    eats: int


class Timing(NamedTuple):
    """The part of the rules on which a perfect team depends."""

    turns: Literal["simultaneous", "fixed", "rotating", "random"]
    release: bool

    @property
    def eater_keeps(self) -> bool:
        """Whether the forks of a meal are out of reach to the end of its round."""
        return not self.release or self.turns == "simultaneous"


def timing_of(rules: Rules) -> Timing:
    """The timing of some rules."""
    turns = "simultaneous" if rules.order == "simultaneous" else rules.turn_order
    return Timing(turns, rules.release_after_eating)


def first_turn(timing: Timing, n: int, t: int) -> int:
    """The seat that begins round t + 1 of `fixed` or `rotating` order; the others follow it."""
    return t % n if timing.turns == "rotating" else 0


@lru_cache(maxsize=64)
def seat_plans(rounds: int, least: int, most: int, timing: Timing) -> tuple[Plan, ...]:
    """All plans of one seat worth trying.

    Parameters
    ----------
    rounds : int
    least, most : int
        How many meals a plan may have.
    timing : Timing
    """
    found: dict[tuple[int, int], int] = {}
    walk = _released(rounds, least, most, timing) if timing.release else _kept(rounds, least, most)
    for plan in walk:
        found.setdefault((plan.left, plan.right), plan.eats)
    return tuple(Plan(left, right, eats) for (left, right), eats in sorted(found.items()))


def actions_of(plan: Plan, rounds: int, timing: Timing) -> tuple[Action, ...]:
    """The actions that a plan's masks stand for, round by round."""
    row = []
    for t in range(rounds):
        bit, before = 1 << t, (1 << t) >> 1
        released = timing.release and plan.eats & before
        had_left = bool(plan.left & before) and not released
        had_right = bool(plan.right & before) and not released
        if plan.eats & bit:
            row.append(Action.EAT)
        elif bool(plan.left & bit) != had_left:
            row.append(Action.PUT_DOWN_LEFT if had_left else Action.PICK_UP_LEFT)
        elif bool(plan.right & bit) != had_right:
            row.append(Action.PUT_DOWN_RIGHT if had_right else Action.PICK_UP_RIGHT)
        else:
            row.append(Action.THINK)
    return tuple(row)


def _span(first: int, last: int) -> int:
    """Bits `first` to `last`, both included."""
    return (1 << (last + 1)) - (1 << first)


def _picked_up(meal: int) -> Iterator[tuple[int, int]]:
    """(left, right) of picking up both forks just in time for a meal, in either order."""
    early, late = _span(meal - 2, meal), _span(meal - 1, meal)
    yield early, late
    yield late, early


def _kept(rounds: int, least: int, most: int) -> Iterator[Plan]:
    if not least:
        yield Plan(0, 0, 0)
    stack = [
        (meal, left, right, 1 << meal, 1)
        for meal in range(2, rounds)
        for left, right in _picked_up(meal)
    ]
    while stack:
        meal, left, right, eats, eaten = stack.pop()
        if eaten >= least:
            # Forks go down one a round: whichever goes last is kept for one round more.
            busy = 1 << (meal + 1) if meal + 1 < rounds else 0
            yield Plan(left, right | busy, eats)
            yield Plan(left | busy, right, eats)
        if eaten == most:
            continue
        for after in range(meal + 1, rounds - max(0, least - eaten - 1)):
            now = eats | 1 << after
            between, ready = _span(meal + 1, after), _span(after - 1, after)
            if after == meal + 1:
                stack.append((after, left | between, right | between, now, eaten + 1))
            elif after in (meal + 3, meal + 4):
                stack.append((after, left | ready, right | between, now, eaten + 1))
                stack.append((after, left | between, right | ready, now, eaten + 1))
            elif after > meal + 4:
                busy = 1 << (meal + 1)
                for up_left, up_right in _picked_up(after):
                    stack.append((after, left | up_left, right | busy | up_right, now, eaten + 1))
                    stack.append((after, left | busy | up_left, right | up_right, now, eaten + 1))


def _released(rounds: int, least: int, most: int, timing: Timing) -> Iterator[Plan]:
    stack = [(-1, 0, 0, 0, 0)]
    while stack:
        meal, left, right, eats, eaten = stack.pop()
        if eaten >= least:
            yield Plan(left, right, eats)
        if eaten == most:
            continue
        for after in range(meal + 3, rounds - 3 * max(0, least - eaten - 1)):
            bit = 1 << after
            kept = -1 if timing.eater_keeps else ~bit
            for up_left, up_right in _picked_up(after):
                ready = left | up_left & kept, right | up_right & kept
                stack.append((after, *ready, eats | bit, eaten + 1))
