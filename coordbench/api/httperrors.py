"""HTTP errors as failures of one kind: by status, type and code first, by wording last.

Pure functions over what an API answered; shared by every provider, so that an outage is the same
outage everywhere.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from coordbench.api.models import AssistantMessage, ModelError, ModelReply, ModelRequest
from coordbench.data.events import FailureKind

__all__ = [
    "body_error",
    "error_from_response",
    "retry_after_s",
    "turn_of",
]

_QUOTA_CODES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "credit_balance_too_low",
    "payment_required",
    "spend_limit_reached",
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "billing_error",
)
_QUOTA_WORDS = re.compile(
    r"insufficient[ _]quota|current quota|credit balance|billing|out of credits?|"
    r"insufficient (?:credits?|balance|funds)|payment required|add credits|"
    r"reached your (?:\w+ ){0,3}usage limit",
    re.IGNORECASE,
)
_DAILY_QUOTA_ID = re.compile(r"PerDay|PerMonth", re.IGNORECASE)
_AUTH_CODES = (
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "unauthorized",
    "account_deactivated",
    "organization_on_hold",
    "api_key_invalid",
)
_REFUSED_CODES = (
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "moderation",
    "content_moderation",
    "content_blocked",
    "safety",
    "invalid_prompt",
)
_REFUSED_WORDS = re.compile(
    r"content (?:management )?polic|content filter|flagged (?:as|by|for)|usage polic|"
    r"moderation|safety system",
    re.IGNORECASE,
)
_CONTEXT_CODES = ("context_length_exceeded", "context_window_exceeded", "request_too_large")
_CONTEXT_WORDS = re.compile(
    r"context[ _-]?(?:length|window|limit|size)|maximum (?:context|model) len|max_model_len|"
    r"prompt (?:is )?too long|too many (?:input )?tokens|input (?:is )?too long|"
    r"(?:input|prompt) token count|exceeds? the (?:max\w*|available) (?:number of )?"
    r"(?:context|tokens)|"
    r"reduce the length|max_(?:completion_)?tokens\b.{0,60}\s-\d|n_ctx|"
    r"tokens? (?:\w+ ){0,6}over the context",
    re.IGNORECASE,
)
_CONFIG_CODES = (
    "unsupported_parameter",
    "unsupported_value",
    "invalid_function_parameters",
    "model_not_found",
    "not_found_error",
    "not_found",
    "deployment_not_found",
    "deploymentnotfound",
)
# Of the configuration, unless `param` says that a message of the conversation is meant.
_PARAMETER_CODES = (
    "unknown_parameter",
    "invalid_value",
    "invalid_type",
    "missing_required_parameter",
)
_CONVERSATION = ("messages", "input", "contents")
_NO_TOOLS_WORDS = re.compile(
    r"(?:function calling|tools?(?: use| calling)?|tool_choice)\b.{0,40}"
    r"\b(?:not (?:available|supported|enabled)|unsupported|isn't supported)|"
    r"does(?:n't| not) support (?:function|tool)",
    re.IGNORECASE,
)
_OVERLOADED_CODES = (
    "overloaded_error",
    "overloaded",
    "engine_overloaded",
    "engine_overloaded_error",
    "slow_down",
    "unavailable",
)
_OVERLOADED_STATUS = frozenset({529, 498})
_RATE_PARTS = ("rate_limit", "ratelimit", "throttl", "too_many_requests", "resource_exhausted")
_HISTORY_CODES = ("invalid_function_call", "invalid_request_message_order")
_TRY_AGAIN = frozenset({409, 425, 499})


def error_from_response(
    status: int, headers: Mapping[str, str], body: bytes | str | Any, *, turn: int
) -> ModelError | ModelReply:
    """Classify an HTTP error.

    Parameters
    ----------
    status : int
        The HTTP status, 400 or above (a redirect counts as a wrong address).
    headers : mapping
        Any letter case.
    body : bytes, str or decoded JSON
    turn : int
        1-based round within the episode, from `turn_of`. A refused request with no known code is
        a fault of the configuration on turn 1, and of the history later.

    Returns
    -------
    ModelError or ModelReply
        A reply (stop `refused`) where a content filter answered with an error status: that is the
        safety layer's answer, not an outage.
    """
    error = _error_object(body)
    codes, message = _codes_of(error), _message_of(error, body)
    wait = retry_after_s(headers)
    if wait is None:
        wait = _wait_in_details(error)

    def failure(kind: FailureKind, **fields: Any) -> ModelError:
        return ModelError(kind, message, status=status, **fields)

    if _is_quota(status, codes, message, error):
        return failure("quota", scope="run")
    if status in (401, 403) and not _is_refusal(codes, message):
        return failure("auth", scope="run")
    if any(code in _AUTH_CODES for code in codes) and status < 500:
        return failure("auth", scope="run")
    if _is_overloaded(status, codes, message):
        return failure("overloaded", retry=True, wait_s=wait)
    if status == 429 or (status < 500 and _is_rate_limit(codes)):
        return failure("rate_limit", retry=True, wait_s=wait)
    if status == 408:
        return failure("timeout", retry=True, wait_s=wait)
    if any(code in _CONTEXT_CODES for code in codes) or status == 413:
        return failure("context_length", scope="episode")
    if status >= 500 or status in _TRY_AGAIN:
        return failure("server_error", retry=True, wait_s=wait)
    if _is_refusal(codes, message):
        return ModelReply(stop="refused", stop_native=str(status), refusal=message)
    if any(code in _CONFIG_CODES for code in codes) or (
        any(code in _PARAMETER_CODES for code in codes) and not _is_of_conversation(error)
    ):
        return failure("config", scope="run")
    if _CONTEXT_WORDS.search(message):
        return failure("context_length", scope="episode")
    if _NO_TOOLS_WORDS.search(message):
        return failure("config", scope="cell")
    if status == 404 or 300 <= status < 400:
        return failure("config", scope="run")
    if turn > 1 or any(code in _HISTORY_CODES for code in codes):
        return failure("history", scope="episode")
    return failure("config", scope="run")


def body_error(
    error: Any, *, inside_choice: bool = False, turn: int = 1
) -> ModelError | ModelReply:
    """An error object inside a body whose status said 200.

    It is the upstream's failure (`provider_error`), unless its code says something that calls for
    another answer. Inside a choice the model had begun to answer, so there it always is.
    """
    codes, message = _codes_of(error), _message_of(error, error)
    status = _status_in(error)
    if not inside_choice:
        if status is not None and 400 <= status < 500:
            return error_from_response(status, {}, {"error": error}, turn=turn)
        if _is_quota(status or 0, codes, message, error):
            return ModelError("quota", message, scope="run", status=status)
        if any(code in _AUTH_CODES for code in codes):
            return ModelError("auth", message, scope="run", status=status)
        if any(code in _REFUSED_CODES for code in codes):
            return ModelReply(stop="refused", stop_native=codes[0], refusal=message)
        if any(code in _CONTEXT_CODES for code in codes):
            return ModelError("context_length", message, scope="episode", status=status)
        if _is_rate_limit(codes):
            return ModelError("rate_limit", message, retry=True, status=status)
        if status in _OVERLOADED_STATUS or any(code in _OVERLOADED_CODES for code in codes):
            return ModelError("overloaded", message, retry=True, status=status)
    return ModelError("provider_error", message, retry=True, status=status)


def turn_of(request: ModelRequest) -> int:
    """The round that a request belongs to: 1-based, and at least 2 where it holds earlier turns."""
    has_history = any(isinstance(message, AssistantMessage) for message in request.messages)
    played = request.context.round if request.context is not None else 1
    return max(played, 2 if has_history else 1)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or date.

    A date is measured against the response's own `Date`, so that a wrong clock does no harm.
    """
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    milliseconds = _number(lower.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = lower.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    until = _date(value)
    if until is None:
        return None
    now = _date(lower.get("date")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _is_quota(status: int, codes: tuple[str, ...], message: str, error: Any) -> bool:
    if status == 402 or any(code in _QUOTA_CODES for code in codes):
        return True
    limits = [
        str(violation.get("quotaId", ""))
        for detail in (_details(error) if isinstance(error, Mapping) else ())
        for violation in detail.get("violations") or ()
        if isinstance(violation, Mapping)
    ]
    if any(_DAILY_QUOTA_ID.search(limit) for limit in limits):
        return True
    # The words of a plain rate limit often speak of plans and billing too: a code comes first.
    if _is_rate_limit(codes):
        return False
    return status in (400, 403, 429) and _QUOTA_WORDS.search(message) is not None


def _is_rate_limit(codes: tuple[str, ...]) -> bool:
    return any(part in code for code in codes for part in _RATE_PARTS)


def _is_overloaded(status: int, codes: tuple[str, ...], message: str) -> bool:
    if status in _OVERLOADED_STATUS or any(code in _OVERLOADED_CODES for code in codes):
        return True
    return status == 503 and bool(codes) and "overloaded" in message.lower()


def _is_refusal(codes: tuple[str, ...], message: str) -> bool:
    return any(code in _REFUSED_CODES for code in codes) or bool(_REFUSED_WORDS.search(message))


def _is_of_conversation(error: Any) -> bool:
    param = error.get("param") if isinstance(error, Mapping) else None
    return isinstance(param, str) and param.startswith(_CONVERSATION)


def _error_object(body: Any) -> Any:
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return {}
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return {}
    error = body.get("error")
    if isinstance(error, Mapping):
        return error
    if isinstance(error, str):
        return {"message": error, **{key: body[key] for key in ("type", "code") if key in body}}
    detail = body.get("detail")
    if detail is not None and "message" not in body:
        return {"message": detail if isinstance(detail, str) else json.dumps(detail)}
    return body


def _codes_of(error: Any) -> tuple[str, ...]:
    """Machine-readable words of an error: code, type, status, inner error, reasons."""
    if not isinstance(error, Mapping):
        return ()
    found = [error.get(key) for key in ("code", "type", "status")]
    inner = error.get("innererror")
    if isinstance(inner, Mapping):
        found.append(inner.get("code"))
    details = error.get("details")
    if isinstance(details, Mapping):
        found.append(details.get("error_code"))
    found += [detail.get("reason") for detail in _details(error)]
    return tuple(
        value.lower()
        for value in found
        if isinstance(value, str) and value and not value.isdigit() and value != "error"
    )


def _message_of(error: Any, body: Any) -> str:
    if isinstance(error, Mapping):
        message = error.get("message")
        if isinstance(message, str) and message:
            # A router's own message is often only that its upstream failed.
            metadata = error.get("metadata")
            raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
            return f"{message}: {raw[:500]}" if isinstance(raw, str) and raw else message
        if message is not None:
            return json.dumps(message, default=str)[:500]
    if isinstance(error, str) and error:
        return error
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    if not isinstance(text, str):
        text = json.dumps(text, default=str)
    return " ".join(re.sub(r"<[^>]{0,200}>", " ", text).split())[:300] or "no message"


def _status_in(error: Any) -> int | None:
    if isinstance(error, Mapping):
        for key in ("code", "status", "status_code"):
            value = error.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            if isinstance(value, str) and value.isdigit() and len(value) == 3:
                return int(value)
    return None


def _wait_in_details(error: Any) -> float | None:
    """Google says how long to wait in the body: `RetryInfo.retryDelay`, such as `"17s"`."""
    if isinstance(error, Mapping):
        for detail in _details(error):
            delay = detail.get("retryDelay")
            if isinstance(delay, str) and delay.endswith("s"):
                return _number(delay[:-1])
    return None


def _details(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = error.get("details")
    if not isinstance(details, list):
        return []
    return [detail for detail in details if isinstance(detail, Mapping)]


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _date(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
