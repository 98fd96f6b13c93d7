"""What a user sees: help, names, bad input. One message, exit 2, no traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.command import coordbench


def spec_file(folder: Path, text: str) -> str:
    (folder / "task.toml").write_text(text, encoding="utf-8")
    return "task.toml"


SPEC = """
name = "mine"
n = [3]
episodes = 2
[rules]
rounds = 4
[prompt]
system = "You share forks."
round = "Round $round."
"""

QUICK = ("--model", "script/random", "--n", "3", "--episodes", "2", "--rounds", "3")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "no-such-task", *QUICK], ["no-such-task", "dining_philosophers"]),
        (["run", "missing.toml", *QUICK], ["missing.toml"]),
        (["run", "--model", "script/rndom"], ["rndom", "script/random"]),
        (["run", "--model", "opnai/gpt-5.4"], ["opnai", "openai"]),
        (["run", "--model", "script/random,speed=3"], ["speed"]),
        (["run", "--model", "script"], ["script"]),
        (["run", "--n", "0", "--model", "script/random"], ["--n", "0"]),
        (["run", "--n", "1", "--model", "script/random"], ["--n", "1"]),
        (["run", "--n", "-4", "--model", "script/random"], ["--n", "-4"]),
        (["run", "--n", "three", "--model", "script/random"], ["--n", "three"]),
        (["run", "--episodes", "0", "--model", "script/random"], ["--episodes", "0"]),
        (["run", "--rounds", "-1", "--model", "script/random"], ["--rounds", "-1"]),
        (["run", "--agent", "langraph", *QUICK], ["langraph", "langgraph"]),
        (["run", "--executor", "lokal", *QUICK], ["lokal", "local"]),
        (["run", "--max-calls", "0", *QUICK], ["--max-calls"]),
        (["run", "--no-plugin", "nonsense", *QUICK], ["nonsense"]),
        (["run", "--resume", "no-such-run"], ["no-such-run"]),
        (["report", "no-such-run"], ["no-such-run"]),
        (["rnu"], ["rnu", "run"]),
        (["run", "--modle", "script/random"], ["--modle", "--model"]),
    ],
)
def test_a_mistake_gets_one_clear_message_and_exit_2(
    tmp_path: Path, args: Sequence[str], says: Sequence[str]
) -> None:
    done = coordbench(*args, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for word in says:
        assert word in done.stderr
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SPEC.replace("episodes", "epsiodes"), ["task.toml:4", "epsiodes", "episodes"]),
        (SPEC.replace("episodes = 2", 'episodes = "2"'), ["task.toml:4"]),
        (SPEC.replace("n = [3]", "n = [1]"), ["task.toml:3"]),
        (SPEC.replace("rounds = 4", "rounds = 0"), ["task.toml:6"]),
        (SPEC.replace("n = [3]", "n = [3"), ["task.toml:"]),
        (SPEC.replace("[rules]\nrounds = 4\n", ""), ["rules"]),
        (SPEC.replace("rounds = 4", 'rounds = 4\norder = "simultanous"'), ["simultaneous"]),
    ],
)
def test_a_bad_spec_says_where(tmp_path: Path, text: str, says: Sequence[str]) -> None:
    done = coordbench("run", spec_file(tmp_path, text), "--model", "script/idle", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for word in says:
        assert word in done.stderr


def test_a_spec_that_is_not_text_or_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "bin.toml").write_bytes(b"\xff\xfe\x00name")
    (tmp_path / "folder.toml").mkdir()
    for name in ("bin.toml", "folder.toml"):
        done = coordbench("run", name, "--model", "script/idle", cwd=tmp_path)
        assert done.returncode == 2
        assert name in done.stderr
        assert "Traceback" not in done.stderr


def test_a_results_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = coordbench("run", *QUICK, "--out", "file/runs", cwd=tmp_path)
    assert done.returncode == 2
    assert "file/runs" in done.stderr
    assert "--out" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_an_example_for_every_command(tmp_path: Path) -> None:
    top = coordbench("--help", cwd=tmp_path)
    assert top.returncode == 0
    assert "coordbench run" in top.stdout
    for command in ("run", "plan", "report", "plugins"):
        done = coordbench(command, "--help", cwd=tmp_path)
        assert done.returncode == 0
        assert f"coordbench {command}" in done.stdout.split("Examples:")[1]


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["plugins"], ["plugins", "--json"]])
def test_looking_around_imports_nothing_heavy(tmp_path: Path, args: list[str]) -> None:
    code = (
        "import sys\n"
        "from coordbench.cli import cli\n"
        f"try: cli.main({args!r}, prog_name='coordbench', standalone_mode=False)\n"
        "except SystemExit: pass\n"
        "heavy = ['scipy', 'numpy', 'langgraph', 'langchain_core', 'torch', 'openai', 'anthropic',"
        " 'google.genai', 'mistralai', 'litellm', 'xllamacpp', 'vllm', 'pydantic']\n"
        "print('LOADED', [name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "LOADED []" in done.stderr


def test_help_loads_no_plugin_at_all(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom coordbench.cli import cli\n"
        "try: cli.main(['--help'], prog_name='coordbench', standalone_mode=False)\n"
        "except SystemExit: pass\n"
        "assert 'coordbench.builtin' not in sys.modules\n"
        "assert not [name for name in sys.modules if name.startswith('coordbench_')]\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)


def test_a_plan_prints_cells_and_calls_and_plays_nothing(tmp_path: Path) -> None:
    done = coordbench("plan", "dining_philosophers", "--model", "script/random", cwd=tmp_path)
    assert done.returncode == 0
    assert "script-random_n15" in done.stdout
    assert "5,400" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m coordbench plugins | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
