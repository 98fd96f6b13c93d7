"""Calls: retries, time-outs, the budget, and what is kept of each."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from support.models import FakeModel, call_of, failing

from coordbench.api import (
    Action,
    ModelError,
    ModelReply,
    ModelRequest,
    Sampling,
    SystemMessage,
    Tool,
    UserMessage,
)
from coordbench.data.spec import Limits
from coordbench.engine.budget import Budget, BudgetLimits
from coordbench.engine.caller import Caller
from coordbench.engine.limiter import Limiter

REQUEST = ModelRequest(
    messages=(SystemMessage("rules"), UserMessage("your turn")),
    tools=tuple(Tool(name=action, action=action, description="") for action in Action),
    sampling=Sampling(max_tokens=120),
)


def think(request: ModelRequest, number: int) -> ModelReply:
    return call_of(request, "think")


def caller_of(model: FakeModel, budget: BudgetLimits | None = None, **limits: object) -> Caller:
    values = msgspec.structs.replace(Limits(max_wait_s=0.05, tries=4, timeout_s=5.0), **limits)
    return Caller(model, Limiter(8), Budget(budget or BudgetLimits()), values)


async def test_a_clean_call_keeps_prompt_reply_and_usage() -> None:
    blobs: dict[str, bytes] = {}
    result = await caller_of(FakeModel(think)).call(REQUEST, blobs)
    assert result.failure is None
    assert result.record.prompt is not None
    assert result.record.reply is not None
    assert blobs[result.record.prompt] == b"your turn"
    stored = msgspec.json.decode(blobs[result.record.reply], type=ModelReply)
    assert stored == result.reply
    assert result.record.usage.input_tokens == 100
    assert result.record.tries == 1


async def test_a_call_that_can_succeed_later_is_tried_again_and_says_so() -> None:
    model = FakeModel(failing("rate_limit", 2, think, retry=True, wait_s=0.001))
    result = await caller_of(model).call(REQUEST, {})
    assert result.failure is None
    assert result.record.tries == 3
    assert [failure.kind for failure in result.record.failures] == ["rate_limit", "rate_limit"]


@pytest.mark.parametrize("kind", ["auth", "quota", "config", "context_length"])
async def test_a_call_that_cannot_succeed_later_is_made_once(kind: str) -> None:
    model = FakeModel(failing(kind, 99, think, retry=False, scope="cell"))
    result = await caller_of(model).call(REQUEST, {})
    assert result.failure is not None
    assert (result.failure.kind, result.failure.scope) == (kind, "cell")
    assert model.calls == 1


async def test_tries_are_limited() -> None:
    model = FakeModel(failing("server_error", 99, think, retry=True, wait_s=0.0))
    result = await caller_of(model, tries=3).call(REQUEST, {})
    assert result.failure is not None
    assert result.failure.kind == "server_error"
    assert model.calls == 3


async def test_a_busy_server_is_waited_for_beyond_the_tries() -> None:
    model = FakeModel(failing("rate_limit", 7, think, retry=True, wait_s=0.001))
    result = await caller_of(model, tries=7, max_wait_s=0.5).call(REQUEST, {})
    assert result.failure is None
    assert result.record.tries == 8


async def test_a_server_that_stays_busy_is_given_up_after_the_longest_wait() -> None:
    model = FakeModel(failing("overloaded", 999, think, retry=True, wait_s=0.0))
    result = await caller_of(model, tries=3, max_wait_s=0.1).call(REQUEST, {})
    assert result.failure is not None
    assert result.failure.kind == "overloaded"
    assert 3 < model.calls < 10


async def test_the_providers_own_wait_is_respected() -> None:
    model = FakeModel(failing("rate_limit", 1, think, retry=True, wait_s=0.04))
    began = time.perf_counter()
    await caller_of(model).call(REQUEST, {})
    assert time.perf_counter() - began >= 0.04


async def test_a_wait_beyond_the_limit_is_not_waited_for() -> None:
    model = FakeModel(failing("rate_limit", 99, think, retry=True, wait_s=3600.0))
    result = await asyncio.wait_for(caller_of(model).call(REQUEST, {}), timeout=2)
    assert result.failure is not None
    assert model.calls == 1


async def test_no_answer_in_time_is_a_timeout_and_is_tried_again() -> None:
    model = FakeModel(think, delay_s=30)
    result = await caller_of(model, timeout_s=0.01, tries=2).call(REQUEST, {})
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert model.calls == 2
    assert model.now == 0


async def test_a_providers_bug_is_a_failure_not_a_crash() -> None:
    model = FakeModel(lambda request, number: ZeroDivisionError("oops"))
    result = await caller_of(model).call(REQUEST, {})
    assert result.failure is not None
    assert result.failure.kind == "provider_error"
    assert "ZeroDivisionError" in result.failure.message


async def test_max_calls_stops_before_one_call_more() -> None:
    model = FakeModel(think)
    caller = caller_of(model, BudgetLimits(calls=3))
    results = await asyncio.gather(*(caller.call(REQUEST, {}) for _ in range(5)))
    assert model.calls == 3
    stopped = [result.failure for result in results if result.failure is not None]
    assert [failure.kind for failure in stopped] == ["stopped", "stopped"]
    assert "--max-calls 3" in stopped[0].message


async def test_max_tokens_counts_what_calls_in_flight_may_still_use() -> None:
    model = FakeModel(think, delay_s=0.005)
    caller = caller_of(model, BudgetLimits(tokens=800))
    await asyncio.gather(*(caller.call(REQUEST, {}) for _ in range(10)))
    assert 0 < caller.budget.tokens <= 800
    assert model.calls < 10


async def test_calls_in_flight_hold_a_budget_up_but_do_not_end_it() -> None:
    model = FakeModel(think, delay_s=0.005)
    caller = caller_of(model, BudgetLimits(tokens=3000))
    await asyncio.gather(*(caller.call(REQUEST, {}) for _ in range(100)))
    # Each call sets about 365 tokens aside and uses 110; eight set aside are not yet eight used.
    assert 3000 - 365 - 110 < caller.budget.tokens <= 3000


async def test_max_cost_stops_before_it_is_exceeded() -> None:
    model = FakeModel(think, paid=True, price_in=1000.0, price_out=5000.0)
    caller = caller_of(model, BudgetLimits(cost=1.8))
    for _ in range(10):
        await caller.call(REQUEST, {})
    assert 0 < caller.budget.cost <= 1.8
    assert model.calls < 10


async def test_an_unknown_price_is_counted_as_unknown_not_as_nothing() -> None:
    model = FakeModel(think, paid=True)
    caller = caller_of(model, BudgetLimits(calls=100))
    await caller.call(REQUEST, {})
    assert caller.budget.unpriced_calls == 1


async def test_keys_never_reach_a_failure_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value-123")
    error = ModelError("auth", "key very-secret-value-123 or sk-proj-abcdefghijklmnop refused")
    model = FakeModel(lambda request, number: error)
    result = await caller_of(model).call(REQUEST, {})
    assert result.failure is not None
    assert "very-secret-value-123" not in result.failure.message
    assert "sk-proj" not in result.failure.message


async def test_hostile_text_in_a_reply_can_be_stored() -> None:
    hostile = ModelReply(stop="stop", text="\ud83d \u2028 \x00 </script>", native={"n": 2**80})
    blobs: dict[str, bytes] = {}
    result = await caller_of(FakeModel(lambda request, number: hostile)).call(REQUEST, blobs)
    assert result.record.reply is not None
    msgspec.json.decode(blobs[result.record.reply], type=ModelReply)


async def test_cancelling_a_call_gives_its_place_back() -> None:
    model = FakeModel(think, delay_s=10)
    caller = caller_of(model, BudgetLimits(calls=100))
    task = asyncio.create_task(caller.call(REQUEST, {}))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caller.limiter.in_flight == 0
    assert caller.budget.calls == 1
