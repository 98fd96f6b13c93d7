"""The hook. Imports nothing but the API; litellm is imported when a model is built."""

from __future__ import annotations

from coordbench.api import ModelProvider, Offer, UsageError, hookimpl
from coordbench.api.endpoints import key_for, key_from
from coordbench.api.remoteoptions import RemoteOptions

__all__ = ["BEST_EFFORT", "OMITTABLE", "LitellmOptions", "key_of"]

BEST_EFFORT = frozenset({"seed", "parallel_tool_calls"})
"""Settings that are left out, and reported as left out, where a provider has no such thing."""
OMITTABLE = frozenset({"temperature", "top_p", "max_tokens", "tool_choice"}) | BEST_EFFORT
"""Settings that `omit` may name."""

_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "cohere_chat": ("COHERE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""So that a missing key is found without importing litellm, which takes seconds."""
_NO_KEY = "none"


class LitellmOptions(RemoteOptions, frozen=True, kw_only=True):
    """Options of `litellm`, beside those of every remote model.

    Attributes
    ----------
    reasoning_effort : str
        As litellm takes it, such as `low`.
    api_version : str
        For the providers that have one, such as Azure.
    reasoning_field : str
        Field in which a server that speaks OpenAI's format wants an earlier turn's reasoning back.
    """

    reasoning_effort: str = ""
    api_version: str = ""
    reasoning_field: str = ""


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`litellm`."""
    return [
        Offer(
            "litellm",
            "any model that litellm reaches",
            build=_build,
            options=LitellmOptions,
            requires=("litellm",),
            check=_check,
            traits=frozenset({"paid", "target"}),
            examples=(
                "litellm/groq/llama-3.3-70b-versatile",
                "litellm/bedrock/anthropic.claude-sonnet-4-20250514-v1:0",
            ),
        )
    ]


def key_of(target: str, options: LitellmOptions) -> str | None:
    """The key to hand to litellm; empty where the server needs none; None where litellm is to
    find the credentials by itself, as for providers that have no single key.

    Raises
    ------
    UsageError
    """
    model = f"litellm/{target}"
    if options.base_url:
        return key_for(options.base_url, named=options.api_key_env, variable="", model=model)
    if options.api_key_env == _NO_KEY:
        return ""
    if options.api_key_env:
        return key_from(options.api_key_env, model=model)
    variables = _KEYS.get(target.partition("/")[0])
    return key_from(*variables, model=model) if variables else None


def _check(target: str, options: LitellmOptions) -> None:
    provider, _, model = target.partition("/")
    if not provider or not model:
        raise UsageError(
            f'litellm/{target} says no provider: litellm cannot tell whose model "{target}" is',
            hint="write litellm/<provider>/<model>, such as litellm/groq/llama-3.3-70b-versatile",
        )
    options.check(OMITTABLE)
    key_of(target, options)


def _build(target: str, options: LitellmOptions) -> ModelProvider:
    _check(target, options)
    from coordbench_litellm.model import LitellmModel

    return LitellmModel(target, options, api_key=key_of(target, options))
