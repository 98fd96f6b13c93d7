"""Requests and tokens per minute on one endpoint."""

from __future__ import annotations

from aiolimiter import AsyncLimiter

__all__ = ["RateLimits"]

_MINUTE_S = 60.0


class RateLimits:
    """Two leaky buckets; either may be absent.

    Parameters
    ----------
    requests, tokens : float or None
        Per minute; None: no limit.
    """

    def __init__(self, requests: float | None, tokens: float | None) -> None:
        self._requests = None if requests is None else AsyncLimiter(max(1.0, requests), _MINUTE_S)
        self._tokens = None if tokens is None else AsyncLimiter(max(1.0, tokens), _MINUTE_S)

    @property
    def unlimited(self) -> bool:
        """Whether `wait` never waits."""
        return self._requests is None and self._tokens is None

    async def wait(self, tokens: int) -> None:
        """Wait until a call that may use `tokens` tokens is within the limits."""
        if self._requests is not None:
            await self._requests.acquire()
        if self._tokens is not None:
            await self._tokens.acquire(min(float(tokens), self._tokens.max_rate))
