"""What a run may spend. A call that could exceed the budget is not made."""

from __future__ import annotations

import asyncio

import msgspec

from coordbench.api.models import ModelInfo
from coordbench.data.events import Usage
from coordbench.engine.prices import call_cost

__all__ = ["Budget", "BudgetLimits", "Reservation"]

_DIGITS_PER_TOKEN = 3.0
_ROUNDING = 1e-12


class BudgetLimits(msgspec.Struct, frozen=True):
    """Limits of a run. None: no limit.

    Attributes
    ----------
    cost : float or None
        US dollars. Needs a known price for every paid model.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


class Reservation(msgspec.Struct, frozen=True):
    """The most that one call may use."""

    tokens: int
    cost: float


class Budget:
    """Counts what was spent and what calls in flight may still spend.

    Parameters
    ----------
    limits : BudgetLimits
    """

    def __init__(self, limits: BudgetLimits) -> None:
        self.limits = limits
        self.calls = 0
        self.tokens = 0
        self.cost = 0.0
        self.unpriced_calls = 0
        self._held_calls = 0
        self._held_tokens = 0
        self._held_cost = 0.0
        self._waiting: list[asyncio.Future[None]] = []
        self.unlimited = limits == BudgetLimits()

    async def reserve(
        self, info: ModelInfo, prompt_chars: int, max_tokens: int
    ) -> Reservation | str:
        """Set aside the most a call may use; or say which limit it could exceed.

        Calls in flight rarely use all that was set aside for them, so a call that only they stand
        in the way of waits until one of them ends.
        """
        tokens = int(prompt_chars / _DIGITS_PER_TOKEN) + max_tokens
        most = call_cost(info, Usage(input_tokens=tokens - max_tokens, output_tokens=max_tokens))
        wanted = Reservation(tokens=tokens, cost=most or 0.0)
        limits = self.limits
        while True:
            if limits.calls is not None and self.calls + self._held_calls >= limits.calls:
                return f"--max-calls {limits.calls} is used up"
            if _over(limits.tokens, self.tokens + tokens):
                return f"the next call could exceed --max-tokens {limits.tokens}"
            if _over(limits.cost, self.cost + wanted.cost):
                return f"the next call could exceed --max-cost {limits.cost:g}"
            if not _over(limits.tokens, self.tokens + self._held_tokens + tokens) and not _over(
                limits.cost, self.cost + self._held_cost + wanted.cost
            ):
                break
            settled = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        self._held_calls += 1
        self._held_tokens += wanted.tokens
        self._held_cost += wanted.cost
        return wanted

    def settle(self, held: Reservation, info: ModelInfo, usage: Usage | None) -> None:
        """Replace a reservation by what the call used; None: it was refused and cost nothing."""
        self._held_calls -= 1
        self._held_tokens -= held.tokens
        # Sums of floats leave dust behind; nothing is held where no call is.
        self._held_cost = self._held_cost - held.cost if self._held_calls else 0.0
        self.calls += 1
        self._use(held, info, usage)
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def _use(self, held: Reservation, info: ModelInfo, usage: Usage | None) -> None:
        if usage is None:
            return
        known = usage.input_tokens is not None and usage.output_tokens is not None
        self.tokens += (
            (usage.input_tokens or 0) + (usage.output_tokens or 0) if known else held.tokens
        )
        cost = call_cost(info, usage)
        if cost is None:
            self.unpriced_calls += 1
            cost = held.cost
        self.cost += cost


def _over(limit: float | None, value: float) -> bool:
    return limit is not None and value > limit * (1.0 + _ROUNDING)
