"""CPU per call of the OpenAI plugin, beside the SDK alone and (optionally) inspect_ai.

A server in another process answers every call after 200 ms. The SDK's bare loop sends one and the
same request and looks at the call that comes back; coordbench plays whole episodes of N = 5 and ten
rounds, reads every reply, and writes and fsyncs its events; inspect_ai runs one sample a seat, with
the same tools, memory and rounds, and writes its log.

    python benchmarks/provider_cpu.py
    python benchmarks/provider_cpu.py --inspect /path/to/python-with-inspect_ai

Exit status 1: an aim was missed (see `AIMS`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from coordbench.cli import cli
from coordbench.store import StoredRun
from coordbench.testing.chat_bodies import chat_call
from coordbench.testing.stub_server import StubResponse, StubServer

LATENCY_S = 0.2
N, ROUNDS = 5, 10
FLIGHTS = (50, 200, 500)
CALLS = 4000  # the same for all, so that what a run costs once weighs the same
AIM_FLIGHT = 200
AIMS = {"direct": 0.4, "langgraph": 1.0}  # of the bare loop
FLAT = 1.3  # the dearest of FLIGHTS over the cheapest
INSPECT_AIM = 0.1  # of inspect_ai, for `direct`: both then call the model and nothing else
HERE = Path(__file__).resolve()


def serve() -> None:
    """The server's process."""
    body = json.dumps(chat_call("think")).encode()
    answer = StubResponse(body=body, delay_s=LATENCY_S)
    with StubServer(lambda _: answer, keep=1) as server:
        print(server.url, flush=True)
        sys.stdin.read()
        print(server.most_in_flight, server.calls, flush=True)


@contextlib.contextmanager
def server_elsewhere() -> Iterator[str]:
    """URL of a server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, str(HERE), "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait()


def prompt() -> dict[str, Any]:
    """The last request of an episode as coordbench sends it: arguments of `create`."""
    with StubServer(lambda _: StubResponse(body=chat_call("think"))) as server:
        play(server.url, flight=N, agent="direct", episodes=1)
        arguments: dict[str, Any] = server.requests[-1].json()
    return arguments


async def gather_limited(call: Callable[[], Awaitable[None]], count: int, flight: int) -> None:
    """`count` calls, `flight` at once."""
    slots = asyncio.Semaphore(flight)

    async def one() -> None:
        async with slots:
            await call()

    await asyncio.gather(*(one() for _ in range(count)))


def bare_cpu(url: str, flight: int) -> float:
    """CPU seconds per call of a loop around `chat.completions.create`."""
    from openai import AsyncOpenAI

    arguments = prompt()

    async def measure() -> float:
        async with AsyncOpenAI(api_key="none", base_url=f"{url}/v1", timeout=600) as client:

            async def call() -> None:
                reply = await client.chat.completions.create(**arguments)
                assert reply.choices[0].message.tool_calls

            await gather_limited(call, flight, flight)  # connections opened, modules loaded
            began = time.process_time()
            await gather_limited(call, CALLS, flight)
            return (time.process_time() - began) / CALLS

    return asyncio.run(measure())


def play(url: str, flight: int, agent: str, episodes: int) -> tuple[float, int]:
    """CPU seconds of `coordbench run`, from plan to report, and the decisions made."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        run = play_at(url, flight, agent, episodes, Path(folder), n=N, rounds=ROUNDS)
        cpu = time.process_time() - began
        cells = [cell.id for cell in run.manifest.cells]
        return cpu, sum(e.decisions for cell in cells for e in run.episodes(cell))


def play_at(
    url: str, flight: int, agent: str, episodes: int, folder: Path, *, n: int, rounds: int
) -> StoredRun:
    """What `coordbench run` stores of a model at `url`."""
    name = f"openai/test,base_url={url}/v1,concurrency={flight}"
    arguments = ["run", "dining_philosophers", "--model", name, "--agent", agent]
    arguments += ["--n", str(n), "--rounds", str(rounds), "--episodes", str(episodes)]
    arguments += ["--out", str(folder), "--no-preflight", "--yes"]
    quiet_run(arguments)
    return StoredRun.open(next(folder.iterdir()))


def quiet_run(arguments: list[str]) -> None:
    """Run the command line in this process; what it says is thrown away."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        cli.main(args=arguments, prog_name="coordbench", standalone_mode=False)


def coordbench_cpu(url: str, flight: int, agent: str) -> float:
    """CPU seconds per call of coordbench."""
    play(url, flight, agent, episodes=2)  # modules loaded
    cpu, calls = play(url, flight, agent, episodes=CALLS // (N * ROUNDS))
    return cpu / calls


def inspect_cpu(python: str, url: str, flight: int) -> float:
    """CPU seconds per call of inspect_ai, run by an interpreter that has it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, str(HERE.with_name("provider_cpu_inspect.py"))],
            input=json.dumps(
                {
                    "url": f"{url}/v1",
                    "flight": flight,
                    "samples": CALLS // ROUNDS,
                    "rounds": ROUNDS,
                    "prompt": prompt(),
                }
            ),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(f"inspect_ai failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def main() -> int:
    """Measure, print a table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--inspect", metavar="PYTHON", help="interpreter that has inspect_ai")
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return 0
    rows: dict[str, Callable[[str, int], float]] = {
        "bare create": bare_cpu,
        "coordbench, direct": lambda url, flight: coordbench_cpu(url, flight, "direct"),
        "coordbench, langgraph": lambda url, flight: coordbench_cpu(url, flight, "langgraph"),
    }
    found: dict[str, dict[int, float]] = {name: {} for name in rows}
    print(f"CPU per call in ms; server at {LATENCY_S * 1000:g} ms, N={N}, {ROUNDS} rounds")
    print(f"{'calls in flight':<24}" + "".join(f"{flight:>8}" for flight in FLIGHTS))
    with server_elsewhere() as url:
        for name, measure in rows.items():
            for flight in FLIGHTS:
                found[name][flight] = measure(url, flight)
            cells = "".join(f"{found[name][flight] * 1e3:>8.2f}" for flight in FLIGHTS)
            print(f"{name:<24}{cells}", flush=True)
        peer = inspect_cpu(chosen.inspect, url, AIM_FLIGHT) if chosen.inspect else None
    if peer is not None:
        print(f"{'inspect_ai':<24}{'':>8}{peer * 1e3:>8.2f}")
    return judge(found, peer)


def judge(found: dict[str, dict[int, float]], peer: float | None) -> int:
    """Print ratios against the aims; 1 where one is missed."""
    missed = 0

    def line(what: str, ratio: float, aim: float) -> None:
        nonlocal missed
        missed += ratio > aim
        print(f"{what:<52}{ratio:>6.2f}  (aim: at most {aim:g})")

    print()
    bare = found["bare create"][AIM_FLIGHT]
    for agent, aim in AIMS.items():
        ours = found[f"coordbench, {agent}"]
        line(f"{agent} / bare, {AIM_FLIGHT} in flight", ours[AIM_FLIGHT] / bare, aim)
        line(f"{agent}, dearest / cheapest", max(ours.values()) / min(ours.values()), FLAT)
    if peer is not None:
        line("direct / inspect_ai", found["coordbench, direct"][AIM_FLIGHT] / peer, INSPECT_AIM)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
