"""The reply cache: what is asked twice is paid once, and samples stay distinct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from support.models import FakeModel, call_of, failing

from coordbench.api import (
    Action,
    CallContext,
    ModelReply,
    ModelRequest,
    Sampling,
    Tool,
    UsageError,
    UserMessage,
)
from coordbench.data.spec import Limits
from coordbench.engine.budget import Budget, BudgetLimits
from coordbench.engine.cache import ReplyCache
from coordbench.engine.caller import Caller
from coordbench.engine.limiter import Limiter

REQUEST = ModelRequest(
    messages=(UserMessage("your turn"),),
    tools=tuple(Tool(name=action, action=action, description="") for action in Action),
    sampling=Sampling(),
    seed=1,
    context=CallContext(cell="c", episode=0, episode_seed=11, round=1, seat=0),
)


def think(request: ModelRequest, number: int) -> ModelReply:
    return msgspec.structs.replace(call_of(request, "think"), text=f"answer {number}")


MakeCaller = Callable[..., Caller]


@pytest.fixture
def caller_of(tmp_path: Path) -> Iterator[MakeCaller]:
    """Makes callers that share one file, each with a connection of its own."""
    opened: list[ReplyCache] = []

    def make(model: FakeModel, name: str = "fake") -> Caller:
        opened.append(ReplyCache(tmp_path / "c"))
        budget = Budget(BudgetLimits(calls=100))
        return Caller(model, Limiter(8), budget, Limits(tries=1), name=name, cache=opened[-1])

    yield make
    for cache in opened:
        cache.close()


async def test_the_same_call_is_made_once_also_by_another_process(caller_of: MakeCaller) -> None:
    model = FakeModel(think)
    first = await caller_of(model).call(REQUEST, {})
    blobs: dict[str, bytes] = {}
    caller = caller_of(model)
    again = await caller.call(REQUEST, blobs)
    assert model.calls == 1
    assert again.reply == first.reply
    assert again.record.cached
    assert not first.record.cached
    assert again.record.reply in blobs
    assert caller.budget.calls == 0


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"messages": (UserMessage("your turn!"),)},
        {"sampling": Sampling(temperature=0.1)},
        {"context": CallContext(cell="c", episode=1, episode_seed=12, round=1, seat=0)},
        {"context": CallContext(cell="c", episode=0, episode_seed=11, round=1, seat=1)},
        {"tools": REQUEST.tools[:3]},
    ],
)
async def test_another_call_is_another_call(
    caller_of: MakeCaller, change: dict[str, object]
) -> None:
    model = FakeModel(think)
    caller = caller_of(model)
    await caller.call(REQUEST, {})
    await caller.call(msgspec.structs.replace(REQUEST, **change), {})
    assert model.calls == 2


async def test_another_model_or_setting_is_another_call(caller_of: MakeCaller) -> None:
    model = FakeModel(think)
    await caller_of(model).call(REQUEST, {})
    await caller_of(model, "fake,temperature=0").call(REQUEST, {})
    assert model.calls == 2


async def test_failures_are_not_cached(caller_of: MakeCaller) -> None:
    model = FakeModel(failing("server_error", 1, think))
    caller = caller_of(model)
    assert (await caller.call(REQUEST, {})).failure is not None
    assert (await caller.call(REQUEST, {})).failure is None


def test_a_file_that_is_no_cache_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(UsageError, match="reply cache"):
        ReplyCache(tmp_path / "c")
