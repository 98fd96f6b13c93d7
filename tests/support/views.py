"""Seat views around scripted models, for tests of agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from coordbench.api import (
    CallContext,
    CallRecord,
    ModelInfo,
    ModelReply,
    ModelRequest,
    ModelResult,
    Observation,
    RawCall,
    Rules,
    Sampling,
    SeatView,
    SystemMessage,
    UserMessage,
)
from coordbench.data.spec import Prompt
from coordbench.engine.prompts import tools_for

Behaviour = Callable[[ModelRequest], Awaitable[ModelResult]]


class Model:
    """A seat's model that answers by `behaviour` and keeps what it was asked."""

    def __init__(self, behaviour: Behaviour, *, instant: bool = False) -> None:
        self.info = ModelInfo(provider="test", model="scripted", instant=instant)
        self.behaviour = behaviour
        self.requests: list[ModelRequest] = []

    async def call(self, request: ModelRequest) -> ModelResult:
        self.requests.append(request)
        return await self.behaviour(request)


def reply_with(*names: str, text: str = "") -> ModelReply:
    calls = tuple(RawCall(name, "{}", id=f"c{index}") for index, name in enumerate(names))
    return ModelReply(stop="tool_calls" if calls else "stop", calls=calls, text=text)


def answered(reply: ModelReply, request_id: str = "") -> ModelResult:
    return ModelResult(record=CallRecord(request_id=request_id or None), reply=reply)


def view_of(
    model: Model,
    seat: int,
    n: int,
    *,
    episode: int = 0,
    round: int = 1,
    tools: bool = True,
) -> SeatView:
    return SeatView(
        observation=Observation(
            seat=seat,
            n=n,
            round=round,
            rules=Rules(rounds=9),
            left="free",
            right="free",
            meals=0,
        ),
        messages=(
            SystemMessage("the table"),
            UserMessage(f"episode {episode}, round {round}, seat {seat}"),
        ),
        tools=tools_for(Prompt(system="", round="now")) if tools else (),
        sampling=Sampling(),
        seed=seat,
        context=CallContext("cell", episode, 0, round, seat),
        model=model,
    )
