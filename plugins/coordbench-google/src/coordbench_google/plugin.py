"""The hook: one offer, `google`. The SDK is imported when a model is built."""

from __future__ import annotations

from coordbench.api import ModelProvider, Offer, hookimpl
from coordbench_google.options import GoogleOptions, check_target, key_of

__all__: list[str] = []


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`google`."""
    return [
        Offer(
            "google",
            "Gemini models through Google's generateContent",
            build=_build,
            options=GoogleOptions,
            requires=("google.genai",),
            check=check_target,
            traits=frozenset({"paid", "target"}),
            examples=(
                "google/gemini-3.8-flash",
                "google/gemini-3.8-flash,thinking_level=low",
                "google/gemini-2.5-flash,thinking_budget=0,temperature=0.2",
            ),
        )
    ]


def _build(target: str, options: GoogleOptions) -> ModelProvider:
    check_target(target, options)
    from coordbench_google.model import GoogleModel

    return GoogleModel(target, options, api_key=key_of(target, options))
