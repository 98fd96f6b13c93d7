"""A mean and its interval, one value at a time, for progress lines."""

from __future__ import annotations

from math import sqrt

__all__ = ["RunningMean"]


class RunningMean:
    """Mean and sample variance by Welford's recurrence.

    Source: B. P. Welford (1962), *Note on a method for calculating corrected sums of squares and
    products*, Technometrics 4(3).
    """

    __slots__ = ("_m2", "mean", "n")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self._m2 = 0.0

    def add(self, value: float) -> None:
        """Take one more value."""
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self._m2 += delta * (value - self.mean)

    def half_width(self, confidence: float = 0.95) -> float | None:
        """Half the width of the t interval; None for fewer than two values."""
        if self.n < 2:
            return None
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.n - 1, 0.5 + confidence / 2))
        return quantile * sqrt(self._m2 / (self.n - 1) / self.n)

    def describe(self) -> str:
        """Such as `0.41 +- 0.12`."""
        if not self.n:
            return "-"
        half = self.half_width()
        return f"{self.mean:.2f}" if half is None else f"{self.mean:.2f} +- {half:.2f}"
