"""Lets `coordbench.testing.cases` run failure cases through this plugin and the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordbench.api import ModelProvider
from coordbench_openai.model import OpenAIModel
from coordbench_openai.plugin import OpenAIOptions

__all__ = ["CASE_APIS", "provider_for_case"]

CASE_APIS = (
    "openai.chat",
    "openai.responses",
    "openai-compatible.chat",
    "openrouter.chat",
    "vllm.chat",
)


def provider_for_case(given: Mapping[str, Any], base_url: str) -> ModelProvider:
    """A provider for the server at `base_url`."""
    options = OpenAIOptions(
        base_url=f"{base_url}/v1",
        api="responses" if given["api"] == "openai.responses" else "chat",
        stream="sse" in given,
    )
    return OpenAIModel("gpt-test", options, api_key="sk-not-a-real-key")
