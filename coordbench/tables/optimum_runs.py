"""Long schedules by construction: who eats after whom, played out as early as the rules allow.

Neighbours never eat together. Around a circle of circumference 1 the seats' meals are arcs; at
even N the seats of one half eat in one half of the circle, at N = 2k + 1 the arcs have length
k / N, so that k seats eat at any time (the circular chromatic number of an odd cycle is 2 + 1/k:
Vince 1988, *Star chromatic number*). Cut open at one point, the circle is the time axis.
"""

from __future__ import annotations

from typing import NamedTuple

from coordbench.data.actions import Action
from coordbench.tables.optimum_plans import Timing, first_turn
from coordbench.tables.table import ON_TABLE

__all__ = ["Pattern", "Schedule", "arcs", "order_of", "pattern_of", "play_out"]

Schedule = tuple[tuple[Action, ...], ...]
"""Actions by round, then by seat: shape (rounds, N)."""


class Pattern(NamedTuple):
    """Who eats how often before whom, without times.

    Attributes
    ----------
    runs : tuple of tuple of int
        Per seat, the meals that it has in one go, one after the other.
    holders : tuple of tuple of (int, int)
        Per fork, the runs that need it, as (seat, number of its run), in their order.
    """

    runs: tuple[tuple[int, ...], ...]
    holders: tuple[tuple[tuple[int, int], ...], ...]


def pattern_of(starts: list[list[tuple[float, int]]]) -> Pattern:
    """The order that some start times give.

    Parameters
    ----------
    starts : list of list of (float, int)
        Per seat, the time and the meals of its runs, in the order of time.
    """
    n = len(starts)
    holders = []
    for fork in range(n):
        runs = [
            (time, seat, number)
            for seat in dict.fromkeys((fork, (fork - 1) % n))
            for number, (time, _) in enumerate(starts[seat])
        ]
        holders.append(tuple((seat, number) for _, seat, number in sorted(runs)))
    return Pattern(tuple(tuple(meals for _, meals in row) for row in starts), tuple(holders))


def arcs(n: int, meals: int, gap: float, offset: float, *, laps: int = 1) -> Pattern:
    """The circular pattern.

    Parameters
    ----------
    n : int
    meals : int
        Meals of each seat in one lap.
    gap : float
        Rounds that a fork needs from one seat's meal to the other's.
    offset : float
        Where the circle is cut, as a part of it, in [0, 1).
    laps : int
        Times around the circle; only for meals that are not cut: `meals` of 1.
    """
    half = n // 2
    arc = 0.5 if n % 2 == 0 else half / n
    around = (meals + gap) / arc
    starts: list[list[tuple[float, int]]] = []
    for seat in range(n):
        start = (seat * arc + offset) % 1.0 * around
        before = round(around - start) if start + meals > around + 1e-9 else meals
        if laps == 1 and 0 < before < meals:
            starts.append([(0.0, meals - before), (start, before)])
        else:
            starts.append([(start + lap * around, meals) for lap in range(laps)])
    return pattern_of(starts)


def order_of(made: Schedule) -> Pattern:
    """The order in which a schedule's seats eat."""
    starts: list[list[tuple[float, int]]] = []
    for row in zip(*made, strict=True):
        runs: list[tuple[float, int]] = []
        for t, action in enumerate(row):
            if action is Action.EAT:
                if t and row[t - 1] is Action.EAT:
                    runs[-1] = (runs[-1][0], runs[-1][1] + 1)
                else:
                    runs.append((float(t), 1))
        starts.append(runs)
    return pattern_of(starts)


def play_out(pattern: Pattern, rounds: int, timing: Timing) -> Schedule:
    """Play a pattern as early as its order allows; who is not in anybody's way eats on.

    Returns
    -------
    Schedule
        Shape (rounds, N). Never refused by the table, never in a deadlock.
    """
    play = _Play(pattern, timing)
    return tuple(play.round(t) for t in range(rounds))


