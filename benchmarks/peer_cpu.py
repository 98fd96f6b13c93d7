"""CPU per decision of scripted play, beside dpbench 0.2.1 doing the same.

Both play N = 5, 10, 15 for 30 episodes of the standard task's rounds with a random policy, in one
process, after imports, and count decisions taken. coordbench also writes and fsyncs its event log.

    pip install dpbench==0.2.1
    python benchmarks/peer_cpu.py
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import tempfile
import time
from pathlib import Path

from coordbench.cli import cli
from coordbench.data.decode import load_task
from coordbench.store import StoredRun

EPISODES = 30
MODEL = "script/random"


def coordbench_cpu() -> tuple[float, int]:
    """CPU seconds and decisions of `coordbench run dining_philosophers --model script/random`."""
    with tempfile.TemporaryDirectory() as folder:
        args = ["run", "dining_philosophers", "--model", MODEL, "--out", folder]
        began = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main(args=args, prog_name="coordbench", standalone_mode=False)
        cpu = time.process_time() - began
        stored = StoredRun.open(next(Path(folder).iterdir()))
        decisions = sum(
            episode.decisions
            for cell in stored.manifest.cells
            for episode in stored.episodes(cell.id)
        )
    return cpu, decisions


def peer_cpu(rounds: int, sizes: tuple[int, ...]) -> tuple[float, int]:
    """CPU seconds and decisions of dpbench's `Benchmark.run` with a trivial random model."""
    from dpbench import Benchmark

    calls = 0
    words = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")

    def model(system: str, user: str) -> str:
        nonlocal calls
        calls += 1
        return f"Thinking: none.\nAction: {random.choice(words)}"

    began = time.process_time()
    for n in sizes:
        with contextlib.redirect_stdout(io.StringIO()):
            Benchmark.run(
                model_fn=model,
                system_prompt="You are a philosopher.",
                decision_prompt="Choose.",
                philosophers=n,
                episodes=EPISODES,
                max_timesteps=rounds,
                mode="simultaneous",
                seed=1,
            )
    return time.process_time() - began, calls


def main() -> int:
    """Print both costs and their ratio; exit 1 where ours is above a tenth."""
    spec = load_task("dining_philosophers")
    coordbench_cpu()
    ours, our_decisions = coordbench_cpu()
    peers, peer_decisions = peer_cpu(spec.rules.rounds, spec.n)
    per_ours, per_peer = ours / our_decisions, peers / peer_decisions
    print(f"coordbench  {per_ours * 1e6:8.1f} us CPU a decision ({our_decisions} decisions)")
    print(f"dpbench     {per_peer * 1e6:8.1f} us CPU a decision ({peer_decisions} decisions)")
    print(f"ratio       {per_ours / per_peer:8.3f}  (at most 0.1 is the aim)")
    return 0 if per_ours <= 0.1 * per_peer else 1


if __name__ == "__main__":
    sys.exit(main())
