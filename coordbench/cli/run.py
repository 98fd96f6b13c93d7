"""`coordbench run`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from coordbench.api.executors import EpisodeJob
from coordbench.cli.console import err_console
from coordbench.cli.demo import demo_spec
from coordbench.cli.options import load_registry, plugin_options, task_options, task_spec
from coordbench.cli.plan import print_plan
from coordbench.cli.progress import RunProgress
from coordbench.cli.report import render_report
from coordbench.data.errors import ExitCode, UsageError
from coordbench.data.plan import Plan
from coordbench.engine.budget import BudgetLimits
from coordbench.engine.cache import default_cache_path
from coordbench.engine.plan import make_plan
from coordbench.engine.player import CorePlayer
from coordbench.engine.preflight import check_models
from coordbench.engine.prompts import tools_for
from coordbench.engine.run import (
    RunOutcome,
    all_jobs,
    execute,
    new_manifest,
    registry_records,
)
from coordbench.plugins import Registry
from coordbench.store import RunWriter, StoredRun, check_resume, find_run

__all__ = ["command"]

_EPILOG = """
\b
Examples:
  coordbench run
  coordbench run dining_philosophers --model script/random --n 5 --episodes 10
  coordbench run my_task.toml -m openai/gpt-5.4,temperature=0.2 --max-cost 5 --yes
  coordbench run --resume latest
