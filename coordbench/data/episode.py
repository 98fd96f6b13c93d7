"""An episode as rewards, metrics and replays see it: a fold over its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

import msgspec

from coordbench.data.actions import Action, Effect, InvalidReason
from coordbench.data.events import (
    CallRecord,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    FailureRecord,
    MessageSent,
    TableStepped,
    TurnTaken,
)
from coordbench.data.spec import Rules

__all__ = ["Episode", "SeatTurn", "fold"]


class SeatTurn(msgspec.Struct, frozen=True):
    """One seat's turn and what it did to the table.

    `effect` is None where the turn never reached the table (a failure in that round).
    """

    round: int
    seat: int
    action: Action | None
    invalid: InvalidReason | None
    failure: FailureRecord | None
    flags: tuple[str, ...]
    effect: Effect | None
    calls: tuple[CallRecord, ...] = ()


class Episode(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One episode, folded from its events.

    Attributes
    ----------
    meals : tuple of int
        Meals per seat; length N.
    steps : tuple of TableStepped
        The table after each step.
    turns : tuple of SeatTurn
        In the order they were taken.
    deadlock_round : int or None
        Round of the first deadlock (1-based); None if there was none.
    rounds_played : int
        Rounds played in full, the deadlocked one included.
    """

    cell: str
    index: int
    seed: int
    n: int
    team: tuple[str, ...]
    rules: Rules
    status: Literal["completed", "failed", "stopped"]
    reason: str
    rounds_played: int
    meals: tuple[int, ...]
    deadlock_round: int | None
    deadlocks: int
    turns: tuple[SeatTurn, ...]
    steps: tuple[TableStepped, ...]
    messages: tuple[MessageSent, ...] = ()
    detail: str = ""
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def scored(self) -> bool:
        """Only a completed episode is scored."""
        return self.status == "completed"

    @property
    def deadlocked(self) -> bool:
        """Whether a deadlock occurred."""
        return self.deadlock_round is not None

    @property
    def calls(self) -> Iterator[tuple[int, CallRecord]]:
        """(seat, call) of every call made, those of messages and of failed turns included."""
        for turn in self.turns:
            for call in turn.calls:
                yield turn.seat, call
        for message in self.messages:
            for call in message.calls:
                yield message.seat, call

    @cached_property
    def total_meals(self) -> int:
        """Meals of all seats."""
        return sum(self.meals)

    @cached_property
    def seats_fed(self) -> int:
        """Seats with at least one meal."""
        return sum(1 for meals in self.meals if meals)

    @cached_property
    def decisions(self) -> int:
        """Turns that reached the table (valid or invalid)."""
        return sum(1 for turn in self.turns if turn.effect is not None)

    @cached_property
    def invalid_turns(self) -> int:
        """Turns whose reply was no decision."""
        return sum(1 for turn in self.turns if turn.effect is not None and turn.invalid is not None)

    @cached_property
    def think_turns(self) -> int:
        """Turns with a real call of `think`."""
        return sum(
            1 for turn in self.turns if turn.effect is not None and turn.action is Action.THINK
        )

    @cached_property
    def unchanged_turns(self) -> int:
        """Turns after which the table was as before: think, refused and invalid ones."""
        return sum(1 for turn in self.turns if turn.effect is not None and not turn.effect.changed)

    @cached_property
    def refused_turns(self) -> int:
        """Valid calls that the table refused."""
        return sum(
            1
            for turn in self.turns
            if turn.effect is not None and turn.action is not None and not turn.effect.applied
        )


def fold(events: Iterable[Event], rules: Rules) -> Episode | None:
    """Fold the events of **one** episode.

    Parameters
    ----------
    events : iterable of Event
        Events of one episode, in order.
    rules : Rules
        The rules of its cell.

    Returns
    -------
    Episode or None
        None where the episode has no beginning or no end (torn off by a kill).
    """
    started: EpisodeStarted | None = None
    ended: EpisodeEnded | None = None
    pending: list[TurnTaken] = []
    turns: list[SeatTurn] = []
    steps: list[TableStepped] = []
    messages: list[MessageSent] = []
    deadlock_round: int | None = None
    deadlocks = 0
    was_deadlocked = False
    for event in events:
        if isinstance(event, TurnTaken):
            pending.append(event)
        elif isinstance(event, TableStepped):
            steps.append(event)
            effects = {effect.seat: effect for effect in event.effects}
            turns.extend(_seat_turn(turn, effects.get(turn.seat)) for turn in pending)
            pending.clear()
            if event.deadlock and not was_deadlocked:
                deadlocks += 1
                deadlock_round = event.round if deadlock_round is None else deadlock_round
            was_deadlocked = event.deadlock
        elif isinstance(event, MessageSent):
            messages.append(event)
        elif isinstance(event, EpisodeStarted):
            started = event
        else:
            ended = event
    if started is None or ended is None:
        return None
    turns.extend(_seat_turn(turn, None) for turn in pending)
    return Episode(
        cell=started.cell,
        index=started.episode,
        seed=started.seed,
        n=started.n,
        team=started.team,
        rules=rules,
        status=ended.status,
        reason=ended.reason,
        detail=ended.detail,
        rounds_played=ended.rounds,
        meals=steps[-1].meals if steps else (0,) * started.n,
        deadlock_round=deadlock_round,
        deadlocks=deadlocks,
        turns=tuple(turns),
        steps=tuple(steps),
        messages=tuple(messages),
        started_at=started.at,
        ended_at=ended.at,
    )


def _seat_turn(turn: TurnTaken, effect: Effect | None) -> SeatTurn:
    return SeatTurn(
        round=turn.round,
        seat=turn.seat,
        action=turn.action,
        invalid=turn.invalid,
        failure=turn.failure,
        flags=turn.flags,
        effect=effect,
        calls=turn.calls,
    )
