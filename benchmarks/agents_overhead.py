"""CPU that each agent adds to a decision, with models that answer at once.

    python benchmarks/agents_overhead.py

`direct/instant` is what scripted policies pay, `direct` and `langgraph` what models behind a
network pay on top of their latency. Reading the reply is part of it; rendering prompts is not.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from coordbench.agents.direct import build_direct
from coordbench.agents.langgraph import build_langgraph
from coordbench.agents.options import LangGraphOptions
from coordbench.api import (
    Agent,
    CallContext,
    CallRecord,
    Decision,
    ModelInfo,
    ModelReply,
    ModelRequest,
    ModelResult,
    NoOptions,
    Observation,
    RawCall,
    SeatView,
)
from coordbench.data.decode import load_task
from coordbench.engine.prompts import render_messages, tools_for

SIZES = (1, 5, 15)
REPEATS = 5
DECISIONS = 3000
RESULT = ModelResult(
    record=CallRecord(),
    reply=ModelReply(stop="tool_calls", calls=(RawCall("think", "{}", id="c1"),)),
)


class AtOnce:
    def __init__(self, *, instant: bool) -> None:
        self.info = ModelInfo(provider="benchmark", model="at-once", instant=instant)

    async def call(self, request: ModelRequest) -> ModelResult:
        return RESULT


def views_of(n: int, *, instant: bool) -> list[SeatView]:
    spec = load_task("dining_philosophers")
    model, tools = AtOnce(instant=instant), tools_for(spec.prompt)
    views = []
    for seat in range(n):
        seen = Observation(
            seat=seat, n=n, round=1, rules=spec.rules, left="free", right="free", meals=0
        )
        views.append(
            SeatView(
                observation=seen,
                messages=render_messages(spec.prompt, spec.communication, seen),
                tools=tools,
                sampling=spec.sampling,
                seed=seat,
                context=CallContext("cell", 0, 0, 1, seat),
                model=model,
            )
        )
    return views


async def cpu_per_decision(agent: Agent, views: Sequence[SeatView], decisions: int) -> float:
    """Best of several repeats, in microseconds."""
    turns = await agent.decide(views)
    assert all(isinstance(turn.result, Decision) for turn in turns), turns
    rounds = max(10, decisions // len(views))
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.process_time()
        for _ in range(rounds):
            await agent.decide(views)
        best = min(best, time.process_time() - begun)
    return best / rounds / len(views) * 1e6


async def main() -> None:
    direct = build_direct("", NoOptions())
    graph = build_langgraph("", LangGraphOptions())
    rows: list[tuple[str, Agent, bool, int]] = [
        ("direct/instant", direct, True, 20 * DECISIONS),
        ("direct", direct, False, 5 * DECISIONS),
        ("langgraph", graph, False, DECISIONS),
    ]
    print(f"Python {sys.version.split()[0]}; microseconds of CPU per decision")
    print(f"{'agent':<16}" + "".join(f"{f'N={n}':>10}" for n in SIZES))
    for name, agent, instant, decisions in rows:
        cells = [
            await cpu_per_decision(agent, views_of(n, instant=instant), decisions) for n in SIZES
        ]
        print(f"{name:<16}" + "".join(f"{cell:>10.1f}" for cell in cells))


if __name__ == "__main__":
    asyncio.run(main())
