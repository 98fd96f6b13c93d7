"""The reward `kindness` and the metric `first-meal`: pure functions of a stored episode."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from coordbench.api import Episode, Metric, NoOptions, Reward

__all__ = ["KindnessOptions", "build_first_meal", "build_kindness"]


class KindnessOptions(msgspec.Struct, frozen=True):
    """Options of `kindness`.

    Attributes
    ----------
    weight : float
        What a table at which everybody ate scores.
    """

    weight: float = 1.0


def build_kindness(target: str, options: KindnessOptions) -> Reward:
    """Build the reward."""
    return _Kindness(options.weight)


def build_first_meal(target: str, options: NoOptions) -> Metric:
    """Build the metric."""
    return _FirstMeal()


class _Kindness:
    def __init__(self, weight: float) -> None:
        self._weight = weight

    def score(self, episode: Episode) -> Mapping[str, float]:
        return {"fed": self._weight * episode.seats_fed / episode.n}


class _FirstMeal:
    def measure(self, episode: Episode) -> float | None:
        # None is "undefined": nobody ate. A number here would flatter a table that starved.
        return next((float(step.round) for step in episode.steps if any(step.meals)), None)
