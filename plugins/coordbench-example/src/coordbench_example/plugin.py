"""The hooks: all that coordbench calls by itself. Each takes nothing and returns offers."""

from __future__ import annotations

from coordbench.api import Agent, Executor, Metric, ModelProvider, Offer, Reporter, Reward, hookimpl
from coordbench_example.agent import build_retry_once
from coordbench_example.executor import build_one_by_one
from coordbench_example.model import EchoOptions, build_echo
from coordbench_example.reporter import build_tsv
from coordbench_example.scoring import KindnessOptions, build_first_meal, build_kindness

__all__: list[str] = []


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`echo`."""
    return [
        Offer(
            "echo",
            "calls the first tool that the table would accept",
            build=build_echo,
            options=EchoOptions,
            traits=frozenset({"deterministic", "local"}),
            examples=("echo", "echo,say=hello"),
        )
    ]


@hookimpl
def coordbench_rewards() -> list[Offer[Reward]]:
    """`kindness`."""
    return [
        Offer(
            "kindness",
            "the share of seats fed",
            build=build_kindness,
            options=KindnessOptions,
            examples=("kindness", "kindness,weight=2"),
        )
    ]


@hookimpl
def coordbench_metrics() -> list[Offer[Metric]]:
    """`first-meal`."""
    return [Offer("first-meal", "round of the first meal", build=build_first_meal)]


@hookimpl
def coordbench_agents() -> list[Offer[Agent]]:
    """`retry-once`."""
    return [
        Offer(
            "retry-once",
            "asks once more where a reply was no decision; both calls are recorded",
            build=build_retry_once,
        )
    ]


@hookimpl
def coordbench_reporters() -> list[Offer[Reporter]]:
    """`tsv`."""
    return [Offer("tsv", "cells.tsv, one row per cell", build=build_tsv)]


@hookimpl
def coordbench_executors() -> list[Offer[Executor]]:
    """`one-by-one`."""
    return [
        Offer("one-by-one", "one episode after another in this process", build=build_one_by_one)
    ]
