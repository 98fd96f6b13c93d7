"""Run folders as a reader finds them: order, duplicates, foreign and hostile content."""

from __future__ import annotations

import os
import tracemalloc
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from support.runs import (
    CELL,
    RULES,
    SPEC,
    cell_file,
    log_of,
    manifest_of,
    pack_file,
    run_of,
)

from coordbench.api import EpisodeLog
from coordbench.data.errors import ResumeError, StoreError, UnknownNameError, UsageError
from coordbench.data.events import EpisodeStarted, Event, MessageSent
from coordbench.data.plan import Plan
from coordbench.data.seeds import episode_seed
from coordbench.store import RunWriter, StoredRun, check_resume, find_run


def test_what_was_appended_is_read_back_in_index_order(tmp_path: Path) -> None:
    stored = StoredRun.open(run_of(tmp_path, [log_of(index) for index in (2, 0, 4)]))
    assert [episode.index for episode in stored.episodes("cell")] == [0, 2, 4]
    assert stored.missing("cell") == [1, 3, 5]
    assert stored.events("cell", 2) == list(log_of(2).events)
    assert stored.episode("cell", 4).meals == next(
        episode.meals for episode in stored.episodes("cell") if episode.index == 4
    )
    assert stored.problems == []
    with pytest.raises(UnknownNameError, match="no episode 3") as caught:
        stored.events("cell", 3)
    assert "stored: 0, 2, 4" in str(caught.value)
    with pytest.raises(UnknownNameError, match="did you mean 'cell'"):
        stored.state("cel")


def test_the_same_episodes_make_the_same_bytes(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / name, [log_of(index, replies=True) for index in range(3)])
        for name in ("a", "b")
    ]
    assert cell_file(runs[0]).read_bytes() == cell_file(runs[1]).read_bytes()
    assert pack_file(runs[0]).read_bytes() == pack_file(runs[1]).read_bytes()


def test_stopped_and_failed_episodes_are_played_again_and_superseded(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        [
            log_of(0, status="failed", reason="network"),
            log_of(1, status="stopped", reason="budget"),
            log_of(2),
        ],
    )
    assert StoredRun.open(run).missing("cell") == [0, 1, 3, 4, 5]
    with RunWriter.open(run) as writer:
        writer.append(log_of(0))
    stored = StoredRun.open(run)
    assert stored.state("cell") == {0: "completed", 1: "stopped", 2: "completed"}
    assert stored.episode("cell", 0).scored
    assert stored.problems == []


def test_a_completed_episode_is_never_superseded(tmp_path: Path) -> None:
    stored = StoredRun.open(run_of(tmp_path, [log_of(0), log_of(0, status="failed")]))
    assert stored.state("cell") == {0: "completed"}
    (problem,) = stored.problems
    assert "episode 0 is completed above, at line 1" in problem


def test_the_same_episode_twice_counts_once_whatever_the_clock_said(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0), log_of(1), log_of(0, at=99.5)])
    stored = StoredRun.open(run)
    assert [episode.index for episode in stored.episodes("cell")] == [0, 1]
    (problem,) = stored.problems
    assert "episode 0 is stored twice, alike; counted once" in problem


def test_the_same_episode_with_two_results_is_an_error(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0), log_of(0, "idle")])
    second = 1 + len(log_of(0).events)
    with pytest.raises(StoreError, match=rf"lines 1 and {second}"):
        list(StoredRun.open(run).episodes("cell"))


def test_an_episode_with_another_seed_belongs_to_another_run(tmp_path: Path) -> None:
    log = log_of(0)
    started = msgspec.structs.replace(log.events[0], seed=1)
    wrong = EpisodeLog(job=log.job, events=(started, *log.events[1:]), blobs={})
    with pytest.raises(StoreError, match="seed"):
        StoredRun.open(run_of(tmp_path, [wrong])).missing("cell")


