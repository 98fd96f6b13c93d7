"""Lets `coordbench.testing.cases` run failure cases through this plugin and the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordbench.api import ModelProvider
from coordbench_mistral.model import MistralModel
from coordbench_mistral.plugin import MistralOptions

__all__ = ["CASE_APIS", "provider_for_case"]

CASE_APIS = ("mistral.chat",)


def provider_for_case(given: Mapping[str, Any], base_url: str) -> ModelProvider:
    """A provider for the server at `base_url`."""
    options = MistralOptions(base_url=base_url, stream="sse" in given)
    return MistralModel("mistral-test", options, api_key="not-a-real-key")
