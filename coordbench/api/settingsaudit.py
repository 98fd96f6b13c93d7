"""What became of the settings that were asked for, by comparing them with the body that went out.

Client libraries that speak for many providers drop, rename and move settings; a score is only
comparable where that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

__all__ = ["SettingsAudit", "audit_settings", "settings_sent"]

_OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "max_tokens": (
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "max_tokens_to_sample",
        "max_gen_len",
        "max_length",
        "num_predict",
    ),
    "stop": ("stop_sequences", "stop_words"),
    "seed": ("random_seed",),
    "top_p": ("p",),
    "top_k": ("k",),
    "n": ("candidate_count", "num_generations", "num_return_sequences"),
    "reasoning_effort": ("effort", "budget_tokens", "thinking_budget", "thinking_level"),
    "tool_choice": ("function_calling_config", "function_call"),
    "response_format": ("response_schema", "response_mime_type", "text", "format"),
    "user": ("user_id",),
}
_OPPOSITES = {"parallel_tool_calls": "disable_parallel_tool_use"}
_TRANSLATED = frozenset({"tool_choice", "response_format", "reasoning_effort", "stop", "user"})
"""Settings whose value each provider writes in words of its own."""
_HARMLESS = frozenset(
    {"parallel_tool_calls", "stream", "stream_options", "user", "metadata", "store", "service_tier"}
)
"""Settings whose loss changes no reply that counts: a second call is invalid anyhow."""
_NO_SETTINGS = frozenset(
    {"model", "messages", "input", "contents", "system", "system_instruction", "tools"}
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class SettingsAudit(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each setting.

    Attributes
    ----------
    dropped : tuple of str
        Settings that did not go out.
    renamed : mapping
        Setting -> dotted path under which it went out by another name.
    changed : mapping
        Setting -> the value that went out in place of the one asked for.
    comparable : bool
        False where a setting that shapes replies was dropped or changed.
    """

    dropped: tuple[str, ...] = ()
    renamed: dict[str, str] = {}
    changed: dict[str, Any] = {}
    comparable: bool = True


def audit_settings(requested: Mapping[str, Any], sent: Mapping[str, Any]) -> SettingsAudit:
    """Compare settings asked for with a request body.

    Parameters
    ----------
    requested : mapping
        Names as in the OpenAI API. None means not asked for; `model`, messages and tools are no
        settings.
    sent : mapping
        The body that went out, or the part of it that holds settings.
    """
    found = _find_all(requested, sent)
    dropped = tuple(key for key, match in found.items() if match is None)
    renamed: dict[str, str] = {}
    changed: dict[str, Any] = {}
    for key, match in found.items():
        if match is None:
            continue
        path, value, opposite = match
        if _plain(path[-1]) != key:
            renamed[key] = ".".join(path)
        if key not in _TRANSLATED and not _same(requested[key], value, opposite):
            changed[key] = not value if opposite else value
    lost = (set(dropped) | set(changed)) - _HARMLESS
    return SettingsAudit(dropped=dropped, renamed=renamed, changed=changed, comparable=not lost)


def settings_sent(requested: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that went out, for `ModelReply.sent`: each under the name it was asked for by,
    and, where it was renamed, also under the path that it went out by.
    """
    said: dict[str, Any] = {}
    for key, match in _find_all(requested, sent).items():
        if match is None:
            continue
        path, value, opposite = match
        said[key] = not value if opposite else value
        if _plain(path[-1]) != key:
            said[".".join(path)] = value
    return said


_Match = tuple[tuple[str, ...], Any, bool]


def _find_all(requested: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, _Match | None]:
    leaves = list(_walk(sent, ()))
    return {
        key: _find(key, leaves)
        for key, value in requested.items()
        if value is not None and key not in _NO_SETTINGS
    }


def _find(key: str, leaves: list[tuple[tuple[str, ...], Any]]) -> _Match | None:
    """Where a setting went: by its own name, else by another, else as its opposite."""
    for names, opposite in (
        ((key,), False),
        (_OTHER_NAMES.get(key, ()), False),
        ((_OPPOSITES.get(key, ""),), True),
    ):
        for path, value in leaves:
            if _plain(path[-1]) in names:
                return path, value, opposite
    return None


def _walk(body: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and values of a body, the outer ones first; messages and tools hold no settings."""
    inner = []
    for key, value in body.items():
        if _plain(str(key)) in _NO_SETTINGS:
            continue
        here = (*path, str(key))
        yield here, value
        if isinstance(value, Mapping):
            inner.append((value, here))
    for value, here in inner:
        yield from _walk(value, here)


def _plain(name: str) -> str:
    return _HUMP.sub("_", name).lower()


def _same(asked: Any, went: Any, opposite: bool) -> bool:
    if opposite and isinstance(went, bool):
        went = not went
    return bool(asked == went)
