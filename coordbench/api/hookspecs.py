"""Everything a plugin can extend, on one screen.

A plugin is a module (or object) named by an entry point in the group `coordbench`. It
implements any of these hooks; each takes nothing, is synchronous, and returns offers::

    from coordbench.api import Offer, hookimpl

    @hookimpl
    def coordbench_rewards():
        return [Offer("kindness", "one point per seat fed", build=build_kindness)]
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from coordbench.api.agents import Agent
from coordbench.api.executors import Executor
from coordbench.api.models import ModelProvider
from coordbench.api.offers import Offer
from coordbench.api.reporting import Reporter
from coordbench.api.scoring import Metric, Reward

__all__ = ["API_VERSION", "GROUP", "KINDS", "hookimpl", "hookspec"]

GROUP = "coordbench"
API_VERSION = 1
"""Of these hooks and of what `coordbench.api` exports. Raised when a plugin written for the
version before would break; a plugin may require one with the keyword `coordbench-plugin-api>=1`.
"""
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)

KINDS: dict[str, str] = {
    "model": "coordbench_models",
    "reward": "coordbench_rewards",
    "metric": "coordbench_metrics",
    "agent": "coordbench_agents",
    "reporter": "coordbench_reporters",
    "executor": "coordbench_executors",
}
"""Kind of offer -> the hook that returns it."""


@hookspec
def coordbench_models() -> Iterable[Offer[ModelProvider]]:
    """Model providers.

    Example: `Offer("echo", "answers with its first tool", build=lambda target, options: Echo())`
    """
    raise AssertionError  # a specification, never called


@hookspec
def coordbench_rewards() -> Iterable[Offer[Reward]]:
    """Rewards over a stored episode.

    Example: `Offer("meals", "meals per seat", build=lambda target, options: MealsReward())`
    """
    raise AssertionError


@hookspec
def coordbench_metrics() -> Iterable[Offer[Metric]]:
    """Metrics over a stored episode; None means undefined.

    Example: `Offer("first_meal", "round of the first meal", build=lambda t, o: FirstMeal())`
    """
    raise AssertionError


@hookspec
def coordbench_agents() -> Iterable[Offer[Agent]]:
    """Agents: how a seat's model is asked for its turn.

    Example: `Offer("two-step", "plans, then acts", build=lambda target, options: TwoStep())`
    """
    raise AssertionError


@hookspec
def coordbench_reporters() -> Iterable[Offer[Reporter]]:
    """Reporters that render a stored run.

    Example: `Offer("csv", "one row per cell", build=lambda target, options: CsvReporter())`
    """
    raise AssertionError


@hookspec
def coordbench_executors() -> Iterable[Offer[Executor]]:
    """Executors that play the episodes of a plan.

    Example: `Offer("slurm", "one job per cell", build=lambda target, options: Slurm(options))`
    """
    raise AssertionError
