"""The reward of arXiv 2606.07845, with every unstated choice as an option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from coordbench.data.episode import Episode

__all__ = ["Idle", "StudyOptions", "StudyReward", "build_study", "idle_share", "throughput"]

Idle = Literal["think", "no-call", "no-effect"]
Normaliser = Literal["seat-rounds", "rounds", "seats", "optimum"]
Weight = Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]


class StudyOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `study`.

    Attributes
    ----------
    no_deadlock, throughput, variance, idle : float
        Weights, as in the study.
    per : str
        What meals are divided by in the throughput term: N x rounds, rounds, N, or the most
        meals that a perfect team can have.
    spread : str
        Population or sample variance of the seats' meals.
    idling : tuple of str
        What counts as idle: a call of `think`, a reply without a legal call, or any turn that
        changed nothing. The study counts `think` alone.
    """

    no_deadlock: Weight = 1.0
    throughput: Weight = 0.5
    variance: Weight = 0.3
    idle: Weight = 0.1
    per: Normaliser = "seat-rounds"
    spread: Literal["population", "sample"] = "population"
    idling: tuple[Idle, ...] = ("think",)


def build_study(target: str, options: StudyOptions) -> StudyReward:
    """Build `study`."""
    return StudyReward(options)


class StudyReward:
    """r = a * no_deadlock + b * throughput - c * variance of meals - d * idle share.

    With the study's weights (1, 0.5, 0.3, 0.1), throughput = meals / (N x rounds of the rules),
    the population variance of the seats' meals and idle = calls of `think` / turns taken. Idle
    share is 0 where no turn was taken.

    Range: at most a + b * (largest throughput); unbounded below with the number of meals, since
    raw variance grows with them. Its maximum over short episodes is doing nothing: a silent team
    scores 1.0, one that always thinks 0.9.

    Source: arXiv 2606.07845, *GRPO Does Not Close the Multi-Agent Coordination Gap*.

    Parameters
    ----------
    options : StudyOptions
    """

    def __init__(self, options: StudyOptions) -> None:
        self.options = options

    def score(self, episode: Episode) -> Mapping[str, float]:
        """Terms `no_deadlock`, `throughput`, `variance`, `idle`, weighted."""
        options = self.options
        return {
            "no_deadlock": 0.0 if episode.deadlocked else options.no_deadlock,
            "throughput": options.throughput * throughput(episode, options.per),
            "variance": -options.variance * _variance(episode.meals, options.spread),
            "idle": -options.idle * idle_share(episode, options.idling),
        }


def throughput(episode: Episode, per: Normaliser) -> float:
    """Meals divided by `per`; 0 where that is 0. The rounds are the rules', not those played."""
    rounds = episode.rules.rounds
    if per == "seat-rounds":
        most = episode.n * rounds
    elif per == "rounds":
        most = rounds
    elif per == "seats":
        most = episode.n
    else:
        from coordbench.tables.optimum import most_meals

        most = most_meals(episode.n, rounds, episode.rules)
    return episode.total_meals / most if most else 0.0


def idle_share(episode: Episode, idling: tuple[Idle, ...]) -> float:
    """Share of the turns taken that were idle in any of the given senses; 0 without turns."""
    if not episode.decisions:
        return 0.0
    if "no-effect" in idling:
        # think and unreadable replies change nothing either, so they are in it.
        idle = episode.unchanged_turns
    else:
        idle = episode.think_turns * ("think" in idling)
        idle += episode.invalid_turns * ("no-call" in idling)
    return idle / episode.decisions


def _variance(meals: tuple[int, ...], spread: str) -> float:
    n = len(meals)
    mean = sum(meals) / n
    squares = sum((count - mean) ** 2 for count in meals)
    return squares / (n if spread == "population" else n - 1)
