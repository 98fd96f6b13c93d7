"""Events of an episode, one JSON line each: the only truth of a run.

Every number in a report can be traced to the event that made it. Fields in `TIME_FIELDS`
hold clock readings; all others are a function of the seed and the models' answers.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from coordbench.data.actions import Action, Effect, InvalidReason

__all__ = [
    "TIME_FIELDS",
    "CallRecord",
    "EpisodeEnded",
    "EpisodeStarted",
    "Event",
    "FailureKind",
    "FailureRecord",
    "MessageSent",
    "TableStepped",
    "TurnTaken",
    "Usage",
]

FailureKind = Literal[
    "rate_limit",
    "quota",
    "overloaded",
    "server_error",
    "provider_error",
    "invalid_body",
    "stream_incomplete",
    "network",
    "timeout",
    "auth",
    "config",
    "context_length",
    "history",
    "recursion_limit",
    "agent_error",
    "stopped",
]

TIME_FIELDS = frozenset({"at", "latency_s", "waited_s"})


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one call. None: the provider did not say (never 0 by default)."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class FailureRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An infrastructure failure: never an action, never enters the table.

    Attributes
    ----------
    scope : str
        What ended once the tries were used up. `cell`: no other episode of the cell can
        succeed (key refused, quota gone); `run`: no other call at all.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    scope: Literal["call", "episode", "cell", "run"] = "call"


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One paid call. `prompt` and `reply` name blobs by SHA-256."""

    prompt: str | None = None
    reply: str | None = None
    usage: Usage = Usage()
    request_id: str | None = None
    tries: int = 1
    latency_s: float | None = None
    waited_s: float | None = None
    cached: bool = False
    failures: tuple[FailureRecord, ...] = ()
    """What earlier tries of this call died of, in order."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    episode: int


class EpisodeStarted(_Event, frozen=True, kw_only=True, tag="episode_started"):
    """First event of an episode."""

    cell: str
    seed: int
    n: int
    team: tuple[str, ...]
    """Model name per seat; length N."""
    at: float | None = None


class MessageSent(_Event, frozen=True, kw_only=True, tag="message"):
    """A seat's message in message round `exchange` (0-based) before the decision of `round`."""

    round: int
    exchange: int
    seat: int
    text: str
    cut: bool = False
    """The text was longer than the spec allows and was cut."""
    failure: FailureRecord | None = None
    calls: tuple[CallRecord, ...] = ()


class TurnTaken(_Event, frozen=True, kw_only=True, tag="turn"):
    """One seat's turn: exactly one of `action`, `invalid` and `failure` is set."""

    round: int
    seat: int
    action: Action | None = None
    invalid: InvalidReason | None = None
    failure: FailureRecord | None = None
    detail: str = ""
    flags: tuple[str, ...] = ()
    calls: tuple[CallRecord, ...] = ()


class TableStepped(_Event, frozen=True, kw_only=True, tag="step"):
    """What the turns did. Simultaneous: one a round. Sequential: one a turn.

    Attributes
    ----------
    forks : tuple of int
        Holder of each fork after the step; -1 on the table. Length N.
    meals : tuple of int
        Meals of each seat so far. Length N.
    """

    round: int
    effects: tuple[Effect, ...]
    forks: tuple[int, ...]
    meals: tuple[int, ...]
    deadlock: bool = False


class EpisodeEnded(_Event, frozen=True, kw_only=True, tag="episode_ended"):
    """Last event. Only `completed` episodes are scored; `stopped` ones are played again.

    Attributes
    ----------
    status : str
        `completed`; `failed` (infrastructure; counted as an error, unscored);
        `stopped` (budget or Ctrl-C; kept because its calls are paid, and run again on resume).
    reason : str
        `rounds`, `deadlock`, a failure kind, `budget` or `interrupt`.
    rounds : int
        Rounds played in full.
    """

    status: Literal["completed", "failed", "stopped"]
    reason: str
    rounds: int
    detail: str = ""
    at: float | None = None


Event = EpisodeStarted | MessageSent | TurnTaken | TableStepped | EpisodeEnded
