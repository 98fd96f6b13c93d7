"""A stored run as reporters see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from coordbench.api.reporting import CellSummary
from coordbench.api.scoring import Metric, Reward
from coordbench.data.episode import Episode
from coordbench.data.spec import TaskSpec
from coordbench.plugins import Registry
from coordbench.report.aggregate import summarise_cell
from coordbench.store import StoredRun

__all__ = ["StoredRunView", "load_view"]

_STANDARD = "coordbench"


class StoredRunView:
    """The `RunView` of a stored run; cells are summarised at the first look.

    Parameters
    ----------
    stored : StoredRun
    rewards, metrics : mapping
        Built offers by name.
    """

    def __init__(
        self, stored: StoredRun, rewards: dict[str, Reward], metrics: dict[str, Metric]
    ) -> None:
        self._stored = stored
        self._rewards = rewards
        self._metrics = metrics

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._stored.path

    @property
    def spec(self) -> TaskSpec:
        """The resolved spec."""
        return self._stored.spec

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self._stored.manifest)
        return plain

    @cached_property
    def cells(self) -> Sequence[CellSummary]:
        """One summary per planned cell, in plan order."""
        manifest = self._stored.manifest
        return [
            summarise_cell(
                cell,
                self._stored.episodes(cell.id),
                self._rewards,
                self._metrics,
                manifest.models,
                self.spec.limits.error_share,
            )
            for cell in manifest.cells
        ]

    def episodes(self, cell: str) -> Iterator[Episode]:
        """Episodes of one cell, streamed in index order."""
        return self._stored.episodes(cell)


def load_view(stored: StoredRun, registry: Registry, rewards: Sequence[str] = ()) -> StoredRunView:
    """View a stored run through its spec's rewards (or the given ones) and metrics."""
    spec = stored.spec
    named_rewards = {
        registry.resolve("reward", name).canonical_name: registry.build("reward", name)
        for name in (rewards or spec.rewards)
    }
    names = spec.metrics or tuple(
        registered.offer.name
        for registered in registry.offers("metric")
        if registered.dist == _STANDARD
    )
    metrics = {name: registry.build("metric", name) for name in names}
    return StoredRunView(stored, named_rewards, metrics)
