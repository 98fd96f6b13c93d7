"""What a kill leaves behind: whole episodes stand, torn ones are set aside, appending goes on."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.runs import CELL, cell_file, log_of, pack_file, run_of

from coordbench.data.events import TurnTaken
from coordbench.store import RunWriter, StoredRun
from coordbench.store.blobs import encode_blobs

TESTS = Path(__file__).resolve().parents[1]

WRITER = """
import sys
from pathlib import Path
import msgspec
from support.runs import CELL, log_of
from coordbench.store import RunWriter, StoredRun

with RunWriter.open(Path(sys.argv[1])) as writer:
    for index in StoredRun.open(writer.path).missing(CELL.id):
        writer.append(log_of(index, replies=True))
        print(index, flush=True)
"""


def ends_of(data: bytes) -> list[int]:
    """Offsets at which a block ends."""
    ends, offset = [], 0
    for line in data.split(b"\n")[:-1]:
        offset += len(line) + 1
        if line.startswith(b'{"event":"episode_ended"'):
            ends.append(offset)
    return ends


def set_aside(run: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((run / "cells").glob("*.torn*")))


def test_cut_at_every_byte_of_the_last_block_the_others_are_read(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(index) for index in range(3)])
    whole = cell_file(run).read_bytes()
    _, start, end = ends_of(whole)
    assert end == len(whole)
    for cut in range(start, end):
        cell_file(run).write_bytes(whole[:cut])
        stored = StoredRun.open(run)
        assert [episode.index for episode in stored.episodes("cell")] == [0, 1]
        assert stored.missing("cell") == [2, 3, 4, 5]
        assert len(stored.problems) == (cut > start)


@given(data=st.data())
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_cut_anywhere_all_whole_episodes_stand_and_appending_goes_on(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    run = run_of(tmp_path_factory.mktemp("run"), [log_of(index) for index in range(3)])
    whole = cell_file(run).read_bytes()
    ends = ends_of(whole)
    cut = data.draw(st.integers(0, len(whole)))
    kept = sum(end <= cut for end in ends)
    cell_file(run).write_bytes(whole[:cut])
    assert list(StoredRun.open(run).state("cell")) == list(range(kept))
    with RunWriter.open(run) as writer:
        assert bool(writer.repairs) == (cut not in (0, *ends))
        for index in range(kept, 6):
            writer.append(log_of(index))
    stored = StoredRun.open(run)
    assert stored.problems == []
    assert stored.missing("cell") == []
    assert set_aside(run) == whole[([0, *ends])[kept] : cut]


@given(data=st.data())
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_killed_while_blobs_were_written_all_of_them_are_readable_later(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    logs = [log_of(index, replies=True) for index in range(4)]
    run = run_of(tmp_path_factory.mktemp("run"), logs[:2])
    # The blobs of episode 1 came first, so a kill among them leaves no event of it.
    events, blobs = cell_file(run).read_bytes(), pack_file(run).read_bytes()
    cell_file(run).write_bytes(events[: ends_of(events)[0]])
    first = len(encode_blobs(logs[0].blobs))
    pack_file(run).write_bytes(blobs[: data.draw(st.integers(first, len(blobs)))])
    with RunWriter.open(run) as writer:
        for log in logs[1:]:
            writer.append(log)
    stored = StoredRun.open(run)
    assert stored.problems == []
    for log in logs:
        for digest, blob in log.blobs.items():
            assert stored.blob("cell", digest) == blob
    lines = pack_file(run).read_bytes().split(b"\n")[:-1]
    assert len(lines) == len(set(lines)) == sum(len(log.blobs) for log in logs)


def test_each_repair_keeps_what_an_earlier_one_set_aside(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0)])
    for number in (1, 2):
        with cell_file(run).open("ab") as file:
            file.write(b'{"event":"episode_star')
        with RunWriter.open(run) as writer:
            (repair,) = writer.repairs
        assert f"moved to cell.torn-{number}" in repair
    assert set_aside(run) == b'{"event":"episode_star' * 2
    assert StoredRun.open(run).problems == []


def test_killed_at_random_moments_every_acknowledged_episode_is_whole(tmp_path: Path) -> None:
    many = 400
    cell = msgspec.structs.replace(CELL, episodes=many)
    run = run_of(tmp_path, [], cells=(cell,))
    chance = random.Random(7)
    acknowledged: set[int] = set()
    kills = 0
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(run)], cwd=TESTS, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        if line := process.stdout.readline():
            acknowledged.add(int(line))
        time.sleep(chance.uniform(0.0, 0.15))
        process.kill()
        out, _ = process.communicate()
        kills += process.returncode < 0
        acknowledged |= {int(word) for word in out.split("\n")[:-1] if word}
        stored = StoredRun.open(run)
        assert acknowledged <= set(stored.state("cell"))
        assert len(stored.problems) <= 1
    assert kills
    with RunWriter.open(run) as writer:
        for index in StoredRun.open(run).missing("cell"):
            writer.append(log_of(index, replies=True))
    stored = StoredRun.open(run)
    assert stored.problems == []
    assert stored.missing("cell") == []
    for index in range(many):
        events = stored.events("cell", index)
        assert events == list(log_of(index, replies=True).events)
        for event in events:
            for call in event.calls if isinstance(event, TurnTaken) else ():
                assert call.reply is not None
                assert f"cell {index} ".encode() in stored.blob("cell", call.reply)
