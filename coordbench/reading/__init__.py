"""Reading replies: the one place that decides what a reply means.

Three results and no default action: a `Decision` comes only from a real call of one of the six
tools, everything else a model sends is `Invalid`, and what no model sent is a `Failure` (raised by
the provider as `ModelError`, never read here). Prose is never searched for action words.

Precedence: the provider's own verdict, refusal, truncation, number of calls, name, arguments,
markup in text, text, nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from coordbench.api.agents import Decision, Invalid
from coordbench.api.models import ModelReply, RawCall, Tool
from coordbench.data.actions import Action, InvalidReason
from coordbench.reading.markup import find_calls, has_markup
from coordbench.reading.names import nearest_action

__all__ = ["read"]

_CLEAN = {action: Decision(action) for action in Action}
_NO_ID = (None, "", "null")
_DETAIL = 200
_SERVER_PARSER_OFF = "server_parser_off"


def read(reply: ModelReply, tools: Sequence[Tool], *, recover: bool = False) -> Decision | Invalid:
    """Read one reply.

    Parameters
    ----------
    reply : ModelReply
    tools : sequence of Tool
        Those the request offered; their names are the only ones known.
    recover : bool
        Also map exact engine markup in text and near-miss names to a decision, flagged. Never
        prose, never reasoning.

    Returns
    -------
    Decision or Invalid
        Never raises, whatever the reply holds.
    """
    calls = reply.calls
    if len(calls) == 1 and reply.stop == "tool_calls" and reply.refusal is None:
        call = calls[0]
        if call.arguments == "{}" and call.kind == "function" and call.id not in _NO_ID:
            action = _names(tuple(tools)).get(call.name or "") if call.form == "text" else None
            if action is not None and not _reached_cap(reply):
                return _CLEAN[action]
    return _read(reply, tuple(tools), recover)


def _read(reply: ModelReply, tools: tuple[Tool, ...], recover: bool) -> Decision | Invalid:
    if reply.stop == "malformed":
        return Invalid(InvalidReason.PROVIDER_MALFORMED, _cut(reply.stop_native or ""))
    if reply.stop == "refused" or reply.refusal is not None:
        return Invalid(InvalidReason.REFUSED, _cut(reply.refusal or reply.text))
    if reply.stop == "length" or _reached_cap(reply):
        return Invalid(InvalidReason.TRUNCATED, _cut(reply.stop_native or ""))
    names = _names(tools)
    if reply.calls:
        return _read_calls(reply.calls, names, recover)
    if has_markup(reply.text, names):
        return _read_markup(reply.text, names, recover)
    if has_markup(reply.reasoning, names):
        return Invalid(InvalidReason.TOOL_CALL_IN_TEXT, "in the reasoning", _SERVER_PARSER_OFF)
    if reply.text.strip():
        return Invalid(InvalidReason.NO_TOOL_CALL, _cut(reply.text))
    return Invalid(
        InvalidReason.EMPTY_RESPONSE, "only reasoning" if reply.reasoning.strip() else ""
    )


def _read_calls(
    calls: Sequence[RawCall], names: Mapping[str, Action], recover: bool
) -> Decision | Invalid:
    flags: set[str] = set()
    distinct = list(dict.fromkeys((call.kind, call.name) for call in calls))
    if len(distinct) > 1:
        said = ", ".join(str(name) for _, name in distinct)
        if not recover or any(_named(call, names, True) is None for call in calls):
            return Invalid(InvalidReason.MULTIPLE_CALLS, _cut(said))
        flags.add("multiple_calls")
    elif len(calls) > 1:
        flags.add("duplicate_calls")
    call = calls[0]
    if call.kind == "broken":
        if not recover or _named(call, names, True) is None:
            return Invalid(InvalidReason.MALFORMED_ARGUMENTS, _cut(call.name or ""))
        flags.add("bad_arguments")
    found = _named(call, names, recover)
    if found is None:
        return Invalid(InvalidReason.UNKNOWN_TOOL, _cut(str(call.name)))
    action, exact = found
    if not exact:
        flags.add("name_normalised")
    if call.kind == "legacy":
        flags.add("legacy_function_call")
    elif any(each.id in _NO_ID for each in calls):
        flags.add("minted_id")
    if call.kind != "broken":
        flag = _argument_flag(call)
        if flag == "bad_arguments" and not recover:
            return Invalid(InvalidReason.MALFORMED_ARGUMENTS, _cut(_shown(call.arguments)))
        if flag:
            flags.add(flag)
    return Decision(action, frozenset(flags)) if flags else _CLEAN[action]


def _read_markup(text: str, names: Mapping[str, Action], recover: bool) -> Decision | Invalid:
    invalid = Invalid(InvalidReason.TOOL_CALL_IN_TEXT, _cut(text), _SERVER_PARSER_OFF)
    if not recover:
        return invalid
    found = find_calls(text, names)
    if not found:
        return invalid
    flags = {"from_text"}
    actions: list[Action] = []
    for name in found:
        exact = names.get(name)
        action = exact if exact is not None else nearest_action(name)
        if action is None:
            return invalid
        if exact is None and not actions:
            flags.add("name_normalised")
        actions.append(action)
    if len(set(actions)) > 1:
        flags.add("multiple_calls")
    elif len(actions) > 1:
        flags.add("duplicate_calls")
    return Decision(actions[0], frozenset(flags))


def _named(call: RawCall, names: Mapping[str, Action], recover: bool) -> tuple[Action, bool] | None:
    """The action a call names, and whether by its exact name."""
    if call.kind not in ("function", "legacy", "broken") or not isinstance(call.name, str):
        return None
    action = names.get(call.name)
    if action is not None:
        return action, True
    near = nearest_action(call.name) if recover else None
    return None if near is None else (near, False)


def _argument_flag(call: RawCall) -> str:
    """What is unusual about a call's arguments; `bad_arguments` where they can't be read."""
    value = call.arguments
    if value is None:
        return "empty_arguments"
    if isinstance(value, str):
        if call.form == "object":
            return "arguments_not_object" if _parsed(value) is not None else "bad_arguments"
        if not value.strip() or value.strip() == "null":
            return "empty_arguments"
        parsed = _parsed(value)
        if parsed is None:
            return "bad_arguments"
        return "extra_arguments" if parsed else ""
    if not isinstance(value, Mapping):
        return "bad_arguments"
    if call.form == "text":
        return "arguments_object"
    return "extra_arguments" if value else ""


def _parsed(text: str) -> dict[str, Any] | None:
    """The object that the text is the JSON of; an empty one for no text; None otherwise."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _reached_cap(reply: ModelReply) -> bool:
    """Some engines hide the length stop: the count of tokens does not."""
    cap, used = reply.max_tokens, reply.usage.output_tokens
    return cap is not None and used is not None and used >= cap


@lru_cache(maxsize=64)
def _cached_names(pairs: tuple[tuple[str, Action], ...]) -> dict[str, Action]:
    return dict(pairs)


_last: tuple[tuple[Tool, ...], dict[str, Action]] = ((), {})


def _names(tools: tuple[Tool, ...]) -> dict[str, Action]:
    """Wire name -> action. The last table is kept: it is asked for at every decision."""
    global _last  # noqa: PLW0603
    known, names = _last
    if known is tools or (len(known) == len(tools) and all(map(_same, known, tools))):
        return names
    names = _cached_names(tuple((tool.name, tool.action) for tool in tools))
    _last = (tools, names)
    return names


def _same(one: Tool, other: Tool) -> bool:
    return one is other


def _cut(text: str) -> str:
    return text if len(text) <= _DETAIL else text[: _DETAIL - 3] + "..."


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)[: _DETAIL * 2]
