"""Exact search for a perfect team: one plan per seat, so that all neighbours are compatible.

Plans of neighbours meet only at the fork between them, so a team is a closed walk of length N
over the rounds in which forks are taken (the transfer-matrix method, Stanley, *Enumerative
Combinatorics* I, 4.7). No team may pass through a deadlock, not even while forks change hands:
the moments in which a team found would do so are tracked along the walk, and it is searched again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordbench.tables.optimum_plans import Plan, Timing, first_turn

__all__ = ["best_ring"]

_Moment = tuple[int, ...]
"""Per seat, the rounds (a mask) in any of which it holds one fork if the table is deadlocked."""
_Layer = dict[int, Any]
"""Matrices by the moments (a mask) at which every seat so far holds exactly one fork."""


def best_ring(
    n: int,
    plans: Sequence[Plan],
    rounds: int,
    timing: Timing,
    values: Sequence[int] | None = None,
) -> list[Plan] | None:
    """Plans for seats 0..N-1.

    Parameters
    ----------
    n : int
    plans : sequence of Plan
        What every seat can choose from.
    rounds : int
    timing : Timing
        With `turns = "random"` no fork changes hands within a round: no action is refused,
        whatever the order of turns is.
    values : sequence of int or None
        Find a team with the largest sum of its plans' values; None: find any team.

    Returns
    -------
    list of Plan or None
        None: there is no such team.
    """
    if not plans:
        return None
    ring = _Ring(n, plans, rounds, timing, values)
    while True:
        walk = ring.search()
        if walk is None:
            return None
        moments = ring.deadlocks(walk)
        if not moments:
            return [plans[index] for index in walk]
        ring.moments += moments


class _Ring:
    """One search. Matrices hold the largest sum of values of a walk, -inf where there is none."""

    def __init__(
        self,
        n: int,
        plans: Sequence[Plan],
        rounds: int,
        timing: Timing,
        values: Sequence[int] | None,
    ) -> None:
        import numpy as np

        self._np = np
        self.n, self.rounds, self.timing = n, rounds, timing
        self.moments: list[_Moment] = []
        self._pairs = [self._pair(seat) for seat in range(n)]
        self._left, self._right, self._fits = self._classes(plans)
        self._single = np.array([plan.left ^ plan.right for plan in plans])
        self._valued = values is not None
        self._values = np.array(values if values is not None else [0] * len(plans), dtype=float)
        self._steps: dict[tuple[Any, ...], _Layer] = {}

    def deadlocks(self, walk: Sequence[int]) -> list[_Moment]:
        """The moments at which every seat of a team holds exactly one fork."""
        singles = [int(self._single[index]) for index in walk]
        return [
            moment
            for t in range(self.rounds)
            for moment in self._moments(t)
            if all(single & mask for single, mask in zip(singles, moment, strict=True))
        ]

    def search(self) -> list[int] | None:
        """A closed walk through none of the moments; indices of plans."""
        np = self._np
        self._steps.clear()
        layer = self._first()
        steps = [self._step(seat) for seat in range(1, self.n)]
        if all(step is steps[0] for step in steps):
            layer = self._product(layer, self._power(steps[0], self.n - 1))
        else:
            for step in steps:
                layer = self._product(layer, step)
        if 0 not in layer:
            return None
        ends = np.where(self._fit(self.n - 1).T, layer[0], -np.inf)
        left, right = np.unravel_index(int(np.argmax(ends)), ends.shape)
        if ends[left, right] == -np.inf:
            return None
        return self._trace(int(left), int(right))

    def _trace(self, left: int, right: int) -> list[int]:
        """Walk again from one left class of seat 0, remembering the layers, then back."""
        np = self._np
        layers = [{alive: rows[left : left + 1] for alive, rows in self._first().items()}]
        for seat in range(1, self.n):
            layers.append(self._product(layers[-1], self._step(seat)))
        walk: list[int] = []
        alive, value = 0, layers[-1][0][0, right]
        for seat in range(self.n - 1, 0, -1):
            index, alive, before = self._step_back(layers[seat - 1], seat, alive, right, value)
            value -= self._values[index]
            walk.append(index)
            right = before
        first = (self._left == left) & (self._right == right) & (self._marks(0) == alive)
        walk.append(int(np.flatnonzero(first & (self._values == value))[0]))
        return walk[::-1]

    def _step_back(
        self, layer: _Layer, seat: int, alive: int, right: int, value: float
    ) -> tuple[int, int, int]:
        """(plan of `seat`, moments, right class of the seat before) that lead to where we are."""
        np = self._np
        fits, marks = self._fit(seat - 1), self._marks(seat)
        for index in np.flatnonzero(self._right == right):
            for before, row in layer.items():
                if before & int(marks[index]) == alive:
                    reach = np.where(fits[:, self._left[index]], row[0], -np.inf)
                    best = int(np.argmax(reach))
                    if reach[best] + self._values[index] == value:
                        return int(index), before, best
        raise AssertionError("a walk found forwards has no way back")

    def _first(self) -> _Layer:
        """Seat 0: left classes by right classes."""
        return self._seat(0)

    def _step(self, seat: int) -> _Layer:
        """Right classes of the seat before by right classes of `seat`."""
        np = self._np
        key = (self._pairs[seat - 1], tuple(moment[seat] for moment in self.moments))
        if key not in self._steps:
            fits = np.where(self._fit(seat - 1), 0.0, -np.inf)
            self._steps[key] = self._product({-1: fits}, self._seat(seat))
        return self._steps[key]

    def _seat(self, seat: int) -> _Layer:
        """The best plan of a seat for each left and right class."""
        np = self._np
        marks = self._marks(seat)
        layer = {}
        for mark in np.unique(marks):
            best = np.full(self._fit(seat).T.shape, -np.inf)
            mine = marks == mark
            np.maximum.at(best, (self._left[mine], self._right[mine]), self._values[mine])
            layer[int(mark)] = best
        return layer

    def _power(self, step: _Layer, exponent: int) -> _Layer:
        """A step taken `exponent` >= 1 times, by squaring."""
        if exponent == 1:
            return step
        half = self._power(step, exponent // 2)
        square = self._product(half, half)
        return self._product(square, step) if exponent % 2 else square

    def _product(self, layer: _Layer, step: _Layer) -> _Layer:
        np = self._np
        after: _Layer = {}
        for alive, rows in layer.items():
            for mark, columns in step.items():
                made = self._multiply(rows, columns)
                key = alive & mark
                after[key] = np.maximum(after[key], made) if key in after else made
        return after

    def _multiply(self, rows: Any, columns: Any) -> Any:
        np = self._np
        if not self._valued:
            reached = (rows == 0).astype(np.float32) @ (columns == 0).astype(np.float32)
            return np.where(reached > 0, 0.0, -np.inf)
        made = np.full((rows.shape[0], columns.shape[1]), -np.inf)
        for middle in range(columns.shape[0]):
            np.maximum(made, rows[:, middle, None] + columns[middle], out=made)
        return made

    def _moments(self, t: int) -> list[_Moment]:
        """The moments of round t + 1 at which the table is looked at."""
        bit, before = 1 << t, (1 << t) >> 1
        if self.timing.turns == "simultaneous":
            return [(bit,) * self.n]
        if self.timing.turns == "random":
            # Whoever acted first may be followed by anybody.
            return [(bit | before,) * self.n]
        first = first_turn(self.timing, self.n, t)
        return [
            tuple(bit if (seat - first) % self.n < turns else before for seat in range(self.n))
            for turns in range(1, self.n + 1)
        ]

    def _marks(self, seat: int) -> Any:
        """Per plan, the moments (a mask) at which the seat would hold exactly one fork."""
        marks = self._np.zeros(len(self._single), dtype=self._np.int64)
        for index, moment in enumerate(self.moments):
            marks |= ((self._single & moment[seat]) != 0).astype(self._np.int64) << index
        return marks

    def _pair(self, seat: int) -> tuple[bool, int]:
        """(order of turns unknown, rounds in which `seat` acts after the seat at its right)."""
        if self.timing.turns in ("simultaneous", "random"):
            return self.timing.turns == "random", 0
        neighbour = (seat + 1) % self.n
        late = 0
        for t in range(self.rounds):
            # Turns go to the right: a seat's right neighbour precedes it only as the first.
            late |= (first_turn(self.timing, self.n, t) == neighbour) << t
        return False, late

    def _fit(self, seat: int) -> Any:
        """Right classes of `seat` by left classes of the next seat: can they share a fork."""
        return self._fits[self._pairs[seat]]

    def _classes(self, plans: Sequence[Plan]) -> tuple[Any, Any, dict[tuple[bool, int], Any]]:
        """Left and right class of each plan, and which classes can share a fork.

        Masks are of one class where the neighbour's plans cannot tell them apart.
        """
        np = self._np
        lefts, left = np.unique([plan.left for plan in plans], return_inverse=True)
        rights, right = np.unique([plan.right for plan in plans], return_inverse=True)
        fits = {key: self._can_share(rights, lefts, *key) for key in set(self._pairs)}
        by_right = np.hstack([fits[key] for key in sorted(fits)])
        by_left = np.vstack([fits[key] for key in sorted(fits)]).T
        rows, right_class = _distinct(by_right)
        columns, left_class = _distinct(by_left)
        merged = {key: fit[np.ix_(rows, columns)] for key, fit in fits.items()}
        return left_class[left], right_class[right], merged

    def _can_share(self, rights: Any, lefts: Any, unknown: bool, late: int) -> Any:
        right, left = rights[:, None], lefts[None, :]
        fits = (right & left) == 0
        if self.timing.turns != "simultaneous":
            # Put down and picked up in one round only where the turns come in that order.
            fits &= ((right << 1) & left & (-1 if unknown else late)) == 0
            fits &= ((left << 1) & right & (-1 if unknown else ~late)) == 0
        return fits


def _distinct(rows: Any) -> tuple[list[int], Any]:
    """(index of the first of each distinct row, class of each row)."""
    import numpy as np

    classes: dict[bytes, int] = {}
    first, found = [], np.zeros(len(rows), dtype=np.int64)
    for index, row in enumerate(np.packbits(rows, axis=1)):
        key = row.tobytes()
        if key not in classes:
            classes[key] = len(classes)
            first.append(index)
        found[index] = classes[key]
    return first, found