def test_a_cells_file_under_another_cells_name_is_an_error(tmp_path: Path) -> None:
    other = msgspec.structs.replace(CELL, id="other")
    run = run_of(tmp_path, [log_of(0)], cells=(CELL, other))
    cell_file(run, "other").write_bytes(cell_file(run).read_bytes())
    stored = StoredRun.open(run)
    assert stored.state("cell") == {0: "completed"}
    with pytest.raises(StoreError, match="cell 'cell', not in 'other'"):
        stored.state("other")


def test_an_episode_outside_the_plan_is_left_out(tmp_path: Path) -> None:
    stored = StoredRun.open(run_of(tmp_path, [log_of(0), log_of(6)]))
    assert [episode.index for episode in stored.episodes("cell")] == [0]
    assert "episode 6 is not in the plan" in stored.problems[0]


def test_a_line_that_is_no_event_costs_its_episode_only(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(index) for index in range(3)])
    lines = cell_file(run).read_bytes().split(b"\n")
    at = len(log_of(0).events) + 2
    lines[at] = lines[at][:20] + b"\xff\x00" + lines[at][22:]
    cell_file(run).write_bytes(b"\n".join(lines))
    stored = StoredRun.open(run)
    assert stored.missing("cell") == [1, 3, 4, 5]
    assert any(f"cell.jsonl:{at + 1}: not an event" in problem for problem in stored.problems)
    with RunWriter.open(run) as writer:
        assert writer.repairs == []
        writer.append(log_of(1))
    assert StoredRun.open(run).missing("cell") == [3, 4, 5]


def test_an_append_that_another_program_glued_to_a_torn_line_costs_two_episodes(
    tmp_path: Path,
) -> None:
    run = run_of(tmp_path, [log_of(index) for index in range(2)])
    torn = cell_file(run).read_bytes()[:-30]
    later = cell_file(run_of(tmp_path / "x", [log_of(2), log_of(3)])).read_bytes()
    cell_file(run).write_bytes(torn + later)
    stored = StoredRun.open(run)
    assert stored.missing("cell") == [1, 2, 4, 5]
    assert [episode.index for episode in stored.episodes("cell")] == [0, 3]
    assert any("episode 2, which has no beginning" in problem for problem in stored.problems)


def test_events_of_two_episodes_that_lie_mixed_are_read_and_reported(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0), log_of(1)])
    lines = cell_file(run).read_bytes().splitlines(keepends=True)
    half = len(log_of(0).events)
    first, second = lines[:half], lines[half:]
    mixed = [line for pair in zip(first, second, strict=False) for line in pair]
    longer = first if len(first) > len(second) else second
    mixed += longer[min(len(first), len(second)) :]
    cell_file(run).write_bytes(b"".join(mixed))
    stored = StoredRun.open(run)
    for index in (0, 1):
        assert stored.events("cell", index) == list(log_of(index).events)
    assert len(stored.problems) == 2
    assert all("among those of others" in problem for problem in stored.problems)


def test_hostile_text_stays_one_record(tmp_path: Path) -> None:
    log = log_of(0)
    text = "line\u2028separator \x85 \u2029 and \ud83d lone \n\r\x00 </script>"
    message: Event = MessageSent(episode=0, round=1, exchange=0, seat=0, text=text)
    events = (log.events[0], message, *log.events[1:])
    binary = b"\xff\x00\n"
    digest = sha256(binary).hexdigest()
    run = run_of(tmp_path, [EpisodeLog(job=log.job, events=events, blobs={digest: binary})])
    stored = StoredRun.open(run)
    assert stored.problems == []
    (read,) = stored.episode("cell", 0).messages
    assert read.text == text.replace("\ud83d", "\\ud83d")
    assert stored.blob("cell", digest) == binary
    assert len(cell_file(run).read_bytes().split(b"\n")) == len(events) + 1
    for line in cell_file(run).read_bytes().split(b"\n")[:-1]:
        msgspec.json.decode(line)


