"""Faults of other plugin systems, from public reports: once as own cases, once as the file's.

The file's cases describe entry points; each is installed here as a real distribution.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sites import Site, problem_of

from coordbench import __version__
from coordbench.api.hookspecs import API_VERSION
from coordbench.data.errors import AmbiguousNameError, PluginError
from coordbench.plugins import Registry

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "cases" / "provider_cases.jsonl"

Case = dict[str, Any]

OWN: list[Case] = [
    {
        "id": "own-asked-for-and-broken",
        "input": {
            "entry_points": [{"name": "torn", "value": "cb_torn", "raises": "SystemExit"}],
            "command": ["run", "--provider", "torn"],
        },
        "expect": {"kind": "plugin_load_failed", "shows_traceback_with": "--debug"},
    },
    {
        "id": "own-help-loads-nothing",
        "input": {
            "entry_points": [{"name": "torn", "value": "cb_torn", "raises": "ImportError"}],
            "command": ["--help"],
        },
        "expect": {"exit": 0, "plugins_imported": False},
    },
    {
        "id": "own-clash",
        "input": {
            "entry_points": [
                {"group": "coordbench.rewards", "name": "mine", "dist": "cb-one"},
                {"group": "coordbench.rewards", "name": "mine", "dist": "cb-two"},
            ]
        },
        "expect": {"kind": "duplicate_name", "names_dists": ["cb-one", "cb-two"]},
    },
    {
        "id": "own-linked-folder",
        "input": {"sys_path": ["venv/lib", "venv/lib64", "venv/lib"], "lib64_is_symlink": True},
        "expect": {"kind": "same_plugin_once", "loaded": ["mine"]},
    },
    {
        "id": "own-old-signature",
        "input": {"hookspec": "a()", "hookimpl": "a(config)", "plugin": "cb-older"},
        "expect": {"kind": "api_mismatch", "failed": ["cb-older"], "others_loaded": True},
    },
    {
        "id": "own-api-of-tomorrow",
        "input": {"plugin_api": "coordbench-plugin-api>=3", "host_api": 1},
        "expect": {"kind": "api_version", "failed": ["cb-newer"]},
    },
    {
        "id": "own-misspelt-hook",
        "input": {"hookimpl_name": "coordbench_model"},
        "expect": {"kind": "unknown_hook", "failed": ["slip"]},
    },
]


def reported() -> list[Case]:
    if not CASES.is_file():
        return []
    lines = CASES.read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["group"] == "e"]


def module_of(dist: str) -> str:
    return dist.replace("-", "_")


def coordbench(site: Site, *args: str) -> subprocess.CompletedProcess[str]:
    """The real command, with the site on its path."""
    env = {key: value for key, value in os.environ.items() if key != "COORDBENCH_STRICT"}
    return subprocess.run(
        [sys.executable, "-m", "coordbench", *args],
        env=env | {"PYTHONPATH": str(site.path)},
        cwd=site.path,
        capture_output=True,
        text=True,
        check=False,
    )


def install_broken(site: Site, case: Case) -> Path:
    """Install the case's entry points; importing one leaves a mark, and raises."""
    mark = site.path / "imported"
    for point in case["input"]["entry_points"]:
        module = point["value"].partition(":")[0]
        source = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
        if point["raises"] == "ModuleNotFoundError":
            site.add(point.get("dist", module), {point["name"]: point["value"]})
            continue
        source += f"raise {point['raises']}('torn on purpose')\n"
        site.add(point.get("dist", module), {point["name"]: point["value"]}, {module: source})
    return mark


def check_load_failed(site: Site, case: Case) -> None:
    mark = install_broken(site, case)
    (point,) = case["input"]["entry_points"]
    task = ["run", "dining_philosophers", "--n", "2", "--episodes", "1"]
    done = coordbench(site, *task, "--model", f"{point['name']}/x")
    assert done.returncode == 2
    assert f"plugin {point['name']}" in done.stderr
    assert f"{point['raises']}: torn on purpose" in done.stderr
    assert "Traceback" not in done.stderr
    assert mark.exists()
    debug = coordbench(site, case["expect"]["shows_traceback_with"], *task, "-m", point["name"])
    assert debug.returncode == 2
    assert "Traceback" in debug.stderr
    assert point["value"].partition(":")[0] + ".py" in debug.stderr


def check_not_imported(site: Site, case: Case) -> None:
    mark = install_broken(site, case)
    done = coordbench(site, *case["input"]["command"])
    assert done.returncode == case["expect"]["exit"], done.stderr
    assert done.stdout
    assert not done.stderr
    assert not mark.exists()


