"""The hook. Imports nothing but the API; the SDK is imported when a model is built."""

from __future__ import annotations

from typing import Literal

from coordbench.api import ModelProvider, Offer, hookimpl
from coordbench.api.remoteoptions import RemoteOptions
from coordbench_openai.servers import key_of, server_of

__all__ = ["OMITTABLE", "OpenAIOptions"]

OMITTABLE = frozenset(
    {
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "parallel_tool_calls",
        "tool_choice",
        "stream_options",
        "store",
        "include",
    }
)
"""Settings that `omit` may name."""


class OpenAIOptions(RemoteOptions, frozen=True, kw_only=True):
    """Options of `openai`, beside those of every remote model.

    Attributes
    ----------
    api : str
        `chat`: chat completions; `responses`: the Responses API.
    reasoning_effort : str
        As the model takes it, such as `low`.
    cap : str
        Name of the output cap in chat completions. `auto`: `max_completion_tokens` on OpenAI's
        own servers, `max_tokens` on others.
    stream : bool
        Ask for a stream, for servers that answer nothing else.
    reasoning_field : str
        Field in which a compatible server wants an earlier turn's reasoning back.
    organization, project : str
        Of the account; else the SDK's own variables.
    """

    api: Literal["chat", "responses"] = "chat"
    reasoning_effort: str = ""
    cap: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    stream: bool = False
    reasoning_field: str = ""
    organization: str = ""
    project: str = ""


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`openai`."""
    return [
        Offer(
            "openai",
            "OpenAI's models and, with base_url, any server that speaks its API",
            build=_build,
            options=OpenAIOptions,
            requires=("openai",),
            check=_check,
            traits=frozenset({"paid", "target"}),
            examples=(
                "openai/gpt-5.4",
                "openai/gpt-5.4,api=responses,reasoning_effort=low",
                "openai/Qwen/Qwen3-14B,base_url=http://127.0.0.1:8000/v1",
                "openai/x-ai/grok-4,base_url=https://openrouter.ai/api/v1",
            ),
        )
    ]


def _check(target: str, options: OpenAIOptions) -> None:
    options.check(OMITTABLE)
    key_of(server_of(options.base_url), options.api_key_env, f"openai/{target}")


def _build(target: str, options: OpenAIOptions) -> ModelProvider:
    from coordbench_openai.model import OpenAIModel

    _check(target, options)
    server = server_of(options.base_url)
    key = key_of(server, options.api_key_env, f"openai/{target}")
    return OpenAIModel(target, options, api_key=key)
