"""Ten thousand calls of which one in twenty goes wrong: nothing lost, nothing counted twice.

A server in this process answers through real sockets; faults are drawn by a seed: 429 with and
without Retry-After, 500, 529, reset connections, bodies cut in half, and answers that never come.
Then the stored events are held against what the server sent.

    python benchmarks/faults.py                      # 10,000 calls, 5% faults
    python benchmarks/faults.py --busy               # 2,000 calls, 20% of them answered 429

Exit status 1: an episode was lost or counted twice, or a fault reached the table.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

from provider_cpu import quiet_run

from coordbench.store import StoredRun
from coordbench.testing.chat_bodies import chat_call
from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

N, ROUNDS = 5, 10
LIMIT = 100
TASK = """
name = "faults"
n = [{n}]
episodes = {episodes}
[rules]
rounds = {rounds}
[limits]
timeout_s = 2.0
tries = 8
max_wait_s = 5.0
[prompt]
system = "You are seat $seat of $n."
round = "Round $round."
"""
_ERROR = {"error": {"message": "injected", "type": "requests", "code": None}}
FAULTS = {
    "429": StubResponse(status=429, body=_ERROR),
    "429 with Retry-After": StubResponse(status=429, headers={"retry-after": "0.05"}, body=_ERROR),
    "500": StubResponse(status=500, body=_ERROR),
    "529": StubResponse(status=529, body=_ERROR),
    "reset": StubResponse(fault="reset"),
    "cut": StubResponse(body=chat_call("think"), fault="cut"),
    "hang": StubResponse(fault="hang"),
}
BUSY = ("429", "429 with Retry-After")


class Far:
    """The far end: faults by a seeded draw, and a count of each."""

    def __init__(self, share: float, kinds: tuple[str, ...]) -> None:
        self.share = share
        self.kinds = kinds
        self.draw = random.Random(0)
        self.sent: Counter[str] = Counter()

    def __call__(self, request: StubRequest) -> StubResponse:
        if self.draw.random() >= self.share:
            self.sent["answer"] += 1
            return StubResponse(body=chat_call("think"))
        kind = self.draw.choice(self.kinds)
        self.sent[kind] += 1
        return FAULTS[kind]


def play(far: Far, calls: int, folder: Path) -> StoredRun:
    """Play as many episodes as make `calls` decisions."""
    task = folder / "task.toml"
    task.write_text(TASK.format(n=N, rounds=ROUNDS, episodes=calls // (N * ROUNDS)))
    with StubServer(far, keep=1) as server:
        name = f"openai/test,base_url={server.url}/v1,concurrency={LIMIT}"
        arguments = ["run", str(task), "--model", name, "--no-preflight", "--yes"]
        quiet_run([*arguments, "--out", str(folder / "runs")])
    return StoredRun.open(next((folder / "runs").iterdir()))


def wrong(run: StoredRun, far: Far, calls: int) -> list[str]:
    """What does not add up."""
    (cell,) = run.manifest.cells
    episodes = list(run.episodes(cell.id))
    made = [call for episode in episodes for _, call in episode.calls]
    faults = far.sent.total() - far.sent["answer"]
    checks = {
        "episodes lost": len(run.missing(cell.id)),
        "episodes counted twice": len(episodes) - len({e.index for e in episodes}),
        "episodes not completed": sum(not e.scored for e in episodes),
        "decisions missing": calls - sum(e.decisions for e in episodes),
        "turns that are not the model's": sum(e.decisions - e.think_turns for e in episodes),
        "calls missing": calls - len(made),
        "tries without an answer of the server": sum(c.tries for c in made) - far.sent.total(),
        "faults without a record": faults - sum(len(call.failures) for call in made),
    }
    return [f"{what}: {count}" for what, count in checks.items() if count]


def main() -> int:
    """Play, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--busy", action="store_true", help="2,000 calls, 20% answered 429")
    busy = parser.parse_args().busy
    bad = []
    memory = []
    # The same thing twice: memory that grows with calls would show in the second.
    for calls in (2000,) if busy else (10_000, 10_000):
        far = Far(0.2, BUSY) if busy else Far(0.05, tuple(FAULTS))
        with tempfile.TemporaryDirectory() as folder:
            found = wrong(play(far, calls, Path(folder)), far, calls)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        sent = ", ".join(f"{count} {kind}" for kind, count in sorted(far.sent.items()))
        print(f"{calls:,} calls; the server sent {sent}")
        print("  " + ("; ".join(found) or "nothing lost, nothing twice, no fault on the table"))
        bad += found
    if len(memory) > 1:
        print(f"peak memory, second over first: {memory[1] / memory[0]:.2f}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
