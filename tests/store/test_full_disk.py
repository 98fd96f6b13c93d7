"""A full disk: what was stored stays whole, and what could not be stored is taken back later."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support.runs import log_of, manifest_of, run_of

from coordbench.data.errors import StoreError
from coordbench.store import RunWriter, StoredRun

TESTS = Path(__file__).resolve().parents[1]

FILL = """
import json, sys, tempfile
from pathlib import Path
import msgspec
from support.runs import CELL, log_of, manifest_of
from coordbench.data.errors import StoreError
from coordbench.store import RunWriter, StoredRun

MANY = 500
cell = msgspec.structs.replace(CELL, episodes=MANY)

def fill(root):
    # Appends until the disk is full; says what came of it.
    writer = RunWriter.create(root, manifest_of(cells=(cell,), digest=str(root)))
    with writer:
        for index in range(MANY):
            try:
                writer.append(log_of(index, replies=True))
            except StoreError as error:
                said = {"failed": index, "error": str(error)}
                break
    return writer.path, said | look(writer.path)

def look(path):
    stored = StoredRun.open(path)
    replies = [
        stored.blob("cell", call.reply)
        for episode in stored.episodes("cell")
        for _, call in episode.calls
    ]
    return {
        "problems": stored.problems,
        "state": list(stored.state("cell")),
        "replies": len(replies),
        "sizes": [(path / part / "cell.jsonl").stat().st_size for part in ("cells", "blobs")],
    }

def take_back(path):
    with RunWriter.open(path) as writer:
        return {"repairs": writer.repairs, **look(path)}
