"""The manifest: what was planned, with what, where, and what differed from what was asked."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from coordbench.data.plan import Cell
from coordbench.data.spec import TaskSpec

__all__ = ["FORMAT", "Manifest", "ModelRecord", "PluginRecord"]

FORMAT = 1


class PluginRecord(msgspec.Struct, frozen=True):
    """A plugin as it was when the run began."""

    name: str
    dist: str
    version: str
    state: Literal["ok", "problem", "disabled"]
    detail: str = ""


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the run.

    Attributes
    ----------
    served : tuple of str
        The names that servers said answered.
    asked, sent : mapping
        Settings asked for, and as they went out. `differences` names each setting that was
        dropped or changed; a cell with differences says so in the report.
    notes : tuple of str
        What the preflight found, e.g. tools that could not be called.
    """

    provider: str
    model: str
    tool_mode: str
    paid: bool
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    settings: dict[str, Any] = {}
    served: tuple[str, ...] = ()
    asked: dict[str, Any] = {}
    sent: dict[str, Any] = {}
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json` of a run folder; rewritten whole, by rename.

    Attributes
    ----------
    status : str
        `running` also marks a run that was killed.
    created_at, ended_at : float
        Seconds since the epoch.
    """

    run: str
    spec: TaskSpec
    digest: str
    cells: tuple[Cell, ...]
    created_at: float
    format: int = FORMAT
    ended_at: float | None = None
    status: Literal["running", "complete", "stopped", "failed"] = "running"
    reason: str = ""
    coordbench: str = ""
    command: tuple[str, ...] = ()
    models: dict[str, ModelRecord] = {}
    plugins: tuple[PluginRecord, ...] = ()
    problems: tuple[str, ...] = ()
    host: dict[str, Any] = {}
