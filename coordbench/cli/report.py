"""`coordbench report`."""

from __future__ import annotations

from pathlib import Path

import click

from coordbench.cli.options import load_registry, plugin_options
from coordbench.plugins import Registry
from coordbench.report import load_view
from coordbench.store import StoredRun, find_run

__all__ = ["command", "render_report"]

_FILE_REPORTERS = ("markdown", "json")

_EPILOG = """
\b
Examples:
  coordbench report latest
  coordbench report runs/2026-12-01-dining_philosophers-1a2b3c4d --reporter markdown
"""


@click.command(name="report", epilog=_EPILOG)
@click.argument("run")
@click.option(
    "--reporter",
    "-r",
    "reporters",
    multiple=True,
    metavar="NAME",
    help="Reporter; may be repeated. Default: terminal, markdown and json.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for report files. Default: RUN/report.",
)
@plugin_options
def command(
    run: str, reporters: tuple[str, ...], out: Path | None, no_plugin: tuple[str, ...]
) -> None:
    """Render the report of RUN (a folder, the start of a run's name, or `latest`)."""
    registry = load_registry(no_plugin)
    stored = StoredRun.open(find_run(run))
    render_report(stored, registry, reporters or ("terminal", *_FILE_REPORTERS), out)


def render_report(
    stored: StoredRun,
    registry: Registry,
    reporters: tuple[str, ...] = ("terminal", *_FILE_REPORTERS),
    out: Path | None = None,
) -> int:
    """Render `stored` with each reporter; return how many episodes were scored."""
    built = [registry.build("reporter", name) for name in reporters]
    view = load_view(stored, registry)
    folder = out or stored.path / "report"
    written: list[Path] = []
    for reporter in built:
        written += reporter.render(view, folder)
    for problem in stored.problems:
        click.echo(f"note: {problem}", err=True)
    for path in written:
        click.echo(f"wrote {path}", err=True)
    return sum(cell.n_scored for cell in view.cells)
