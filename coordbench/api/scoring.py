"""What a reward and a metric are: pure functions of a stored episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from coordbench.data.episode import Episode

__all__ = ["Metric", "Reward"]


@runtime_checkable
class Reward(Protocol):
    """Scores a completed episode in named terms; the reward is their sum."""

    def score(self, episode: Episode) -> Mapping[str, float]:
        """Named terms, each finite. Pure: no clock, no randomness, no model."""
        ...


@runtime_checkable
class Metric(Protocol):
    """Measures one thing of a completed episode."""

    def measure(self, episode: Episode) -> float | None:
        """The value, or None where it is undefined; never a flattering default."""
        ...
