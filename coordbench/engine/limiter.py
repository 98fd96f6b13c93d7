"""How many calls may be in flight at once on one endpoint, learnt from its refusals."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

__all__ = ["Limiter"]


class Limiter:
    """An adaptive connection limit: additive increase, multiplicative decrease.

    The window starts at `limit`, is halved when the endpoint says it is too busy, and grows by
    one for each window's worth of answers, as in TCP congestion avoidance (Chiu & Jain 1989,
    *Analysis of the increase and decrease algorithms for congestion avoidance*).

    Parameters
    ----------
    limit : int
        Calls in flight at most; >= 1.
    """

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.window = float(self.limit)
        self.in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._answers_until_next_cut = 0

    def lower(self, limit: int) -> None:
        """Never allow more than `limit` from now on."""
        self.limit = max(1, min(self.limit, limit))
        self.window = min(self.window, float(self.limit))

    async def __aenter__(self) -> None:
        if not self._waiters and self.in_flight < int(self.window):
            self.in_flight += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._release()
            else:
                self._waiters.remove(waiter)
            raise

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._release()

    def answered(self) -> None:
        """A call was answered: let the window grow."""
        if self._answers_until_next_cut:
            self._answers_until_next_cut -= 1
        if self.window < self.limit:
            self.window = min(float(self.limit), self.window + 1.0 / self.window)
            self._wake()

    def refused(self) -> None:
        """The endpoint said that it is too busy: halve the window.

        Calls that were sent together are refused together, so the window is cut once for as
        many answers as were in flight at the cut.
        """
        if self._answers_until_next_cut:
            self._answers_until_next_cut -= 1
            return
        self._answers_until_next_cut = self.in_flight
        self.window = max(1.0, self.window / 2)

    def _release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiters and self.in_flight < int(self.window):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self.in_flight += 1
                waiter.set_result(None)
