"""The hook: one offer, `anthropic`. The SDK is imported when a model is built."""

from __future__ import annotations

from coordbench.api import ModelProvider, Offer, hookimpl
from coordbench_anthropic.options import AnthropicOptions, check_target, key_of

__all__: list[str] = []


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`anthropic`."""
    return [
        Offer(
            "anthropic",
            "Claude models through Anthropic's Messages API",
            build=_build,
            options=AnthropicOptions,
            requires=("anthropic",),
            check=check_target,
            traits=frozenset({"paid", "target"}),
            examples=(
                "anthropic/claude-haiku-5-5",
                "anthropic/claude-sonnet-5-5,thinking=adaptive,effort=low",
                "anthropic/claude-haiku-4-5,api_version=2023-06-01,temperature=0.2",
            ),
        )
    ]


def _build(target: str, options: AnthropicOptions) -> ModelProvider:
    check_target(target, options)
    from coordbench_anthropic.model import AnthropicModel

    return AnthropicModel(target, options, api_key=key_of(target, options))