def check_clash(site: Site, case: Case) -> None:
    dists = case["expect"]["names_dists"]
    names = {point["name"] for point in case["input"]["entry_points"]}
    if "coordbench" in dists:
        # The core can't be installed twice: the other one takes a name that the core offers.
        names = {
            item.offer.name
            for item in Registry.load().offers("reward")
            if item.dist == "coordbench"
        }
    name = min(names)
    for dist in dists:
        if dist != "coordbench":
            site.reward(dist, name)
    registry = Registry.load()
    with pytest.raises(AmbiguousNameError) as caught:
        registry.resolve("reward", name)
    for dist in dists:
        assert f"{dist} {__version__ if dist == 'coordbench' else '1.0'}" in caught.value.message
    plugins = [item.plugin for item in registry.offers("reward") if item.offer.name == name]
    for plugin in plugins:
        assert f"{plugin}:{name}" in caught.value.hint
        assert registry.resolve("reward", f"{plugin}:{name}").registered.plugin == plugin


def check_once(site: Site, case: Case) -> None:
    (name,) = case["expect"]["loaded"]
    root = site.path / "venv"
    real = Site(root / "lib" / "site-packages")
    (root / "lib64").symlink_to(root / "lib", target_is_directory=True)
    real.reward("cb-once", f"{name}-once", plugin=name)
    for folder in reversed(case["input"]["sys_path"]):
        path = site.path / folder
        sys.path.insert(0, str(path if path.name == "site-packages" else path / "site-packages"))
    registry = Registry.load()
    found = [item for item in registry.plugins if item.found.dist == "cb-once"]
    assert [item.found.plugin for item in found] == [name]
    assert not found[0].problems
    assert registry.resolve("reward", f"{name}-once").registered.plugin == name


def check_signature(site: Site, case: Case) -> None:
    (dist,) = case["expect"]["failed"]
    arguments = case["input"]["hookimpl"].partition("(")[2].rstrip(")")
    source = f"@hookimpl\ndef coordbench_rewards({arguments}):\n    return []\n"
    site.add(dist, {dist: module_of(dist)}, {module_of(dist): source}, version="0.3")
    site.reward("cb-others", "others")
    registry = Registry.load()
    problem = problem_of(registry, dist)
    assert problem.code == case["expect"]["kind"]
    text = str(problem)
    for part in (dist, "0.3", "coordbench_rewards", __version__, f"plugin API {API_VERSION}"):
        assert part in text
    assert registry.resolve("reward", "others").registered.dist == "cb-others"


def check_api_version(site: Site, case: Case) -> None:
    (dist,) = case["expect"]["failed"]
    assert case["input"]["host_api"] == API_VERSION
    headers = f"Requires-Dist: {case['input']['plugin_api']}\n"
    source = "raise AssertionError('imported')"
    site.add(dist, {dist: module_of(dist)}, {module_of(dist): source}, headers=headers)
    problem = problem_of(Registry.load(), dist)
    assert (problem.code, problem.stage) == (case["expect"]["kind"], "requirements")
    assert module_of(dist) not in sys.modules


def check_unknown_hook(site: Site, case: Case) -> None:
    (plugin,) = case["expect"]["failed"]
    hook = case["input"]["hookimpl_name"]
    source = f"@hookimpl\ndef {hook}():\n    return []\n"
    site.add(f"cb-{plugin}", {plugin: f"cb_{plugin}"}, {f"cb_{plugin}": source})
    registry = Registry.load()
    problem = problem_of(registry, plugin)
    assert problem.code == case["expect"]["kind"]
    assert hook in problem.error
    with pytest.raises(PluginError, match=hook):
        registry.resolve("reward", plugin)


CHECKS: dict[str, Callable[[Site, Case], None]] = {
    "plugin_load_failed": check_load_failed,
    "duplicate_name": check_clash,
    "same_plugin_once": check_once,
    "api_mismatch": check_signature,
    "api_version": check_api_version,
    "unknown_hook": check_unknown_hook,
}


def run_case(site: Site, case: Case) -> None:
    if case["expect"].get("plugins_imported") is False:
        check_not_imported(site, case)
    else:
        CHECKS[case["expect"]["kind"]](site, case)


@pytest.mark.parametrize("case", OWN, ids=lambda case: case["id"])
def test_own_case(site: Site, case: Case) -> None:
    run_case(site, case)


@pytest.mark.skipif(not CASES.is_file(), reason="the folder of reported cases is not here")
@pytest.mark.parametrize("case", reported(), ids=lambda case: case["id"])
def test_reported_case(site: Site, case: Case) -> None:
    run_case(site, case)
