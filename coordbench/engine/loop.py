"""The episode loop: observe, decide, read, step; one event for each, in order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from coordbench.api.agents import Agent, Decision, Failure, Invalid, Message, SeatView, Turn
from coordbench.api.executors import EpisodeJob, EpisodeLog
from coordbench.api.models import CallContext, HeardMessage, Observation, Tool
from coordbench.data.actions import Action, Effect
from coordbench.data.events import (
    CallRecord,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    FailureKind,
    FailureRecord,
    MessageSent,
    TableStepped,
    TurnTaken,
)
from coordbench.data.plan import Cell
from coordbench.data.seeds import call_seed
from coordbench.data.spec import Sampling
from coordbench.engine.caller import Caller, SeatCaller
from coordbench.engine.prompts import PastRound, describe_effect, render_messages, tools_for
from coordbench.tables.table import Table, TableState, Transition

__all__ = ["play_episode"]

_STOPPED = "stopped"


async def play_episode(
    cell: Cell,
    job: EpisodeJob,
    agent: Agent,
    callers: Sequence[Caller],
    sampling: Sampling,
    *,
    recover: bool = False,
) -> EpisodeLog:
    """Play one episode.

    Parameters
    ----------
    callers : sequence of Caller
        One per seat; length `cell.n`.

    Returns
    -------
    EpisodeLog
        Whole: it ends with `EpisodeEnded`, also where calls failed, the agent raised, or the
        task was cancelled (`stopped`). Every call made is in it.
    """
    episode = _Episode(cell, job, agent, callers, sampling, recover)
    try:
        await episode.play()
    except asyncio.CancelledError:
        episode.end_early("stopped", "interrupt", "interrupted")
    except Exception as error:  # a plugin's agent must not end the run
        limit = type(error).__name__ == "GraphRecursionError"
        kind = "recursion_limit" if limit else "agent_error"
        episode.end_early("failed", kind, f"the agent raised {type(error).__name__}: {error}")
    return EpisodeLog(job=job, events=tuple(episode.events), blobs=episode.blobs)


class _Episode:
    """One episode in play."""

    def __init__(
        self,
        cell: Cell,
        job: EpisodeJob,
        agent: Agent,
        callers: Sequence[Caller],
        sampling: Sampling,
        recover: bool,
    ) -> None:
        self.cell = cell
        self.job = job
        self.agent = agent
        self.sampling = sampling
        self.recover = recover
        self.blobs: dict[str, bytes] = {}
        self.seats = [SeatCaller(caller, self.blobs) for caller in callers]
        self.table = Table(cell.n, cell.rules, job.seed)
        self.tools = tools_for(cell.prompt)
        self.last: list[Effect | None] = [None] * cell.n
        self.heard: list[tuple[HeardMessage, ...]] = [()] * cell.n
        self.memory: list[deque[PastRound]] = [
            deque(maxlen=cell.prompt.memory) for _ in range(cell.n)
        ]
        self.rounds_played = 0
        self.round = 1
        self.logged: list[int] = [0] * cell.n
        self.events: list[Event] = [
            EpisodeStarted(
                episode=job.episode,
                cell=cell.id,
                seed=job.seed,
                n=cell.n,
                team=cell.seats,
                at=time.time(),
            )
        ]

    async def play(self) -> None:
        state = self.table.start()
        transition: Transition | None = None
        while not self.table.is_over(state, transition):
            self.round = state.round + 1
            if state.turn == 0 and self.cell.communication.rounds:
                failure = await self._exchange_messages(state)
                if failure is not None:
                    self._end_failed(failure)
                    return
            acting = self.table.to_act(state)
            views = [self._view(state, seat, self.tools, -1) for seat in acting]
            turns = await self._decide(views)
            actions, failure = self._log_turns(turns)
            if failure is not None:
                self._end_failed(failure)
                return
            transition = self.table.step(state, actions)
            state = transition.state
            self._log_step(transition)
            self._remember(views, turns)
            if transition.round_over:
                self.rounds_played = state.round
        reason = "deadlock" if transition is not None and transition.deadlock else "rounds"
        if reason == "deadlock" and self.cell.rules.on_deadlock == "continue":
            reason = "rounds"
        if reason == "deadlock":
            self.rounds_played = self.round
        self._end("completed", reason, "")

    def _view(
        self, state: TableState, seat: int, tools: tuple[Tool, ...], exchange: int
    ) -> SeatView:
        left, right = self.table.view(state, seat)
        job = self.job
        observation = Observation(
            seat=seat,
            n=self.cell.n,
            round=self.round,
            rules=self.cell.rules,
            left=left,
            right=right,
            meals=state.meals[seat],
            last=self.last[seat],
            heard=self.heard[seat],
        )
        model = self.seats[seat]
        messages = (
            render_messages(
                self.cell.prompt,
                self.cell.communication,
                observation,
                tuple(self.memory[seat]),
                exchange=exchange,
            )
            if model.info.reads_text
            else ()
        )
        return SeatView(
            observation=observation,
            messages=messages,
            tools=tools,
            sampling=self.sampling,
            seed=call_seed(job.seed, self.round, seat, exchange) if self.sampling.seeded else None,
            context=CallContext(
                cell=self.cell.id,
                episode=job.episode,
                episode_seed=job.seed,
                round=self.round,
                seat=seat,
                exchange=exchange,
            ),
            model=model,
            recover=self.recover,
        )

    async def _decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        turns = await self.agent.decide(views)
        asked = [view.observation.seat for view in views]
        given = [turn.seat for turn in turns]
        if asked != given:
            raise ValueError(f"the agent was asked for seats {asked} and answered for {given}")
        return turns

    async def _exchange_messages(self, state: TableState) -> FailureRecord | None:
        communication = self.cell.communication
        self.heard = [()] * self.cell.n
        for exchange in range(communication.rounds):
            views = [self._view(state, seat, (), exchange) for seat in range(self.cell.n)]
            turns = await self._decide(views)
            said: list[HeardMessage] = []
            failure: FailureRecord | None = None
            for turn in turns:
                event = self._message_event(turn, exchange)
                self.events.append(event)
                failure = failure or event.failure
                if event.text:
                    said.append(HeardMessage(seat=turn.seat, exchange=exchange, text=event.text))
            if failure is not None:
                return failure
            self.heard = [
                self.heard[seat]
                + tuple(message for message in said if self._hears(seat, message.seat))
                for seat in range(self.cell.n)
            ]
        return None

    def _message_event(self, turn: Turn, exchange: int) -> MessageSent:
        text, failure = "", None
        if isinstance(turn.result, Message):
            text = turn.result.text.strip()
        elif isinstance(turn.result, Failure):
            failure = turn.result.record
        limit = self.cell.communication.max_chars
        self.logged[turn.seat] += len(turn.calls)
        return MessageSent(
            episode=self.job.episode,
            round=self.round,
            exchange=exchange,
            seat=turn.seat,
            text=text[:limit],
            cut=len(text) > limit,
            failure=failure,
            calls=turn.calls,
        )

    def _hears(self, seat: int, speaker: int) -> bool:
        if seat == speaker:
            return False
        if self.cell.communication.audience == "all":
            return True
        return (seat - speaker) % self.cell.n in (1, self.cell.n - 1)

    def _log_turns(
        self, turns: Sequence[Turn]
    ) -> tuple[dict[int, Action | None], FailureRecord | None]:
        actions: dict[int, Action | None] = {}
        failure: FailureRecord | None = None
        episode, round_ = self.job.episode, self.round
        for turn in turns:
            seat, result = turn.seat, turn.result
            self.logged[seat] += len(turn.calls)
            if type(result) is Decision:
                actions[seat] = result.action
                event = TurnTaken(
                    episode=episode,
                    round=round_,
                    seat=seat,
                    action=result.action,
                    flags=tuple(sorted(result.flags)) if result.flags else (),
                    calls=turn.calls,
                )
            elif type(result) is Invalid:
                actions[seat] = None
                event = TurnTaken(
                    episode=episode,
                    round=round_,
                    seat=seat,
                    invalid=result.reason,
                    detail=result.detail[:500],
                    flags=(result.hint,) if result.hint else (),
                    calls=turn.calls,
                )
            elif type(result) is Failure:
                failure = _worse(failure, result.record)
                event = TurnTaken(
                    episode=episode,
                    round=round_,
                    seat=seat,
                    failure=result.record,
                    calls=turn.calls,
                )
            else:
                raise TypeError(f"the agent answered {type(result).__name__} for a decision")
            self.events.append(event)
        return actions, failure

    def _log_step(self, transition: Transition) -> None:
        for effect in transition.effects:
            self.last[effect.seat] = effect
        state = transition.state
        self.events.append(
            TableStepped(
                episode=self.job.episode,
                round=self.round,
                effects=transition.effects,
                forks=state.forks,
                meals=state.meals,
                deadlock=transition.deadlock,
            )
        )

    def _remember(self, views: Sequence[SeatView], turns: Sequence[Turn]) -> None:
        if not self.cell.prompt.memory:
            return
        for view, turn in zip(views, turns, strict=True):
            effect = self.last[turn.seat]
            if turn.reply is None or not view.messages or effect is None:
                continue
            self.memory[turn.seat].append(
                PastRound(
                    user=getattr(view.messages[-1], "text", ""),
                    reply=turn.reply,
                    effect=describe_effect(effect),
                )
            )

    def _end_failed(self, failure: FailureRecord) -> None:
        status = "stopped" if failure.kind == _STOPPED else "failed"
        reason = "budget" if failure.kind == _STOPPED else failure.kind
        self._end(status, reason, failure.message)

    def end_early(self, status: str, reason: str, detail: str) -> None:
        """End outside the loop: log the calls that no turn accounts for, then the end."""
        for seat, caller in enumerate(self.seats):
            calls = tuple(caller.ledger[self.logged[seat] :])
            if calls:
                self._log_unclaimed(seat, calls, reason, detail)
        self._end(status, reason, detail)

    def _log_unclaimed(
        self, seat: int, calls: tuple[CallRecord, ...], reason: str, detail: str
    ) -> None:
        kind: FailureKind = "stopped" if reason == "interrupt" else "agent_error"
        self.events.append(
            TurnTaken(
                episode=self.job.episode,
                round=self.round,
                seat=seat,
                failure=FailureRecord(kind=kind, message=detail[:2000], scope="episode"),
                calls=calls,
            )
        )

    def _end(self, status: str, reason: str, detail: str) -> None:
        assert status in ("completed", "failed", "stopped")
        self.events.append(
            EpisodeEnded(
                episode=self.job.episode,
                status=status,  # type: ignore[arg-type]
                reason=reason,
                rounds=self.rounds_played,
                detail=detail[:2000],
                at=time.time(),
            )
        )


def _worse(first: FailureRecord | None, second: FailureRecord) -> FailureRecord:
    """The failure that says more: a real one before `stopped`, a wider scope before a narrow."""
    if first is None:
        return second
    order = ("call", "episode", "cell", "run")
    if (first.kind == _STOPPED) != (second.kind == _STOPPED):
        return second if first.kind == _STOPPED else first
    return second if order.index(second.scope) > order.index(first.scope) else first
