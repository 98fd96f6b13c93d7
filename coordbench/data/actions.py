"""The six tools, and what the table made of a decision."""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["Action", "Cause", "Effect", "InvalidReason"]


class Action(StrEnum):
    """The six tools of a philosopher, by their task names."""

    PICK_UP_LEFT = "pick-up-left"
    PICK_UP_RIGHT = "pick-up-right"
    PUT_DOWN_LEFT = "put-down-left"
    PUT_DOWN_RIGHT = "put-down-right"
    EAT = "eat"
    THINK = "think"


class Cause(StrEnum):
    """Why the table refused an action."""

    FORK_TAKEN = "fork-taken"
    """The neighbour holds the fork."""
    LOST_TIE = "lost-tie"
    """The neighbour reached for the same free fork and got it (or nobody did)."""
    ALREADY_HOLDING = "already-holding"
    NOT_HOLDING = "not-holding"
    FORKS_MISSING = "forks-missing"
    """To eat, a seat needs both forks at the start of the eating phase."""


class InvalidReason(StrEnum):
    """Why a model's reply is no decision. An invalid reply is never `think`."""

    NO_TOOL_CALL = "no_tool_call"
    EMPTY_RESPONSE = "empty_response"
    UNKNOWN_TOOL = "unknown_tool"
    MALFORMED_ARGUMENTS = "malformed_arguments"
    MULTIPLE_CALLS = "multiple_calls"
    TOOL_CALL_IN_TEXT = "tool_call_in_text"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    PROVIDER_MALFORMED = "provider_malformed"


class Effect(msgspec.Struct, frozen=True, array_like=True):
    """What one seat's turn did to the table.

    Attributes
    ----------
    action : Action or None
        None: the reply was invalid, so the seat did nothing.
    applied : bool
        The table accepted the action. `think` is always applied; an invalid reply never is.
    changed : bool
        The table, or the seat's meals, differ because of this turn. False for `think`,
        for a refused action and for an invalid reply: idling measured by effect.
    cause : Cause or None
        Why the action was refused.
    """

    seat: int
    action: Action | None
    applied: bool
    changed: bool
    cause: Cause | None = None
