"""Lets `coordbench.testing.cases` run failure cases through this plugin and the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordbench.api import ModelProvider
from coordbench_anthropic.model import AnthropicModel
from coordbench_anthropic.options import AnthropicOptions

__all__ = ["CASE_APIS", "provider_for_case"]

CASE_APIS = ("anthropic.messages",)


def provider_for_case(given: Mapping[str, Any], base_url: str) -> ModelProvider:
    """A provider for the server at `base_url`."""
    options = AnthropicOptions(base_url=base_url, stream="sse" in given)
    return AnthropicModel("claude-test", options, api_key="sk-not-a-real-key")
