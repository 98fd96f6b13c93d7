"""The reporter `json`: `report.json`, strict and versioned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from coordbench.api.reporting import RunView
from coordbench.data.strictjson import pretty
from coordbench.report.writing import write_report

__all__ = ["JsonReporter", "build_json"]

_NAME = "report.json"
_FORMAT = 1


def build_json(target: str, options: msgspec.Struct) -> JsonReporter:
    """Build the reporter."""
    return JsonReporter()


class JsonReporter:
    """Writes one JSON file: no NaN anywhere, null with a reason instead."""

    def render(self, run: RunView, out: Path | None) -> Sequence[Path]:
        """Write `report.json` into `out`, or into the run's `report/`."""
        manifest = run.manifest
        content = {
            "format": _FORMAT,
            "run": manifest["run"],
            "digest": manifest["digest"],
            "status": manifest["status"],
            "coordbench": manifest["coordbench"],
            "spec": manifest["spec"],
            "models": manifest["models"],
            "cells": [msgspec.to_builtins(cell) for cell in run.cells],
        }
        return [write_report(out or run.path / "report", _NAME, pretty(content))]
