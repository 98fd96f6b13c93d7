"""The traps of LangGraph that public reports describe, as behaviour of the agent."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, TypedDict

import pytest
from support.views import Model, answered, reply_with, view_of

from coordbench.agents.langgraph import build_langgraph
from coordbench.agents.options import LangGraphOptions
from coordbench.api import (
    Action,
    CallRecord,
    Decision,
    Failure,
    FailureRecord,
    Invalid,
    InvalidReason,
    ModelReply,
    ModelRequest,
    ModelResult,
    RawCall,
)
from coordbench.data.errors import UsageError

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "provider_cases.jsonl"


def case(name: str) -> dict[str, Any]:
    if not CASES.is_file():
        pytest.skip(f"no case file: {CASES.name} stands beside the checkout only where it was laid")
    for line in CASES.read_text().splitlines():
        found: dict[str, Any] = json.loads(line)
        if found["id"] == name:
            return found
    raise AssertionError(f"no case {name}")


def agent() -> Any:
    return build_langgraph("", LangGraphOptions())


async def eats(request: ModelRequest) -> ModelResult:
    return answered(reply_with("eat"), f"seat {request.seed}")


async def test_c001_the_step_limit_follows_from_the_graph() -> None:
    given = case("C001")["input"]
    from langchain_core.runnables.config import var_child_runnable_config

    token = var_child_runnable_config.set({"recursion_limit": 1})
    try:
        table = agent()
        for round_ in range(1, given["rounds"] + 1):
            seats = range(given["philosophers"])
            views = [view_of(Model(eats), seat, len(seats), round=round_) for seat in seats]
            turns = await table.decide(views)
            assert all(turn.result == Decision(Action.EAT) for turn in turns)
    finally:
        var_child_runnable_config.reset(token)


@pytest.mark.parametrize("limit", [1, 2])
async def test_c002_a_step_limit_reached_is_a_failure_and_keeps_what_was_paid(limit: int) -> None:
    expect = case("C002")["expect"]
    table = agent()
    assert limit < table.recursion_limit
    table.recursion_limit = limit
    turns = await table.decide([view_of(Model(eats), seat, 3) for seat in range(3)])
    for turn in turns:
        assert isinstance(turn.result, Failure)
        assert turn.result.record.kind == expect["kind"]
        assert [call.request_id for call in turn.calls] == [f"seat {turn.seat}"]


async def test_c003_seats_may_write_in_parallel() -> None:
    writers = case("C003")["input"]["parallel_writers"]
    turns = await agent().decide([view_of(Model(eats), s, writers) for s in range(writers)])
    assert [turn.result for turn in turns] == [Decision(Action.EAT)] * writers


async def test_c006_a_failed_seat_cancels_no_other() -> None:
    expect = case("C006")["expect"]
    failure = FailureRecord(kind=expect["kind"], message="429 after retries", status=429)

    async def fails(request: ModelRequest) -> ModelResult:
        return ModelResult(record=CallRecord(tries=5, request_id="p0"), failure=failure)

    models = [Model(fails), Model(eats), Model(eats)]
    turns = await agent().decide([view_of(model, s, 3) for s, model in enumerate(models)])
    assert [turn.result for turn in turns] == [
        Failure(failure),
        Decision(Action.EAT),
        Decision(Action.EAT),
    ]
    assert [turn.calls[0].request_id for turn in turns] == ["p0", "seat 1", "seat 2"]


async def test_c008_no_state_is_taken_over_from_a_graph_around_it() -> None:
    thread = case("C008")["input"]["thread_id"]
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    class Outer(TypedDict):
        episode: int

    table = agent()
    asked: list[Any] = []

    async def play(state: Outer) -> dict[str, int]:
        for round_ in (1, 2):
            models = [Model(eats), Model(eats)]
            views = [
                view_of(model, s, 2, episode=state["episode"], round=round_)
                for s, model in enumerate(models)
            ]
            turns = await table.decide(views)
            assert [turn.result for turn in turns] == [Decision(Action.EAT)] * 2
            for view, model in zip(views, models, strict=True):
                assert [request.messages for request in model.requests] == [view.messages]
            asked.append(models)
        return {"episode": state["episode"] + 1}

    graph = StateGraph(Outer)
    graph.add_node("play", play)
    graph.add_edge(START, "play")
    graph.add_edge("play", END)
    saver = InMemorySaver()
    outer = graph.compile(checkpointer=saver)
    for episode in (0, 1):
        await outer.ainvoke({"episode": episode}, {"configurable": {"thread_id": thread}})
    assert len(asked) == 4
    namespaces = {saved.config["configurable"]["checkpoint_ns"] for saved in saver.list(None)}
    assert namespaces == {""}


async def test_c009_nothing_of_a_round_is_kept() -> None:
    expect = case("C009")["expect"]
    assert expect["memory_bounded_per_episode"]
    table = agent()
    kept: list[weakref.ref[Model]] = []
    for round_ in range(1, 13):
        models = [Model(eats) for _ in range(5)]
        kept += [weakref.ref(model) for model in models]
        await table.decide([view_of(m, s, 5, round=round_) for s, m in enumerate(models)])
        del models
    gc.collect()
    assert [ref for ref in kept if ref() is not None] == []


async def test_c010_a_broken_call_is_no_final_answer() -> None:
    found = case("C010")
    broken = found["input"]["ai_message"]["invalid_tool_calls"][0]

    async def answer(request: ModelRequest) -> ModelResult:
        call = RawCall(broken["name"], broken["args"], id=broken["id"], kind="broken")
        return answered(ModelReply(stop="tool_calls", calls=(call,)))

    turns = await agent().decide([view_of(Model(answer), 0, 2)])
    assert isinstance(turns[0].result, Invalid)
    assert turns[0].result.reason is InvalidReason(found["expect"]["reason"])


async def test_the_graph_shows_philosophers_that_ask_and_are_read() -> None:
    drawn = agent().graph.get_graph().draw_mermaid()
    assert "ask --> read" in drawn
    conversations = {}
    views = [view_of(Model(eats), seat, 3) for seat in range(3)]
    async for state in agent().graph.astream(
        {"views": tuple(views), "messages": {}, "results": {}, "turns": ()}, stream_mode="values"
    ):
        conversations = state["messages"]
    for seat, view in enumerate(views):
        assert conversations[seat][:-1] == view.messages
        assert conversations[seat][-1].reply == reply_with("eat")


PLAY = """
import asyncio, sys
from support.views import Model, answered, reply_with, view_of
from coordbench.agents.langgraph import build_langgraph
from coordbench.agents.options import LangGraphOptions

