"""How well a perfect team could do: exact numbers, with a schedule as witness.

A perfect team never passes through a deadlock, whatever `on_deadlock` says of it, and none of its
actions is refused. In sequential order with random turns it cannot know who comes first, so it
hands no fork over within a round: its numbers are those of the schedules, fixed beforehand, that
hold in every order of turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from coordbench.data.actions import Action
from coordbench.data.errors import UsageError
from coordbench.data.spec import Rules
from coordbench.tables.optimum_plans import Plan, Timing, actions_of, seat_plans, timing_of
from coordbench.tables.optimum_ring import best_ring
from coordbench.tables.optimum_runs import (
    Pattern,
    Schedule,
    arcs,
    order_of,
    pattern_of,
    play_out,
)

__all__ = ["Schedule", "fair_schedule", "fewest_rounds", "most_meals", "schedule"]

_MOST_MEALS_EACH = {False: 5, True: 3}
_MOST_PLANS = 16_000
_EXACT_ROUNDS = 12
_LONGER_ROUNDS, _LONGER_MEALS = 16, 4
_EXACT_SEATS = 64


@lru_cache(maxsize=256)
def most_meals(n: int, rounds: int, rules: Rules) -> int:
    """The most meals that N seats can have together; exact.

    Where eaters keep their forks it is floor(N/2) * (rounds - 2), in either order. Bound: who eats
    in a round holds both forks until its next turn at least, so at most floor(N/2) seats eat in
    one round, and nobody eats in its first two turns. Seats 0, 2, 4, ... picking up in rounds 1
    and 2 and eating from then on reach it.

    With `release_after_eating` in simultaneous order two seats have floor(rounds / 3) meals: both
    forks are on the table after each, and the next takes two rounds to pick them up. Three seats
    have floor((rounds - 1) / 2): no two of them eat together, and after a meal both its forks are
    on the table, of which the next eater needs at least one; it has had the third fork in hand.
    Anything else is searched.

    Raises
    ------
    UsageError
        With `release_after_eating`, more than two or three seats and too many rounds to search.
    """
    timing = timing_of(rules)
    if not timing.release:
        return (n // 2) * max(0, rounds - 2)
    if timing.turns == "simultaneous" and n <= 3:
        return rounds // 3 if n == 2 else max(0, rounds - 1) // 2
    if rounds > _EXACT_ROUNDS:
        raise UsageError(
            f"the most meals under release_after_eating are known up to {_EXACT_ROUNDS} "
            f"rounds, not for {rounds}",
            hint='choose another normaliser than "optimum", or fewer rounds',
        )
    plans = seat_plans(rounds, 0, rounds, timing)
    team = best_ring(n, plans, rounds, timing, [plan.eats.bit_count() for plan in plans])
    return sum(plan.eats.bit_count() for plan in team or ())


@lru_cache(maxsize=256)
def fewest_rounds(n: int, meals_each: int, rules: Rules) -> int:
    """The fewest rounds in which every seat can eat `meals_each` times; exact.

    Raises
    ------
    UsageError
        As `schedule`.
    """
    return len(schedule(n, meals_each, rules))


@lru_cache(maxsize=256)
def schedule(n: int, meals_each: int, rules: Rules) -> Schedule:
    """A shortest schedule in which every seat eats `meals_each` times; exact.

    Returns
    -------
    Schedule
        Shape (fewest rounds, N).

    Raises
    ------
    UsageError
        Less than one meal each, or more than can be searched: 3 always can, 4 and 5 sometimes.
    """
    timing = timing_of(rules)
    if meals_each < 1:
        raise UsageError(f"a schedule needs at least 1 meal each, not {meals_each}")
    rounds = 2 + meals_each
    while meals_each <= _MOST_MEALS_EACH[timing.release]:
        if len(seat_plans(rounds, meals_each, meals_each, timing)) > _MOST_PLANS:
            break
        made = _shortest(n, meals_each, rounds, timing)
        if made is not None:
            return made
        rounds += 1
    raise UsageError(
        f"the search for {meals_each} meals each of {n} seats is too long",
        hint="ask for fewer meals each; fair_schedule gives a lower bound for any number of rounds",
    )


def fair_schedule(n: int, rounds: int, rules: Rules) -> Schedule:
    """A schedule that feeds the worst-fed seat best; then as many seats as it can; then most meals.

    Up to 64 seats all three are exact up to 12 rounds, and up to 16 rounds the first is wherever
    it is below 4. Longer schedules come from a construction (`coordbench.tables.optimum_runs`),
    and what they reach is a lower bound. At N = 2 and 3 of simultaneous order it is the optimum
    nevertheless, and at N = 5 an integer program found nothing better at 20, 24 and 30 rounds.

    Returns
    -------
    Schedule
        Shape (rounds, N).
    """
    return _fair(n, rounds, timing_of(rules))


@lru_cache(maxsize=64)
def _fair(n: int, rounds: int, timing: Timing) -> Schedule:
    best: Schedule = ()
    key = (-1, 0, 0)
    for pattern, least in _patterns(n, rounds, timing):
        if least and key[0] > least:
            break
        made = play_out(pattern, rounds, timing)
        if _key(made, n) > key:
            best, key = made, _key(made, n)
    if n > _EXACT_SEATS or rounds > _LONGER_ROUNDS:
        return best
    while rounds <= _EXACT_ROUNDS or key[0] < _LONGER_MEALS:
        better = _shortest(n, key[0] + 1, rounds, timing)
        if better is None:
            break
        # The witness stops with the last meal that is asked for; played out, seats may eat on.
        longer = play_out(order_of(better), rounds, timing)
        best = max(better, longer, key=lambda made: _key(made, n))
        key = _key(best, n)
    if rounds <= _EXACT_ROUNDS:
        best = _most_in_total(n, rounds, timing, key[0])
    return best


def _key(made: Schedule, n: int) -> tuple[int, int, int]:
    meals = [sum(row[seat] is Action.EAT for row in made) for seat in range(n)]
    return min(meals), sum(1 for count in meals if count), sum(meals)


def _patterns(n: int, rounds: int, timing: Timing) -> Iterator[tuple[Pattern, int]]:
    """Patterns to try, with the meals each that they are made for; 0: nobody knows."""
    pairs = [[(float(seat % 2), rounds)] for seat in range(n)]
    if n % 2:
        pairs[-1] = [(2.0, rounds)]
    yield pattern_of(pairs), 0
    # Cut just before and just after a seat begins its arc.
    cuts = (1e-6, 1 - 1 / n + 1e-6)
    if timing.release:
        for gap in (1.0, 1.5, 2.0, 3.0):
            for cut in cuts:
                yield arcs(n, 1, gap, cut, laps=rounds), 0
        return
    for meals in range((n // 2) * max(0, rounds - 2) // n, 0, -1):
        for gap in (1.0, 2.0, 3.0):
            for cut in cuts:
                yield arcs(n, meals, gap, cut), meals


def _shortest(n: int, meals: int, rounds: int, timing: Timing) -> Schedule | None:
    """Everybody eats `meals` times within `rounds`; None where that cannot be."""
    if not timing.release and n * meals > (n // 2) * (rounds - 2):
        return None
    team = best_ring(n, seat_plans(rounds, meals, meals, timing), rounds, timing)
    return None if team is None else _in_rounds(team, rounds, timing)


def _most_in_total(n: int, rounds: int, timing: Timing, least: int) -> Schedule:
    """Of the teams in which everybody eats `least` times: most seats fed, then most meals."""
    plans = seat_plans(rounds, least, rounds, timing)
    meals = [plan.eats.bit_count() for plan in plans]
    values = [count + n * rounds * (count > 0) for count in meals]
    return _in_rounds(best_ring(n, plans, rounds, timing, values) or [], rounds, timing)


def _in_rounds(team: Sequence[Plan], rounds: int, timing: Timing) -> Schedule:
    return tuple(zip(*(actions_of(plan, rounds, timing) for plan in team), strict=True))
