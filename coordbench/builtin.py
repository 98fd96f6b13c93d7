"""What coordbench itself offers, as any other plugin would: heavy imports inside `build`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from coordbench.agents.options import LangGraphOptions
from coordbench.api.agents import Agent
from coordbench.api.executors import Executor
from coordbench.api.hookspecs import hookimpl
from coordbench.api.models import ModelProvider
from coordbench.api.offers import Offer
from coordbench.api.reporting import Reporter
from coordbench.api.scoring import Metric, Reward
from coordbench.models.replay import ReplayOptions, build_replay, check_replay
from coordbench.models.script import POLICIES, build_script, check_script
from coordbench.scoring.metrics import METRICS
from coordbench.scoring.study import StudyOptions, build_study

__all__: list[str] = []


def _later(module: str, function: str) -> Callable[[str, Any], Any]:
    """A build function that imports its module when it is called."""

    def build(target: str, options: Any) -> Any:
        return getattr(import_module(module), function)(target, options)

    return build


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """Scripted policies and the replay of a stored run."""
    return [
        Offer(
            "script",
            "scripted policies: " + ", ".join(POLICIES),
            build=build_script,
            check=check_script,
            traits=frozenset({"scripted", "deterministic", "local", "target"}),
            examples=tuple(f"script/{policy}" for policy in POLICIES),
        ),
        Offer(
            "replay",
            "answers again what a stored run's models answered",
            build=build_replay,
            check=check_replay,
            options=ReplayOptions,
            traits=frozenset({"deterministic", "local", "target"}),
            examples=("replay/latest",),
        ),
    ]


@hookimpl
def coordbench_agents() -> list[Offer[Agent]]:
    """`langgraph` (default for LLMs) and `direct`."""
    return [
        Offer(
            "langgraph",
            "each philosopher is a LangGraph agent with its own messages and memory",
            build=_later("coordbench.agents.langgraph", "build_langgraph"),
            options=LangGraphOptions,
            requires=("langgraph",),
        ),
        Offer(
            "direct",
            "one call per turn, without a graph",
            build=_later("coordbench.agents.direct", "build_direct"),
        ),
    ]


@hookimpl
def coordbench_rewards() -> list[Offer[Reward]]:
    """The study's reward."""
    return [
        Offer(
            "study",
            "no deadlock, throughput, variance of meals and idle share, as in arXiv 2606.07845",
            build=build_study,
            options=StudyOptions,
            examples=("study", "study,variance=0"),
        )
    ]


@hookimpl
def coordbench_metrics() -> list[Offer[Metric]]:
    """The standard metrics."""
    return [Offer(name, summary, build=build) for name, (summary, build) in METRICS.items()]


@hookimpl
def coordbench_reporters() -> list[Offer[Reporter]]:
    """Terminal, Markdown and JSON."""
    return [
        Offer(
            "terminal",
            "a table as wide as the terminal",
            build=_later("coordbench.report.terminal", "build_terminal"),
        ),
        Offer(
            "markdown",
            "report.md",
            build=_later("coordbench.report.markdown", "build_markdown"),
        ),
        Offer(
            "json",
            "report.json, strict",
            build=_later("coordbench.report.json", "build_json"),
        ),
    ]


@hookimpl
def coordbench_executors() -> list[Offer[Executor]]:
    """`local`."""
    return [
        Offer(
            "local",
            "asyncio in this process",
            build=_later("coordbench.engine.local", "build_local"),
        )
    ]
