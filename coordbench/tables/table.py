"""The rules of the table: immutable states, one pure step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from coordbench.api.models import ForkView
from coordbench.data.actions import Action, Cause, Effect
from coordbench.data.errors import UsageError
from coordbench.data.spec import Rules
from coordbench.tables.draws import Draws

__all__ = ["ON_TABLE", "Table", "TableState", "Transition", "is_deadlock"]

ON_TABLE = -1
"""Holder of a fork that nobody holds."""

_PICK_UPS = (Action.PICK_UP_LEFT, Action.PICK_UP_RIGHT)
_PUT_DOWNS = (Action.PUT_DOWN_LEFT, Action.PUT_DOWN_RIGHT)


class TableState(NamedTuple):
    """The table between two steps.

    Attributes
    ----------
    forks : tuple of int
        Holder of each fork, or `ON_TABLE`; length N.
    meals : tuple of int
        Meals of each seat so far; length N.
    round : int
        Rounds completed.
    turn : int
        Turns taken in the current sequential round; 0 in simultaneous order.
    """

    forks: tuple[int, ...]
    meals: tuple[int, ...]
    round: int
    turn: int


class Transition(NamedTuple):
    """What one step did.

    Attributes
    ----------
    effects : tuple of Effect
        One per acting seat, in the order of `Table.to_act`.
    deadlock : bool
        Every seat holds exactly one fork after the step.
    round_over : bool
        The step completed a round.
    """

    state: TableState
    effects: tuple[Effect, ...]
    deadlock: bool
    round_over: bool


def is_deadlock(forks: tuple[int, ...]) -> bool:
    """Whether every seat holds exactly one fork (circular wait)."""
    return ON_TABLE not in forks and len(set(forks)) == len(forks)


class Table:
    """A table of N seats under given rules; it holds no state of play.

    Seat i's left fork is i, its right fork is (i+1) mod N.

    Parameters
    ----------
    n : int
        Seats and forks; >= 2.
    rules : Rules
    seed : int
        The episode seed: decides ties and random turn orders.

    Raises
    ------
    UsageError
        `n` below 2: one seat has no neighbour to share a fork with.
    """

    def __init__(self, n: int, rules: Rules, seed: int) -> None:
        if n < 2:
            raise UsageError(f"a table needs at least 2 seats, not {n}")
        self.n = n
        self.rules = rules
        self.draws = Draws(seed)
        self._all = tuple(range(n))
        self._right = tuple((seat + 1) % n for seat in range(n))

    def start(self) -> TableState:
        """All forks on the table, no meals."""
        return TableState((ON_TABLE,) * self.n, (0,) * self.n, 0, 0)

    def to_act(self, state: TableState) -> tuple[int, ...]:
        """Seats that act now: all, or the one whose turn it is."""
        if self.rules.order == "simultaneous":
            return self._all
        round_ = state.round + 1
        if self.rules.turn_order == "fixed":
            seat = state.turn
        elif self.rules.turn_order == "rotating":
            seat = (state.round + state.turn) % self.n
        else:
            seat = self.draws.permutation(round_, self.n)[state.turn]
        return (seat,)

    def is_over(self, state: TableState, transition: Transition | None) -> bool:
        """Whether play ends: the rounds are used up, or a deadlock ends it."""
        if state.round >= self.rules.rounds:
            return True
        deadlocked = transition is not None and transition.deadlock
        return deadlocked and self.rules.on_deadlock == "end"

    def view(self, state: TableState, seat: int) -> tuple[ForkView, ForkView]:
        """A seat's own two forks: (left, right)."""
        return (
            _seen(state.forks[seat], seat),
            _seen(state.forks[self._right[seat]], seat),
        )

    def step(self, state: TableState, actions: Mapping[int, Action | None]) -> Transition:
        """Apply one action per acting seat.

        Parameters
        ----------
        state : TableState
        actions : mapping
            Seat -> action; None for an invalid reply, which does nothing. Its keys are exactly
            `to_act(state)`.

        Raises
        ------
        ValueError
            The keys are not the seats that act now.
        """
        acting = self.to_act(state)
        if len(actions) != len(acting) or any(seat not in actions for seat in acting):
            raise ValueError(f"seats {list(acting)} act now, got actions for {sorted(actions)}")
        forks = list(state.forks)
        meals = state.meals
        done: dict[int, Effect] = {}
        self._put_down(acting, actions, forks, done)
        self._pick_up(acting, actions, forks, done, state.round + 1)
        fed = self._eat(acting, actions, forks, done)
        if fed:
            counts = list(meals)
            for seat in fed:
                counts[seat] += 1
                if self.rules.release_after_eating:
                    forks[seat] = forks[self._right[seat]] = ON_TABLE
            meals = tuple(counts)
        for seat in acting:
            if seat not in done:
                action = actions[seat]
                done[seat] = Effect(seat, action, action is not None, False)
        held = tuple(forks)
        turn = state.turn + 1
        round_over = self.rules.order == "simultaneous" or turn == self.n
        after = TableState(
            held,
            meals,
            state.round + 1 if round_over else state.round,
            0 if round_over else turn,
        )
        effects = tuple(done[seat] for seat in acting)
        return Transition(after, effects, is_deadlock(held), round_over)

    def _fork(self, seat: int, action: Action) -> int:
        left = action is Action.PICK_UP_LEFT or action is Action.PUT_DOWN_LEFT
        return seat if left else self._right[seat]

    def _put_down(
        self,
        acting: tuple[int, ...],
        actions: Mapping[int, Action | None],
        forks: list[int],
        done: dict[int, Effect],
    ) -> None:
        for seat in acting:
            action = actions[seat]
            if action in _PUT_DOWNS:
                fork = self._fork(seat, action)
                if forks[fork] == seat:
                    forks[fork] = ON_TABLE
                    done[seat] = Effect(seat, action, True, True)
                else:
                    done[seat] = Effect(seat, action, False, False, Cause.NOT_HOLDING)

    def _pick_up(
        self,
        acting: tuple[int, ...],
        actions: Mapping[int, Action | None],
        forks: list[int],
        done: dict[int, Effect],
        round_: int,
    ) -> None:
        reaching: dict[int, list[int]] = {}
        for seat in acting:
            action = actions[seat]
            if action in _PICK_UPS:
                fork = self._fork(seat, action)
                if forks[fork] == ON_TABLE:
                    reaching.setdefault(fork, []).append(seat)
                else:
                    own = forks[fork] == seat
                    cause = Cause.ALREADY_HOLDING if own else Cause.FORK_TAKEN
                    done[seat] = Effect(seat, action, False, False, cause)
        for fork, seats in reaching.items():
            winner = seats[0] if len(seats) == 1 else self._winner(fork, seats, round_)
            for seat in seats:
                action = actions[seat]
                if seat == winner:
                    forks[fork] = seat
                    done[seat] = Effect(seat, action, True, True)
                else:
                    done[seat] = Effect(seat, action, False, False, Cause.LOST_TIE)

    def _winner(self, fork: int, seats: list[int], round_: int) -> int:
        if self.rules.conflict == "nobody":
            return ON_TABLE
        if self.rules.conflict == "lowest-seat":
            return min(seats)
        return fork if self.draws.coin(round_, fork) else (fork - 1) % self.n

    def _eat(
        self,
        acting: tuple[int, ...],
        actions: Mapping[int, Action | None],
        forks: list[int],
        done: dict[int, Effect],
    ) -> list[int]:
        fed = []
        for seat in acting:
            if actions[seat] is Action.EAT:
                if forks[seat] == seat and forks[self._right[seat]] == seat:
                    fed.append(seat)
                    done[seat] = Effect(seat, Action.EAT, True, True)
                else:
                    done[seat] = Effect(seat, Action.EAT, False, False, Cause.FORKS_MISSING)
        return fed


def _seen(holder: int, seat: int) -> ForkView:
    if holder == ON_TABLE:
        return "free"
    return "mine" if holder == seat else "taken"
