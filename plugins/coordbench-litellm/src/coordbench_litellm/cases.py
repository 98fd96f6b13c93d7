"""Lets `coordbench.testing.cases` run failure cases through this plugin and litellm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordbench.api import ModelProvider
from coordbench_litellm.model import LitellmModel
from coordbench_litellm.plugin import LitellmOptions

__all__ = ["CASE_APIS", "provider_for_case"]

CASE_APIS = ("litellm", "litellm.chat", "litellm.anthropic", "litellm.gemini", "litellm.mistral")
_TARGETS = {
    "litellm.anthropic": ("anthropic/claude-test", ""),
    "litellm.gemini": ("gemini/gemini-test", ""),
    "litellm.mistral": ("mistral/mistral-test", "/v1"),
}


def provider_for_case(given: Mapping[str, Any], base_url: str) -> ModelProvider:
    """A provider for the server at `base_url`."""
    target, path = _TARGETS.get(given["api"], ("openai/gpt-test", "/v1"))
    return LitellmModel(
        target, LitellmOptions(base_url=base_url + path), api_key="sk-not-a-real-key"
    )
