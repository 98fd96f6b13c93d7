"""Real distributions in a folder of their own: metadata, entry points and modules."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from coordbench.plugins import Problem, Registry

HEAD = "from coordbench.api import Offer, NoOptions, hookimpl\n"


class Site:
    """A folder like `site-packages`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        dist: str,
        entry_points: Mapping[str, str],
        modules: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        headers: str = "",
        group: str = "coordbench",
    ) -> Path:
        """Install a distribution; return its metadata folder."""
        info = self.path / f"{dist.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n{headers}"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        lines = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[{group}]\n{lines}", encoding="utf-8")
        for name, source in (modules or {}).items():
            text = HEAD + textwrap.dedent(source)
            (self.path / f"{name}.py").write_text(text, encoding="utf-8")
        return info

    def reward(self, dist: str, name: str, plugin: str = "") -> None:
        """Install a plugin that offers one sound reward, whose term names the distribution."""
        module = dist.replace("-", "_")
        self.add(
            dist,
            {plugin or module: module},
            {
                module: f"""
                class Reward:
                    def score(self, episode):
                        return {{{dist!r}: 1.0}}

                @hookimpl
                def coordbench_rewards():
                    return [Offer({name!r}, "of {dist}", build=lambda target, options: Reward())]
                """
            },
        )


def problems_of(registry: Registry, plugin: str) -> list[Problem]:
    """The problems of one plugin."""
    return [problem for problem in registry.problems if problem.plugin == plugin]


def problem_of(registry: Registry, plugin: str) -> Problem:
    """The one problem of a plugin."""
    (problem,) = problems_of(registry, plugin)
    return problem
