"""Options of an offer: decoded strictly from `key=value` pairs, and written back normalised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import NODEFAULT

from coordbench.data.errors import UsageError
from coordbench.data.suggest import did_you_mean
from coordbench.plugins.names import Value, render_value

__all__ = ["OptionDescription", "decode_options", "describe_options", "normalised", "option_type"]


class OptionDescription(msgspec.Struct, frozen=True):
    """One option of an offer.

    Attributes
    ----------
    type : str
        In words: `number >= 0`, `one of native, constrained`, `list of text`.
    default : Any
        As JSON.
    """

    name: str
    type: str
    default: Any


def decode_options(
    options: type[msgspec.Struct], pairs: Sequence[tuple[str, Value]], name: str
) -> msgspec.Struct:
    """Decode pairs to an options struct.

    Parameters
    ----------
    name : str
        Of the offer, for messages.

    Raises
    ------
    UsageError
        Unknown key, or a value of the wrong type or out of range.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(options)}
    given: dict[str, Any] = {}
    for key, value in pairs:
        if key not in fields:
            raise UsageError(
                f'unknown option "{key}" for {name}{did_you_mean(key, fields)}',
                hint=_takes(options, name),
            )
        try:
            decoded = msgspec.convert(_plain(value), fields[key].type, strict=False)
            if not _finite(decoded):
                raise ValueError("not finite")
        except (msgspec.ValidationError, ValueError):
            wanted = option_type(fields[key].type)
            raise UsageError(
                f"option {key} of {name}: expected {wanted}, got {render_value(value)}",
                hint=_takes(options, name),
            ) from None
        given[fields[key].name] = decoded
    try:
        return options(**given)
    except (ValueError, TypeError) as error:
        raise UsageError(f"options of {name}: {error}", hint=_takes(options, name)) from error


def normalised(options: msgspec.Struct) -> tuple[tuple[str, Value], ...]:
    """The options that differ from their defaults, in field order, in one spelling each.

    Decoding the result gives equal options.
    """
    pairs = []
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        if value != _default(field):
            pairs.append((field.encode_name, _spelled(_as_json(value))))
    return tuple(pairs)


def describe_options(options: type[msgspec.Struct]) -> tuple[OptionDescription, ...]:
    """Every option with its type in words and its default."""
    return tuple(
        OptionDescription(
            name=field.encode_name,
            type=option_type(field.type),
            default=_as_json(_default(field)),
        )
        for field in msgspec.structs.fields(options)
    )


def option_type(annotation: Any) -> str:
    """An option's type in words."""
    # Imported late: only tables and error messages need it.
    from msgspec import inspect

    return _words(inspect.type_info(annotation))


def _words(info: Any) -> str:
    from msgspec import inspect

    match info:
        case inspect.Metadata():
            return _words(info.type)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "whole number" + _bounds(info)
        case inspect.FloatType():
            return "number" + _bounds(info)
        case inspect.StrType():
            return "text" + (f" matching {info.pattern}" if info.pattern else "")
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType():
            return "one of " + ", ".join(str(value) for value in info.values)
        case inspect.EnumType():
            return "one of " + ", ".join(str(member.value) for member in info.cls)
        case inspect.UnionType():
            return " or ".join(_words(part) for part in info.types)
        case (
            inspect.ListType()
            | inspect.VarTupleType()
            | inspect.SetType()
            | inspect.FrozenSetType()
            | inspect.CollectionType()
        ):
            return f"list of {_words(info.item_type)}"
        case inspect.TupleType():
            return f"list of {len(info.item_types)}: " + ", ".join(map(_words, info.item_types))
        case inspect.AnyType():
            return "anything"
    return type(info).__name__.removesuffix("Type").lower()


def _bounds(info: Any) -> str:
    signs = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"), ("multiple_of", "multiple of"))
    bounds = [
        f"{sign} {_spelled(bound)}"
        for field, sign in signs
        if (bound := getattr(info, field)) is not None
    ]
    return f" {' and '.join(bounds)}" if bounds else ""


def _takes(options: type[msgspec.Struct], name: str) -> str:
    described = describe_options(options)
    if not described:
        return f"{name} takes no options"
    return f"{name} takes: " + "; ".join(
        f"{option.name} ({option.type}, default {render_value(_spelled(option.default))})"
        for option in described
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not NODEFAULT else field.default_factory()


def _as_json(value: Any) -> Any:
    return msgspec.to_builtins(value, order="deterministic")


def _plain(value: Value) -> Any:
    return value if isinstance(value, str) else [_plain(item) for item in value]


def _spelled(value: Any) -> Value:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        case list() | tuple():
            return tuple(_spelled(item) for item in value)
    return str(value)


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_finite(item) for item in value)
    return True
