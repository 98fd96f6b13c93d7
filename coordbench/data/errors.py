"""Errors a user can act on: what is wrong, where, and what to do next.

Drawn as a tree::

    CoordbenchError            exit 1
    ├── UsageError             exit 2   the command, a name or a file is wrong
    │   ├── SpecError          a task file: `path:line: what`
    │   ├── UnknownNameError   no such model, reward, task, ...
    │   ├── AmbiguousNameError two plugins offer the bare name that was used
    │   ├── PluginError        a plugin asked for by name is broken
    │   └── ResumeError        a run cannot be continued as asked
    ├── StoreError             a run folder cannot be read or written
    └── InfrastructureError    exit 6   no score came out of what was run
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

__all__ = [
    "AmbiguousNameError",
    "CoordbenchError",
    "ExitCode",
    "InfrastructureError",
    "PluginError",
    "ResumeError",
    "SpecError",
    "StoreError",
    "UnknownNameError",
    "UsageError",
]


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    ERROR = 1
    USAGE = 2
    REGRESSION = 3
    INCONCLUSIVE = 4
    NO_BASELINE = 5
    INFRASTRUCTURE = 6
    INTERRUPTED = 130


class CoordbenchError(Exception):
    """A failure with one clear message and, where there is one, a next step."""

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(CoordbenchError):
    """The command line, a name or a file is wrong."""

    exit_code = ExitCode.USAGE


class SpecError(UsageError):
    """A task file says something it may not say.

    Parameters
    ----------
    line : int or None
        1-based line in `path`; None where no line can be named.
    """

    def __init__(
        self, message: str, *, path: Path | str, line: int | None = None, hint: str = ""
    ) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}", hint=hint)
        self.path = Path(path)
        self.line = line


class UnknownNameError(UsageError):
    """No offer, task, run or cell has this name."""


class AmbiguousNameError(UsageError):
    """Two distributions offer the bare name that was used."""


class PluginError(UsageError):
    """A plugin that was asked for by name could not be loaded or built."""


class ResumeError(UsageError):
    """A run cannot be continued with these settings."""


class StoreError(CoordbenchError):
    """A run folder cannot be read or written."""


class InfrastructureError(CoordbenchError):
    """Nothing could be scored, for reasons outside the models' behaviour."""

    exit_code = ExitCode.INFRASTRUCTURE