"""

ON_A_SMALL_DISK = """
import subprocess
disk = Path(sys.argv[1])
def mount(*options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", *options, "none", str(disk)], check=True)
mount("size=128k")
if sys.argv[2:]:
    tempfile.tempdir = sys.argv[2]
path, said = fill(disk)
said["left"] = [name for name in map(str, disk.iterdir()) if "rescue" in name]
mount("remount,size=8m")
print(json.dumps([said, take_back(path)]))
"""

UNDER_A_FILE_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
path, said = fill(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps([said, take_back(path)]))
"""


def run_script(
    script: str, args: list[Path], temporary: Path, *before: str
) -> list[dict[str, Any]]:
    done = subprocess.run(
        [*before, sys.executable, "-c", FILL + script, *map(str, args)],
        cwd=TESTS,
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


@pytest.fixture
def namespace() -> tuple[str, ...]:
    """A command prefix under which a file system may be mounted."""
    prefix = ("unshare", "--user", "--map-root-user", "--mount")
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("mounting a small disk needs unshare and mount (Linux)")
    probe = subprocess.run(
        [*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("this system lets users mount no file system of their own")
    return prefix


def check_nothing_lost(full: dict[str, Any], resumed: dict[str, Any], temporary: Path) -> None:
    failed = full["failed"]
    assert failed > 2
    assert full["problems"] == []
    assert full["state"] == list(range(failed))
    assert full["replies"] == sum(len(log_of(i, replies=True).blobs) for i in range(failed))
    assert f"episode {failed} of cell could not be written" in full["error"]
    assert "coordbench run --resume" in full["error"]
    assert f"kept in {temporary}" in full["error"]
    assert resumed["state"] == list(range(failed + 1))
    assert resumed["problems"] == []
    more = len(log_of(failed, replies=True).blobs)
    assert resumed["replies"] == full["replies"] + more
    (repair,) = resumed["repairs"]
    assert f"episode {failed} of cell was taken back" in repair
    assert list(temporary.iterdir()) == []


def test_a_full_disk_loses_no_episode(tmp_path: Path, namespace: tuple[str, ...]) -> None:
    disk, temporary = tmp_path / "disk", tmp_path / "tmp"
    disk.mkdir()
    temporary.mkdir()
    full, resumed = run_script(ON_A_SMALL_DISK, [disk], temporary, *namespace)
    assert "the disk is full: free some space" in full["error"]
    check_nothing_lost(full, resumed, temporary)


def test_a_full_disk_with_no_other_place_keeps_what_was_stored(
    tmp_path: Path, namespace: tuple[str, ...]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    full, resumed = run_script(ON_A_SMALL_DISK, [disk, disk], tmp_path, *namespace)
    assert "could not be written: No space left" in full["error"]
    assert "kept in" not in full["error"]
    assert full["left"] == []
    assert full["state"] == resumed["state"] == list(range(full["failed"]))
    assert full["problems"] == resumed["problems"] == resumed["repairs"] == []


def test_a_file_size_limit_loses_no_episode(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    full, resumed = run_script(UNDER_A_FILE_LIMIT, [tmp_path / "runs"], temporary)
    assert "file size limit" in full["error"]
    check_nothing_lost(full, resumed, temporary)


class Disk:
    """Lets writes fail as a full disk would, from the given one on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, real_writes: int) -> None:
        self.left = real_writes
        self.real = os.pwrite
        monkeypatch.setattr(os, "pwrite", self.pwrite)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        if self.left == 0:
            self.real(descriptor, bytes(data)[:7], offset)
            raise OSError(28, "No space left on device")
        self.left -= 1
        return self.real(descriptor, data, offset)


@pytest.mark.parametrize("writes", [0, 1])
def test_blobs_and_events_are_written_both_or_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    run = run_of(tmp_path / "runs", [log_of(0, replies=True)], digest=str(tmp_path))
    before = {path: path.read_bytes() for path in run.glob("*/cell.jsonl")}
    assert len(before) == 2
    with RunWriter.open(run) as writer:
        with monkeypatch.context() as patch:
            Disk(patch, writes)
            with pytest.raises(StoreError) as caught:
                writer.append(log_of(1, replies=True))
        assert "kept in" not in str(caught.value)
        assert {path: path.read_bytes() for path in before} == before
        writer.append(log_of(2, replies=True))
    stored = StoredRun.open(run)
    assert list(stored.state("cell")) == [0, 2]
    for digest, blob in log_of(2, replies=True).blobs.items():
        assert stored.blob("cell", digest) == blob


@pytest.fixture
def rescued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A run of which episode 1 is in a rescue file, and that file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = run_of(tmp_path / "runs", [log_of(0, replies=True)], digest=str(tmp_path))
    with RunWriter.open(run) as writer, monkeypatch.context() as patch:
        Disk(patch, 0)
        with pytest.raises(StoreError):
            writer.append(log_of(1, replies=True))
    (file,) = tmp_path.glob("coordbench-rescue-*")
    return run, file


def test_a_rescued_episode_comes_back_as_it_would_have_been_written(
    rescued: tuple[Path, Path], tmp_path: Path
) -> None:
    run, file = rescued
    moved = run.rename(tmp_path / "moved")
    RunWriter.open(moved).close()
    assert not file.exists()
    unbroken = run_of(tmp_path / "other", [log_of(index, replies=True) for index in range(2)])
    for part in ("cells", "blobs"):
        assert (moved / part / "cell.jsonl").read_bytes() == (
            unbroken / part / "cell.jsonl"
        ).read_bytes()


def test_an_episode_that_was_played_again_is_not_taken_back(rescued: tuple[Path, Path]) -> None:
    run, file = rescued
    hidden = file.rename(file.with_name("elsewhere"))
    with RunWriter.open(run) as writer:
        writer.append(log_of(1, replies=True))
    hidden.rename(file)
    with RunWriter.open(run) as writer:
        assert writer.repairs == []
    assert StoredRun.open(run).problems == []


def test_rescue_files_of_other_runs_torn_ones_and_links_are_left_alone(
    rescued: tuple[Path, Path], tmp_path: Path
) -> None:
    run, file = rescued
    data = file.read_bytes()
    other = run_of(tmp_path / "others", [], digest=str(tmp_path), created_at=5.0)
    with RunWriter.open(other) as writer:
        assert writer.repairs == []
    file.write_bytes(data[:-9])
    (tmp_path / "coordbench-rescue-binary.jsonl").write_bytes(b"\xff\n")
    (tmp_path / "coordbench-rescue-empty.jsonl").touch()
    (tmp_path / "coordbench-rescue-folder.jsonl").mkdir()
    whole = tmp_path / "whole"
    whole.write_bytes(data)
    (tmp_path / "coordbench-rescue-link.jsonl").symlink_to(whole)
    os.mkfifo(tmp_path / "coordbench-rescue-pipe.jsonl")
    with RunWriter.open(run) as writer:
        assert writer.repairs == []
    assert file.exists()
    assert StoredRun.open(run).missing("cell") == [1, 2, 3, 4, 5]
    file.write_bytes(data)
    with RunWriter.open(run) as writer:
        assert len(writer.repairs) == 1


def test_a_manifest_that_cannot_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter.create(tmp_path, manifest_of())
    before = (writer.path / "manifest.json").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with writer, monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left") as caught:
            writer.update(status="complete")
        assert "free some space" in str(caught.value)
    assert (writer.path / "manifest.json").read_bytes() == before
    assert [path.name for path in writer.path.glob(".manifest*")] == []
