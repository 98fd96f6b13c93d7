"""The public contract: what changes here changes for every plugin there is."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import coordbench.api
from coordbench.api import hookspecs
from coordbench.api.hookspecs import KINDS
from coordbench.plugins import Registry

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "plugins" / "coordbench-example"

HOOKS = [
    name
    for name, value in vars(hookspecs).items()
    if inspect.isfunction(value) and hasattr(value, "coordbench_spec")
]

PUBLIC = """
API_VERSION Action Agent AssistantMessage CallContext CallRecord Cause CellSummary ChatMessage
CoordbenchError Decision Effect Episode EpisodeJob EpisodeLog Estimate Executor Failure FailureKind
FailureRecord ForkView HeardMessage Invalid InvalidReason Lane Message Metric ModelCaller ModelError
ModelInfo ModelProvider ModelReply ModelRequest ModelResult NoOptions Observation Offer Player
RawCall Reporter Result Reward Rules RunView Sampling Scope SeatSummary SeatTurn SeatView
StopReason StopSignal SystemMessage TaskSpec Tool ToolMessage Turn Usage UsageError UserMessage
hookimpl
"""


@pytest.mark.parametrize("hook", HOOKS)
class TestEveryHook:
    def test_returns_offers_of_one_kind(self, hook: str) -> None:
        assert list(KINDS.values()).count(hook) == 1

    def test_is_documented_with_an_example(self, hook: str) -> None:
        text = inspect.getdoc(getattr(hookspecs, hook)) or ""
        assert "Example: `Offer(" in text
        assert f"`{hook}`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

    def test_takes_nothing(self, hook: str) -> None:
        assert not inspect.signature(getattr(hookspecs, hook)).parameters

    def test_is_used_by_the_example_plugin(self, hook: str) -> None:
        plugins = Registry.load().plugins
        (example,) = [item for item in plugins if item.found.dist == "coordbench-example"]
        assert hook in {KINDS[kind] for kind, _ in example.offers}


def test_every_kind_has_a_hook() -> None:
    assert set(KINDS.values()) == set(HOOKS)


def test_the_public_surface_is_what_is_recorded_here() -> None:
    assert list(coordbench.api.__all__) == sorted(PUBLIC.split())
    for name in coordbench.api.__all__:
        assert getattr(coordbench.api, name) is not None
    names = {
        name
        for name, value in vars(coordbench.api).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert names == set(coordbench.api.__all__)


def test_public_names_say_what_they_are() -> None:
    for name in coordbench.api.__all__:
        value = getattr(coordbench.api, name)
        if inspect.isclass(value):
            assert inspect.getdoc(value), name


def test_the_example_uses_only_what_is_public() -> None:
    for path in (EXAMPLE / "src").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("from coordbench.", "import coordbench")):
                assert line.split()[1] in ("coordbench.api", "coordbench.reading"), (
                    f"{path}: {line}"
                )


def test_the_public_api_is_light() -> None:
    code = (
        "import sys, coordbench.api, coordbench.plugins; "
        "print([m for m in ('numpy', 'scipy', 'langgraph', 'rich', 'httpx', 'importlib.metadata', "
        "'packaging') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.strip("[]\n").replace("'", "").split(", "))
    assert loaded <= {"importlib.metadata", ""}


def test_the_hookspecs_are_marked_for_pluggy_and_so_is_hookimpl() -> None:
    @coordbench.api.hookimpl
    def coordbench_models() -> list[object]:
        return []

    assert coordbench_models.coordbench_impl  # type: ignore[attr-defined]
    assert importlib.import_module("coordbench.api.hookspecs").GROUP == "coordbench"
