"""The hooks: all that coordbench calls by itself. Each takes nothing and returns offers.

This module is imported by every command that lists or resolves names, so it imports nothing but
the API. What an offer needs is imported in the function that builds it.
"""

from __future__ import annotations

import msgspec

from coordbench.api import (
    Agent,
    Executor,
    Metric,
    ModelProvider,
    NoOptions,
    Offer,
    Reporter,
    Reward,
    hookimpl,
)

__all__: list[str] = []


class EchoOptions(msgspec.Struct, frozen=True):
    """Options are frozen, with a default for each; names are decoded to them strictly.

    Attributes
    ----------
    say : str
        What the model says in message rounds.
    """

    say: str = ""


class KindnessOptions(msgspec.Struct, frozen=True):
    """Options of `kindness`.

    Attributes
    ----------
    weight : float
        What a table at which everybody ate scores.
    """

    weight: float = 1.0


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`echo`."""
    return [
        Offer(
            "echo",
            "calls the first tool that the table would accept",
            build=_echo,
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
            build=_kindness,
            options=KindnessOptions,
            examples=("kindness", "kindness,weight=2"),
        )
    ]


@hookimpl
def coordbench_metrics() -> list[Offer[Metric]]:
    """`first-meal`."""
    return [Offer("first-meal", "round of the first meal", build=_first_meal)]


@hookimpl
def coordbench_agents() -> list[Offer[Agent]]:
    """`retry-once`."""
    return [
        Offer(
            "retry-once",
            "asks once more where a reply was no decision; both calls are recorded",
            build=_retry_once,
        )
    ]


@hookimpl
def coordbench_reporters() -> list[Offer[Reporter]]:
    """`tsv`."""
    return [Offer("tsv", "cells.tsv, one row per cell", build=_tsv)]


@hookimpl
def coordbench_executors() -> list[Offer[Executor]]:
    """`one-by-one`."""
    return [Offer("one-by-one", "one episode after another in this process", build=_one_by_one)]


def _echo(target: str, options: EchoOptions) -> ModelProvider:
    from coordbench_example.model import Echo

    return Echo(options.say)


def _kindness(target: str, options: KindnessOptions) -> Reward:
    from coordbench_example.scoring import Kindness

    return Kindness(options.weight)


def _first_meal(target: str, options: NoOptions) -> Metric:
    from coordbench_example.scoring import FirstMeal

    return FirstMeal()


def _retry_once(target: str, options: NoOptions) -> Agent:
    from coordbench_example.agent import RetryOnce

    return RetryOnce()


def _tsv(target: str, options: NoOptions) -> Reporter:
    from coordbench_example.reporter import Tsv

    return Tsv()


def _one_by_one(target: str, options: NoOptions) -> Executor:
    from coordbench_example.executor import OneByOne

    return OneByOne()
