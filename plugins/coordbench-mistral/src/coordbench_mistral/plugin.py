"""The hook. Imports nothing but the API; the SDK is imported when a model is built."""

from __future__ import annotations

from urllib.parse import urlsplit

from coordbench.api import ModelProvider, Offer, hookimpl
from coordbench.api.endpoints import key_for
from coordbench.api.remoteoptions import RemoteOptions

__all__ = ["MISTRAL_URL", "OMITTABLE", "MistralOptions", "key_of", "server_url"]

MISTRAL_URL = "https://api.mistral.ai"
OMITTABLE = frozenset(
    {"temperature", "top_p", "max_tokens", "seed", "parallel_tool_calls", "tool_choice"}
)
"""Settings that `omit` may name."""
_KEY_ENV = "MISTRAL_API_KEY"


class MistralOptions(RemoteOptions, frozen=True, kw_only=True):
    """Options of `mistral`, beside those of every remote model.

    Attributes
    ----------
    reasoning_effort : str
        As the model takes it: `high` or `none`.
    stream : bool
        Ask for a stream.
    """

    reasoning_effort: str = ""
    stream: bool = False


@hookimpl
def coordbench_models() -> list[Offer[ModelProvider]]:
    """`mistral`."""
    return [
        Offer(
            "mistral",
            "Mistral's models",
            build=_build,
            options=MistralOptions,
            requires=("mistralai",),
            check=_check,
            traits=frozenset({"paid", "target"}),
            examples=("mistral/mistral-large-latest", "mistral/magistral-medium-latest,top_p=0.95"),
        )
    ]


def server_url(options: MistralOptions) -> str:
    """The server's address, as the SDK wants it: without `/v1`."""
    return (options.base_url or MISTRAL_URL).rstrip("/").removesuffix("/v1")


def key_of(target: str, options: MistralOptions) -> str:
    """The key; empty where the server needs none.

    Raises
    ------
    UsageError
    """
    url = server_url(options)
    host = urlsplit(url).hostname or ""
    own = host == "mistral.ai" or host.endswith(".mistral.ai")
    return key_for(
        url,
        named=options.api_key_env,
        variable=_KEY_ENV if own else "",
        model=f"mistral/{target}",
    )


def _check(target: str, options: MistralOptions) -> None:
    options.check(OMITTABLE)
    key_of(target, options)


def _build(target: str, options: MistralOptions) -> ModelProvider:
    from coordbench_mistral.model import MistralModel

    _check(target, options)
    return MistralModel(target, options, api_key=key_of(target, options))
