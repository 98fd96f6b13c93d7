"""The five providers at one task, in the script that a user can run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "same_reports.py"
PROVIDERS = ("openai", "anthropic", "google", "mistral", "litellm")


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(f"coordbench_{name}") for name in PROVIDERS),
    reason="not all provider plugins are installed",
)
def test_five_providers_make_one_report() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 reports, identical apart from names" in done.stdout
