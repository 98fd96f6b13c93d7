"""Whole runs from the command line: determinism, resume, kills, a full disk, Ctrl-C."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.command import coordbench, only_run, start

from coordbench.data.events import TIME_FIELDS
from coordbench.store import StoredRun

MODELS = ("script/random", "script/parity", "script/grab-left")
TASK = (
    "run",
    "dining_philosophers",
    *(part for model in MODELS for part in ("--model", model)),
)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIME_FIELDS}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def events_of(run: Path) -> dict[str, list[Any]]:
    """Cell -> its events without times, episodes in index order."""
    stored = StoredRun.open(run)
    found: dict[str, list[Any]] = {}
    for cell in stored.manifest.cells:
        lines = (run / "cells" / f"{cell.id}.jsonl").read_bytes().split(b"\n")
        events = [without_times(json.loads(line)) for line in lines if line]
        found[cell.id] = sorted(events, key=lambda event: event["episode"])
    return found


def raw_lines(run: Path) -> dict[str, list[Any]]:
    return {
        path.name: [without_times(json.loads(line)) for line in path.read_bytes().splitlines()]
        for path in sorted((run / "cells").iterdir())
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unbroken run."""
    folder = tmp_path_factory.mktemp("whole")
    done = coordbench(*TASK, cwd=folder)
    assert done.returncode == 0, done.stderr
    return only_run(folder)


def test_a_run_leaves_a_report_for_people_and_one_for_machines(whole: Path) -> None:
    report = json.loads((whole / "report" / "report.json").read_text(encoding="utf-8"))
    assert [cell["n"] for cell in report["cells"]] == [5, 10, 15] * 3
    assert all(cell["n_scored"] == 30 for cell in report["cells"])
    text = (whole / "report" / "report.md").read_text(encoding="utf-8")
    assert "script/grab-left" in text
    assert "deadlock" in text


def test_the_same_seed_gives_the_same_files_apart_from_times(whole: Path, tmp_path: Path) -> None:
    assert coordbench(*TASK, cwd=tmp_path).returncode == 0
    assert raw_lines(only_run(tmp_path)) == raw_lines(whole)


def test_another_seed_gives_other_episodes(whole: Path, tmp_path: Path) -> None:
    assert coordbench(*TASK, "--seed", "1", cwd=tmp_path).returncode == 0
    assert raw_lines(only_run(tmp_path)) != raw_lines(whole)


def test_direct_and_langgraph_write_the_same_events(tmp_path: Path) -> None:
    runs = []
    for agent in ("direct", "langgraph"):
        folder = tmp_path / agent
        folder.mkdir()
        small = ("--n", "5", "--episodes", "3", "--agent", agent)
        done = coordbench(*TASK, *small, cwd=folder)
        assert done.returncode == 0, done.stderr
        runs.append(only_run(folder))
    agents = [StoredRun.open(run).manifest.cells[0].agent for run in runs]
    assert agents == ["direct", "langgraph"]
    assert raw_lines(runs[0]) == raw_lines(runs[1])