class _Play:
    def __init__(self, pattern: Pattern, timing: Timing) -> None:
        self.n = len(pattern.runs)
        self.timing = timing
        self.runs, self.holders = pattern
        self.run = [0] * self.n
        self.eaten = [0] * self.n
        self.turn = [0] * self.n
        self.forks = [ON_TABLE] * self.n
        self.held = [0] * self.n
        self.on_table = self.n
        self.forks_before = tuple(self.forks)
        self.held_before = tuple(self.held)
        self.sides = [(seat, (seat + 1) % self.n) for seat in range(self.n)]

    def round(self, t: int) -> tuple[Action, ...]:
        """All seats' actions in round t + 1."""
        row: list[Action | None] = [None] * self.n
        if self.timing.turns in ("fixed", "rotating"):
            first = first_turn(self.timing, self.n, t)
            for seat in (*range(first, self.n), *range(first)):
                row[seat] = self._put_down(seat) or self._eat(seat) or self._pick_up(seat)
                if row[seat] is Action.EAT and self.timing.release:
                    self._release(seat)
        else:
            self.forks_before, self.held_before = tuple(self.forks), tuple(self.held)
            for seat in range(self.n):
                row[seat] = self._put_down(seat) or self._eat(seat)
            for seat in range(self.n):
                row[seat] = row[seat] or self._pick_up(seat)
            if self.timing.release:
                for seat in range(self.n):
                    if row[seat] is Action.EAT:
                        self._release(seat)
        return tuple(action or Action.THINK for action in row)

    def _give(self, fork: int, seat: int) -> None:
        holder = self.forks[fork]
        if holder != ON_TABLE:
            self.held[holder] -= 1
        if seat != ON_TABLE:
            self.held[seat] += 1
        self.on_table += (seat == ON_TABLE) - (holder == ON_TABLE)
        self.forks[fork] = seat

    def _next(self, fork: int) -> tuple[int, int] | None:
        """The run that the fork serves now."""
        row, turn = self.holders[fork], self.turn[fork]
        return row[turn] if turn < len(row) else None

    def _put_down(self, seat: int) -> Action | None:
        """Of the forks that it is another seat's turn for, put down the one wanted first."""
        best = None
        for side, fork in enumerate(self.sides[seat]):
            wanted = self._next(fork)
            if self.forks[fork] == seat and wanted is not None and wanted[0] != seat:
                waits = self.held[wanted[0]] > 0
                rank = (wanted[1], not waits, side)
                if best is None or rank < best[0]:
                    best = rank, fork
        if best is None:
            return None
        self._give(best[1], ON_TABLE)
        return Action.PUT_DOWN_RIGHT if best[0][2] else Action.PUT_DOWN_LEFT

    def _eat(self, seat: int) -> Action | None:
        if self.held[seat] < 2:
            return None
        run = self.run[seat]
        if run < len(self.runs[seat]):
            self.eaten[seat] += 1
            if self.eaten[seat] == self.runs[seat][run]:
                self.eaten[seat] = 0
                self.run[seat] += 1
                for fork in self.sides[seat]:
                    self.turn[fork] += 1
        return Action.EAT

    def _release(self, seat: int) -> None:
        for fork in self.sides[seat]:
            self._give(fork, ON_TABLE)

    def _pick_up(self, seat: int) -> Action | None:
        mine = (seat, self.run[seat])
        for side, fork in enumerate(self.sides[seat]):
            if self.forks[fork] != ON_TABLE or self._next(fork) != mine:
                continue
            if self.timing.turns == "random" and self.forks_before[fork] != ON_TABLE:
                continue
            self._give(fork, seat)
            if not self._deadlocks():
                return Action.PICK_UP_RIGHT if side else Action.PICK_UP_LEFT
            self._give(fork, ON_TABLE)
        return None

    def _deadlocks(self) -> bool:
        if self.timing.turns != "random":
            return not self.on_table and all(held == 1 for held in self.held)
        # In an unknown order of turns, any seat may still hold what it held before.
        both = zip(self.held_before, self.held, strict=True)
        return all(1 in pair for pair in both)
