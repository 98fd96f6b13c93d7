"""msgspec's validation errors in a task author's words, with the key they are about."""

from __future__ import annotations

import re
import typing
from typing import Any, Literal

import msgspec

from coordbench.data.spec import TaskSpec
from coordbench.data.suggest import did_you_mean
from coordbench.data.toml_lines import Key

__all__ = ["Fault", "dotted", "reword"]

_PLACE = re.compile(r" - at `([^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_TYPE = re.compile(r"Expected `(.*)`, got `(.*)`")
_RANGE = re.compile(r"Expected `(.*)` ([<>]=?) (\S+)")
_CHOICE = re.compile(r"Invalid enum value '(.*)'", re.DOTALL)
_WORDS = {"object": "table"}


class Fault(msgspec.Struct, frozen=True):
    """What a spec may not say, and where.

    Attributes
    ----------
    key : Key
        Path of the value at fault.
    what : str
        The fault alone; `message` is the whole sentence.
    needle : str
        Text at fault inside a long string; empty where the key's own line is meant.
    """

    key: Key
    message: str
    what: str = ""
    hint: str = ""
    needle: str = ""


def dotted(key: Key) -> str:
    """`("variants", 0, "rules")` -> `variants[0].rules`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key)
    return text.removeprefix(".")


def reword(
    error: msgspec.ValidationError,
    data: Any,
    kind: type[msgspec.Struct] | None,
    *,
    at: Key = (),
) -> Fault:
    """Reword one error.

    Parameters
    ----------
    data : Any
        What was decoded.
    kind : type or None
        Struct it was decoded into; None for a plain value.
    at : Key
        Where `data` stands in the task.
    """
    text = str(error)
    place = _PLACE.search(text)
    what = text[: place.start()] if place else text
    key = _key(place[1] if place else "$", data, what)
    whole = (*at, *key)
    if match := _UNKNOWN.fullmatch(what):
        return _unknown(whole, match[1], _struct_at(key, kind), kind is TaskSpec)
    if match := _MISSING.fullmatch(what):
        table = f"[{dotted(whole)}]" if whole else "the task"
        return Fault(whole, f'{table} lacks the required key "{match[1]}"')
    value = _at(data, key)
    name = dotted(whole)
    if match := _TYPE.fullmatch(what):
        expected, got = (_WORDS.get(word, word) for word in match.groups())
        what = f"expected {expected}, got {got} {_shown(value)}".rstrip()
    elif match := _RANGE.fullmatch(what):
        name += f" = {_shown(value)}" if name else ""
        what = f"must be {match[2]} {match[3].removesuffix('.0')}"
    elif match := _CHOICE.fullmatch(what):
        choices = _choices(key, kind)
        what = f'"{match[1]}" is none of {", ".join(choices)}{did_you_mean(match[1], choices)}'
    return Fault(whole, f"{name}: {what}" if name else what, what)


def _unknown(key: Key, name: str, owner: type[msgspec.Struct] | None, in_task: bool) -> Fault:
    known = _fields(owner)
    where = f" in [{dotted(key)}]" if key else ""
    match = did_you_mean(name, known)
    hint = "" if match else f"known keys: {', '.join(known)}"
    homes = _homes(name) if in_task else []
    if homes:
        hint = f'"{name}" belongs {" or ".join(homes)}'
    return Fault((*key, name), f'unknown key "{name}"{where}{"" if homes else match}', hint=hint)


def _homes(name: str) -> list[str]:
    homes = ["above the first [table]"] if name in _fields(TaskSpec) else []
    for field in msgspec.structs.fields(TaskSpec):
        inner = _struct_in(field.type)
        if inner is not None and name in _fields(inner):
            homes.append(f"in [{field.name}]" if inner is field.type else f"in [[{field.name}]]")
    return homes


def _fields(kind: type[msgspec.Struct] | None) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)] if kind else []


def _struct_at(key: Key, kind: type[msgspec.Struct] | None) -> type[msgspec.Struct] | None:
    for step in key:
        if kind is None:
            return None
        if isinstance(step, str):
            types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
            kind = _struct_in(types.get(step))
    return kind


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds, itself or in a tuple."""
    for candidate in (kind, *typing.get_args(kind)):
        if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
            return candidate
    return None


def _choices(key: Key, kind: type[msgspec.Struct] | None) -> list[str]:
    owner = _struct_at(key[:-1], kind)
    if owner is None:
        return []
    types = {field.encode_name: field.type for field in msgspec.structs.fields(owner)}
    chosen = types.get(str(key[-1]))
    return list(typing.get_args(chosen)) if typing.get_origin(chosen) is Literal else []


def _key(place: str, data: Any, what: str) -> Key:
    key: Key = ()
    for name, index, _ in _STEP.findall(place):
        node = _at(data, key)
        if name:
            key = (*key, name)
        elif index:
            key = (*key, int(index))
        elif isinstance(node, dict):
            # msgspec does not say which entry of a mapping is wrong.
            expected = _TYPE.match(what)
            wrong = [k for k, v in node.items() if expected and type(v).__name__ != expected[1]]
            key = (*key, wrong[0]) if wrong else key
    return key


def _at(data: Any, key: Key) -> Any:
    for step in key:
        try:
            data = data[step]
        except (LookupError, TypeError):
            return None
    return data


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value if len(value) <= 40 else value[:37] + "..."
        return '"' + text.replace("\n", "\\n") + '"'
    return str(value) if isinstance(value, int | float) else ""
