"""What both agents do for one seat: ask its model, and read the reply."""

from __future__ import annotations

from coordbench.api.agents import Failure, Message, ModelResult, Result, SeatView, Turn
from coordbench.data.events import CallRecord, FailureKind, FailureRecord
from coordbench.reading import read

__all__ = ["agent_failure", "ask", "failed_turn", "turn_from"]


async def ask(view: SeatView) -> ModelResult:
    """Call the seat's model. Only cancellation gets out: one seat's fault takes no other's call."""
    try:
        return await view.model.call(view.request())
    except Exception as error:
        failure = agent_failure(error)
        return ModelResult(record=CallRecord(failures=(failure,)), failure=failure)


def turn_from(view: SeatView, result: ModelResult) -> Turn:
    """Read what came of the call."""
    seat, reply, calls = view.observation.seat, result.reply, (result.record,)
    if result.failure is not None:
        return Turn(seat, Failure(result.failure), None, calls)
    if reply is None:
        missing = FailureRecord(kind="agent_error", message="the call gave no reply and no failure")
        return Turn(seat, Failure(missing), None, calls)
    made: Result
    made = read(reply, view.tools, recover=view.recover) if view.tools else Message(reply.text)
    return Turn(seat, made, reply, calls)


def failed_turn(view: SeatView, failure: FailureRecord, result: ModelResult | None) -> Turn:
    """The turn of a seat whose agent failed; a call that was made is kept, for it was paid."""
    calls = (result.record,) if result is not None else ()
    return Turn(view.observation.seat, Failure(failure), None, calls)


def agent_failure(error: Exception, kind: FailureKind = "agent_error") -> FailureRecord:
    """The record of an exception."""
    text = f"{type(error).__name__}: {error}"
    return FailureRecord(kind=kind, message=text[:2000], scope="episode")
