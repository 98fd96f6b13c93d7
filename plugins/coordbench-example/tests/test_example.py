"""What the example offers, tested the way a plugin of your own would be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coordbench.api import (
    Action,
    CallContext,
    CallRecord,
    Decision,
    EpisodeJob,
    EpisodeLog,
    Failure,
    FailureRecord,
    ForkView,
    Invalid,
    Lane,
    Message,
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
    Tool,
    UserMessage,
)
from coordbench_example.agent import RetryOnce
from coordbench_example.executor import OneByOne
from coordbench_example.model import Echo

TOOLS = tuple(Tool(action.value.replace("-", "_"), action, "...") for action in Action)


def observation(left: ForkView, right: ForkView) -> Observation:
    rules = Rules(rounds=9)
    return Observation(seat=1, n=3, round=2, rules=rules, left=left, right=right, meals=0)


def run(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "coordbench", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


class TestEcho:
    @pytest.mark.parametrize(
        ("left", "right", "action"),
        [
            ("free", "free", "pick_up_left"),
            ("taken", "free", "pick_up_right"),
            ("mine", "free", "pick_up_right"),
            ("mine", "taken", "put_down_left"),
            ("mine", "mine", "put_down_left"),
            ("taken", "mine", "put_down_right"),
            ("taken", "taken", "think"),
        ],
    )
    async def test_calls_the_first_tool_that_the_table_would_accept(
        self, left: ForkView, right: ForkView, action: str
    ) -> None:
        model = Echo()
        reply = await model.complete(
            ModelRequest(
                messages=(), tools=TOOLS, sampling=Sampling(), observation=observation(left, right)
            )
        )
        assert [call.name for call in reply.calls] == [action]
        await model.aclose()

    async def test_calls_the_tool_it_is_made_to_call(self) -> None:
        model = Echo()
        reply = await model.complete(
            ModelRequest(messages=(), tools=TOOLS, sampling=Sampling(), force="eat")
        )
        assert [call.name for call in reply.calls] == ["eat"]

    async def test_speaks_where_no_tool_is_offered(self) -> None:
        model = Echo(say="hello")
        reply = await model.complete(ModelRequest(messages=(), tools=(), sampling=Sampling()))
        assert (reply.text, reply.calls) == ("hello", ())


class Scripted:
    """A seat's model that gives prepared results, and keeps what it was asked."""

    info = ModelInfo(provider="test", model="scripted")

    def __init__(self, *results: ModelResult) -> None:
        self.results = list(results)
        self.requests: list[ModelRequest] = []

    async def call(self, request: ModelRequest) -> ModelResult:
        self.requests.append(request)
        return self.results.pop(0)


def answer(reply: ModelReply, request_id: str) -> ModelResult:
    return ModelResult(record=CallRecord(request_id=request_id), reply=reply)


def call(name: str) -> ModelReply:
    return ModelReply(stop="tool_calls", calls=(RawCall(name, "{}", id="c"),))


def view(model: Scripted, tools: tuple[Tool, ...] = TOOLS) -> SeatView:
    return SeatView(
        observation=observation("free", "free"),
        messages=(SystemMessage("The table."), UserMessage("Your turn.")),
        tools=tools,
        sampling=Sampling(),
        seed=5,
        context=CallContext("cell", 0, 0, 2, 1),
        model=model,
    )


class TestRetryOnce:
    async def test_takes_a_decision_as_it_comes(self) -> None:
        model = Scripted(answer(call("eat"), "first"))
        (turn,) = await RetryOnce().decide([view(model)])
        assert turn.result == Decision(Action.EAT)
        assert [record.request_id for record in turn.calls] == ["first"]

    async def test_asks_again_after_a_reply_that_is_no_decision(self) -> None:
        model = Scripted(answer(call("dance"), "first"), answer(call("think"), "second"))
        (turn,) = await RetryOnce().decide([view(model)])
        assert turn.result == Decision(Action.THINK)
        assert [record.request_id for record in turn.calls] == ["first", "second"]
        asked = model.requests[1]
        assert [type(message).__name__ for message in asked.messages[2:]] == [
            "AssistantMessage",
            "ToolMessage",
            "UserMessage",
        ]
        assert asked.seed != model.requests[0].seed

    async def test_asks_only_once_more(self) -> None:
        prose = ModelReply(stop="stop", text="I think I will eat.")
        model = Scripted(answer(prose, "first"), answer(prose, "second"))
        (turn,) = await RetryOnce().decide([view(model)])
        assert isinstance(turn.result, Invalid)
        assert len(turn.calls) == 2

    async def test_a_failure_is_no_reason_to_ask_again_but_keeps_what_was_paid(self) -> None:
        outage = FailureRecord(kind="timeout", message="no answer")
        model = Scripted(
            answer(call("dance"), "first"), ModelResult(record=CallRecord(), failure=outage)
        )
        (turn,) = await RetryOnce().decide([view(model)])
        assert turn.result == Failure(outage)
        assert len(turn.calls) == 2

    async def test_a_message_is_a_message(self) -> None:
        model = Scripted(answer(ModelReply(stop="stop", text="after you"), "first"))
        (turn,) = await RetryOnce().decide([view(model, tools=())])
        assert turn.result == Message("after you")