async def eats(request):
    return answered(reply_with("eat"))

agent = build_langgraph("", LangGraphOptions(trace=sys.argv[1] == "traced"))
turns = asyncio.run(agent.decide([view_of(Model(eats), seat, 3) for seat in range(3)]))
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
print([type(turn.result).__name__ for turn in turns])
"""


@contextmanager
def collector() -> Iterator[tuple[str, list[str]]]:
    """A stand-in for LangSmith on this machine; the paths it was asked for."""
    hits: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        do_POST = do_PATCH = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hits
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def play(mode: str, **environment: str) -> str:
    tests = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PLAY, mode],
        env={**os.environ, "PYTHONPATH": str(tests), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize(("mode", "traces"), [("plain", False), ("traced", True)])
def test_a_run_is_traced_only_where_the_agent_is_told_to(mode: str, traces: bool) -> None:
    with collector() as (endpoint, hits):
        made = play(
            mode,
            LANGSMITH_TRACING="true",
            LANGCHAIN_TRACING_V2="true",
            LANGSMITH_ENDPOINT=endpoint,
            LANGSMITH_API_KEY="none",
        )
    assert made == "['Decision', 'Decision', 'Decision']"
    assert bool(hits) is traces


def test_a_tracer_that_langchain_no_longer_has_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LANGCHAIN_TRACING", "true")
    with pytest.raises(UsageError, match="unset LANGCHAIN_TRACING"):
        agent()


def test_importing_the_agents_imports_no_langgraph() -> None:
    code = (
        "import sys, coordbench.agents.direct, coordbench.agents.langgraph\n"
        "heavy = {'langgraph', 'langchain_core', 'langsmith', 'numpy', 'scipy'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
