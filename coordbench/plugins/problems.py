"""What is wrong with a plugin: data to show, never a crash."""

from __future__ import annotations

import traceback
from typing import Literal

import msgspec

__all__ = ["Code", "Problem", "Stage", "one_line", "traceback_text"]

Stage = Literal["metadata", "requirements", "import", "register", "hook", "offer"]
Code = Literal[
    "bad_metadata",
    "api_version",
    "plugin_load_failed",
    "same_plugin",
    "no_hook",
    "unknown_hook",
    "api_mismatch",
    "hook_failed",
    "bad_offer",
    "duplicate_name",
]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with one plugin. Everything else keeps working.

    Attributes
    ----------
    plugin, dist, version : str
        Name of the entry point; the distribution that declares it, and its version.
    stage : Stage
        How far loading came.
    code : Code
        The same, finer, for programs.
    error : str
        What happened, on one line.
    hint : str
        What to do next.
    kind, offer : str
        Kind and name of the offer in question; empty where it is about the whole plugin.
    traceback : str
        For `--debug`; empty where nothing was raised.
    """

    plugin: str
    dist: str
    version: str
    stage: Stage
    code: Code
    error: str
    hint: str = ""
    kind: str = ""
    offer: str = ""
    traceback: str = ""

    def __str__(self) -> str:
        text = f"plugin {self.plugin} ({self.dist} {self.version}), {self.stage}: {self.error}"
        return f"{text}; {self.hint}" if self.hint else text


def one_line(error: BaseException) -> str:
    """`Type: message` on one line, also where the message cannot be formatted."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # a plugin's exception may be broken as well
        message = "(its message cannot be shown)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def traceback_text(error: BaseException) -> str:
    """The traceback as Python prints it."""
    return "".join(traceback.format_exception(error))
