"""Task files and command-line changes, decoded strictly into a `TaskSpec`."""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordbench.data.checks import find_faults
from coordbench.data.errors import SpecError, UsageError
from coordbench.data.rewording import Fault, reword
from coordbench.data.spec import Communication, Prompt, Rules, TaskSpec, Variant
from coordbench.data.tasks import find_task, shipped_tasks
from coordbench.data.toml_lines import TomlLines

__all__ = ["decode_spec", "load_task", "resolve_variant", "shipped_tasks", "spec_with"]

_TOML_PLACE = re.compile(r"\s*\((?:at line (\d+), column (\d+)|at end of document)\)$")
_FLAGS = {
    "n": "--n",
    "episodes": "--episodes",
    "rounds": "--rounds",
    "seed": "--seed",
    "models": "--model",
    "agent": "--agent",
}


def load_task(task: str | Path) -> TaskSpec:
    """Read a task.

    Parameters
    ----------
    task : str or Path
        A path, or the name of a shipped task.

    Raises
    ------
    UnknownNameError
        Neither a file nor a shipped task.
    SpecError
        The file cannot be read, is not TOML, or says something a task may not say; its message
        begins with `path:line:`.
    """
    path = find_task(task)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror or error}", path=path) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError(
            "not UTF-8 text", path=path, line=line, hint="a task file is UTF-8 encoded TOML"
        ) from error
    return decode_spec(text, path=path)


def decode_spec(text: str, *, path: Path | str) -> TaskSpec:
    """Decode the text of a task file.

    Parameters
    ----------
    path : Path or str
        Named in errors; not read.

    Raises
    ------
    SpecError
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(error, text, path) from None
    except RecursionError:
        raise SpecError("tables or arrays are nested too deeply", path=path) from None
    try:
        spec = msgspec.convert(data, TaskSpec)
    except msgspec.ValidationError as error:
        fault: Fault | None = reword(error, data, TaskSpec)
        cause: Exception | None = error
    else:
        fault, cause = next(find_faults(spec), None), None
    if fault is None:
        return spec
    lines = TomlLines(text)
    line = lines.line_of_text(fault.key, fault.needle) if fault.needle else lines.line(fault.key)
    raise SpecError(fault.message, path=path, line=line, hint=fault.hint) from cause


def resolve_variant(spec: TaskSpec, variant: Variant | None) -> tuple[Rules, Communication, Prompt]:
    """Rules, communication and prompt as they hold in `variant`; the spec's own for None.

    Raises
    ------
    UsageError
        The variant's changes make no valid rules. `load_task` finds this first, with its line.
    """
    if variant is None:
        return spec.rules, spec.communication, spec.prompt
    try:
        return (
            _merged(spec.rules, variant.rules),
            _merged(spec.communication, variant.communication),
            _merged(spec.prompt, variant.prompt),
        )
    except msgspec.ValidationError as error:
        raise UsageError(f'variant "{variant.name}": {error}') from error


def spec_with(
    spec: TaskSpec,
    *,
    n: Sequence[int] | None = None,
    episodes: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    models: Sequence[str] | None = None,
    agent: str | None = None,
) -> TaskSpec:
    """Apply the command line's changes; None changes nothing.

    Table sizes and episodes hold for every team; models replace the spec's models and teams;
    rounds hold unless a variant sets its own.

    Raises
    ------
    UsageError
        A value is impossible; the message names its flag.
    """
    changes: dict[str, Any] = {
        name: _checked(name, value)
        for name, value in (
            ("n", n),
            ("episodes", episodes),
            ("seed", seed),
            ("models", models),
            ("agent", agent),
        )
        if value is not None
    }
    if rounds is not None:
        changes["rules"] = msgspec.structs.replace(spec.rules, rounds=_checked("rounds", rounds))
    if models is not None:
        changes["teams"] = ()
    elif n is not None or episodes is not None:
        changes["teams"] = tuple(
            msgspec.structs.replace(
                team,
                n=team.n if n is None else (),
                episodes=team.episodes if episodes is None else None,
            )
            for team in spec.teams
        )
    return msgspec.structs.replace(spec, **changes) if changes else spec


T = typing.TypeVar("T", Rules, Communication, Prompt)


def _merged(base: T, changes: dict[str, Any]) -> T:
    return msgspec.convert({**msgspec.structs.asdict(base), **changes}, type(base))


def _checked(name: str, value: Any) -> Any:
    flag = _FLAGS[name]
    hints = typing.get_type_hints(Rules if name == "rounds" else TaskSpec, include_extras=True)
    try:
        checked = msgspec.convert(value, hints[name])
    except msgspec.ValidationError as error:
        fault = reword(error, value, None)
        index = fault.key[0] if fault.key and isinstance(fault.key[0], int) else None
        shown = value if index is None else value[index]
        raise UsageError(f"{flag} {shown}: {fault.what}") from None
    if isinstance(checked, tuple):
        if not checked:
            raise UsageError(f"{flag}: give at least one value")
        for item in checked:
            if checked.count(item) > 1:
                raise UsageError(f"{flag} {item}: given twice")
    if name in ("models", "agent") and not all(checked):
        raise UsageError(f"{flag}: the name is empty")
    return checked


def _syntax_error(error: tomllib.TOMLDecodeError, text: str, path: Path | str) -> SpecError:
    message = str(error)
    place = _TOML_PLACE.search(message)
    line = text.rstrip().count("\n") + 1
    column = ""
    if place is not None:
        message = message[: place.start()]
        if place[1] is not None:
            line, column = int(place[1]), f" (column {place[2]})"
        else:
            column = " (end of file)"
    hint = "a key stands twice in this table" if message == "Cannot overwrite a value" else ""
    return SpecError(f"not valid TOML: {message}{column}", path=path, line=line, hint=hint)
