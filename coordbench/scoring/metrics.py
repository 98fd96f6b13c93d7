"""The standard metrics. Each is a number of one episode, or None where it is undefined."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from coordbench.data.episode import Episode

__all__ = ["METRICS", "FunctionMetric"]

Measure = Callable[[Episode], float | None]


class FunctionMetric:
    """A metric that is one function of the episode."""

    __slots__ = ("measure",)

    def __init__(self, measure: Measure) -> None:
        self.measure = measure


def deadlock(episode: Episode) -> float | None:
    """1 where a deadlock occurred, else 0."""
    return float(episode.deadlocked)


def deadlock_round(episode: Episode) -> float | None:
    """Round of the first deadlock; None without one (censored, not late)."""
    return None if episode.deadlock_round is None else float(episode.deadlock_round)


def meals(episode: Episode) -> float | None:
    """Meals of all seats."""
    return float(episode.total_meals)


def meals_per_seat(episode: Episode) -> float | None:
    """Meals divided by N."""
    return episode.total_meals / episode.n


def throughput(episode: Episode) -> float | None:
    """Meals per round of the rules (an episode cut short by deadlock does not gain by it)."""
    return episode.total_meals / episode.rules.rounds


def fairness(episode: Episode) -> float | None:
    """1 - G / G_max of the seats' meals; None when nobody ate.

    G = sum_ij |x_i - x_j| / (2 N^2 mean), G_max = (N - 1) / N: 1 for equal meals, 0 where one seat
    had them all. Source: C. Gini (1912); normalised as in Deltas (2003), *The small-sample bias of
    the Gini coefficient*, Rev. Econ. Stat. 85(1).
    """
    total = episode.total_meals
    if not total:
        return None
    ordered = sorted(episode.meals)
    n = episode.n
    weighted = sum((2 * rank - n - 1) * count for rank, count in enumerate(ordered, 1))
    return 1.0 - weighted / (n * total) * n / (n - 1)


def seats_fed(episode: Episode) -> float | None:
    """Share of seats with at least one meal."""
    return episode.seats_fed / episode.n


def idle_share(episode: Episode) -> float | None:
    """Share of turns with a call of `think`; None without turns."""
    return _share(episode.think_turns, episode)


def unchanged_share(episode: Episode) -> float | None:
    """Share of turns that changed nothing (think, refused, unreadable); None without turns."""
    return _share(episode.unchanged_turns, episode)


def invalid_rate(episode: Episode) -> float | None:
    """Share of turns whose reply was no decision; None without turns."""
    return _share(episode.invalid_turns, episode)


def refused_rate(episode: Episode) -> float | None:
    """Share of turns with a call that the table refused; None without turns."""
    return _share(episode.refused_turns, episode)


def rounds_played(episode: Episode) -> float | None:
    """Rounds played, the deadlocked one included."""
    return float(episode.rounds_played)


def _share(count: int, episode: Episode) -> float | None:
    return count / episode.decisions if episode.decisions else None


def _builder(measure: Measure) -> Callable[[str, msgspec.Struct], FunctionMetric]:
    def build(target: str, options: msgspec.Struct) -> FunctionMetric:
        return FunctionMetric(measure)

    return build


METRICS: dict[str, tuple[str, Callable[[str, msgspec.Struct], FunctionMetric]]] = {
    function.__name__: ((function.__doc__ or "").split("\n")[0].rstrip("."), _builder(function))
    for function in (
        deadlock,
        deadlock_round,
        meals,
        meals_per_seat,
        throughput,
        fairness,
        seats_fed,
        idle_share,
        unchanged_share,
        invalid_rate,
        refused_rate,
        rounds_played,
    )
}
"""Name -> (summary, build)."""