def test_a_blob_is_stored_once_and_found_by_its_hash(tmp_path: Path) -> None:
    shared = sha256(b"prompt").hexdigest()
    logs = []
    for index in range(3):
        log = log_of(index)
        own = f"own {index}".encode()
        blobs = {shared: b"prompt", sha256(own).hexdigest(): own}
        logs.append(EpisodeLog(job=log.job, events=log.events, blobs=blobs))
    run = run_of(tmp_path, logs[:2])
    with RunWriter.open(run) as writer:
        writer.append(logs[2])
    assert pack_file(run).read_bytes().count(b"\n") == 4
    stored = StoredRun.open(run)
    assert stored.blob("cell", shared) == b"prompt"
    with pytest.raises(StoreError, match="no blob"):
        stored.blob("cell", "c" * 64)


def test_a_blob_that_was_changed_is_not_trusted(tmp_path: Path) -> None:
    log = log_of(0, replies=True)
    run = run_of(tmp_path, [log])
    digest, data = next(iter(log.blobs.items()))
    pack_file(run).write_bytes(pack_file(run).read_bytes().replace(b"cell 0 1 ", b"cell 0 7 "))
    with pytest.raises(StoreError, match="not those that were stored"):
        StoredRun.open(run).blob("cell", digest)
    assert b"cell 0 1 " in data


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    paths = [run_of(tmp_path, []) for _ in range(3)]
    assert [path.name for path in paths] == ["r", "r-2", "r-3"]
    assert [StoredRun.open(path).manifest.run for path in paths] == ["r", "r-2", "r-3"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, manifest_of())
    with pytest.raises(UsageError, match="another process"):
        RunWriter.open(writer.path)
    writer.close()
    RunWriter.open(writer.path).close()


def test_an_open_that_failed_does_not_keep_the_run_locked(tmp_path: Path) -> None:
    run = run_of(tmp_path, [])
    cells = run / "cells"
    cells.rmdir()
    cells.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot write"):
        RunWriter.open(run)
    cells.unlink()
    with RunWriter.open(run) as writer:
        writer.append(log_of(0))
    assert StoredRun.open(run).state("cell") == {0: "completed"}


def test_a_folder_that_cannot_be_written_is_named_and_left_as_it_was(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("mine", encoding="utf-8")
    for root in (blocked, blocked / "under"):
        with pytest.raises(UsageError, match=r"cannot write results to .*file") as caught:
            RunWriter.create(root, manifest_of())
        assert "--out" in str(caught.value)
        assert caught.value.exit_code == 2
    assert blocked.read_text(encoding="utf-8") == "mine"


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    with pytest.raises(UsageError, match=r"holds no manifest\.json"):
        StoredRun.open(tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        StoredRun.open(tmp_path / "nothing")
    for text, what in (
        (b"{broken", "cannot be read"),
        (b"[" * 5000, "cannot be read"),
        (b'{"run":"\xff"}', "cannot be read"),
        (b'{"run": "x"}', "missing required field"),
        (b"[]", "cannot be read"),
        (b'{"format": 99, "coordbench": "9.9"}', "format 99"),
        (b'{"created_at": NaN}', "cannot be read"),
        (
            msgspec.json.encode(manifest_of(cells=(msgspec.structs.replace(CELL, id="../x"),))),
            "no file name",
        ),
    ):
        manifest.write_bytes(text)
        with pytest.raises(UsageError, match=what):
            StoredRun.open(tmp_path)


def test_a_run_opens_by_its_manifest_too(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0)])
    assert StoredRun.open(run / "manifest.json").state("cell") == {0: "completed"}
    assert find_run(str(run / "manifest.json")) == run
    with RunWriter.open(run / "manifest.json") as writer:
        assert writer.path == run


def test_a_manifest_left_half_replaced_by_a_kill_is_cleared_away(tmp_path: Path) -> None:
    run = run_of(tmp_path, [])
    (run / ".manifest.json.4711.tmp").write_text('{"run"', encoding="utf-8")
    with RunWriter.open(run) as writer:
        writer.update(status="complete", reason="\ud83d", host={"load": float("nan")})
    assert StoredRun.open(run).manifest.status == "complete"
    assert [path.name for path in run.glob(".manifest*")] == []


