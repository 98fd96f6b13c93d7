"""Intervals: known values, and an answer with a reason where there is no interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordbench.stats.intervals import (
    Interval,
    bca_interval,
    clopper_pearson,
    t_interval,
    wilson,
)
from coordbench.stats.running import RunningMean

MEANS = [t_interval, bca_interval]


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe (1998), Two-sided confidence intervals for the single proportion, table I.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_values(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


def test_clopper_pearson_gives_the_published_values() -> None:
    found = clopper_pearson(81, 263)
    assert found.low == pytest.approx(0.2527, abs=5e-5)
    assert found.high == pytest.approx(0.3676, abs=5e-5)


def test_a_t_interval_by_hand() -> None:
    found = t_interval([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * math.sqrt(5 / 3 / 4)
    assert found.value == 2.5
    assert found.low == pytest.approx(2.5 - half, abs=1e-5)
    assert found.high == pytest.approx(2.5 + half, abs=1e-5)


@pytest.mark.parametrize("interval", MEANS)
def test_constant_values_have_a_point_and_a_reason(interval: Callable[..., Interval]) -> None:
    found = interval([1.0] * 30)
    assert (found.low, found.high, found.status) == (1.0, 1.0, "degenerate_constant")
    assert found.reason


@pytest.mark.parametrize("interval", MEANS)
@pytest.mark.parametrize("values", [[], [0.4]])
def test_too_few_values_have_no_interval(
    interval: Callable[..., Interval], values: list[float]
) -> None:
    found = interval(values)
    assert (found.low, found.high, found.status) == (None, None, "too_few")


@pytest.mark.parametrize("interval", MEANS)
def test_a_value_that_is_not_finite_is_said(interval: Callable[..., Interval]) -> None:
    assert interval([1.0, float("nan"), 2.0]).status == "not_finite"


def test_no_episode_has_no_rate() -> None:
    found = wilson(0, 0)
    assert found.value is None
    assert found.reason
    with pytest.raises(ValueError, match="between 0 and n"):
        wilson(3, 2)


@given(st.lists(st.floats(-1e6, 1e6), max_size=12))
@settings(deadline=None, max_examples=80)
def test_a_t_interval_is_never_nan_and_holds_its_mean(values: list[float]) -> None:
    found = t_interval(values)
    for number in (found.value, found.low, found.high):
        assert number is None or math.isfinite(number)
    if found.low is not None and found.high is not None and found.value is not None:
        assert found.low <= found.value <= found.high


def test_a_bca_interval_leans_with_skewed_data() -> None:
    skewed = [0.0] * 25 + [1.0, 2.0, 4.0, 8.0, 16.0]
    found = bca_interval(skewed)
    again = bca_interval(skewed)
    assert found == again
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.high - found.value > found.value - found.low


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
@settings(deadline=None, max_examples=50)
def test_a_running_mean_equals_the_interval_of_all_values(values: list[float]) -> None:
    running = RunningMean()
    for value in values:
        running.add(value)
    whole: Any = t_interval(values)
    assert running.mean == pytest.approx(whole.value, abs=1e-9)
    if whole.status == "ok":
        assert running.half_width() == pytest.approx(whole.high - whole.value, rel=1e-6, abs=1e-9)