"""


@click.command(name="run", epilog=_EPILOG)
@task_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder that holds run folders.",
)
@click.option("--resume", metavar="RUN", help="Play what a stored run is missing.")
@click.option("--executor", default="local", show_default=True, help="Where episodes are played.")
@click.option("--max-calls", type=click.IntRange(min=1), help="Stop before one call more.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Stop before it could be exceeded.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), help="In US dollars.")
@click.option("--cache", is_flag=True, help="Answer a repeated call from the reply cache.")
@click.option(
    "--cache-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the reply cache; implies --cache.",
)
@click.option("--no-preflight", is_flag=True, help="Do not try each tool once per model first.")
@click.option("--yes", is_flag=True, help="Do not ask before paid calls.")
@plugin_options
def command(
    task: str | None,
    models: tuple[str, ...],
    sizes: tuple[int, ...],
    episodes: int | None,
    rounds: int | None,
    seed: int | None,
    agent: str | None,
    out: Path,
    resume: str | None,
    executor: str,
    max_calls: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    cache: bool,
    cache_file: Path | None,
    no_preflight: bool,
    yes: bool,
    no_plugin: tuple[str, ...],
) -> int:
    """Play TASK (a file, or the name of a shipped task) and report.

    Without TASK and --model: the standard task, small, on the scripted policies and, where one
    is installed, a local model.
    """
    registry = load_registry(no_plugin)
    changed = any(value for value in (task, models, sizes)) or any(
        value is not None for value in (episodes, rounds, seed, agent)
    )
    spec = None
    if changed or resume is None:
        spec = task_spec(
            task,
            models=models,
            sizes=sizes,
            episodes=episodes,
            rounds=rounds,
            seed=seed,
            agent=agent,
        )
        if task is None and not models:
            spec = demo_spec(spec, registry, small=episodes is None)
    if resume is not None:
        plan, writer, jobs, done = _resumed(
            resume, None if spec is None else make_plan(spec, registry)
        )
    else:
        assert spec is not None
        plan = make_plan(spec, registry)
        writer, jobs, done = None, all_jobs(plan), {}
    if not jobs and writer is not None:
        click.echo(f"nothing to do: {writer.path} is complete", err=True)
        writer.close()
        render_report(StoredRun.open(writer.path), registry)
        return ExitCode.OK
    session = _Run(
        plan=plan,
        jobs=jobs,
        done=done,
        registry=registry,
        disabled=no_plugin,
        executor_name=executor,
        budget=BudgetLimits(calls=max_calls, tokens=max_tokens, cost=max_cost),
        ask=not yes,
        cache=(cache_file or default_cache_path()) if cache or cache_file else None,
        preflight=not no_preflight,
    )
    try:
        path, outcome = asyncio.run(session.play(out, writer))
    finally:
        if session.writer is not None:
            session.writer.close()
    return _finish(path, outcome, registry)


class _Run:
    """Everything one run needs, put together."""

    def __init__(
        self,
        *,
        plan: Plan,
        jobs: list[EpisodeJob],
        done: dict[str, int],
        registry: Registry,
        disabled: tuple[str, ...],
        executor_name: str,
        budget: BudgetLimits,
        ask: bool,
        cache: Path | None,
        preflight: bool,
    ) -> None:
        self.plan = plan
        self.jobs = jobs
        self.done = done
        self.registry = registry
        self.executor = registry.build("executor", executor_name)
        self.reward = registry.build("reward", plan.spec.rewards[0])
        self.ask = ask
        self.writer: RunWriter | None = None
        self.preflight = preflight
        self.player = CorePlayer(
            plan, disabled=disabled, registry=registry, budget=budget, cache=cache
        )
        self.progress = RunProgress(plan, done, self.reward, self.player.windows)
        self.player.on_call = self.progress.called

    async def play(self, out: Path, writer: RunWriter | None) -> tuple[Path, RunOutcome]:
        """Open the models, ask where money is at stake, play."""
        self.writer = writer
        try:
            await self.player.open()
            self._check_paid()
            if self.preflight:
                await self._check_models()
            if self.writer is None:
                problems = [str(problem) for problem in self.registry.problems]
                manifest = new_manifest(self.plan, registry_records(self.registry), problems)
                self.writer = RunWriter.create(out, manifest)
            self._say_where(self.writer.path)
            with self.progress:
                outcome = await execute(
                    self.plan,
                    self.jobs,
                    self.player,
                    self.executor,
                    self.writer,
                    self.progress,
                )
            return self.writer.path, outcome
        finally:
            await self.player.aclose()

    async def _check_models(self) -> None:
        spec = self.plan.spec
        checks = await check_models(self.player.callers(), tools_for(spec.prompt), spec.sampling)
        for check in checks:
            lines = check.lines()
            if check.failure is not None:
                raise UsageError(
                    f"{check.name} failed its preflight: {lines[0]}",
                    hint="look closer: coordbench check MODEL; or go on: --no-preflight",
                )
            self.player.notes[check.name] = lines
            for line in lines:
                self.progress.note(f"{check.name}: {line}")

    def _say_where(self, path: Path) -> None:
        click.echo(f"run folder: {path} ({len(self.jobs)} episodes to play)", err=True)

    def _check_paid(self) -> None:
        infos = self.player.infos()
        paid = [name for name, info in infos.items() if info.paid]
        if self.player.budget_limits.cost is not None:
            unpriced = [
                name
                for name in paid
                if infos[name].price_in is None or infos[name].price_out is None
            ]
            if unpriced:
                raise UsageError(
                    f"--max-cost needs a price, and none is known for {', '.join(unpriced)}",
                    hint="limit the run with --max-calls or --max-tokens instead",
                )
        if not paid or not self.ask:
            return
        print_plan(self.plan, infos, err_console())
        if not sys.stdin.isatty():
            raise UsageError(
                f"{', '.join(paid)} cost money and nobody is here to ask",
                hint="add --yes to go ahead, or look first: coordbench plan",
            )
        click.confirm("Play this?", abort=True, err=True)


def _resumed(
    name: str, asked: Plan | None
) -> tuple[Plan, RunWriter, list[EpisodeJob], dict[str, int]]:
    path = find_run(name)
    stored = StoredRun.open(path)
    manifest = stored.manifest
    plan = Plan(spec=manifest.spec, cells=manifest.cells, digest=manifest.digest)
    if asked is not None:
        check_resume(manifest, asked)
    writer = RunWriter.open(path)
    for problem in writer.repairs:
        click.echo(f"note: {problem}", err=True)
    stored = StoredRun.open(path)
    missing = {cell.id: set(stored.missing(cell.id)) for cell in plan.cells}
    jobs = [job for job in all_jobs(plan) if job.episode in missing[job.cell]]
    done = {cell.id: cell.episodes - len(missing[cell.id]) for cell in plan.cells}
    return plan, writer, jobs, done


def _finish(path: Path, outcome: RunOutcome, registry: Registry) -> int:
    stored = StoredRun.open(path)
    scored = render_report(stored, registry)
    if outcome.status == "stopped":
        reason = outcome.reason or "some episodes failed"
        click.echo(f"stopped: {reason}", err=True)
        click.echo(f"  continue with: coordbench run --resume {path}", err=True)
    if outcome.reason == "interrupt":
        return ExitCode.INTERRUPTED
    if not scored or outcome.status == "stopped":
        return ExitCode.INFRASTRUCTURE
    return ExitCode.OK
