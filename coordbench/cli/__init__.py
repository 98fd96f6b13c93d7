"""The command line. Commands are imported when they are used, so `--help` stays fast."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from coordbench import __version__
from coordbench.data.errors import CoordbenchError, ExitCode

__all__ = ["cli", "main"]

_COMMANDS = {
    "run": "Play a task with one or more models and report.",
    "plan": "Print what a run would play and take, and stop.",
    "check": "Check models before a run: key, tools, settings, price.",
    "report": "Render the report of a stored run.",
    "plugins": "List what is installed, and what is wrong with it.",
}

_EPILOG = """
\b
Examples:
  coordbench run                                   the standard task on what this machine has
  coordbench run dining_philosophers --model openai/gpt-5.4 --n 5
  coordbench report latest
"""


class _LazyGroup(click.Group):
    """Lists commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"coordbench.cli.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in _COMMANDS:
            from coordbench.data.suggest import did_you_mean

            hint = did_you_mean(name, _COMMANDS) or f"commands: {', '.join(_COMMANDS)}"
            ctx.fail(f"no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(
    cls=_LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="coordbench")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Do these models coordinate? N agents share N forks at Dijkstra's table.

    Any model plays the same task; reports are comparable and every number can be traced.
    """
    if debug:
        os.environ["COORDBENCH_DEBUG"] = "1"


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 ok, 1 error, 2 usage, 130 interrupted."""
    sys.exit(_run(args))


def _run(args: Sequence[str] | None) -> int:
    try:
        result = cli.main(args=args, prog_name="coordbench", standalone_mode=False)
    except click.exceptions.Abort:
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except CoordbenchError as error:
        return _report(error)
    except KeyboardInterrupt:
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our pipe went away (`| head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    return int(result) if isinstance(result, int) else ExitCode.OK


def _report(error: CoordbenchError) -> int:
    if os.environ.get("COORDBENCH_DEBUG"):
        import traceback

        traceback.print_exception(error)
    _say(f"error: {error.message}")
    if error.hint:
        _say(f"  {error.hint}")
    return error.exit_code


def _say(text: str) -> None:
    click.echo(text.encode("utf-8", "backslashreplace").decode(), err=True)
