"""All providers at one task, in the script that a user can run, and cut off from the network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import loopback_only

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "same_reports.py"
PROVIDERS = ("openai", "anthropic", "google", "mistral", "litellm")


def without_network(script: Path, *args: str) -> subprocess.CompletedProcess[str]:
    # As on a machine where nothing was asked for: litellm and others read such variables.
    clean = {name: value for name, value in os.environ.items() if "LITELLM" not in name}
    return subprocess.run(
        [sys.executable, str(loopback_only.__file__), str(script), *args],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(f"coordbench_{name}") for name in PROVIDERS),
    reason="not all provider plugins are installed",
)
def test_five_providers_make_one_report_and_nothing_reaches_for_the_network() -> None:
    done = without_network(SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 reports, identical apart from names" in done.stdout


def test_listing_and_planning_reach_for_no_network(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from coordbench.cli import cli\n"
        "cli(['plugins'], standalone_mode=False)\n"
        "cli(['plan', 'dining_philosophers', '--model', 'script/random'], standalone_mode=False)\n",
        encoding="utf-8",
    )
    done = without_network(script)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "reach",
    [
        "socket.create_connection(('192.0.2.1', 80), 1)",
        "urllib.request.urlopen('http://example.com')",
        "socket.getaddrinfo('example.com', 80)",
    ],
)
def test_whoever_reaches_for_it_is_seen(tmp_path: Path, reach: str) -> None:
    """Also where the error is swallowed, as libraries that only try to fetch something do."""
    script = tmp_path / "script.py"
    code = f"import socket, urllib.request\ntry:\n    {reach}\nexcept OSError:\n    pass\n"
    script.write_text(code, encoding="utf-8")
    assert without_network(script).returncode == 3
