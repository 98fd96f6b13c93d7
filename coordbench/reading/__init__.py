"""Reading replies: the one place that decides what a reply means.

Three results and no default action: a `Decision` comes only from a real call of one of the six
tools, everything else a model sends is `Invalid`, and what no model sent is a `Failure` (raised by
the provider as `ModelError`, never read here). Prose is never searched for action words.

Precedence: the provider's own verdict, refusal, truncation, number of calls, name, arguments,
markup in text, text, nothing.

Flags of a decision
-------------------
empty_arguments, extra_arguments
    Nothing where arguments belong; something where nothing belongs.
arguments_object, arguments_not_object
    An object where the wire format has JSON text; text where it has an object.
bad_arguments
    Arguments that can't be read (recover mode only).
minted_id
    A call came without an id; one is made for the history.
duplicate_calls, multiple_calls
    One call several times; several calls, of which the first was taken (recover mode only).
name_normalised, from_text
    A near miss of a name; a call in engine markup in the text (both recover mode only).
legacy_function_call
    The call came in the old `function_call` field.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from coordbench.api.agents import Decision, Invalid
from coordbench.api.models import ModelReply, RawCall, Tool
from coordbench.api.reasoningtext import split_reasoning
from coordbench.data.actions import Action, InvalidReason
from coordbench.data.strictjson import scrub
from coordbench.reading.arguments import BAD_ARGUMENTS, argument_flags, found_flags
from coordbench.reading.forms import FoundCall
from coordbench.reading.markup import find_markup
from coordbench.reading.names import NameTable

__all__ = ["read"]

SERVER_PARSER_OFF = "server_parser_off"
"""Hint: engine markup arrived as text, so the server runs without the model's tool parser."""

_CLEAN = {action: Decision(action) for action in Action}
_NO_ID = (None, "", "null")
_NAMED_KINDS = ("function", "legacy", "broken")
_DETAIL = 200


def read(reply: ModelReply, tools: Sequence[Tool], *, recover: bool = False) -> Decision | Invalid:
    """Read one reply.

    Parameters
    ----------
    reply : ModelReply
    tools : sequence of Tool
        Those the request offered; their names are the only ones known, by code point.
    recover : bool
        Also map exact engine markup in text and near-miss names to a decision, flagged. Never
        prose, never reasoning.

    Returns
    -------
    Decision or Invalid
        Never raises, whatever the reply holds. `Invalid.detail` holds at most 200 characters.
    """
    calls = reply.calls
    if len(calls) == 1 and reply.stop == "tool_calls" and not reply.refusal:
        call = calls[0]
        if (
            call.arguments == "{}"
            and call.kind == "function"
            and call.form == "text"
            and call.id not in _NO_ID
            and not _reached_cap(reply)
        ):
            action = _names(tools).exact.get(call.name)  # type: ignore[arg-type]
            if action is not None:
                return _CLEAN[action]
    return _read(reply, _names(tools), recover)


def _read(reply: ModelReply, names: NameTable, recover: bool) -> Decision | Invalid:
    if reply.stop == "malformed":
        return _invalid(InvalidReason.PROVIDER_MALFORMED, reply.stop_native)
    if reply.stop == "refused" or (reply.refusal and reply.refusal.strip()):
        return _invalid(InvalidReason.REFUSED, reply.refusal or reply.text or reply.stop_native)
    if reply.stop == "length" or _reached_cap(reply):
        return _invalid(InvalidReason.TRUNCATED, reply.stop_native)
    if reply.calls:
        return _read_calls(reply.calls, names, recover)
    text, thought = split_reasoning(reply.text)
    reasoning = reply.reasoning or thought

    def known(name: str) -> bool:
        return names.find(name, near=True) is not None

    found = find_markup(text, known)
    if found.present:
        decision = _read_found(found.calls, names) if recover else None
        return decision or _invalid(InvalidReason.TOOL_CALL_IN_TEXT, text, SERVER_PARSER_OFF)
    for part in (reply.reasoning, thought):
        if find_markup(part, known).present:
            return _invalid(InvalidReason.TOOL_CALL_IN_TEXT, f"in the reasoning: {part}")
    if text.strip():
        return _invalid(InvalidReason.NO_TOOL_CALL, text)
    return _invalid(InvalidReason.EMPTY_RESPONSE, "only reasoning" if reasoning.strip() else "")


