"""What a model provider is: one request type, one reply type, one kind of failure.

A provider turns its wire format into a `ModelReply` and decides nothing about what the reply
means; `coordbench.reading` does, by one rule for all providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from coordbench.data.actions import Action, Effect
from coordbench.data.events import FailureKind, FailureRecord, Usage
from coordbench.data.spec import Rules, Sampling

__all__ = [
    "AssistantMessage",
    "CallContext",
    "ChatMessage",
    "ForkView",
    "HeardMessage",
    "ModelError",
    "ModelInfo",
    "ModelProvider",
    "ModelReply",
    "ModelRequest",
    "Observation",
    "RawCall",
    "Scope",
    "StopReason",
    "SystemMessage",
    "Tool",
    "ToolMessage",
    "UserMessage",
]

StopReason = Literal["stop", "tool_calls", "length", "refused", "malformed", "unknown"]
Scope = Literal["call", "episode", "cell", "run"]
ForkView = Literal["free", "mine", "taken"]


class RawCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call as the provider sent it, unread.

    Attributes
    ----------
    name : str or None
        As on the wire; None where the provider sent none.
    arguments : Any
        As on the wire: JSON text, a decoded object, or None.
    kind : str
        `function`; `custom` and others the request never declared; `legacy` for the old
        `function_call` field; `broken` where a client library already gave up on it.
    form : str
        What the wire format says arguments are: JSON `text`, or an `object`.
    """

    name: str | None
    arguments: Any = None
    id: str | None = None
    kind: str = "function"
    form: Literal["text", "object"] = "text"


class ModelReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply, normalised but unread.

    Attributes
    ----------
    stop : StopReason
        Normalised. `length` also where output tokens reached the cap that was sent.
    stop_native : str or None
        The provider's own word.
    calls : tuple of RawCall
        In the order sent.
    text, reasoning : str
        Visible text, and reasoning kept apart from it.
    refusal : str or None
        The provider's or the model's refusal, where it has a field of its own.
    max_tokens : int or None
        The output cap that was sent, so that a hidden truncation can be seen.
    model : str or None
        The model that the server says answered.
    sent : mapping
        Settings as they went out, to be compared with those asked for.
    native : Any
        JSON-able payload the provider needs to replay this turn (ids, thinking, signatures).
    extras : mapping
        Anything else worth keeping: token ids, logprobs, timings.
    """

    stop: StopReason
    stop_native: str | None = None
    calls: tuple[RawCall, ...] = ()
    text: str = ""
    reasoning: str = ""
    refusal: str | None = None
    usage: Usage = Usage()
    max_tokens: int | None = None
    request_id: str | None = None
    model: str | None = None
    sent: dict[str, Any] = {}
    native: Any = None
    extras: dict[str, Any] = {}


class ModelError(Exception):
    """An infrastructure failure of one call: it never enters the table.

    Parameters
    ----------
    kind : FailureKind
    retry : bool
        Whether the same call may succeed later.
    wait_s : float or None
        The provider's own word on how long to wait (Retry-After).
    scope : Scope
        What ends once the tries are used up.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry: bool = False,
        wait_s: float | None = None,
        scope: Scope = "call",
        status: int | None = None,
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.retry = retry
        self.wait_s = wait_s
        self.scope = scope
        self.status = status

    def record(self) -> FailureRecord:
        """The failure as it is stored."""
        return FailureRecord(
            kind=self.kind, message=self.message[:2000], status=self.status, scope=self.scope
        )


class Tool(msgspec.Struct, frozen=True):
    """One of the six tools as offered on the wire. None of them takes arguments."""

    name: str
    action: Action
    description: str
    parameters: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )


class SystemMessage(msgspec.Struct, frozen=True, tag="system", tag_field="role"):
    """Instructions that hold for the whole episode."""

    text: str


class UserMessage(msgspec.Struct, frozen=True, tag="user", tag_field="role"):
    """What the seat observes now."""

    text: str


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant", tag_field="role"):
    """An earlier reply of this seat. `reply.native` lets its provider replay it exactly."""

    reply: ModelReply


class ToolMessage(msgspec.Struct, frozen=True, tag="tool", tag_field="role"):
    """What came of an earlier call; one for each call of the reply before it, in its order.

    `index` is the call's place in that reply's `calls`.
    """

    index: int
    text: str


ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class HeardMessage(msgspec.Struct, frozen=True):
    """A message another seat sent in message round `exchange`."""

    seat: int
    exchange: int
    text: str


class Observation(msgspec.Struct, frozen=True):
    """What one seat can see: its own two forks, its meals, what it heard. Never the whole table.

    Attributes
    ----------
    seat : int
        0-based.
    round : int
        1-based; the round about to be played.
    left, right : ForkView
        The seat's own two forks.
    last : Effect or None
        What this seat's previous turn did.
    """

    seat: int
    n: int
    round: int
    rules: Rules
    left: ForkView
    right: ForkView
    meals: int
    last: Effect | None = None
    heard: tuple[HeardMessage, ...] = ()


class CallContext(msgspec.Struct, frozen=True):
    """Where a call belongs. `exchange` is -1 for a decision, else the message round."""

    cell: str
    episode: int
    episode_seed: int
    round: int
    seat: int
    exchange: int = -1


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    Attributes
    ----------
    messages : tuple of ChatMessage
        Empty for providers whose info says `reads_text = False`.
    tools : tuple of Tool
        Empty where a message, not a decision, is asked for.
    force : str or None
        Wire name of the one tool that must be called (preflight only).
    seed : int or None
        None where the spec asks for no seed.
    observation : Observation or None
        The structured observation; LLM providers ignore it.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...]
    sampling: Sampling
    seed: int | None = None
    force: str | None = None
    observation: Observation | None = None
    context: CallContext | None = None


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the core must know of a built model.

    Attributes
    ----------
    endpoint : str
        Models that share an endpoint share its connection limit.
    max_in_flight : int
        Calls that may be in flight at once on that endpoint.
    instant : bool
        `complete` never waits, so no task, limit or time-out is spent on it.
    reads_text : bool
        False: prompts are not rendered for it (scripted and tabular policies).
    paid : bool
        Calls cost money or quota: a plan with such calls asks before it runs.
    tool_mode : str
        How decisions are asked for, e.g. `native`, `required`, `constrained`; part of the report.
    price_in, price_out, price_cached : float or None
        US dollars per million input, output and cached input tokens, where the model's name
        gives them; None: the core looks the price up, and it may stay unknown (never 0).
    requests_per_minute, tokens_per_minute : float or None
        The endpoint's rate limits, where known; None: no limit of ours.
    settings : mapping
        Settings fixed by the model's name, e.g. `{"temperature": 0.2}`; they override the spec's
        sampling and are reported.
    """

    provider: str
    model: str
    endpoint: str = ""
    max_in_flight: int = 16
    instant: bool = False
    reads_text: bool = True
    paid: bool = False
    tool_mode: str = "native"
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    settings: Mapping[str, Any] = {}


@runtime_checkable
class ModelProvider(Protocol):
    """A model that can be called. Built by an offer, closed by the core."""

    @property
    def info(self) -> ModelInfo:
        """What the core must know of this model."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises
        ------
        ModelError
            For every infrastructure failure. No retry happens here; the core retries.
        """
        ...

    async def aclose(self) -> None:
        """Release connections, processes and files. Called once, also after a crash."""
        ...
