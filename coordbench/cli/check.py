"""`coordbench check`."""

from __future__ import annotations

import asyncio

import click

from coordbench.cli.console import out_console
from coordbench.cli.options import STANDARD_TASK, load_registry, plugin_options
from coordbench.data.errors import ExitCode

__all__ = ["command"]

_EPILOG = """
\b
Examples:
  coordbench check openai/gpt-5.4 anthropic/claude-sonnet-4-5
  coordbench check llamacpp/smollm2,tools=constrained
"""


@click.command(name="check", epilog=_EPILOG)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--task", default=STANDARD_TASK, show_default=True, help="Task whose tools to call.")
@plugin_options
def command(models: tuple[str, ...], task: str, no_plugin: tuple[str, ...]) -> int:
    """Check each MODEL before a run: key, one forced call per tool, settings, price.

    Exit 0 where every tool of every model could be called, 1 otherwise, 2 for a name or key that
    is missing.
    """
    from coordbench.data.decode import load_task
    from coordbench.engine.plan import make_plan
    from coordbench.engine.player import CorePlayer
    from coordbench.engine.preflight import ModelCheck, check_models
    from coordbench.engine.prompts import tools_for

    registry = load_registry(no_plugin)
    spec = load_task(task)
    plan = make_plan(spec, registry, models)
    player = CorePlayer(plan, registry=registry, disabled=no_plugin)

    async def look() -> list[ModelCheck]:
        try:
            await player.open()
            return await check_models(player.callers(), tools_for(spec.prompt), spec.sampling)
        finally:
            await player.aclose()

    checks = asyncio.run(look())
    console = out_console()
    checked = {check.name for check in checks}
    for cell in plan.cells:
        if cell.n == plan.cells[0].n and cell.team not in checked:
            console.print(f"{cell.team}: ok (scripted, nothing to check)", markup=False)
    for check in checks:
        verdict = "ok" if check.usable else "not ok"
        called = sum(found == "ok" for found in check.tools.values())
        console.print(
            f"{check.name}: {verdict}, {called}/{len(check.tools) or 6} tools called, "
            f"tools={check.tool_mode}" + (f", served by {check.served}" if check.served else ""),
            markup=False,
        )
        for line in check.lines():
            console.print(f"  {line}", markup=False, soft_wrap=True)
    return ExitCode.OK if all(check.usable for check in checks) else ExitCode.ERROR