def _read_calls(calls: Sequence[RawCall], names: NameTable, recover: bool) -> Decision | Invalid:
    wanted = {(call.kind in _NAMED_KINDS or call.kind, str(call.name)) for call in calls}
    found = [
        names.find(call.name, near=recover) if call.kind in _NAMED_KINDS else None for call in calls
    ]
    if len(wanted) > 1 and (not recover or None in found):
        return _invalid(InvalidReason.MULTIPLE_CALLS, ", ".join(str(call.name) for call in calls))
    first = found[0]
    if first is None:
        return _invalid(InvalidReason.UNKNOWN_TOOL, str(calls[0].name))
    action = first[0]
    flags: set[str] = set()
    if any(other is not None and other[0] is not action for other in found):
        flags.add("multiple_calls")
        calls, found = calls[:1], found[:1]
    elif len(calls) > 1:
        flags.add("duplicate_calls")
    if any(other is not None and not other[1] for other in found):
        flags.add("name_normalised")
    for call in calls:
        if call.kind == "legacy":
            flags.add("legacy_function_call")
        elif call.id in _NO_ID:
            flags.add("minted_id")
        said = (BAD_ARGUMENTS,) if call.kind == "broken" else argument_flags(call)
        if BAD_ARGUMENTS in said and not recover:
            return _invalid(InvalidReason.MALFORMED_ARGUMENTS, _shown(call.arguments))
        flags.update(said)
    return Decision(action, frozenset(flags)) if flags else _CLEAN[action]


def _read_found(calls: Sequence[FoundCall], names: NameTable) -> Decision | None:
    """The decision that calls in markup stand for; None unless each names a tool."""
    found = [names.find(call.name, near=True) for call in calls]
    known = [match for match in found if match is not None]
    if not known or len(known) < len(found):
        return None
    action = known[0][0]
    flags = {"from_text"}
    taken = len(calls)
    if any(other is not action for other, _ in known):
        flags.add("multiple_calls")
        taken = 1
    elif len(calls) > 1:
        flags.add("duplicate_calls")
    if not all(exact for _, exact in known[:taken]):
        flags.add("name_normalised")
    for call in calls[:taken]:
        flags.update(found_flags(call.arguments))
    return Decision(action, frozenset(flags))


def _reached_cap(reply: ModelReply) -> bool:
    """Some engines hide the length stop: the count of tokens does not."""
    cap, used = reply.max_tokens, reply.usage.output_tokens
    return cap is not None and used is not None and used >= cap


@lru_cache(maxsize=64)
def _table(pairs: tuple[tuple[str, Action], ...]) -> NameTable:
    return NameTable.of([Tool(name, action, "") for name, action in pairs])


_last: tuple[Sequence[Tool], NameTable] = ((), NameTable({}, {}))


def _names(tools: Sequence[Tool]) -> NameTable:
    """The table of these tools. The last one is kept: it is asked for at every decision."""
    global _last  # noqa: PLW0603
    known, table = _last
    if known is tools and type(tools) is tuple:
        return table
    table = _table(tuple([(tool.name, tool.action) for tool in tools]))
    _last = (tools, table)
    return table


def _invalid(reason: InvalidReason, detail: str | None, hint: str = "") -> Invalid:
    text = scrub((detail or "")[: _DETAIL + 1])
    return Invalid(reason, text if len(text) <= _DETAIL else text[: _DETAIL - 3] + "...", hint)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__}, nested too deep to show"
