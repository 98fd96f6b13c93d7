"""Replaying a stored run: its answers, in its places, and a failure where it has none."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.episodes import PROMPT, cell_of
from support.models import Answer, FakeModel, call_of
from support.runs import cell_file, pack_file

from coordbench.agents.direct import build_direct
from coordbench.agents.turns import turn_from
from coordbench.api import (
    Agent,
    CallContext,
    CallRecord,
    EpisodeJob,
    EpisodeLog,
    Invalid,
    ModelError,
    ModelProvider,
    ModelReply,
    ModelRequest,
    NoOptions,
    Observation,
    Rules,
    Sampling,
    SeatView,
    Turn,
)
from coordbench.data.actions import Action, InvalidReason
from coordbench.data.errors import UnknownNameError, UsageError
from coordbench.data.events import EpisodeEnded, Event, MessageSent, TableStepped, TurnTaken
from coordbench.data.manifest import Manifest
from coordbench.data.plan import Cell
from coordbench.data.seeds import episode_seed
from coordbench.data.spec import Communication, Limits, TaskSpec
from coordbench.engine.budget import Budget, BudgetLimits
from coordbench.engine.caller import Caller
from coordbench.engine.limiter import Limiter
from coordbench.engine.loop import play_episode
from coordbench.models.replay import ReplayModel, ReplayOptions, build_replay, check_replay
from coordbench.store import RunWriter
from coordbench.store.blobs import encode_blobs
from coordbench.store.writer import encode_events

RULES = Rules(rounds=4)
ACTIONS = tuple(Action)


def varied(request: ModelRequest, number: int) -> ModelReply:
    """A reply that is different at every place; some are no decision."""
    at = request.context
    assert at is not None
    if not request.tools:
        return ModelReply(stop="stop", text=f"{at.episode}.{at.round}.{at.seat}.{at.exchange}")
    choice = (at.episode_seed + 7 * at.round + 3 * at.seat) % 8
    if choice < len(ACTIONS):
        reply = call_of(request, ACTIONS[choice])
        return msgspec.structs.replace(reply, request_id=f"{at.episode}-{at.round}-{at.seat}")
    return ModelReply(stop="stop", text=f"I think, {at.seat}")


async def play(
    cell: Cell,
    models: Sequence[ModelProvider],
    episodes: Sequence[int],
    *,
    agent: Agent | None = None,
    recover: bool = False,
    calls: int | None = None,
) -> list[EpisodeLog]:
    """Play episodes at once; one model takes all seats, or there is one per seat."""
    budget = Budget(BudgetLimits(calls=calls))
    limits = Limits(tries=1, timeout_s=5)
    seats = list(models) * cell.n if len(models) == 1 else list(models)
    callers = {id(model): Caller(model, Limiter(64), budget, limits) for model in models}
    return list(
        await asyncio.gather(
            *(
                play_episode(
                    cell,
                    EpisodeJob(cell.id, index, episode_seed(0, cell.n, index)),
                    agent or build_direct("", NoOptions()),
                    [callers[id(model)] for model in seats],
                    Sampling(),
                    recover=recover,
                )
                for index in episodes
            )
        )
    )


def store(folder: Path, cells: Sequence[Cell], logs: Sequence[EpisodeLog]) -> Path:
    spec = TaskSpec(name="t", rules=RULES, prompt=PROMPT, n=(3,), episodes=4)
    manifest = Manifest(run="rec", spec=spec, digest="d", cells=tuple(cells), created_at=0.0)
    with RunWriter.create(folder, manifest) as writer:
        for log in logs:
            writer.append(log)
    return writer.path


def recorded_cell(rules: Rules = RULES, **changes: object) -> Cell:
    return cell_of(3, rules, **({"id": "rec_n3", "episodes": 4} | changes))


def replayed_cell(cell: Cell, **changes: Any) -> Cell:
    return msgspec.structs.replace(cell, id="again_n3", team="replay", **changes)


def replay_of(run: Path, **options: str) -> ReplayModel:
    return build_replay(str(run), ReplayOptions(**options))


def played(log: EpisodeLog) -> list[Any]:
    """What happened, without clocks, prompts and the names of cell and team."""
    found: list[Any] = []
    for event in log.events:
        if isinstance(event, TurnTaken | MessageSent):
            replies = [(call.reply, call.usage, call.request_id) for call in event.calls]
            found.append((msgspec.structs.replace(event, calls=()), replies))
        elif isinstance(event, TableStepped):
            found.append(event)
    return found


def ended(log: EpisodeLog) -> EpisodeEnded:
    event: Event = log.events[-1]
    assert isinstance(event, EpisodeEnded)
    return event


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
async def test_every_reply_comes_back_in_its_place(tmp_path: Path, order: str) -> None:
    rules = msgspec.structs.replace(RULES, order=order)
    cell = recorded_cell(
        rules=rules,
        communication=Communication(rounds=2),
        prompt=msgspec.structs.replace(PROMPT, message="Say it.", round=PROMPT.round + "$heard"),
    )
    model = FakeModel(varied, delay_s=0.0005)
    logs = await play(cell, [model], range(4))
    run = store(tmp_path, [cell], logs)
    again = await play(replayed_cell(cell), [replay_of(run)], [3, 0, 2, 1])
    assert [played(log) for log in again] == [played(logs[index]) for index in (3, 0, 2, 1)]
    kinds = {type(event) for log in logs for event in log.events}
    assert {MessageSent, TurnTaken, TableStepped} <= kinds
    turns = [event for log in again for event in log.events if isinstance(event, TurnTaken)]
    assert any(turn.invalid is InvalidReason.NO_TOOL_CALL for turn in turns)
    assert any(turn.action is not None for turn in turns)
    calls = [call for turn in turns for call in turn.calls]
    assert sum(call.usage.input_tokens or 0 for call in calls) == 100 * sum(
        turn.action is not None for turn in turns
    )


async def test_another_reading_needs_no_new_call(tmp_path: Path) -> None:
    def marked(request: ModelRequest, number: int) -> ModelReply:
        name = request.tools[0].name
        return ModelReply(
            stop="stop", text=f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
        )

    cell = recorded_cell(episodes=1)
    model = FakeModel(marked)
    (strict,) = await play(cell, [model], [0])
    run = store(tmp_path, [cell], [strict])
    made = model.calls
    for recover, wanted in ((False, None), (True, Action.PICK_UP_LEFT)):
        (log,) = await play(replayed_cell(cell), [replay_of(run)], [0], recover=recover)
        first = log.events[1]
        assert isinstance(first, TurnTaken)
        assert first.action is wanted
    assert model.calls == made


class Retrying:
    """An agent that asks up to three times for a decision it can read, and waits in between."""

    def __init__(self, most: int = 3) -> None:
        self.most = most

    async def decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        return await asyncio.gather(*(self._turn(view) for view in views))

    async def _turn(self, view: SeatView) -> Turn:
        calls: list[CallRecord] = []
        for _ in range(self.most):
            turn = turn_from(view, await view.model.call(view.request()))
            calls += turn.calls
            if not isinstance(turn.result, Invalid):
                break
            await asyncio.sleep(0.001)
        return msgspec.structs.replace(turn, calls=tuple(calls))


def third_time() -> Answer:
    """Unreadable once or twice, by seat, before a call; every reply has its own number."""
    asked: dict[tuple[int, int, int], int] = {}

    def answer(request: ModelRequest, number: int) -> ModelReply:
        at = request.context
        assert at is not None
        key = (at.episode, at.round, at.seat)
        asked[key] = asked.get(key, 0) + 1
        if asked[key] <= at.seat:
            return ModelReply(stop="stop", text=f"no {key} {asked[key]}")
        return call_of(request, ACTIONS[(at.episode + at.round) % len(ACTIONS)])

    return answer


async def test_a_turn_of_several_calls_is_answered_in_their_order(tmp_path: Path) -> None:
    cell = recorded_cell()
    logs = await play(cell, [FakeModel(third_time())], range(4), agent=Retrying())
    run = store(tmp_path, [cell], logs)
    counts = {len(e.calls) for log in logs for e in log.events if isinstance(e, TurnTaken)}
    assert counts == {1, 2, 3}
    again = await play(replayed_cell(cell), [replay_of(run)], range(4), agent=Retrying())
    assert [played(log) for log in again] == [played(log) for log in logs]


async def test_episodes_in_play_at_once_keep_their_places_apart(tmp_path: Path) -> None:
    cell = recorded_cell()
    live = FakeModel(varied, delay_s=0.001)
    logs = await play(cell, [live, live, FakeModel(third_time())], range(4), agent=Retrying())
    run = store(tmp_path, [cell], logs)
    live = FakeModel(varied, delay_s=0.001)
    again = await play(
        replayed_cell(cell), [live, live, replay_of(run)], range(4), agent=Retrying()
    )
    assert live.most > 4
    assert [played(log) for log in again] == [played(log) for log in logs]


async def test_one_replay_serves_two_cells_at_once_and_an_episode_twice(tmp_path: Path) -> None:
    cell = recorded_cell()
    logs = await play(cell, [FakeModel(third_time())], range(4), agent=Retrying())
    replay = replay_of(store(tmp_path, [cell], logs))
    first, second = replayed_cell(cell), msgspec.structs.replace(cell, id="twice_n3")
    both = await asyncio.gather(
        *(play(each, [replay], [1], agent=Retrying()) for each in (first, second))
    )
    again = await play(first, [replay], [1], agent=Retrying())
    assert [played(log) for (log,) in (*both, again)] == [played(logs[1])] * 3


async def test_a_place_without_an_answer_fails_its_episode_and_says_which(
    tmp_path: Path,
) -> None:
    cell = recorded_cell()
    run = store(tmp_path, [cell], await play(cell, [FakeModel(varied)], range(2)))
    longer = msgspec.structs.replace(RULES, rounds=6, on_deadlock="continue")
    (log,) = await play(replayed_cell(cell, rules=longer), [replay_of(run)], [0])
    end = ended(log)
    assert (end.status, end.reason) == ("failed", "config")
    assert "rec recorded no (other) answer for cell rec_n3, episode 0, round 5" in end.detail
    (log,) = await play(replayed_cell(cell), [replay_of(run)], [3])
    assert "rec_n3 has no episode 3" in ended(log).detail
    assert "stored: 0-1" in ended(log).detail


async def test_an_agent_that_asks_more_often_is_not_answered_from_the_start(
    tmp_path: Path,
) -> None:
    cell = recorded_cell(episodes=1, rules=msgspec.structs.replace(RULES, rounds=1))
    model = FakeModel(lambda request, number: ModelReply(stop="stop", text=f"no {number}"))
    run = store(tmp_path, [cell], await play(cell, [model], [0], agent=Retrying(2)))
    (log,) = await play(replayed_cell(cell), [replay_of(run)], [0], agent=Retrying(3))
    assert ended(log).reason == "config"
    assert "round 1" in ended(log).detail


async def test_a_recorded_failure_fails_again_in_the_same_way(tmp_path: Path) -> None:
    def broken(request: ModelRequest, number: int) -> ModelReply | Exception:
        assert request.context is not None
        if (request.context.round, request.context.seat) == (2, 1):
            return ModelError("quota", "nothing left", scope="run", status=402)
        return varied(request, number)

    cell = recorded_cell()
    (log,) = await play(cell, [FakeModel(broken)], [0])
    (again,) = await play(replayed_cell(cell), [replay_of(store(tmp_path, [cell], [log]))], [0])
    assert (ended(again).status, ended(again).reason) == ("failed", "quota")
    (turn,) = [e for e in again.events if isinstance(e, TurnTaken) and e.failure is not None]
    assert turn.failure is not None
    assert (turn.round, turn.seat, turn.failure.status) == (2, 1, 402)
    # The key that was refused then is not asked now: other episodes go on.
    assert turn.failure.scope == "episode"


async def test_a_run_that_a_budget_stopped_does_not_stop_its_replay(tmp_path: Path) -> None:
    cell = recorded_cell()
    (log,) = await play(cell, [FakeModel(varied)], [0], calls=7)
    assert ended(log).status == "stopped"
    (again,) = await play(replayed_cell(cell), [replay_of(store(tmp_path, [cell], [log]))], [0])
    assert (ended(again).status, ended(again).reason) == ("failed", "config")
    assert "stopped there" in ended(again).detail


async def test_a_blob_that_is_lost_fails_its_episode(tmp_path: Path) -> None:
    cell = recorded_cell()
    run = store(tmp_path, [cell], await play(cell, [FakeModel(varied)], range(2)))
    lines = pack_file(run, cell.id).read_bytes().split(b"\n")
    pack_file(run, cell.id).write_bytes(
        b"\n".join(line for line in lines if b'"request_id\\":\\"1-1-' not in line)
    )
    replay = replay_of(run)
    (whole, hurt) = await play(replayed_cell(cell), [replay], [0, 1])
    assert ended(whole).status == "completed"
    assert ended(hurt).reason == "config"
    assert "cannot be read" in ended(hurt).detail


def request_at(n: int, episode: int = 0, seed: int | None = None) -> ModelRequest:
    return ModelRequest(
        messages=(),
        tools=(),
        sampling=Sampling(),
        observation=Observation(0, n, 1, RULES, "free", "free", 0),
        context=CallContext(
            cell="x",
            episode=episode,
            episode_seed=episode_seed(0, n, episode) if seed is None else seed,
            round=1,
            seat=0,
        ),
    )


async def test_what_no_episode_of_the_run_can_answer_ends_the_cell(tmp_path: Path) -> None:
    cell = recorded_cell()
    run = store(tmp_path, [cell], await play(cell, [FakeModel(varied)], [0]))
    replay = replay_of(run)
    for request, why in (
        (request_at(3, seed=1), "another seed"),
        (request_at(5), "no cell with N = 5, only 3"),
        (msgspec.structs.replace(request_at(3), context=None), "within an episode"),
    ):
        with pytest.raises(ModelError, match=why) as caught:
            await replay.complete(request)
        assert (caught.value.kind, caught.value.scope) == ("config", "cell")
    info = replay.info
    assert (info.provider, info.model) == ("replay", "rec")
    assert (info.instant, info.reads_text, info.paid) == (True, False, False)
    await replay.aclose()


async def test_the_cell_is_named_where_several_could_answer(tmp_path: Path) -> None:
    def thinking(request: ModelRequest, number: int) -> ModelReply:
        return call_of(request, Action.THINK)

    cells = [
        recorded_cell(),
        recorded_cell(id="other_n3", team="other"),
        recorded_cell(id="other_n3_quiet", team="other", variant="quiet"),
        cell_of(4, RULES, id="rec_n4", team="fake", episodes=4),
    ]
    logs = await play(cells[0], [FakeModel(varied)], [0])
    logs += await play(cells[1], [FakeModel(thinking)], [0])
    run = store(tmp_path, cells, logs)
    with pytest.raises(UsageError, match="N = 3: rec_n3, other_n3, other_n3_quiet") as caught:
        replay_of(run)
    assert f"replay/{run},cell=rec_n3" in str(caught.value)
    with pytest.raises(UsageError, match="N = 3: other_n3, other_n3_quiet"):
        replay_of(run, team="other")
    with pytest.raises(UsageError, match="no cell of team 'nobody'"):
        replay_of(run, team="nobody")
    with pytest.raises(UnknownNameError, match="did you mean 'rec_n3'"):
        replay_of(run, cell="rec-n3")
    replay_of(run, team="other", variant="quiet")
    for options, log in (({"team": "fake"}, logs[0]), ({"cell": "other_n3"}, logs[1])):
        (again,) = await play(replayed_cell(cells[0]), [replay_of(run, **options)], [0])
        assert played(again) == played(log)


def test_a_run_that_is_not_there_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError, match="no run 'rec'"):
        check_replay("rec", ReplayOptions())
    store(Path("runs"), [recorded_cell()], [])
    check_replay("rec", ReplayOptions())
    assert build_replay("latest", ReplayOptions()).info.model == "rec"
    with pytest.raises(UsageError, match="is not a run folder"):
        check_replay(str(tmp_path), ReplayOptions())


async def test_what_is_kept_while_replaying_stays_small(tmp_path: Path) -> None:
    many = 500
    cell = recorded_cell(msgspec.structs.replace(RULES, rounds=1), episodes=many)
    model = FakeModel(lambda request, number: ModelReply(stop="stop", text=f"{number} " * 1500))
    run = store(tmp_path, [cell], [])
    (log,) = await play(cell, [model], [0])
    with RunWriter.open(run) as writer:
        writer.append(log)
    events, pack = cell_file(run, cell.id), pack_file(run, cell.id)
    with events.open("wb") as file, pack.open("wb") as blobs:
        for index in range(many):
            (log,) = await play(cell, [model], [index])
            file.write(encode_events(log.events))
            blobs.write(encode_blobs(log.blobs))
    replay = replay_of(run)
    again = replayed_cell(cell)
    await play(again, [replay], [0])
    tracemalloc.start()
    for index in range(1, many):
        (log,) = await play(again, [replay], [index])
        assert ended(log).status == "completed"
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < pack.stat().st_size / 2