@pytest.mark.parametrize("attempt", range(4))
def test_killed_at_any_moment_and_resumed_the_union_equals_an_unbroken_run(
    whole: Path, tmp_path: Path, attempt: int
) -> None:
    random.seed(attempt)
    running = start(*TASK, cwd=tmp_path)
    deadline = time.monotonic() + 60
    wanted = random.randrange(1, 250_000)
    while time.monotonic() < deadline and running.poll() is None:
        if sum(path.stat().st_size for path in tmp_path.glob("runs/*/cells/*")) >= wanted:
            break
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    run = only_run(tmp_path)
    before = {
        cell.id: StoredRun.open(run).state(cell.id) for cell in StoredRun.open(run).manifest.cells
    }
    done = coordbench("run", "--resume", "latest", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert events_of(run) == events_of(whole)
    after = StoredRun.open(run)
    assert after.manifest.status == "complete"
    assert all(set(before[cell]) <= set(after.state(cell)) for cell in before)


def test_a_tail_torn_anywhere_is_set_aside_and_played_again(whole: Path, tmp_path: Path) -> None:
    assert coordbench(*TASK, cwd=tmp_path).returncode == 0
    run = only_run(tmp_path)
    path = next((run / "cells").iterdir())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    done = coordbench("run", "--resume", run.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cut off" in done.stderr
    assert events_of(run) == events_of(whole)


def test_resuming_a_complete_run_plays_nothing(whole: Path) -> None:
    before = raw_lines(whole)
    done = coordbench("run", "--resume", str(whole), cwd=whole.parent.parent)
    assert done.returncode == 0
    assert "nothing to do" in done.stderr
    assert raw_lines(whole) == before


def test_resuming_with_other_settings_is_refused(whole: Path) -> None:
    done = coordbench(*TASK, "--rounds", "9", "--resume", str(whole), cwd=whole.parent.parent)
    assert done.returncode == 2
    assert "rounds" in done.stderr
    assert "12" in done.stderr


def test_a_budget_stops_the_run_and_resume_goes_on(tmp_path: Path) -> None:
    small = ("run", "--model", "script/idle", "--n", "5", "--episodes", "4", "--rounds", "5")
    done = coordbench(*small, "--max-calls", "60", cwd=tmp_path)
    assert done.returncode == 6, done.stderr
    assert "--max-calls 60" in done.stderr
    assert "--resume" in done.stderr
    run = only_run(tmp_path)
    (cell,) = StoredRun.open(run).manifest.cells
    assert len(StoredRun.open(run).missing(cell.id)) == 2
    assert coordbench("run", "--resume", str(run), cwd=tmp_path).returncode == 0
    assert StoredRun.open(run).missing(cell.id) == []


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "from coordbench.cli import main\n"
        f"main({list(TASK)!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "--resume" in done.stderr
    run = only_run(tmp_path)
    stored = StoredRun.open(run)
    assert stored.problems == []
    kept = sum(len(stored.state(cell.id)) for cell in stored.manifest.cells)
    assert kept > 0
    assert coordbench("run", "--resume", str(run), cwd=tmp_path).returncode == 0
    assert all(not StoredRun.open(run).missing(cell.id) for cell in stored.manifest.cells)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_two_processes_cannot_write_to_one_run(tmp_path: Path) -> None:
    small = ("run", "--model", "script/idle", "--n", "5", "--episodes", "2", "--max-calls", "60")
    assert coordbench(*small, cwd=tmp_path).returncode == 6
    run = only_run(tmp_path)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from coordbench.store import RunWriter;"
            "w = RunWriter.open(pathlib.Path(sys.argv[1])); print('held', flush=True);"
            "sys.stdin.read()",
            str(run),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    done = coordbench("run", "--resume", str(run), cwd=tmp_path)
    holder.communicate()
    assert done.returncode == 2
    assert "another process" in done.stderr


def test_replay_of_a_run_gives_its_events_again(tmp_path: Path) -> None:
    small = ("run", "--model", "script/random", "--n", "5", "--episodes", "5", "--agent", "direct")
    assert coordbench(*small, cwd=tmp_path).returncode == 0
    first = only_run(tmp_path)
    again = coordbench(
        "run",
        "--model",
        f"replay/{first}",
        "--n",
        "5",
        "--episodes",
        "5",
        "--agent",
        "direct",
        "--out",
        "again",
        cwd=tmp_path,
    )
    assert again.returncode == 0, again.stderr
    (second,) = (tmp_path / "again").iterdir()

    def steps(run: Path) -> list[Any]:
        (lines,) = raw_lines(run).values()
        return [event for event in lines if event["event"] == "step"]

    assert steps(second) == steps(first)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_a_report_in_a_pipe_cuts_nothing(whole: Path, columns: str) -> None:
    done = coordbench("report", str(whole), cwd=whole.parent, env={"COLUMNS": columns})
    assert done.returncode == 0
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout
    for model in MODELS:
        assert done.stdout.count(model) >= 3
    rows = [line for line in done.stdout.splitlines() if line.startswith("script/parity")]
    assert len(rows) == 3
    assert all("30/0" in row for row in rows)
