"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from coordbench.data.errors import UsageError
from coordbench.data.spec import TaskSpec
from coordbench.plugins import Registry

__all__ = ["STANDARD_TASK", "load_registry", "plugin_options", "task_options", "task_spec"]

STANDARD_TASK = "dining_philosophers"

F = TypeVar("F", bound=Callable[..., Any])


def plugin_options(command: F) -> F:
    """`--no-plugin`, for every command that loads plugins."""
    return click.option(
        "--no-plugin",
        "no_plugin",
        multiple=True,
        metavar="NAME",
        help="Do not load this plugin; may be repeated.",
    )(command)


def task_options(command: F) -> F:
    """TASK and what changes it."""
    decorators = (
        click.argument("task", required=False),
        click.option(
            "--model",
            "-m",
            "models",
            multiple=True,
            metavar="NAME",
            help="A model for all seats, e.g. openai/gpt-5.4 or script/random; may be repeated.",
        ),
        click.option(
            "--n",
            "sizes",
            multiple=True,
            type=int,
            help="Table size; may be repeated. Default: the task's.",
        ),
        click.option("--episodes", type=int, help="Episodes per cell."),
        click.option("--rounds", type=int, help="Rounds per episode."),
        click.option("--seed", type=int, help="Run seed; episode seeds follow from it."),
        click.option("--agent", help="Agent the models act through, e.g. langgraph or direct."),
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def load_registry(no_plugin: tuple[str, ...]) -> Registry:
    """Load plugins; a name in `--no-plugin` that does not exist is a usage error."""
    return Registry.load(no_plugin)


def task_spec(
    task: str | None,
    *,
    models: tuple[str, ...],
    sizes: tuple[int, ...],
    episodes: int | None,
    rounds: int | None,
    seed: int | None,
    agent: str | None,
) -> TaskSpec:
    """The task with the command line's changes."""
    from coordbench.data.decode import load_task, spec_with

    spec = load_task(task or STANDARD_TASK)
    if len(set(sizes)) != len(sizes):
        raise UsageError("--n names a table size twice")
    return spec_with(
        spec,
        n=sizes or None,
        episodes=episodes,
        rounds=rounds,
        seed=seed,
        models=models or None,
        agent=agent,
    )
