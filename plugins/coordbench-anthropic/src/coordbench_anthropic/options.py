"""What a model's name may say, and the server and key that follow from it."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from coordbench.api import UsageError
from coordbench.api.endpoints import check_url, is_loopback, key_from
from coordbench.api.remoteoptions import RemoteOptions

__all__ = ["ANTHROPIC_URL", "AnthropicOptions", "check_target", "key_of", "server_of"]

ANTHROPIC_URL = "https://api.anthropic.com"
_OMITTABLE = frozenset({"temperature", "top_p", "parallel_tool_calls"})
_NO_SAMPLING_FROM = "2026-10-21"
_KEY = "ANTHROPIC_API_KEY"
_NO_KEY = "none"


class AnthropicOptions(RemoteOptions, frozen=True, kw_only=True):
    """Options of `anthropic`, beside those of every remote model.

    Attributes
    ----------
    thinking : str
        `adaptive`, `between_tools` or `off`; which of them a model takes, and what it does
        without, depends on the model.
    thinking_budget : int or None
        Tokens of manual thinking, for models before adaptive thinking; below the output cap.
    effort : str
        How much work the model puts into a reply.
    api_version : str
        Of the Messages API; else the SDK's. From 2026-10-21 on it takes no temperature and no
        top_p; `2023-06-01` takes them, for models that still know them.
    cache : bool
        Mark the tools and the system prompt for the prompt cache.
    stream : bool
        Ask for a stream; for long replies.
    """

    thinking: Literal["", "off", "adaptive", "between_tools"] = ""
    thinking_budget: Annotated[int, msgspec.Meta(ge=1024)] | None = None
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""
    api_version: Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = ""
    cache: bool = True
    stream: bool = False

    @property
    def takes_sampling(self) -> bool:
        """Whether the API takes temperature and top_p."""
        return bool(self.api_version) and self.api_version < _NO_SAMPLING_FROM

    @property
    def thinks(self) -> bool:
        """Whether the name asks for thinking."""
        return self.thinking_budget is not None or self.thinking in ("adaptive", "between_tools")

    def thinking_field(self) -> dict[str, Any] | None:
        """The request's `thinking`."""
        if self.thinking_budget is not None:
            return {"type": "enabled", "budget_tokens": self.thinking_budget}
        if not self.thinking:
            return None
        return {"type": "disabled" if self.thinking == "off" else self.thinking}

    def settings(self) -> dict[str, Any]:
        """What the model's name fixes."""
        fixed = {
            "thinking": self.thinking or None,
            "thinking_budget": self.thinking_budget,
            "effort": self.effort or None,
            "api_version": self.api_version or None,
            "stream": self.stream or None,
        }
        return super().settings() | {key: it for key, it in fixed.items() if it is not None}


def check_target(target: str, options: AnthropicOptions) -> None:
    """Whether the model can be built here and now.

    Raises
    ------
    UsageError
        Options that exclude each other, or no key.
    """
    options.check(_OMITTABLE)
    _check_thinking(options)
    if not options.takes_sampling and not options.omitted() >= {"temperature", "top_p"}:
        for name in ("temperature", "top_p"):
            if getattr(options, name) is not None:
                raise UsageError(
                    f"anthropic/{target}: the Messages API takes no {name}",
                    hint=f"leave {name} out, or add api_version=2023-06-01 for a model before "
                    "Claude Opus 4.7",
                )
    key_of(target, options)


def server_of(options: AnthropicOptions) -> str:
    """The server's address without `/v1`: the option's, the SDK's variable's, or Anthropic's."""
    url = options.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or ANTHROPIC_URL
    check_url(url)
    return url.rstrip("/").removesuffix("/v1")


def key_of(target: str, options: AnthropicOptions) -> str:
    """The key to send; empty for none.

    Raises
    ------
    UsageError
        There is none; the message names the variable to set.
    """
    named = options.api_key_env
    url = server_of(options)
    if named == _NO_KEY or (is_loopback(url) and not named):
        return ""
    model = f"anthropic/{target}"
    host = urlsplit(url).hostname or ""
    # A key goes to its owner's server, or where somebody sent it on purpose.
    if options.base_url and not named and not host.endswith(".anthropic.com"):
        raise UsageError(
            f"{model} needs to know which variable holds the key of {url}",
            hint="add api_key_env=NAME_OF_THE_VARIABLE, or api_key_env=none where it needs no key",
        )
    return key_from(named or _KEY, model=model)


def _check_thinking(options: AnthropicOptions) -> None:
    budget = options.thinking_budget
    if budget is not None and options.thinking:
        raise UsageError(
            f"options thinking={options.thinking} and thinking_budget={budget} exclude each other",
            hint="thinking_budget alone asks for manual thinking",
        )
    if options.thinks and options.tools == "required":
        raise UsageError(
            "options thinking and tools=required exclude each other: the API forces no call while "
            "the model thinks",
            hint="use tools=native, or thinking=off",
        )
    if options.thinks and options.temperature is not None:
        raise UsageError(
            "options thinking and temperature exclude each other",
            hint="leave out one of them",
        )
    cap = options.max_tokens
    if budget is not None and cap is not None and cap <= budget:
        raise UsageError(
            f"max_tokens={cap} leaves no room behind thinking_budget={budget}",
            hint=f"max_tokens counts the thinking too: use max_tokens={budget + 512} or more",
        )
