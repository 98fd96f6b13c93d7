"""The command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["coordbench", "only_run", "start"]


def coordbench(
    *args: str, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command in `cwd`, outside the checkout, with standard streams piped."""
    return subprocess.run(
        [sys.executable, "-m", "coordbench", *args],
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def start(*args: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a command and return at once."""
    return subprocess.Popen(
        [sys.executable, "-m", "coordbench", *args],
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def only_run(folder: Path) -> Path:
    """The one run under `folder/runs`."""
    (path,) = (folder / "runs").iterdir()
    return path
