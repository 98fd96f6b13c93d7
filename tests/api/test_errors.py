"""What went wrong, by status, type and code first, and what to do about it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import pytest

from coordbench.api import (
    AssistantMessage,
    ModelError,
    ModelReply,
    ModelRequest,
    Sampling,
    UserMessage,
)
from coordbench.api.chatwire import (
    error_from_response,
    error_from_transport,
    retry_after_s,
    turn_of,
)
from coordbench.testing.stub_server import StubResponse, StubServer


def failure(
    status: int, body: Any = "", headers: dict[str, str] | None = None, turn: int = 1
) -> ModelError:
    made = error_from_response(status, headers or {}, body, turn=turn)
    assert isinstance(made, ModelError)
    return made


def openai(code: str | None = None, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


CASES = [
    (429, openai("rate_limit_exceeded"), "rate_limit", True, "call"),
    (429, "", "rate_limit", True, "call"),
    (
        429,
        openai("rate_limit_exceeded", "Add a payment method to your billing account."),
        "rate_limit",
        True,
        "call",
    ),
    (429, openai("insufficient_quota"), "quota", False, "run"),
    (
        429,
        openai(None, "You exceeded your current quota.", type="insufficient_quota"),
        "quota",
        False,
        "run",
    ),
    (402, "", "quota", False, "run"),
    (
        400,
        openai(None, "Your credit balance is too low.", type="invalid_request_error"),
        "quota",
        False,
        "run",
    ),
    (401, "", "auth", False, "run"),
    (403, openai(None, "not your project"), "auth", False, "run"),
    (400, openai("invalid_api_key"), "auth", False, "run"),
    (
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
        "overloaded",
        True,
        "call",
    ),
    (
        503,
        {"error": {"status": "UNAVAILABLE", "message": "The model is overloaded."}},
        "overloaded",
        True,
        "call",
    ),
    (503, "<html><title>503</title></html>", "server_error", True, "call"),
    (500, openai("server_error"), "server_error", True, "call"),
    (502, "", "server_error", True, "call"),
    (504, "", "server_error", True, "call"),
    (524, "", "server_error", True, "call"),
    (408, "", "timeout", True, "call"),
    (409, "", "server_error", True, "call"),
    (400, openai("context_length_exceeded"), "context_length", False, "episode"),
    (413, "", "context_length", False, "episode"),
    (
        400,
        openai(None, "This model's maximum context length is 4096 tokens."),
        "context_length",
        False,
        "episode",
    ),
    (
        400,
        {"object": "error", "message": "max_tokens must be at least 1, got -212.", "code": 400},
        "context_length",
        False,
        "episode",
    ),
    (400, openai("unsupported_parameter"), "config", False, "run"),
    (404, openai("model_not_found"), "config", False, "run"),
    (404, "", "config", False, "run"),
    (301, "", "config", False, "run"),
    (400, openai("invalid_value", param="temperature"), "config", False, "run"),
    (
        400,
        openai(None, "Function calling is not available for this model."),
        "config",
        False,
        "cell",
    ),
    (404, openai(None, "No endpoint found: tool use is not supported"), "config", False, "cell"),
    (422, {"detail": [{"loc": ["body"], "msg": "bad"}]}, "config", False, "run"),
    (400, openai(), "config", False, "run"),
    (400, "", "config", False, "run"),
]


@pytest.mark.parametrize(("status", "body", "kind", "retry", "scope"), CASES)
def test_http_errors(status: int, body: Any, kind: str, retry: bool, scope: str) -> None:
    made = failure(status, body)
    assert (made.kind, made.retry, made.scope) == (kind, retry, scope)
    assert made.status == status
    assert made.message


@pytest.mark.parametrize("status", [400, 422])
def test_an_unexplained_refusal_of_the_request_depends_on_the_turn(status: int) -> None:
    assert failure(status, openai(), turn=1).kind == "config"
    later = failure(status, openai(), turn=2)
    assert (later.kind, later.retry, later.scope) == ("history", False, "episode")


def test_a_known_code_does_not() -> None:
    assert failure(400, openai("unsupported_value"), turn=9).kind == "config"
    assert failure(400, openai("context_length_exceeded"), turn=1).kind == "context_length"
    history = {"object": "error", "type": "invalid_function_call", "message": "id", "code": "3280"}
    assert failure(400, history, turn=1).kind == "history"


def test_a_bad_value_within_the_conversation_is_of_the_history() -> None:
    body = openai("invalid_value", param="messages[3].tool_call_id")
    assert failure(400, body, turn=4).kind == "history"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "content_filter", "message": "stopped"}),
        (400, {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
        (400, {"code": "invalid_prompt", "message": "flagged"}),
        (403, {"code": 403, "message": "Your chosen model requires moderation: flagged by it"}),
    ],
)
def test_a_filter_is_the_safety_layers_answer(status: int, error: Any) -> None:
    made = error_from_response(status, {}, {"error": error}, turn=1)
    assert isinstance(made, ModelReply)
    assert made.stop == "refused"


class TestAnthropic:
    """Its errors have a type, and for some a code within `details`."""

    def body(self, kind: str, message: str, code: str | None = None) -> dict[str, Any]:
        details = {"details": {"error_code": code}} if code else {}
        return {"type": "error", "error": {"type": kind, "message": message, **details}}

    def test_a_spend_limit_is_gone_for_the_run(self) -> None:
        body = self.body("rate_limit_error", "Limit.", "enforced_spend_limit_reached")
        assert failure(429, body).kind == "quota"
        text = "You have reached your specified API usage limits. You regain access in May."
        assert failure(400, self.body("invalid_request_error", text)).kind == "quota"

    def test_a_limit_on_growth_comes_back(self) -> None:
        made = failure(429, self.body("rate_limit_error", "Slower.", "ramp_limit_exceeded"))
        assert (made.kind, made.retry) == ("rate_limit", True)

    def test_an_account_on_hold_opens_nothing(self) -> None:
        made = failure(400, self.body("invalid_request_error", "No.", "organization_on_hold"))
        assert (made.kind, made.scope) == ("auth", "run")


class TestGoogle:
    def body(self, *details: dict[str, Any], message: str = "Quota exceeded.") -> dict[str, Any]:
        return {
            "error": {
                "code": 429,
                "status": "RESOURCE_EXHAUSTED",
                "message": message,
                "details": list(details),
            }
        }

    def test_a_quota_of_the_day_is_gone_for_the_run(self) -> None:
        violation = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}
        assert failure(429, self.body(violation)).kind == "quota"

    def test_a_quota_of_the_minute_comes_back(self) -> None:
        violation = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}
        made = failure(
            429,
            self.body(
                violation,
                {"retryDelay": "17.5s"},
                message="You exceeded your current quota, check your plan and billing details.",
            ),
        )
        assert (made.kind, made.retry, made.wait_s) == ("rate_limit", True, 17.5)

    def test_a_key_that_is_not_valid(self) -> None:
        error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "x"}
        error["details"] = [{"reason": "API_KEY_INVALID"}]
        assert failure(400, {"error": error}).kind == "auth"

    def test_a_list_around_the_error(self) -> None:
        assert failure(400, [self.body()]).message == "Quota exceeded."


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"Retry-After-Ms": "1500", "retry-after": "9"}, 1.5),
        (
            {
                "retry-after": "Mon, 29 Dec 2025 09:20:30 GMT",
                "date": "Mon, 29 Dec 2025 09:20:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "Mon, 29 Dec 2025 09:20:30 GMT"}, 0.0),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds
    assert failure(429, "", headers).wait_s == seconds


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        ('{"error": "no"}', "no"),
        ({"detail": "no"}, "no"),
        ({"message": "no"}, "no"),
        ("<html><body><h1>no</h1></body></html>", "no"),
        ("", "no message"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (None, "null"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "no"}}},
            "Provider returned error: no",
        ),
    ],
)
def test_what_it_said(body: Any, message: str) -> None:
    assert failure(500, body).message == message


def test_the_turn_of_a_request() -> None:
    alone = ModelRequest(messages=(UserMessage("x"),), tools=(), sampling=Sampling())
    assert turn_of(alone) == 1
    reply = ModelReply(stop="stop", text="y")
    later = ModelRequest(
        messages=(UserMessage("x"), AssistantMessage(reply)), tools=(), sampling=Sampling()
    )
    assert turn_of(later) == 2


class TestTransport:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            ("ReadTimeout after 120 s", "timeout"),
            ("connect timed out", "timeout"),
            ("ConnectError: connection refused", "network"),
            ("ConnectError: [Errno -2] Name or service not known", "network"),
            ("RemoteProtocolError: Server disconnected without sending a response.", "network"),
            ("peer closed connection without sending complete message body", "stream_incomplete"),
            ("incomplete chunked read", "stream_incomplete"),
            ("something else", "network"),
            (TimeoutError(), "timeout"),
            (ConnectionResetError(104, "Connection reset by peer"), "network"),
            (BrokenPipeError(32, "Broken pipe"), "network"),
            (socket.gaierror(-2, "Name or service not known"), "network"),
            (asyncio.IncompleteReadError(b"x", 9), "stream_incomplete"),
        ],
    )
    def test_is_tried_again(self, error: BaseException | str, kind: str) -> None:
        made = error_from_transport(error)
        assert (made.kind, made.retry, made.scope) == (kind, True, "call")

    @pytest.mark.parametrize(
        "error",
        [
            ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed"),
            "UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.",
        ],
    )
    def test_what_can_never_work_is_not(self, error: BaseException | str) -> None:
        made = error_from_transport(error)
        assert (made.kind, made.retry, made.scope) == ("config", False, "run")

    def test_no_address_in_memory_is_told(self) -> None:
        made = error_from_transport(OSError(f"no host ssl:{object()} [failed]"))
        assert made.message == "OSError: no host [failed]"

    def test_the_cause_is_looked_at(self) -> None:
        class APIConnectionError(Exception):
            pass

        wrapped = APIConnectionError("Connection error.")
        wrapped.__cause__ = TimeoutError()
        assert error_from_transport(wrapped).kind == "timeout"
        assert "APIConnectionError" in error_from_transport(wrapped).message

    def test_a_chain_that_bites_its_tail_ends(self) -> None:
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        assert error_from_transport(one).kind == "network"

    @pytest.mark.parametrize(
        ("fault", "kind"),
        [("reset", "network"), ("cut", "stream_incomplete"), ("hang", "timeout")],
    )
    def test_a_real_client_and_a_real_socket(self, fault: Any, kind: str) -> None:
        httpx = pytest.importorskip("httpx")
        answer = StubResponse(body={"a": "b" * 100}, fault=fault)
        with StubServer(lambda _: answer) as server:
            with pytest.raises(httpx.HTTPError) as caught:
                httpx.get(server.url, timeout=0.5)
            assert error_from_transport(caught.value).kind == kind

    def test_nobody_listens(self) -> None:
        httpx = pytest.importorskip("httpx")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with pytest.raises(httpx.HTTPError) as caught:
            httpx.get(f"http://127.0.0.1:{port}", timeout=5)
        assert error_from_transport(caught.value).kind == "network"


def test_a_connection_that_aiohttp_lost_is_no_timeout_whatever_an_adapter_calls_it() -> None:
    class ConnectTimeout(Exception):
        pass

    lost = type("ServerDisconnectedError", (Exception,), {"__module__": "aiohttp.client"})
    error = ConnectTimeout("Server disconnected")
    error.__cause__ = lost("Server disconnected")
    assert error_from_transport(error).kind == "network"
    slow = type("ServerTimeoutError", (TimeoutError,), {"__module__": "aiohttp.client"})
    error.__cause__ = slow("took too long")
    assert error_from_transport(error).kind == "timeout"
