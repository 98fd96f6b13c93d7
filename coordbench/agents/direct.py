"""The `direct` agent: one call per seat, and the reply is read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from coordbench.agents.turns import ask, turn_from
from coordbench.api.agents import Agent, SeatView, Turn

__all__ = ["build_direct"]


def build_direct(target: str, options: msgspec.Struct) -> Agent:
    """Build the agent; it has no options and takes no target."""
    return _Direct()


class _Direct:
    """Asks all seats at once."""

    async def decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        """One turn per view, in their order."""
        # A model that never waits gains nothing from a task, and a task costs more than it does.
        waiting = [view for view in views if not view.model.info.instant]
        if len(waiting) <= 1:
            return [turn_from(view, await ask(view)) for view in views]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_turn(view)) for view in views]
        return [task.result() for task in tasks]


async def _turn(view: SeatView) -> Turn:
    return turn_from(view, await ask(view))
