"""Decisions per second of the small local model, by tool mode and number of threads.

    python benchmarks/llamacpp_decisions.py --episodes 1 --rounds 6 --max-tokens 32

Plays the standard task at N = 5. CPU is that of llama.cpp's process: on a machine that others use
as well, it tells more than the clock does.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from collections.abc import Callable

import msgspec

from coordbench.api import CallRecord, EpisodeLog, FailureRecord, ModelInfo, NoOptions
from coordbench.data.decode import load_task
from coordbench.data.spec import TaskSpec
from coordbench.engine.control import Control
from coordbench.engine.local import build_local
from coordbench.engine.plan import make_plan
from coordbench.engine.player import CorePlayer
from coordbench.engine.run import all_jobs
from coordbench.plugins import Registry

HEADINGS = (
    *("threads", "tools", "decisions", "per s", "CPU s each"),
    *("tokens in", "computed", "tokens out", "deadlocks"),
)


class Counts:
    """Sums over the calls of one run."""

    def __init__(self) -> None:
        self.calls = self.input = self.cached = self.output = self.deadlocks = 0

    def called(self, info: ModelInfo, record: CallRecord, failure: FailureRecord | None) -> None:
        if failure is not None:
            raise SystemExit(f"{failure.kind}: {failure.message}")
        self.calls += 1
        self.input += record.usage.input_tokens or 0
        self.cached += record.usage.cached_tokens or 0
        self.output += record.usage.output_tokens or 0

    def ended(self, log: EpisodeLog) -> None:
        self.deadlocks += getattr(log.events[-1], "reason", "") == "deadlock"


async def play(spec: TaskSpec, registry: Registry) -> tuple[Counts, float]:
    plan, counts = make_plan(spec, registry), Counts()
    player = CorePlayer(plan, registry=registry, on_call=counts.called)
    await player.open()
    try:
        started = time.perf_counter()
        executor = build_local("", NoOptions())
        await executor.run(all_jobs(plan), player, counts.ended, Control())
        return counts, time.perf_counter() - started
    finally:
        await player.aclose()


def measured(run: Callable[[], tuple[Counts, float]]) -> tuple[Counts, float, float]:
    """What a run counted, its seconds, and the CPU seconds of its child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts, seconds = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return counts, seconds, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--memory", type=int, help="rounds remembered; the task's own by default")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tools", nargs="+", default=["constrained", "native"])
    chosen = parser.parse_args()
    replace, task = msgspec.structs.replace, load_task("dining_philosophers")
    memory = task.prompt.memory if chosen.memory is None else chosen.memory
    registry = Registry.load()
    print("  ".join(f"{heading:>11}" for heading in HEADINGS))
    for threads in chosen.threads:
        for tools in chosen.tools:
            spec = replace(
                task,
                n=(5,),
                episodes=chosen.episodes,
                models=(f"llamacpp/smollm2,threads={threads},tools={tools}",),
                rules=replace(task.rules, rounds=chosen.rounds, on_deadlock="continue"),
                prompt=replace(task.prompt, memory=memory),
                sampling=replace(task.sampling, max_tokens=chosen.max_tokens),
            )

            def run(spec: TaskSpec = spec) -> tuple[Counts, float]:
                return asyncio.run(play(spec, registry))

            counts, seconds, cpu = measured(run)
            row = (
                *(threads, tools, counts.calls, f"{counts.calls / seconds:.2f}"),
                f"{cpu / counts.calls:.2f}",
                *(f"{counts.input / counts.calls:.0f}", f"{1 - counts.cached / counts.input:.0%}"),
                *(f"{counts.output / counts.calls:.1f}", counts.deadlocks),
            )
            print("  ".join(f"{value!s:>11}" for value in row), flush=True)


if __name__ == "__main__":
    main()
