"""Replay failure cases: what a provider's API sent, and what must come of it.

A case file has one JSON object a line: `id, group, provider, input, expect` and optionally
`expect_recover`; the fields of `input` and `expect` are those that the drivers and
`coordbench.testing.case_checks` read. Each case is read in strict and in recover mode.

    python -m coordbench.testing.cases provider_cases.jsonl --id A001

prints one line for each failure and a total, and exits with 1 on any failure. A case whose API no
driver speaks is counted as not supported, never as passed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from coordbench.api import (
    Action,
    AssistantMessage,
    ChatMessage,
    ModelError,
    ModelReply,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.api.chatwire import (
    decode_body,
    error_from_response,
    error_from_transport,
    messages_to_chat,
    reply_from_chat,
    reply_from_chat_stream,
)
from coordbench.api.chatwire_history import nine_characters
from coordbench.reading import read
from coordbench.testing.case_audits import audit_of, unmet_fields
from coordbench.testing.case_checks import (
    Got,
    describe_expected,
    describe_got,
    meets,
    unmet_checks,
)
from coordbench.testing.sdk_cases import installed_drivers

__all__ = ["CaseDriver", "Outcome", "chat_driver", "main", "register_driver", "replay_case"]

Input = Mapping[str, Any]
Conversation = Sequence[ChatMessage]

TOOLS = tuple(Tool(action.value, action, "") for action in Action)
"""The six tools under the hyphenated names that all cases use on the wire."""


class CaseDriver(msgspec.Struct, frozen=True):
    """How the cases of one API are run.

    Attributes
    ----------
    reply : callable
        `reply(input) -> ModelReply`: what the provider makes of the response that the case
        describes; raises `ModelError` where the call failed.
    assistant : callable
        `assistant(body) -> ModelReply`: the same for the body of a history case.
    request : callable
        `request(messages) -> mapping`: the request that the provider builds from a conversation.
    """

    reply: Callable[[Input], ModelReply]
    assistant: Callable[[Any], ModelReply]
    request: Callable[[Conversation], Mapping[str, Any]]


class Outcome(msgspec.Struct, frozen=True):
    """What came of one case. `expected` and `got` describe the mode that failed."""

    id: str
    group: str
    api: str
    status: Literal["passed", "failed", "not supported"]
    mode: Literal["", "strict", "recover", "request"] = ""
    expected: str = ""
    got: str = ""

    def line(self) -> str:
        """The outcome on one line."""
        head = f"{self.id} {self.api}: {self.status}"
        if self.status != "failed":
            return head
        return f"{head} ({self.mode}): expected {self.expected}; got {self.got}"


def chat_driver(**history: Any) -> CaseDriver:
    """A driver for APIs that speak the OpenAI-style chat format, without any SDK.

    Parameters
    ----------
    **history
        Options of `messages_to_chat`.
    """
    return CaseDriver(
        reply=_chat_reply,
        assistant=reply_from_chat,
        request=lambda messages: {"messages": messages_to_chat(messages, **history)},
    )


def register_driver(api: str, driver: CaseDriver) -> None:
    """Let the cases whose `input.api` is `api` run through `driver` from now on."""
    _registered.add(api)
    _drivers[api] = driver


def replay_case(case: Mapping[str, Any]) -> Outcome:
    """Run one case in both modes of reading, or build the request it asks for.

    Cases of an API that an installed plugin speaks run through the plugin and its SDK, against a
    local server (see `coordbench.testing.sdk_cases`).
    """
    given = case["input"]
    api = str(given.get("api") or case.get("provider"))
    name = (str(case["id"]), str(case["group"]), api)
    kind = given.get("kind")
    if kind == "request_audit":
        return _replay_audit(name, given, case["expect"])
    driver = _driver_of(api)
    if driver is None or kind not in (None, "history"):
        return Outcome(*name, "not supported")
    if kind == "history":
        return _replay_history(name, driver, given, case["expect"])
    reply = _reply_or_failure(driver, given)
    for mode, recover in (("strict", False), ("recover", True)):
        expect = case["expect"] if not recover else case.get("expect_recover") or case["expect"]
        got: Got = reply if isinstance(reply, ModelError) else read(reply, TOOLS, recover=recover)
        n_calls = 0 if isinstance(reply, ModelError) else len(reply.calls)
        if not meets(expect, got, n_calls=n_calls):
            return Outcome(
                *name,
                "failed",
                mode,  # type: ignore[arg-type]
                describe_expected(expect),
                describe_got(got),
            )
    return Outcome(*name, "passed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a case file. Returns 0 where nothing failed, 1 on any failure, 2 for a bad file."""
    parser = argparse.ArgumentParser(
        prog="python -m coordbench.testing.cases",
        description="Replay a file of failure cases and print what fails.",
        epilog="example: python -m coordbench.testing.cases provider_cases.jsonl --id A001",
    )
    parser.add_argument("file", type=Path, help="one case a line, JSON")
    parser.add_argument("--id", action="append", default=[], help="only this case; may be repeated")
    chosen = parser.parse_args(arguments)
    try:
        cases = _cases_in(chosen.file)
    except (OSError, ValueError) as error:
        print(f"{chosen.file}: {error}", file=sys.stderr)
        return 2
    missing = set(chosen.id) - {case["id"] for case in cases}
    if missing:
        print(f"{chosen.file}: no case {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    outcomes = [replay_case(case) for case in cases if not chosen.id or case["id"] in chosen.id]
    for outcome in outcomes:
        if outcome.status == "failed" or chosen.id:
            print(outcome.line())
    print(_total(outcomes))
    return int(any(outcome.status == "failed" for outcome in outcomes))


def _cases_in(path: Path) -> list[dict[str, Any]]:
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} is no JSON: {error}") from error
        if not isinstance(case, dict) or not {"id", "group", "input", "expect"} <= set(case):
            raise ValueError(f"line {number} is no case: id, group, input and expect are needed")
        cases.append(case)
    return cases