def test_a_run_folder_without_its_empty_folders_can_be_resumed(tmp_path: Path) -> None:
    run = run_of(tmp_path, [])
    (run / "cells").rmdir()
    (run / "blobs").rmdir()
    assert StoredRun.open(run).missing("cell") == list(range(6))
    with RunWriter.open(run) as writer:
        writer.append(log_of(0, replies=True))
    assert StoredRun.open(run).state("cell") == {0: "completed"}


def test_runs_are_found_by_path_prefix_or_as_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (run_of(Path("runs"), [], run=name) for name in ("2026-a", "2026-b"))
    os.utime(first / "manifest.json", ns=(0, 10**18))
    os.utime(second / "manifest.json", ns=(0, 10**18 + 1))
    assert find_run("latest") == second
    assert find_run("2026-a") == first
    assert find_run("2026-b") == second
    assert find_run(str(first.resolve())) == first.resolve()
    with pytest.raises(UnknownNameError, match="2 runs start with '2026'") as caught:
        find_run("2026")
    assert str(first) in str(caught.value)
    with pytest.raises(UnknownNameError, match="did you mean '2026-a'"):
        find_run("2026_a")
    with pytest.raises(UnknownNameError, match="no run"):
        find_run("x" * 5000)
    with pytest.raises(UnknownNameError, match="none under nowhere/"):
        find_run("x", ("nowhere",))
    # A folder that happens to have a run's name does not hide the run.
    Path("2026-a").mkdir()
    assert find_run("2026-a") == first


def test_a_resume_under_other_settings_names_what_differs() -> None:
    other = msgspec.structs.replace(
        SPEC,
        sampling=msgspec.structs.replace(SPEC.sampling, temperature=0.0),
        rules=msgspec.structs.replace(RULES, rounds=9),
    )
    with pytest.raises(ResumeError, match=r"sampling\.temperature was 0\.7, now 0") as caught:
        check_resume(manifest_of(), Plan(spec=other, cells=(CELL,), digest="other"))
    assert "rules.rounds was 3, now 9" in caught.value.message
    assert caught.value.exit_code == 2
    check_resume(manifest_of(), Plan(spec=SPEC, cells=(CELL,), digest="d"))


def test_a_resume_with_the_same_spec_and_other_cells_names_them() -> None:
    agent = msgspec.structs.replace(CELL, agent="langgraph")
    with pytest.raises(ResumeError, match='cell cell: agent was "direct", now "langgraph"'):
        check_resume(manifest_of(), Plan(spec=SPEC, cells=(agent,), digest="other"))
    more = msgspec.structs.replace(CELL, id="more")
    with pytest.raises(ResumeError, match="cell more is new"):
        check_resume(manifest_of(), Plan(spec=SPEC, cells=(CELL, more), digest="other"))


def test_memory_does_not_grow_with_the_number_of_episodes(tmp_path: Path) -> None:
    many = 20_000
    cell = msgspec.structs.replace(
        CELL, n=2, rules=msgspec.structs.replace(RULES, rounds=1), episodes=many
    )
    run = run_of(tmp_path, [], cells=(cell,))
    events = log_of(0, cell=cell).events
    assert isinstance(events[0], EpisodeStarted)
    encoder = msgspec.json.Encoder()
    template = encoder.encode_lines(events)
    seed = f'"seed":{events[0].seed}'.encode()
    with cell_file(run).open("wb") as file:
        for index in range(many):
            block = template.replace(b'"episode":0', f'"episode":{index}'.encode())
            file.write(block.replace(seed, f'"seed":{episode_seed(0, 2, index)}'.encode()))
    stored = StoredRun.open(run)
    tracemalloc.start()
    assert len(stored.state("cell")) == many
    index_size, index_peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    count = sum(1 for _ in stored.episodes("cell"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == many
    assert index_peak < 1000 * many
    assert peak - index_size < 1_000_000
