"""`coordbench plugins`."""

from __future__ import annotations

import click

from coordbench.cli.options import load_registry, plugin_options
from coordbench.plugins.describe import PluginDescription, describe

__all__ = ["command"]

_EPILOG = """
\b
Examples:
  coordbench plugins
  coordbench plugins --json
  coordbench plugins --no-plugin llamacpp
"""


@click.command(name="plugins", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print strict JSON instead of a table.")
@plugin_options
def command(as_json: bool, no_plugin: tuple[str, ...]) -> None:
    """List plugins: distribution, version, kind, state, what each offers, and problems."""
    registry = load_registry(no_plugin)
    described = describe(registry)
    if as_json:
        import msgspec

        encoded = msgspec.json.encode({"format": 1, "plugins": described})
        click.echo(msgspec.json.format(encoded, indent=2).decode())
        return
    _print_table(described)


def _print_table(described: list[PluginDescription]) -> None:
    from rich.table import Table

    from coordbench.cli.console import out_console

    console = out_console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("kind", "name", "plugin", "dist", "version", "state", "summary"):
        table.add_column(heading, overflow="fold", no_wrap=heading not in ("summary", "dist"))
    for item in described:
        for offer in item.offers:
            table.add_row(
                offer.kind,
                offer.name,
                item.plugin,
                item.dist,
                item.version,
                item.state,
                offer.summary,
            )
        if not item.offers:
            table.add_row("-", "-", item.plugin, item.dist, item.version, item.state, "")
    console.print(table)
    for item in described:
        for problem in item.problems:
            console.print(f"problem: {problem}", style="yellow", markup=False, highlight=False)
        for warning in item.warnings:
            console.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
