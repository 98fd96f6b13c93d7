"""Run folders: whole blocks, torn tails, duplicates, locks, strict JSON."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.episodes import cell_of
from support.random_play import play_events

from coordbench.api import EpisodeJob, EpisodeLog, Rules
from coordbench.data.episode import Episode
from coordbench.data.errors import ResumeError, StoreError, UnknownNameError, UsageError
from coordbench.data.events import EpisodeEnded, Event, MessageSent
from coordbench.data.manifest import Manifest
from coordbench.data.plan import Plan
from coordbench.data.seeds import episode_seed
from coordbench.data.spec import Prompt, TaskSpec
from coordbench.data.strictjson import StrictJSONError, decode, encode
from coordbench.models.script import POLICIES
from coordbench.store import RunWriter, StoredRun, check_resume, find_run

RULES = Rules(rounds=3)
CELL = cell_of(3, RULES, id="cell", episodes=6)
SPEC = TaskSpec(name="t", rules=RULES, prompt=Prompt(system="", round=""), n=(3,), episodes=6)


def manifest_of(**changes: Any) -> Manifest:
    made = Manifest(run="r", spec=SPEC, digest="d", cells=(CELL,), created_at=0.0)
    return msgspec.structs.replace(made, **changes)


def log_of(index: int, policy: str = "random", **changes: Any) -> EpisodeLog:
    seed = episode_seed(0, 3, index)
    events = play_events(3, RULES, seed, POLICIES[policy], index=index)
    if changes:
        ended = events[-1]
        assert isinstance(ended, EpisodeEnded)
        events[-1] = msgspec.structs.replace(ended, **changes)
    return EpisodeLog(job=EpisodeJob("cell", index, seed), events=tuple(events), blobs={})


def run_of(folder: Path, logs: list[EpisodeLog]) -> Path:
    with RunWriter.create(folder, manifest_of()) as writer:
        for log in logs:
            writer.append(log)
    return writer.path


def cell_file(run: Path) -> Path:
    return run / "cells" / "cell.jsonl"


def test_what_was_appended_is_read_back_in_index_order(tmp_path: Path) -> None:
    stored = StoredRun.open(run_of(tmp_path, [log_of(index) for index in (2, 0, 4)]))
    assert [episode.index for episode in stored.episodes("cell")] == [0, 2, 4]
    assert stored.missing("cell") == [1, 3, 5]
    assert stored.events("cell", 2) == list(log_of(2).events)
    assert stored.problems == []


@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_cut_anywhere_all_whole_episodes_stand_and_appending_goes_on(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    run = run_of(tmp_path_factory.mktemp("run"), [log_of(index) for index in range(3)])
    whole = cell_file(run).read_bytes()
    ends = [0]
    for line in whole.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    blocks = [
        end
        for end, line in zip(ends[1:], whole.splitlines(), strict=True)
        if b"episode_ended" in line[:30]
    ]
    cut = data.draw(st.integers(0, len(whole)))
    cell_file(run).write_bytes(whole[:cut])
    kept = sum(end <= cut for end in blocks)
    assert list(StoredRun.open(run).state("cell")) == list(range(kept))
    with RunWriter.open(run) as writer:
        assert bool(writer.repairs) == (cut not in (0, *blocks))
        for index in range(kept, 6):
            writer.append(log_of(index))
    stored = StoredRun.open(run)
    assert stored.problems == []
    assert stored.missing("cell") == []
    torn = list((run / "cells").glob("*.torn*"))
    set_aside = b"".join(path.read_bytes() for path in torn)
    assert set_aside == whole[([0, *blocks])[kept] : cut]


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


def test_the_same_episode_twice_counts_once(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0), log_of(0)])
    stored = StoredRun.open(run)
    assert len(list(stored.episodes("cell"))) == 1
    assert any("counted once" in problem for problem in stored.problems)


def test_the_same_episode_with_two_results_is_an_error(tmp_path: Path) -> None:
    run = run_of(tmp_path, [log_of(0), log_of(0, "idle")])
    with pytest.raises(StoreError, match=r"lines 1 and \d+"):
        list(StoredRun.open(run).episodes("cell"))


def test_an_episode_with_another_seed_belongs_to_another_run(tmp_path: Path) -> None:
    log = log_of(0)
    started = msgspec.structs.replace(log.events[0], seed=1)
    wrong = EpisodeLog(job=log.job, events=(started, *log.events[1:]), blobs={})
    with pytest.raises(StoreError, match="seed"):
        StoredRun.open(run_of(tmp_path, [wrong])).missing("cell")


def test_hostile_text_stays_one_record(tmp_path: Path) -> None:
    log = log_of(0)
    text = "line\u2028separator \x85 and \ud83d lone \n\r\x00 </script>"
    message: Event = MessageSent(episode=0, round=1, exchange=0, seat=0, text=text)
    events = (log.events[0], message, *log.events[1:])
    run = run_of(tmp_path, [EpisodeLog(job=log.job, events=events, blobs={"a" * 64: b"\xff\x00"})])
    stored = StoredRun.open(run)
    assert stored.problems == []
    (read,) = stored.episode("cell", 0).messages
    assert read.text == text.replace("\ud83d", "\\ud83d")
    assert stored.blob("cell", "a" * 64) == b"\xff\x00"
    assert len(cell_file(run).read_bytes().split(b"\n")) == len(events) + 1


def test_a_blob_is_stored_once_and_found_by_its_hash(tmp_path: Path) -> None:
    logs = [
        EpisodeLog(
            job=log.job, events=log.events, blobs={"b" * 64: b"prompt", f"{index:064}": b"x"}
        )
        for index, log in enumerate(log_of(index) for index in range(3))
    ]
    run = run_of(tmp_path, logs)
    lines = (run / "blobs" / "cell.jsonl").read_bytes().splitlines()
    assert len(lines) == 4
    assert StoredRun.open(run).blob("cell", "b" * 64) == b"prompt"
    with pytest.raises(StoreError, match="no blob"):
        StoredRun.open(run).blob("cell", "c" * 64)


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    paths = [run_of(tmp_path, []).name for _ in range(3)]
    assert paths == ["r", "r-2", "r-3"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, manifest_of())
    with pytest.raises(UsageError, match="another process"):
        RunWriter.open(writer.path)
    writer.close()
    RunWriter.open(writer.path).close()


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"manifest\.json"):
        StoredRun.open(tmp_path)
    (tmp_path / "manifest.json").write_text("{broken", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be read"):
        StoredRun.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(UsageError, match="format 99"):
        StoredRun.open(tmp_path)


def test_runs_are_found_by_path_prefix_or_as_the_latest(tmp_path: Path) -> None:
    first = run_of(tmp_path, [])
    second = run_of(tmp_path, [])
    with RunWriter.open(second) as writer:
        writer.update(status="complete")
    roots = (tmp_path,)
    assert find_run("latest", roots) == second
    assert find_run("r", roots) == first
    assert find_run(str(first), roots) == first
    with pytest.raises(UnknownNameError, match="no run 'x'"):
        find_run("x", roots)
    with pytest.raises(UnknownNameError, match="none under"):
        find_run("x", (tmp_path / "nothing",))


def test_a_resume_under_other_settings_names_what_differs() -> None:
    other = msgspec.structs.replace(
        SPEC, sampling=msgspec.structs.replace(SPEC.sampling, temperature=0.0)
    )
    plan = Plan(spec=other, cells=(CELL,), digest="other")
    with pytest.raises(ResumeError, match=r"sampling\.temperature was 0\.7, now 0"):
        check_resume(manifest_of(), plan)
    check_resume(manifest_of(), Plan(spec=SPEC, cells=(CELL,), digest="d"))


def test_json_is_strict_in_both_directions() -> None:
    said = json.loads(encode({"p": float("nan"), "g": float("inf"), "label": "BaNaNa"}))
    assert said["p"] is None
    assert said["g"] is None
    assert said["label"] == "BaNaNa"
    assert set(said["reasons"]) == {"p", "g"}
    for text in ('{"p": NaN}', '{"p": Infinity}', "{} {}"):
        with pytest.raises(StrictJSONError):
            decode(text)


def test_memory_does_not_grow_with_the_number_of_episodes(tmp_path: Path) -> None:
    many = 3000
    cell = msgspec.structs.replace(CELL, episodes=many)
    run = run_of(tmp_path, [])
    (run / "manifest.json").write_bytes(msgspec.json.encode(manifest_of(cells=(cell,), spec=SPEC)))
    encoder = msgspec.json.Encoder()
    with cell_file(run).open("wb") as file:
        for index in range(many):
            file.write(encoder.encode_lines(log_of(index).events))
    stored = StoredRun.open(run)
    stored.state("cell")
    tracemalloc.start()
    meals = sum(_meals(episode) for episode in stored.episodes("cell"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert meals >= 0
    assert peak < 4_000_000


def _meals(episode: Episode) -> int:
    return episode.total_meals
