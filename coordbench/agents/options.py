"""Options of the agents, apart from them so that listing them imports neither."""

from __future__ import annotations

import msgspec

__all__ = ["LangGraphOptions"]


class LangGraphOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the agent.

    Attributes
    ----------
    trace : bool
        Let LangSmith trace the graph where its environment variables ask for it. Off, they
        have no effect: a run sends nothing anywhere but to its models.
    """

    trace: bool = False