def _total(outcomes: Iterable[Outcome]) -> str:
    outcomes = list(outcomes)
    states = Counter(outcome.status for outcome in outcomes)
    strange = Counter(outcome.api for outcome in outcomes if outcome.status == "not supported")
    names = ", ".join(f"{api} {count}" for api, count in sorted(strange.items()))
    text = f"{len(outcomes)} cases: {states['passed']} passed, {states['failed']} failed"
    return text + (f", {states['not supported']} not supported ({names})" if strange else "")


def _reply_or_failure(driver: CaseDriver, given: Input) -> ModelReply | ModelError:
    try:
        return driver.reply(given)
    except ModelError as error:
        return error


def _driver_of(api: str) -> CaseDriver | None:
    for name, driver in installed_drivers().items():
        if name not in _registered:
            register_driver(name, CaseDriver(driver.reply, driver.assistant, driver.request))
    return _drivers.get(api)


def _replay_audit(name: tuple[str, str, str], given: Input, expect: Mapping[str, Any]) -> Outcome:
    found = audit_of(given)
    if found is None or found["type"] != expect["type"]:
        return Outcome(*name, "not supported")
    unmet = unmet_fields(expect, found)
    if unmet:
        return Outcome(*name, "failed", "request", describe_expected(expect), "; ".join(unmet))
    return Outcome(*name, "passed")


def _replay_history(
    name: tuple[str, str, str], driver: CaseDriver, given: Input, expect: Mapping[str, Any]
) -> Outcome:
    reply = driver.assistant(given["assistant_body"])
    request = driver.request(
        [
            SystemMessage(given["system"]),
            UserMessage(given["first_user"]),
            AssistantMessage(reply),
            *(ToolMessage(index, given["tool_result"]) for index in range(len(reply.calls))),
            UserMessage(given["next_user"]),
        ]
    )
    unmet = unmet_checks(expect["checks"], request)
    if unmet:
        return Outcome(*name, "failed", "request", describe_expected(expect), "; ".join(unmet))
    return Outcome(*name, "passed")


def _chat_reply(given: Input) -> ModelReply:
    asked = given.get("request") or {}
    turn = asked.get("turn", 1)
    cap = asked.get("max_completion_tokens", asked.get("max_tokens"))
    if given.get("transport_error"):
        raise error_from_transport(given["transport_error"])
    if given["status"] != 200:
        body = given["body"] if "body" in given else given.get("body_text", "")
        made = error_from_response(given["status"], given.get("headers", {}), body, turn=turn)
        if isinstance(made, ModelError):
            raise made
        return made
    if "sse" in given:
        return reply_from_chat_stream(given["sse"], max_tokens=cap, turn=turn)
    text = given["body_text"] if "body_text" in given else json.dumps(given["body"])
    return reply_from_chat(decode_body(text), max_tokens=cap, turn=turn)


_drivers: dict[str, CaseDriver] = {
    "openai.chat": chat_driver(),
    "openai-compatible.chat": chat_driver(),
    "openrouter.chat": chat_driver(),
    "vllm.chat": chat_driver(),
    "mistral.chat": chat_driver(keep_id=nine_characters, after_tool="Understood."),
}
_registered: set[str] = set()


if __name__ == "__main__":
    sys.exit(main())
