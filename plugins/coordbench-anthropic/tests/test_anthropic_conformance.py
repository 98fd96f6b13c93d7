"""The kit that every provider behind HTTP passes, through the real SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordbench.testing import PROVIDER_CHECKS, ProviderKit, check_name
from coordbench_anthropic.model import AnthropicModel
from coordbench_anthropic.options import AnthropicOptions

KEY = "sk-ant-conformance-0123456789"


def message(content: list[dict[str, Any]], stop: str) -> dict[str, Any]:
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 10,
            "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": 5,
            "output_tokens_details": {"thinking_tokens": 4},
        },
    }


def events(body: dict[str, Any]) -> bytes:
    """The message as the API streams it."""
    start = {**body, "content": [], "stop_reason": None, "usage": {"input_tokens": 100}}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(body["content"]):
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        begun = {key: empty.get(key, value) for key, value in block.items()}
        sent.append({"type": "content_block_start", "index": index, "content_block": begun})
        deltas: list[dict[str, Any]] = []
        if block["type"] == "tool_use":
            text = json.dumps(block["input"])
            deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in text]
        else:
            for field in ("text", "thinking", "signature"):
                if field in block:
                    deltas += [{"type": f"{field}_delta", field: piece} for piece in block[field]]
        sent += [{"type": "content_block_delta", "index": index, "delta": it} for it in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": end, "usage": body["usage"]})
    sent.append({"type": "message_stop"})
    return "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in sent).encode()


def kit(*, stream: bool = False) -> ProviderKit:
    def as_sent(body: dict[str, Any]) -> Any:
        return events(body) if stream else body

    return ProviderKit(
        make=lambda url: AnthropicModel(
            "claude-test", AnthropicOptions(base_url=url, stream=stream), api_key=KEY
        ),
        key=KEY,
        call_body=lambda tool: as_sent(
            message(
                [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "text", "text": "So:"},
                    {"type": "tool_use", "id": "toolu_01", "name": tool, "input": {}},
                ],
                "tool_use",
            )
        ),
        text_body=lambda text: as_sent(message([{"type": "text", "text": text}], "end_turn")),
        offered=lambda body: [tool["name"] for tool in body.get("tools", ())],
        error_body=lambda said: {
            "type": "error",
            "error": {"type": "some_error", "message": said},
            "request_id": "req_1",
        },
    )


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance(check: Any) -> None:
    await check(kit())


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance_of_streams(check: Any) -> None:
    await check(kit(stream=True))
