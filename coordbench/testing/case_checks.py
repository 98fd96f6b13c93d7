"""Whether what came of a failure case is what the case expects."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from coordbench.api import Decision, Invalid, ModelError

__all__ = ["Got", "describe_expected", "describe_got", "meets", "unmet_checks"]

Got = Decision | Invalid | ModelError

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")


def meets(expect: Mapping[str, Any], got: Got, *, n_calls: int = 0) -> bool:
    """Whether a reading, or the failure of the call, is the expected one.

    Parameters
    ----------
    expect : mapping
        A case's `expect` or `expect_recover`, of type decision, invalid or error.
    n_calls : int
        Calls in the reply that was read.
    """
    match expect["type"], got:
        case "decision", Decision():
            return got.action == expect["action"] and got.flags == set(expect["flags"])
        case "invalid", Invalid():
            return (
                got.reason in expect.get("reason_any", [expect["reason"]])
                and expect.get("hint", got.hint) == got.hint
                and expect.get("name", got.detail) == got.detail
                and expect.get("n_calls", n_calls) == n_calls
            )
        case "error", ModelError():
            return (got.kind, got.retry, got.scope) == (
                expect["kind"],
                expect["retry"],
                expect["scope"],
            ) and (got.wait_s or 0.0) >= expect.get("min_wait_s", 0.0)
    return False


def describe_expected(expect: Mapping[str, Any]) -> str:
    """One line on what a case expects."""
    match expect["type"]:
        case "decision":
            return _decision(expect["action"], expect["flags"])
        case "invalid":
            reasons = expect.get("reason_any", [expect["reason"]])
            more = {key: expect[key] for key in ("hint", "name", "n_calls") if key in expect}
            return f"invalid/{'|'.join(reasons)}" + (f" {more}" if more else "")
        case "error":
            return _error(
                expect["kind"], expect["retry"], expect["scope"], expect.get("min_wait_s")
            )
    return json.dumps(expect, ensure_ascii=False)


def describe_got(got: Got) -> str:
    """One line on what came of it."""
    if isinstance(got, Decision):
        return _decision(got.action.value, sorted(got.flags))
    if isinstance(got, Invalid):
        hint = f" hint {got.hint}" if got.hint else ""
        return f"invalid/{got.reason.value}{hint} ({got.detail})"
    return _error(got.kind, got.retry, got.scope, got.wait_s) + f" ({got.message})"


def unmet_checks(checks: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> list[str]:
    """The checks of a `request` expectation that a built request does not meet, described."""
    unmet = []
    for check in checks:
        path = check["path"]
        found = _resolve(request, path)
        for predicate, wanted in check.items():
            if predicate != "path" and not _holds(predicate, wanted, found, request):
                unmet.append(f"{path} {predicate} {wanted!r}, got {found!r}")
    return unmet


def _holds(predicate: str, wanted: Any, found: list[Any], request: Mapping[str, Any]) -> bool:
    match predicate:
        case "equals":
            return bool(found) and all(value == wanted for value in found)
        case "contains":
            return any(
                isinstance(value, Mapping) and wanted.items() <= value.items() for value in found
            )
        case "none_equals":
            return all(value != wanted for value in found)
        case "count":
            return len(found) == int(wanted)
        case "matches":
            return bool(found) and all(
                isinstance(value, str) and re.search(wanted, value) for value in found
            )
        case "same_as":
            return bool(found) and found == _resolve(request, wanted)
        case "json":
            return bool(found) and all(_is_json(value) for value in found) is wanted
    return False


def _resolve(value: Any, path: str) -> list[Any]:
    """All values that a path of keys, `[i]` and `[*]` leads to."""
    values = [value]
    for key, index in _STEP.findall(path):
        if key:
            values = [one[key] for one in values if isinstance(one, Mapping) and key in one]
        elif index == "*":
            values = [item for one in values if isinstance(one, list) for item in one]
        else:
            at = int(index)
            values = [one[at] for one in values if isinstance(one, list) and at < len(one)]
    return values


def _is_json(value: Any) -> bool:
    try:
        json.loads(value)
    except (TypeError, ValueError):
        return False
    return True


def _decision(action: str, flags: Sequence[str]) -> str:
    return f"decision {action} [{', '.join(sorted(flags))}]"


def _error(kind: str, retry: bool, scope: str, wait_s: float | None) -> str:
    wait = f", wait {wait_s:g} s" if wait_s else ""
    return f"error/{kind}, {'retry' if retry else 'no retry'}, scope {scope}{wait}"
