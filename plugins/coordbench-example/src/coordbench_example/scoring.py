"""The reward `kindness` and the metric `first-meal`: pure functions of a stored episode."""

from __future__ import annotations

from collections.abc import Mapping

from coordbench.api import Episode

__all__ = ["FirstMeal", "Kindness"]


class Kindness:
    """The share of seats fed, times `weight`."""

    def __init__(self, weight: float = 1.0) -> None:
        self._weight = weight

    def score(self, episode: Episode) -> Mapping[str, float]:
        """Named terms; the reward is their sum."""
        return {"fed": self._weight * episode.seats_fed / episode.n}


class FirstMeal:
    """The round of the first meal."""

    def measure(self, episode: Episode) -> float | None:
        """The value; None is "undefined". A number would flatter a table where nobody ate."""
        return next((float(step.round) for step in episode.steps if any(step.meals)), None)
