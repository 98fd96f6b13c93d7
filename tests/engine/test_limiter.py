"""The adaptive connection limit."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordbench.engine.limiter import Limiter


async def _in_flight_together(limiter: Limiter, calls: int) -> int:
    most = now = 0

    async def call() -> None:
        nonlocal most, now
        async with limiter:
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1

    await asyncio.gather(*(call() for _ in range(calls)))
    return most


async def test_never_more_than_the_limit_and_all_of_it_is_used() -> None:
    assert await _in_flight_together(Limiter(7), 40) == 7


async def test_a_refusal_halves_and_answers_grow_it_back() -> None:
    limiter = Limiter(16)
    limiter.refused()
    assert await _in_flight_together(limiter, 40) == 8
    for _ in range(400):
        limiter.answered()
    assert await _in_flight_together(limiter, 40) == 16


async def test_refusals_of_calls_sent_together_cut_once() -> None:
    limiter = Limiter(16)

    async def refused_call() -> None:
        async with limiter:
            await asyncio.sleep(0.001)
            limiter.refused()

    await asyncio.gather(*(refused_call() for _ in range(16)))
    assert int(limiter.window) == 8


async def test_the_window_never_closes() -> None:
    limiter = Limiter(4)
    for _ in range(100):
        limiter.refused()
    assert await _in_flight_together(limiter, 5) == 1


async def test_a_cancelled_waiter_takes_no_place() -> None:
    limiter = Limiter(1)
    held = asyncio.Event()

    async def hold() -> None:
        async with limiter:
            held.set()
            await asyncio.sleep(0.01)

    holder = asyncio.create_task(hold())
    await held.wait()
    waiter = asyncio.create_task(_in_flight_together(limiter, 1))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await holder
    assert await _in_flight_together(limiter, 3) == 1
    assert limiter.in_flight == 0


@given(st.lists(st.sampled_from(["answered", "refused"]), max_size=200), st.integers(1, 32))
def test_the_window_stays_between_one_and_the_limit(events: list[str], limit: int) -> None:
    limiter = Limiter(limit)
    for event in events:
        getattr(limiter, event)()
        assert 1 <= int(limiter.window) <= limit
