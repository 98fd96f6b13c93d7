"""Small run folders of scripted episodes."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from coordbench.api import EpisodeJob, EpisodeLog, Rules
from coordbench.data.events import CallRecord, EpisodeEnded, TurnTaken
from coordbench.data.manifest import Manifest
from coordbench.data.plan import Cell
from coordbench.data.seeds import episode_seed
from coordbench.data.spec import Prompt, TaskSpec
from coordbench.models.script import POLICIES
from coordbench.store import RunWriter
from support.episodes import cell_of
from support.random_play import play_events

__all__ = ["CELL", "RULES", "SPEC", "cell_file", "log_of", "manifest_of", "pack_file", "run_of"]

RULES = Rules(rounds=3)
CELL: Cell = cell_of(3, RULES, id="cell", episodes=6)
SPEC = TaskSpec(name="t", rules=RULES, prompt=Prompt(system="", round=""), n=(3,), episodes=6)


def manifest_of(**changes: Any) -> Manifest:
    """The manifest of a run of one cell of six episodes."""
    made = Manifest(run="r", spec=SPEC, digest="d", cells=(CELL,), created_at=0.0)
    return msgspec.structs.replace(made, **changes)


def log_of(
    index: int, policy: str = "random", *, cell: Cell = CELL, replies: bool = False, **end: Any
) -> EpisodeLog:
    """One episode; `replies` gives every turn a reply of its own, `end` changes its last event."""
    seed = episode_seed(0, cell.n, index)
    events = play_events(cell.n, cell.rules, seed, POLICIES[policy], index=index, cell=cell.id)
    blobs: dict[str, bytes] = {}
    if replies:
        for at, event in enumerate(events):
            if isinstance(event, TurnTaken):
                data = f'{{"stop":"stop","text":"{cell.id} {index} {at} é\u2028"}}'.encode()
                digest = sha256(data).hexdigest()
                blobs[digest] = data
                events[at] = msgspec.structs.replace(event, calls=(CallRecord(reply=digest),))
    if end:
        ended = events[-1]
        assert isinstance(ended, EpisodeEnded)
        events[-1] = msgspec.structs.replace(ended, **end)
    return EpisodeLog(job=EpisodeJob(cell.id, index, seed), events=tuple(events), blobs=blobs)


def run_of(folder: Path, logs: list[EpisodeLog], **manifest: Any) -> Path:
    """A closed run of these episodes."""
    with RunWriter.create(folder, manifest_of(**manifest)) as writer:
        for log in logs:
            writer.append(log)
    return writer.path


def cell_file(run: Path, cell: str = "cell") -> Path:
    """Where the events are."""
    return run / "cells" / f"{cell}.jsonl"


def pack_file(run: Path, cell: str = "cell") -> Path:
    """Where the blobs are."""
    return run / "blobs" / f"{cell}.jsonl"
