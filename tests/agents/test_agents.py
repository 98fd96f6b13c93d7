"""What holds for every agent: one turn per view, in order, whatever the models do."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.views import Behaviour, Model, answered, reply_with, view_of

from coordbench.agents.direct import build_direct
from coordbench.agents.langgraph import build_langgraph
from coordbench.agents.options import LangGraphOptions
from coordbench.api import (
    Action,
    Agent,
    CallRecord,
    Decision,
    Failure,
    FailureRecord,
    Invalid,
    Message,
    ModelReply,
    ModelRequest,
    ModelResult,
    NoOptions,
    RawCall,
    SeatView,
    UserMessage,
)

DIRECT = build_direct("", NoOptions())
LANGGRAPH = build_langgraph("", LangGraphOptions())
EAT = answered(reply_with("eat"))
LIMITED = FailureRecord(kind="rate_limit", message="too many requests", status=429)


def always(result: ModelResult) -> Behaviour:
    async def answer(request: ModelRequest) -> ModelResult:
        return result

    return answer


def seats(behaviours: list[Behaviour], *, tools: bool = True) -> list[SeatView]:
    n = len(behaviours)
    return [view_of(Model(b), seat, n, tools=tools) for seat, b in enumerate(behaviours)]


REPLIES = st.sampled_from(
    [
        reply_with("pick_up_left"),
        reply_with("think"),
        reply_with("eat", "eat"),
        reply_with("eat", "think"),
        reply_with("wait"),
        reply_with(text="I would rather eat."),
        reply_with(),
        ModelReply(stop="length", calls=(RawCall("eat", "{}"),)),
        ModelReply(stop="refused", refusal="no"),
        ModelReply(stop="tool_calls", calls=(RawCall("eat", "{broken"),)),
    ]
)
OUTCOMES = st.one_of(
    REPLIES.map(answered),
    st.just(ModelResult(record=CallRecord(failures=(LIMITED,), tries=5), failure=LIMITED)),
    st.just(ValueError("a bug in a provider")),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(OUTCOMES, min_size=1, max_size=8), st.booleans(), st.randoms())
async def test_both_agents_make_the_same_turns(
    outcomes: list[ModelResult | Exception], tools: bool, order: object
) -> None:
    def behave(outcome: ModelResult | Exception, waits: int) -> Behaviour:
        async def answer(request: ModelRequest) -> ModelResult:
            for _ in range(waits):
                await asyncio.sleep(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return answer

    waits = [order.randrange(4) for _ in outcomes]  # type: ignore[attr-defined]
    views = seats([behave(o, w) for o, w in zip(outcomes, waits, strict=True)], tools=tools)
    direct = await DIRECT.decide(views)
    langgraph = await LANGGRAPH.decide(views)
    assert list(direct) == list(langgraph)
    assert [turn.seat for turn in direct] == list(range(len(views)))
    for view in views:
        first, second = view.model.requests  # type: ignore[attr-defined]
        assert first == second == view.request()


async def test_all_seats_are_asked_at_once(agent: Agent) -> None:
    together = asyncio.Barrier(15)

    async def answer(request: ModelRequest) -> ModelResult:
        await together.wait()
        return EAT

    async with asyncio.timeout(20):
        turns = await agent.decide(seats([answer] * 15))
    assert [turn.result for turn in turns] == [Decision(Action.EAT)] * 15


async def test_turns_stand_in_the_order_of_views_not_of_answers(agent: Agent) -> None:
    names = ["pick_up_left", "pick_up_right", "put_down_left", "put_down_right", "eat", "think"]
    answers: list[int] = []
    gates = [asyncio.Event() for _ in range(13)]
    gates[12].set()

    def behave(seat: int) -> Behaviour:
        async def answer(request: ModelRequest) -> ModelResult:
            await gates[seat + 1].wait()
            answers.append(seat)
            gates[seat].set()
            return answered(reply_with(names[seat % 6]))

        return answer

    async with asyncio.timeout(20):
        turns = await agent.decide(seats([behave(seat) for seat in range(12)]))
    assert answers == list(range(11, -1, -1))
    assert [turn.seat for turn in turns] == list(range(12))
    made = [turn.result.action for turn in turns if isinstance(turn.result, Decision)]
    assert made == [Action(names[seat % 6].replace("_", "-")) for seat in range(12)]


async def test_one_seats_failure_leaves_the_others_their_turns(agent: Agent) -> None:
    failed = asyncio.Event()

    async def fails(request: ModelRequest) -> ModelResult:
        failed.set()
        return ModelResult(record=CallRecord(tries=5, failures=(LIMITED,)), failure=LIMITED)

    async def breaks(request: ModelRequest) -> ModelResult:
        raise KeyError("a bug in a provider")

    async def late(request: ModelRequest) -> ModelResult:
        await failed.wait()
        await asyncio.sleep(0.01)
        return answered(reply_with("eat"), "paid-1")

    turns = await agent.decide(seats([fails, late, breaks, late]))
    assert turns[0].result == Failure(LIMITED)
    assert turns[0].calls[0].tries == 5
    assert isinstance(turns[2].result, Failure)
    assert turns[2].result.record.kind == "agent_error"
    assert "KeyError" in turns[2].result.record.message
    for turn in (turns[1], turns[3]):
        assert turn.result == Decision(Action.EAT)
        assert [call.request_id for call in turn.calls] == ["paid-1"]


async def test_a_message_round_takes_text_and_no_action(agent: Agent) -> None:
    said = answered(reply_with(text="I take my left fork; eat."))
    turns = await agent.decide(seats([always(said), always(EAT)], tools=False))
    assert [turn.result for turn in turns] == [Message("I take my left fork; eat."), Message("")]


async def test_prose_is_no_action(agent: Agent) -> None:
    turns = await agent.decide(seats([always(answered(reply_with(text="I think.")))]))
    assert isinstance(turns[0].result, Invalid)
    assert turns[0].reply == reply_with(text="I think.")


async def test_cancelling_a_round_cancels_its_calls(agent: Agent) -> None:
    started, cancelled = asyncio.Barrier(6), []

    async def waits(request: ModelRequest) -> ModelResult:
        await started.wait()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(request.context.seat if request.context else None)
            raise
        raise AssertionError

    async with asyncio.timeout(20):
        playing = asyncio.create_task(_list(agent, seats([waits] * 5)))
        await started.wait()
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
    assert sorted(seat for seat in cancelled if seat is not None) == [0, 1, 2, 3, 4]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def _list(agent: Agent, views: list[SeatView]) -> list[object]:
    return list(await agent.decide(views))


async def test_episodes_side_by_side_see_only_their_own(agent: Agent) -> None:
    together = asyncio.Barrier(12)

    async def answer(request: ModelRequest) -> ModelResult:
        await together.wait()
        shown = request.messages[-1]
        assert isinstance(shown, UserMessage)
        return answered(reply_with("eat"), shown.text)

    async def play(episode: int) -> list[str]:
        said = []
        for round_ in (1, 2, 3):
            views = [
                view_of(Model(answer), seat, 3, episode=episode, round=round_) for seat in range(3)
            ]
            turns = await agent.decide(views)
            said += [str(turn.calls[0].request_id) for turn in turns]
            for view in views:
                (request,) = view.model.requests  # type: ignore[attr-defined]
                assert request.messages == view.messages
        return said

    async with asyncio.timeout(20):
        games = await asyncio.gather(*(play(episode) for episode in range(4)))
    for episode, said in enumerate(games):
        assert said == [
            f"episode {episode}, round {round_}, seat {seat}"
            for round_ in (1, 2, 3)
            for seat in range(3)
        ]


async def test_a_sequential_turn_is_one_seats(agent: Agent) -> None:
    turns = await agent.decide([view_of(Model(always(EAT)), 7, 9)])
    assert [(turn.seat, turn.result) for turn in turns] == [(7, Decision(Action.EAT))]


async def test_instant_and_waiting_models_share_a_table(agent: Agent) -> None:
    together = asyncio.Barrier(2)

    async def waits(request: ModelRequest) -> ModelResult:
        await together.wait()
        return EAT

    views = [
        view_of(Model(waits), 0, 4),
        view_of(Model(always(EAT), instant=True), 1, 4),
        view_of(Model(waits), 2, 4),
        view_of(Model(always(answered(reply_with("think"))), instant=True), 3, 4),
    ]
    async with asyncio.timeout(20):
        turns = await agent.decide(views)
    assert [turn.result for turn in turns] == [
        Decision(Action.EAT),
        Decision(Action.EAT),
        Decision(Action.EAT),
        Decision(Action.THINK),
    ]
