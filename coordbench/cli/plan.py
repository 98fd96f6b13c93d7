"""`coordbench plan`."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.console import Console
from rich.table import Table

from coordbench.api.models import ModelInfo
from coordbench.cli.console import out_console
from coordbench.cli.demo import demo_spec
from coordbench.cli.options import load_registry, plugin_options, task_options, task_spec
from coordbench.data.errors import CoordbenchError
from coordbench.data.plan import Plan
from coordbench.engine.plan import estimate_cell, make_plan
from coordbench.engine.prices import priced
from coordbench.report.text import counted

__all__ = ["command", "print_plan"]

_EPILOG = """
\b
Examples:
  coordbench plan dining_philosophers --model openai/gpt-5.4
  coordbench plan my_task.toml --n 5 --episodes 10
"""


@click.command(name="plan", epilog=_EPILOG)
@task_options
@plugin_options
def command(
    task: str | None,
    models: tuple[str, ...],
    sizes: tuple[int, ...],
    episodes: int | None,
    rounds: int | None,
    seed: int | None,
    agent: str | None,
    no_plugin: tuple[str, ...],
) -> None:
    """Print the cells of TASK with calls, tokens and cost at most; play nothing."""
    registry = load_registry(no_plugin)
    spec = task_spec(
        task,
        models=models,
        sizes=sizes,
        episodes=episodes,
        rounds=rounds,
        seed=seed,
        agent=agent,
    )
    if not spec.models and not spec.teams:
        spec = demo_spec(spec, registry, small=episodes is None)
    plan = make_plan(spec, registry)
    infos: dict[str, ModelInfo] = {}
    notes: list[str] = []
    for name in dict.fromkeys(seat for cell in plan.cells for seat in cell.seats):
        try:
            infos[name] = priced(registry.build("model", name).info)
        except CoordbenchError as error:
            notes.append(f"{name}: {error}")
    console = out_console()
    print_plan(plan, infos, console)
    for note in notes:
        console.print(f"note: {note}", markup=False)


def print_plan(plan: Plan, infos: Mapping[str, ModelInfo], console: Console) -> None:
    """Print one row per cell and the totals."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("cell", overflow="fold")
    for heading in ("n", "rounds", "episodes", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="right", no_wrap=True)
    calls = tokens_in = tokens_out = 0
    cost: float | None = 0.0
    for cell in plan.cells:
        estimate = estimate_cell(cell, plan, infos)
        calls += estimate.calls
        tokens_in += estimate.input_tokens
        tokens_out += estimate.output_tokens
        cost = None if cost is None or estimate.cost is None else cost + estimate.cost
        table.add_row(
            cell.id,
            str(cell.n),
            str(cell.rules.rounds),
            str(cell.episodes),
            f"{estimate.calls:,}",
            f"{estimate.input_tokens:,}",
            f"{estimate.output_tokens:,}",
            _money(estimate.cost),
        )
    table.add_row(
        counted(len(plan.cells), "cell"),
        "",
        "",
        f"{sum(cell.episodes for cell in plan.cells):,}",
        f"{calls:,}",
        f"{tokens_in:,}",
        f"{tokens_out:,}",
        _money(cost),
        style="bold",
    )
    console.print(table)
    console.print(
        f"At most: no episode ends early and every reply uses its cap of "
        f"{plan.spec.sampling.max_tokens} tokens. Seed {plan.spec.seed}; "
        f"plan {plan.digest[:12]}."
    )


def _money(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.2f}"
