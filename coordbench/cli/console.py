"""Consoles: rich in a terminal, plain and uncut in a pipe."""

from __future__ import annotations

import os
import sys

from rich.console import Console

__all__ = ["err_console", "in_ci", "out_console"]

_PIPE_WIDTH = 200


def in_ci() -> bool:
    """Whether this looks like a CI job, where a live display would only fill the log."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def out_console() -> Console:
    """Standard output. In a pipe: no colour, and wide enough that nothing is cut."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    width = int(os.environ.get("COLUMNS") or _PIPE_WIDTH)
    return Console(width=width, no_color=True, highlight=False, force_terminal=False)


def err_console() -> Console:
    """Standard error, for progress and notes."""
    if sys.stderr.isatty() and not in_ci():
        return Console(stderr=True, highlight=False)
    return Console(stderr=True, width=_PIPE_WIDTH, no_color=True, highlight=False, soft_wrap=True)
