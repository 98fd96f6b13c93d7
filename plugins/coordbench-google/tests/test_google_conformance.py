"""The kit that every provider behind HTTP passes, through the real SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordbench.testing import PROVIDER_CHECKS, ProviderKit, check_name
from coordbench_google.model import GoogleModel
from coordbench_google.options import GoogleOptions

KEY = "AIza-conformance-0123456789"


def response(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 20,
            "cachedContentTokenCount": 5,
            "totalTokenCount": 130,
        },
        "modelVersion": "gemini-test",
        "responseId": "r-1",
    }


def events(body: dict[str, Any]) -> bytes:
    """The response as the API streams it: some parts in each chunk, the reason in the last."""
    chunks = [
        {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "modelVersion": "gemini-test",
        }
        for part in body["candidates"][0]["content"]["parts"]
    ]
    end = {"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": ""}]}}
    chunks.append({**body, "candidates": [end]})
    return "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks).encode()


def kit(*, stream: bool = False) -> ProviderKit:
    def as_sent(body: dict[str, Any]) -> Any:
        return events(body) if stream else body

    return ProviderKit(
        make=lambda url: GoogleModel(
            "gemini-test", GoogleOptions(base_url=url, stream=stream), api_key=KEY
        ),
        key=KEY,
        call_body=lambda tool: as_sent(
            response(
                [
                    {"text": "Hm.", "thought": True},
                    {"text": "So:"},
                    {"functionCall": {"name": tool, "args": {}}, "thoughtSignature": "c2ln"},
                ]
            )
        ),
        text_body=lambda text: as_sent(response([{"text": text}])),
        offered=lambda body: [
            one["name"] for tool in body.get("tools", ()) for one in tool["functionDeclarations"]
        ],
        error_body=lambda said: {"error": {"code": 0, "message": said, "status": "SOME_STATUS"}},
    )


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance(check: Any) -> None:
    await check(kit())


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance_of_streams(check: Any) -> None:
    await check(kit(stream=True))
