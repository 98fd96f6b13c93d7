"""The study's reward and the metrics, by hand and by property."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.random_play import episodes, scripted_episode, turned

from coordbench.data.actions import Action
from coordbench.data.episode import Episode
from coordbench.data.spec import Rules
from coordbench.scoring.metrics import METRICS
from coordbench.scoring.study import StudyOptions, StudyReward

REWARD = StudyReward(StudyOptions())


def total(episode: Episode, **options: Any) -> float:
    return sum(StudyReward(StudyOptions(**options)).score(episode).values())


@pytest.mark.parametrize(
    ("policy", "expected"), [("silent", 1.0), ("idle", 0.9), ("busy-idle", 1.0), ("grab-left", 0.0)]
)
def test_known_values(policy: str, expected: float) -> None:
    episode = scripted_episode(policy, 5, Rules(rounds=5))
    assert total(episode) == pytest.approx(expected)


def test_a_value_by_hand() -> None:
    # Meals 3, 1, 1, 0, 0 in five rounds: 1 + 0.5 * 5/25 - 0.3 * (11/5 - 1) - 0.1 * idle.
    episode = scripted_episode("optimal", 5, Rules(rounds=5))
    assert sorted(episode.meals) == [0, 0, 1, 1, 3]
    idle = episode.think_turns / 25
    assert total(episode) == pytest.approx(1 + 0.1 - 0.36 - 0.1 * idle)
    assert total(episode, idle=0.0) == pytest.approx(0.74)


def test_options_change_one_term_each() -> None:
    episode = scripted_episode("optimal", 5, Rules(rounds=12))
    base = StudyReward(StudyOptions()).score(episode)
    per = {
        "rounds": 5.0,
        "seats": 12.0,
        "optimum": 60 / 20,
    }
    for name, factor in per.items():
        changed = StudyReward(StudyOptions(per=name)).score(episode)  # type: ignore[arg-type]
        assert changed["throughput"] == pytest.approx(base["throughput"] * factor)
        assert changed["variance"] == base["variance"]
    sample = StudyReward(StudyOptions(spread="sample")).score(episode)
    assert sample["variance"] == pytest.approx(base["variance"] * 5 / 4)


def test_idling_can_be_measured_by_effect() -> None:
    episode = scripted_episode("busy-idle", 5, Rules(rounds=12))
    assert total(episode) == pytest.approx(1.0)
    assert total(episode, idling=("no-effect",)) == pytest.approx(0.9)
    silent = scripted_episode("silent", 5, Rules(rounds=12))
    assert total(silent, idling=("think", "no-call")) == pytest.approx(0.9)


def test_fairness_is_undefined_when_nobody_ate() -> None:
    measure = METRICS["fairness"][1]("", StudyOptions()).measure
    assert measure(scripted_episode("idle", 5, Rules(rounds=12))) is None
    assert measure(scripted_episode("optimal", 3, Rules(rounds=7))) == pytest.approx(1.0)


@given(episodes(), st.sampled_from(["seat-rounds", "rounds", "seats"]))
@settings(deadline=None, max_examples=60)
def test_the_reward_is_finite_pure_and_turns_with_the_table(episode: Episode, per: Any) -> None:
    reward = StudyReward(StudyOptions(per=per, idling=("think", "no-call", "no-effect")))
    terms = reward.score(episode)
    assert set(terms) == {"no_deadlock", "throughput", "variance", "idle"}
    assert all(math.isfinite(value) for value in terms.values())
    assert reward.score(episode) == terms
    assert reward.score(turned(episode)) == pytest.approx(terms)


@given(episodes())
@settings(deadline=None, max_examples=60)
def test_every_metric_is_none_or_finite_and_turns_with_the_table(episode: Episode) -> None:
    for name, (_, build) in METRICS.items():
        value = build("", StudyOptions()).measure(episode)
        assert value is None or math.isfinite(value), name
        again = build("", StudyOptions()).measure(turned(episode))
        assert again == (None if value is None else pytest.approx(value)), name


def test_counts_of_an_episode() -> None:
    episode = scripted_episode("busy-idle", 5, Rules(rounds=4))
    assert episode.decisions == episode.unchanged_turns == episode.refused_turns == 20
    assert episode.think_turns == episode.invalid_turns == 0
    assert {turn.action for turn in episode.turns} <= set(Action)