class Recorder:
    """A player that plays nothing, and a stop signal."""

    def __init__(self) -> None:
        self.draining = False
        self.cancelled = False
        self.played: list[int] = []

    def cell_stopped(self, cell: str) -> bool:
        return cell == "stopped"

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...

    def lane(self, job: EpisodeJob) -> Lane:
        return Lane("lane", 1, 1)

    async def play(self, job: EpisodeJob) -> EpisodeLog:
        self.played.append(job.episode)
        return EpisodeLog(job=job, events=(), blobs={})


class TestOneByOne:
    async def test_plays_in_order_leaves_out_stopped_cells_and_drains(self) -> None:
        player = Recorder()
        done: list[int] = []

        def sink(log: EpisodeLog) -> None:
            done.append(log.job.episode)
            player.draining = log.job.episode == 2

        cells = ["a", "stopped", "a", "a"]
        jobs = [EpisodeJob(cell=cell, episode=index, seed=0) for index, cell in enumerate(cells)]
        await OneByOne().run(jobs, player, sink, player)
        assert player.played == done == [0, 2]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the example's model, agent and executor."""
    folder = tmp_path_factory.mktemp("example")
    done = run(
        *("run", "dining_philosophers", "--model", "echo", "--model", "example:echo,say=hello"),
        *("--agent", "retry-once", "--executor", "one-by-one"),
        *("--n", "3", "--episodes", "2", "--rounds", "6", "--out", "runs"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_everything_it_offers_is_found_and_sound(tmp_path: Path) -> None:
    done = run("plugins", "--json", cwd=tmp_path)
    (example,) = [p for p in json.loads(done.stdout)["plugins"] if p["plugin"] == "example"]
    assert (example["state"], example["problems"]) == ("ok", [])
    assert {(offer["kind"], offer["name"]) for offer in example["offers"]} == {
        ("model", "echo"),
        ("reward", "kindness"),
        ("metric", "first-meal"),
        ("agent", "retry-once"),
        ("reporter", "tsv"),
        ("executor", "one-by-one"),
    }


def test_the_tsv_has_a_row_for_each_cell(played: Path) -> None:
    (folder,) = (played / "runs").iterdir()
    done = run("report", str(folder), "--reporter", "tsv", "--out", "out", cwd=played)
    assert done.returncode == 0, done.stderr
    header, *rows = (played / "out" / "cells.tsv").read_text(encoding="utf-8").splitlines()
    table = [dict(zip(header.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert [row["team"] for row in table] == ["echo", "echo,say=hello"]
    assert [row["scored"] for row in table] == ["2", "2"]
    # All reach for their left fork in the first round, and that is the end of it.
    assert [float(row["metric:deadlock"]) for row in table] == [1.0, 1.0]


def test_the_reward_and_the_metric_of_a_played_task(tmp_path: Path) -> None:
    task = tmp_path / "task.toml"
    task.write_text(
        'name = "kind"\nn = [3]\nepisodes = 2\nmodels = ["script/resource-order"]\n'
        'rewards = ["kindness,weight=2"]\nmetrics = ["first-meal"]\n'
        '[rules]\nrounds = 12\n[prompt]\nsystem = "s"\nround = "r"\n',
        encoding="utf-8",
    )
    done = run("run", "task.toml", "--out", "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    run("report", str(folder), "-r", "tsv", "--out", "out", cwd=tmp_path)
    header, row = (tmp_path / "out" / "cells.tsv").read_text(encoding="utf-8").splitlines()
    values = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert 0 < float(values["reward:kindness,weight=2"]) <= 2
    assert float(values["metric:first-meal"]) >= 3
