"""The agent `retry-once`: a second chance for a reply that was no decision."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from coordbench.api import (
    AssistantMessage,
    Failure,
    Invalid,
    Message,
    ModelReply,
    ModelRequest,
    SeatView,
    ToolMessage,
    Turn,
    UserMessage,
)
from coordbench.reading import read

__all__ = ["RetryOnce"]

_AGAIN = "That was not exactly one valid tool call. Call one of the tools now."


class RetryOnce:
    """Asks once more. Holds no state: a seat's memory is in its view."""

    async def decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        """One turn per view; all seats are asked at once."""
        return await asyncio.gather(*(_turn(view) for view in views))


async def _turn(view: SeatView) -> Turn:
    request = view.request()
    first = await _ask(view, request)
    if not isinstance(first.result, Invalid) or first.reply is None:
        return first
    second = await _ask(view, _again(request, first.reply))
    # Every call is in the log: the first one was paid for, too.
    return msgspec.structs.replace(second, calls=first.calls + second.calls)


async def _ask(view: SeatView, request: ModelRequest) -> Turn:
    seat = view.observation.seat
    answer = await view.model.call(request)
    if answer.failure is not None:
        return Turn(seat, Failure(answer.failure), calls=(answer.record,))
    assert answer.reply is not None  # exactly one of the two is set
    reply = answer.reply
    result = read(reply, view.tools, recover=view.recover) if view.tools else Message(reply.text)
    return Turn(seat, result, reply=reply, calls=(answer.record,))


def _again(request: ModelRequest, reply: ModelReply) -> ModelRequest:
    """The same conversation, continued. A fixed seed must not bring the same reply back."""
    answers = tuple(ToolMessage(index, _AGAIN) for index in range(len(reply.calls)))
    return msgspec.structs.replace(
        request,
        messages=(
            (*request.messages, AssistantMessage(reply), *answers, UserMessage(_AGAIN))
            if request.messages
            else ()
        ),
        seed=None if request.seed is None else (request.seed + 1) % 2**31,
    )
