"""The episode loop: what models are shown, what is logged, and how an episode ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from support.episodes import cell_of, play
from support.models import FakeModel, call_of, failing

from coordbench.api import (
    AssistantMessage,
    EpisodeLog,
    ModelReply,
    ModelRequest,
    Observation,
    Rules,
    SeatView,
    Turn,
)
from coordbench.data.episode import Episode, fold
from coordbench.data.events import EpisodeEnded, MessageSent, TableStepped, TurnTaken
from coordbench.data.spec import Communication
from coordbench.engine.budget import BudgetLimits

RULES = Rules(rounds=6)
LEFT_FIRST = ("pick-up-left", "pick-up-right", "eat", "put-down-left", "put-down-right", "think")


def think(request: ModelRequest, number: int) -> ModelReply:
    return call_of(request, "think")


def always(action: str) -> FakeModel:
    return FakeModel(lambda request, number: call_of(request, action))


def by_round(*actions: str) -> FakeModel:
    def answer(request: ModelRequest, number: int) -> ModelReply:
        assert request.observation is not None
        return call_of(request, actions[request.observation.round - 1])

    return FakeModel(answer)


def folded(log: EpisodeLog, rules: Rules = RULES) -> Episode:
    episode = fold(log.events, rules)
    assert episode is not None
    return episode


async def test_everybody_reaching_left_ends_in_deadlock() -> None:
    episode = folded(await play(cell_of(5, RULES), [always("pick-up-left")]))
    assert (episode.status, episode.reason) == ("completed", "deadlock")
    assert (episode.deadlock_round, episode.rounds_played) == (1, 1)
    assert episode.total_meals == 0


async def test_play_goes_on_after_a_deadlock_where_the_rules_say_so() -> None:
    rules = Rules(rounds=4, on_deadlock="continue")
    model = by_round("pick-up-left", "think", "put-down-left", "think")
    episode = folded(await play(cell_of(3, rules), [model]), rules)
    assert (episode.status, episode.reason, episode.rounds_played) == ("completed", "rounds", 4)
    assert episode.deadlocks == 1


async def test_one_seat_eats_while_the_others_think() -> None:
    models = [by_round(*LEFT_FIRST)] + [always("think") for _ in range(2)]
    episode = folded(await play(cell_of(3, RULES), models))
    assert episode.meals == (1, 0, 0)
    assert episode.reason == "rounds"


async def test_all_seats_of_a_simultaneous_round_are_asked_at_once() -> None:
    model = FakeModel(lambda request, number: call_of(request, "think"), delay_s=0.01)
    await play(cell_of(15, Rules(rounds=2)), [model])
    assert model.most == 15


async def test_sequential_seats_see_what_was_done_before_them() -> None:
    seen: list[tuple[int, str, str]] = []

    def answer(request: ModelRequest, number: int) -> ModelReply:
        view = request.observation
        assert view is not None
        seen.append((view.seat, view.left, view.right))
        return call_of(request, "pick-up-left")

    rules = Rules(rounds=1, order="sequential")
    log = await play(cell_of(3, rules), [FakeModel(answer)])
    assert seen == [(0, "free", "free"), (1, "free", "free"), (2, "free", "taken")]
    assert sum(isinstance(event, TableStepped) for event in log.events) == 3


async def test_a_seat_is_never_shown_more_than_its_own_two_forks() -> None:
    views: list[Observation] = []

    def answer(request: ModelRequest, number: int) -> ModelReply:
        assert request.observation is not None
        views.append(request.observation)
        return call_of(request, "think")

    await play(cell_of(5, Rules(rounds=1)), [FakeModel(answer)])
    assert {view.seat for view in views} == set(range(5))
    for view in views:
        fields = set(msgspec.structs.asdict(view)) - {"rules", "heard", "last"}
        assert fields == {"seat", "n", "round", "left", "right", "meals"}


async def test_an_invalid_reply_does_nothing_and_is_not_think() -> None:
    model = FakeModel(lambda request, number: ModelReply(stop="stop", text="I think I will wait."))
    episode = folded(await play(cell_of(3, RULES), [model]))
    assert episode.invalid_turns == episode.decisions == 18
    assert episode.think_turns == 0
    assert {turn.action for turn in episode.turns} == {None}


async def test_a_failure_ends_the_episode_unscored_and_never_reaches_the_table() -> None:
    bad = FakeModel(failing("server_error", 99, think))
    log = await play(cell_of(3, RULES), [always("think"), bad, always("think")])
    episode = folded(log)
    assert (episode.status, episode.reason, episode.scored) == ("failed", "server_error", False)
    assert not any(isinstance(event, TableStepped) for event in log.events)


async def test_calls_paid_for_beside_a_failure_are_all_logged() -> None:
    bad = FakeModel(failing("rate_limit", 99, think))
    log = await play(cell_of(3, RULES), [always("think"), bad, always("eat")])
    turns = [event for event in log.events if isinstance(event, TurnTaken)]
    assert [turn.seat for turn in turns] == [0, 1, 2]
    assert all(turn.calls for turn in turns)


async def test_memory_shows_a_seat_its_own_past_rounds_and_no_others() -> None:
    histories: dict[int, list[int]] = {}

    def answer(request: ModelRequest, number: int) -> ModelReply:
        view = request.observation
        assert view is not None
        past = [message for message in request.messages if isinstance(message, AssistantMessage)]
        histories.setdefault(view.seat, []).append(len(past))
        for message in past:
            assert message.reply.text == f"seat {view.seat}"
        reply = call_of(request, "think")
        return msgspec.structs.replace(reply, text=f"seat {view.seat}")

    rules = Rules(rounds=5)
    base = cell_of(2, rules)
    prompt = msgspec.structs.replace(base.prompt, memory=2)
    await play(cell_of(2, rules, prompt=prompt), [FakeModel(answer)])
    assert histories == {0: [0, 1, 2, 2, 2], 1: [0, 1, 2, 2, 2]}


async def test_no_memory_leaks_into_the_next_episode() -> None:
    counts: list[int] = []

    def answer(request: ModelRequest, number: int) -> ModelReply:
        counts.append(len(request.messages))
        return call_of(request, "think")

    rules = Rules(rounds=2)
    prompt = msgspec.structs.replace(cell_of(2, rules).prompt, memory=5)
    cell = cell_of(2, rules, prompt=prompt)
    model = FakeModel(answer)
    await play(cell, [model])
    first = list(counts)
    counts.clear()
    await play(cell, [model])
    assert counts == first


@pytest.mark.parametrize(
    ("audience", "heard_by_0"), [("neighbours", {1, 4}), ("all", {1, 2, 3, 4})]
)
async def test_messages_are_heard_by_those_the_spec_names(
    audience: str, heard_by_0: set[int]
) -> None:
    heard: set[int] = set()

    def answer(request: ModelRequest, number: int) -> ModelReply:
        view = request.observation
        assert view is not None
        if not request.tools:
            return ModelReply(stop="stop", text=f"seat {view.seat} says eat " + "x" * 50)
        if view.seat == 0:
            heard.update(message.seat for message in view.heard)
        return call_of(request, "think")

    talk = Communication(rounds=1, audience=audience, max_chars=20)  # type: ignore[arg-type]
    cell = cell_of(5, Rules(rounds=1), communication=talk)
    log = await play(cell, [FakeModel(answer)])
    sent = [event for event in log.events if isinstance(event, MessageSent)]
    assert heard == heard_by_0
    assert len(sent) == 5
    assert all(event.cut and len(event.text) == 20 for event in sent)
    assert folded(log, cell.rules).think_turns == 5


async def test_a_later_message_round_hears_the_earlier_one() -> None:
    heard: list[int] = []

    def answer(request: ModelRequest, number: int) -> ModelReply:
        view = request.observation
        assert view is not None
        if not request.tools:
            heard.append(len(view.heard))
            return ModelReply(stop="stop", text="hello")
        return call_of(request, "think")

    talk = Communication(rounds=2, audience="all")
    await play(cell_of(3, Rules(rounds=1), communication=talk), [FakeModel(answer)])
    assert heard == [0, 0, 0, 2, 2, 2]


async def test_a_spent_budget_stops_the_episode_and_keeps_its_calls() -> None:
    log = await play(cell_of(3, RULES), [always("think")], budget=BudgetLimits(calls=7))
    ended = log.events[-1]
    assert isinstance(ended, EpisodeEnded)
    assert (ended.status, ended.reason, ended.rounds) == ("stopped", "budget", 2)
    turns = [event for event in log.events if isinstance(event, TurnTaken)]
    assert sum(turn.failure is None for turn in turns) == 7


async def test_cancelling_ends_the_log_whole() -> None:
    model = FakeModel(lambda request, number: call_of(request, "think"), delay_s=0.02)
    task = asyncio.create_task(play(cell_of(3, Rules(rounds=1000)), [model]))
    await asyncio.sleep(0.05)
    task.cancel()
    log = await task
    ended = log.events[-1]
    assert isinstance(ended, EpisodeEnded)
    assert (ended.status, ended.reason) == ("stopped", "interrupt")


class BrokenAgent:
    """Calls every seat's model, then raises."""

    def __init__(self, error: Exception | None = None, seats: Sequence[int] = ()) -> None:
        self.error = error
        self.seats = seats

    async def decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        for view in views:
            await view.model.call(view.request())
        if self.error is not None:
            raise self.error
        return []


@pytest.mark.parametrize("error", [RuntimeError("boom"), None])
async def test_a_broken_agent_fails_the_episode_and_loses_no_paid_call(
    error: Exception | None,
) -> None:
    log = await play(cell_of(3, RULES), [always("think")], agent=BrokenAgent(error))
    ended = log.events[-1]
    assert isinstance(ended, EpisodeEnded)
    assert (ended.status, ended.reason) == ("failed", "agent_error")
    turns = [event for event in log.events if isinstance(event, TurnTaken)]
    assert sum(len(turn.calls) for turn in turns) == 3


async def test_the_same_seed_gives_the_same_events_apart_from_times() -> None:
    def without_times(log: EpisodeLog) -> list[object]:
        plain = msgspec.to_builtins(log.events)
        return [
            {key: value for key, value in event.items() if key not in ("at", "calls")}
            for event in plain
        ]

    logs = [await play(cell_of(5, RULES), [always("pick-up-right")], seed=3) for _ in range(2)]
    assert without_times(logs[0]) == without_times(logs[1])
