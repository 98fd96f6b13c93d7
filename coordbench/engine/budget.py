"""What a run may spend. A call that could exceed the budget is not made."""

from __future__ import annotations

import msgspec

from coordbench.api.models import ModelInfo
from coordbench.data.events import Usage
from coordbench.engine.prices import call_cost

__all__ = ["Budget", "BudgetLimits", "Reservation"]

_DIGITS_PER_TOKEN = 3.0


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
        self.unlimited = limits == BudgetLimits()

    def reserve(self, info: ModelInfo, prompt_chars: int, max_tokens: int) -> Reservation | str:
        """Set aside the most a call may use; or say which limit it could exceed."""
        tokens = int(prompt_chars / _DIGITS_PER_TOKEN) + max_tokens
        most = call_cost(info, Usage(input_tokens=tokens - max_tokens, output_tokens=max_tokens))
        cost = most or 0.0
        limits = self.limits
        if limits.calls is not None and self.calls + self._held_calls + 1 > limits.calls:
            return f"--max-calls {limits.calls} is used up"
        if limits.tokens is not None and self.tokens + self._held_tokens + tokens > limits.tokens:
            return f"the next call could exceed --max-tokens {limits.tokens}"
        if limits.cost is not None and self.cost + self._held_cost + cost > limits.cost:
            return f"the next call could exceed --max-cost {limits.cost:g}"
        self._held_calls += 1
        self._held_tokens += tokens
        self._held_cost += cost
        return Reservation(tokens=tokens, cost=cost)

    def settle(self, held: Reservation, info: ModelInfo, usage: Usage | None) -> None:
        """Replace a reservation by what the call used; None: it was refused and cost nothing."""
        self._held_calls -= 1
        self._held_tokens -= held.tokens
        self._held_cost -= held.cost
        self.calls += 1
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

    def release(self, held: Reservation) -> None:
        """Give a reservation back: the call was never made."""
        self._held_calls -= 1
        self._held_tokens -= held.tokens
        self._held_cost -= held.cost
