"""Intervals for one cell: every one checks n and constancy first and never answers NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

__all__ = ["Interval", "bca_interval", "clopper_pearson", "t_interval", "wilson"]

Status = Literal["ok", "too_few", "degenerate_constant", "not_finite"]

_RESAMPLES = 9999
_SEED = 20260607


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A point with its interval.

    Attributes
    ----------
    value, low, high : float or None
        None where they cannot be given; `reason` then says why.
    status : str
        `ok`; `too_few`; `degenerate_constant` (all values equal: for a mean the interval is that
        point, and says nothing about other samples); `not_finite` (a value is NaN or infinite).
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    status: Status = "ok"
    reason: str = ""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval of a rate, without continuity correction.

    Source: E. B. Wilson (1927), JASA 22; recommended for n = 30 by Brown, Cai & DasGupta (2001),
    *Interval estimation for a binomial proportion*.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= n.
    """
    return _binomial(successes, n, confidence, "wilson")


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Clopper-Pearson exact interval of a rate: covers at least `confidence`, often more.

    Source: C. J. Clopper & E. S. Pearson (1934), Biometrika 26.
    """
    return _binomial(successes, n, confidence, "exact")


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Student's t interval of a mean; episodes are the unit and are taken as independent.

    Source: Student (1908), Biometrika 6.
    """
    plain = _checked(values, "t")
    if isinstance(plain, Interval):
        return plain
    from scipy.special import stdtrit

    n = len(plain)
    mean = math.fsum(plain) / n
    variance = math.fsum((value - mean) ** 2 for value in plain) / (n - 1)
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * math.sqrt(variance / n)
    return Interval(value=mean, low=mean - half, high=mean + half, n=n, method="t")


def bca_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Bias-corrected and accelerated bootstrap interval of a mean, 9,999 resamples, fixed seed.

    Source: B. Efron (1987), *Better bootstrap confidence intervals*, JASA 82; by
    `scipy.stats.bootstrap`.
    """
    plain = _checked(values, "bca")
    if isinstance(plain, Interval):
        return plain
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.asarray(plain),),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    low, high = float(found.low), float(found.high)
    mean = math.fsum(plain) / len(plain)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Interval(
            value=mean,
            low=None,
            high=None,
            n=len(plain),
            method="bca",
            status="degenerate_constant",
            reason="the bootstrap distribution is degenerate",
        )
    return Interval(value=mean, low=low, high=high, n=len(plain), method="bca")


def _binomial(successes: int, n: int, confidence: float, method: str) -> Interval:
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be between 0 and n, got {successes} of {n}")
    if not n:
        return Interval(
            value=None,
            low=None,
            high=None,
            n=0,
            method=method,
            status="too_few",
            reason="no episode was scored",
        )
    from scipy.stats import binomtest

    found = binomtest(successes, n).proportion_ci(confidence, method=method)
    return Interval(
        value=successes / n, low=float(found.low), high=float(found.high), n=n, method=method
    )


def _checked(values: Sequence[float], method: str) -> list[float] | Interval:
    plain = [float(value) for value in values]
    n = len(plain)

    def none(value: float | None, status: Status, reason: str, point: bool = False) -> Interval:
        edge = value if point else None
        return Interval(
            value=value, low=edge, high=edge, n=n, method=method, status=status, reason=reason
        )

    if not n:
        return none(None, "too_few", "no value")
    if not all(math.isfinite(value) for value in plain):
        return none(None, "not_finite", "a value is not a finite number")
    if n == 1:
        return none(plain[0], "too_few", "one value has no spread")
    if all(value == plain[0] for value in plain):
        return none(plain[0], "degenerate_constant", "all values are equal", point=True)
    return plain
