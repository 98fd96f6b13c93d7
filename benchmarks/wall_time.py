"""Wall time of a run beside what its rounds must take: how well calls overlap.

A server in another process answers every call after 200 ms. All seats of a simultaneous round, and
episodes up to the connection limit, should wait together, so that a run takes about

    calls / calls in flight at most x latency

(with one episode, or room for all of them: rounds x latency). The time of a run goes from the
beginning of its first episode to the end of its last, with every event written and fsynced.

    python benchmarks/wall_time.py

Exit status 1: an aim was missed.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

from provider_cpu import LATENCY_S, play_at, server_elsewhere

N, ROUNDS = 15, 12
SHAPES = ((1, 15), (30, 60), (30, 150), (30, 450))  # episodes, connection limit
AIM = 1.3
AIM_SHAPES = {(1, 15), (30, 60)}  # beyond them one core's CPU, not waiting, is the limit


def measure(url: str, episodes: int, limit: int) -> tuple[float, float, int]:
    """(seconds taken, seconds that must be waited, decisions)."""
    with tempfile.TemporaryDirectory() as folder:
        stored = play_at(url, limit, "direct", episodes, Path(folder), n=N, rounds=ROUNDS)
        began, ended, decisions = math.inf, 0.0, 0
        for cell in stored.manifest.cells:
            for episode in stored.episodes(cell.id):
                assert episode.scored, episode.detail
                assert episode.started_at is not None
                assert episode.ended_at is not None
                began = min(began, episode.started_at)
                ended = max(ended, episode.ended_at)
                decisions += episode.decisions
    together = min(limit, episodes * N)
    return ended - began, decisions / together * LATENCY_S, decisions


def main() -> int:
    """Print a line a shape."""
    missed = False
    for episodes, limit in SHAPES:
        with server_elsewhere() as url:
            taken, needed, decisions = measure(url, episodes, limit)
        ratio = taken / needed
        aimed = (episodes, limit) in AIM_SHAPES
        missed |= aimed and ratio > AIM
        aim = f"aim {AIM}" if aimed else "no aim"
        print(
            f"{episodes:3} episodes of N = {N}, {limit:3} connections: {decisions} calls, "
            f"{ratio:.2f} x the waiting time ({aim})"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
