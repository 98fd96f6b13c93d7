"""What a model's name may say, and the server and key that follow from it."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from coordbench.api import UsageError
from coordbench.api.endpoints import check_url, is_loopback, key_from
from coordbench.api.remoteoptions import RemoteOptions

__all__ = ["GOOGLE_URL", "GoogleOptions", "check_target", "key_of", "server_of"]

GOOGLE_URL = "https://generativelanguage.googleapis.com"
_OMITTABLE = frozenset({"temperature", "top_p", "max_tokens", "seed"})
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_NO_KEY = "none"
_PLACEHOLDER = "EMPTY"  # the SDK makes no client without a key
_VERSION = re.compile(r"/(v\d\w*)$")


class GoogleOptions(RemoteOptions, frozen=True, kw_only=True):
    """Options of `google`, beside those of every remote model.

    Attributes
    ----------
    thinking_level : str
        How much the model thinks, for Gemini 3 and later.
    thinking_budget : int or None
        Tokens of thinking, for Gemini 2.5: 0 for none, -1 for as many as it likes.
    thoughts : bool
        Ask for summaries of the thinking; they are kept as reasoning.
    api_version : str
        Of the API; else the SDK's.
    stream : bool
        Ask for a stream; for long replies.
    """

    thinking_level: Literal["", "minimal", "low", "medium", "high", "xhigh"] = ""
    thinking_budget: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    thoughts: bool = False
    api_version: Annotated[str, msgspec.Meta(pattern=r"^(v\d\w*)?$")] = ""
    stream: bool = False

    def thinking_config(self) -> dict[str, Any]:
        """The request's `thinkingConfig`; empty where the model's usual way is wanted."""
        config: dict[str, Any] = {}
        if self.thinking_budget is not None:
            config["thinkingBudget"] = self.thinking_budget
        if self.thinking_level:
            config["thinkingLevel"] = self.thinking_level.upper()
        if self.thoughts:
            config["includeThoughts"] = True
        return config

    def settings(self) -> dict[str, Any]:
        """What the model's name fixes."""
        fixed = {
            "thinking_level": self.thinking_level or None,
            "thinking_budget": self.thinking_budget,
            "thoughts": self.thoughts or None,
            "api_version": self.api_version or None,
            "stream": self.stream or None,
        }
        return super().settings() | {key: it for key, it in fixed.items() if it is not None}


def check_target(target: str, options: GoogleOptions) -> None:
    """Whether the model can be built here and now.

    Raises
    ------
    UsageError
        Options that exclude each other, or no key.
    """
    options.check(_OMITTABLE)
    if options.thinking_level and options.thinking_budget is not None:
        raise UsageError(
            "options thinking_level and thinking_budget exclude each other",
            hint="thinking_level is for Gemini 3 and later, thinking_budget for Gemini 2.5",
        )
    key_of(target, options)


def server_of(options: GoogleOptions) -> tuple[str, str]:
    """(address without a version, version of the API or `""` for the SDK's).

    The address is the option's, the SDK's variable's, or Google's.
    """
    named = options.base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL", "").strip() or GOOGLE_URL
    check_url(named)
    url = named.rstrip("/")
    version = _VERSION.search(url)
    if version is None:
        return url, options.api_version
    return url[: version.start()], options.api_version or version.group(1)


def key_of(target: str, options: GoogleOptions) -> str:
    """The key to send; a word that is none where none is needed.

    Raises
    ------
    UsageError
        There is none; the message names the variable to set.
    """
    named = options.api_key_env
    url, _ = server_of(options)
    if named == _NO_KEY or (is_loopback(url) and not named):
        return _PLACEHOLDER
    model = f"google/{target}"
    host = urlsplit(url).hostname or ""
    # A key goes to its owner's server, or where somebody sent it on purpose.
    if options.base_url and not named and not host.endswith(".googleapis.com"):
        raise UsageError(
            f"{model} needs to know which variable holds the key of {url}",
            hint="add api_key_env=NAME_OF_THE_VARIABLE, or api_key_env=none where it needs no key",
        )
    return key_from(*((named,) if named else _KEYS), model=model)
