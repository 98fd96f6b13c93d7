"""What an agent is: it turns seat views into turns, calling each seat's own model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from coordbench.api.models import (
    CallContext,
    ChatMessage,
    ModelInfo,
    ModelReply,
    ModelRequest,
    Observation,
    Tool,
)
from coordbench.data.actions import Action, InvalidReason
from coordbench.data.events import CallRecord, FailureRecord
from coordbench.data.spec import Sampling

__all__ = [
    "Agent",
    "Decision",
    "Failure",
    "Invalid",
    "Message",
    "ModelCaller",
    "ModelResult",
    "Result",
    "SeatView",
    "Turn",
]


class Decision(msgspec.Struct, frozen=True):
    """A reply that is one legal call.

    `flags` records every leniency that was needed to read it.
    """

    action: Action
    flags: frozenset[str] = frozenset()


class Invalid(msgspec.Struct, frozen=True):
    """A reply that is no decision. The seat does nothing; it is never `think`.

    `hint` names a likely cause outside the model, e.g. `server_parser_off`.
    """

    reason: InvalidReason
    detail: str = ""
    hint: str = ""


class Failure(msgspec.Struct, frozen=True):
    """No reply: infrastructure. Never enters the table; the episode ends unscored."""

    record: FailureRecord


class Message(msgspec.Struct, frozen=True):
    """The text a seat sends in a message round."""

    text: str


Result = Decision | Invalid | Failure | Message


class ModelResult(msgspec.Struct, frozen=True):
    """What became of one call after limits, retries and time-outs.

    Exactly one of `reply` and `failure` is set; `record` is what the event log keeps.
    """

    record: CallRecord
    reply: ModelReply | None = None
    failure: FailureRecord | None = None


@runtime_checkable
class ModelCaller(Protocol):
    """A seat's model behind the core's limits, retries, budget and log. Never raises for a
    failed call.
    """

    @property
    def info(self) -> ModelInfo:
        """Of the model behind it."""
        ...

    async def call(self, request: ModelRequest) -> ModelResult:
        """Make one call."""
        ...


class SeatView(msgspec.Struct, frozen=True):
    """All that an agent is given for one seat that acts now.

    Attributes
    ----------
    messages : tuple of ChatMessage
        The rendered prompt with the seat's memory; empty for models that read no text.
    tools : tuple of Tool
        Empty in a message round: a message, not a decision, is wanted.
    model : ModelCaller
        The seat's own model.
    recover : bool
        Reading mode of the spec.
    """

    observation: Observation
    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...]
    sampling: Sampling
    seed: int | None
    context: CallContext
    model: ModelCaller
    recover: bool = False

    def request(self) -> ModelRequest:
        """The request that asks this seat's model for its turn."""
        return ModelRequest(
            messages=self.messages,
            tools=self.tools,
            sampling=self.sampling,
            seed=self.seed,
            observation=self.observation,
            context=self.context,
        )


class Turn(msgspec.Struct, frozen=True):
    """What came of one seat view.

    Attributes
    ----------
    reply : ModelReply or None
        The reply that was read; it becomes the seat's memory. None after a failure.
    calls : tuple of CallRecord
        Every call made for this turn, paid ones above all.
    """

    seat: int
    result: Result
    reply: ModelReply | None = None
    calls: tuple[CallRecord, ...] = ()


@runtime_checkable
class Agent(Protocol):
    """Decides for all seats that act now: every seat of a simultaneous round, one of a
    sequential one. Holds no state between calls: a seat's memory is in its view.
    """

    async def decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        """One turn per view, in the order of `views`. Never raises for a failed call."""
        ...
