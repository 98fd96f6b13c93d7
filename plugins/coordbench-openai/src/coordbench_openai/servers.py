"""Which server is meant, whose it is, and which variable holds its key."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import msgspec

from coordbench.api.endpoints import check_url, is_loopback, key_for

__all__ = ["OPENAI_URL", "Server", "key_of", "server_of"]

OPENAI_URL = "https://api.openai.com/v1"
_PLACEHOLDER = "EMPTY"  # the SDK sends no request without a key; vLLM's word for none

_KNOWN = {
    "api.openai.com": ("openai", "OPENAI_API_KEY"),
    "openai.azure.com": ("azure", "AZURE_OPENAI_API_KEY"),
    "openrouter.ai": ("openrouter", "OPENROUTER_API_KEY"),
    "api.x.ai": ("xai", "XAI_API_KEY"),
    "api.together.xyz": ("together_ai", "TOGETHER_API_KEY"),
    "api.together.ai": ("together_ai", "TOGETHER_API_KEY"),
    "api.groq.com": ("groq", "GROQ_API_KEY"),
    "api.deepseek.com": ("deepseek", "DEEPSEEK_API_KEY"),
    "api.fireworks.ai": ("fireworks_ai", "FIREWORKS_API_KEY"),
    "api.cerebras.ai": ("cerebras", "CEREBRAS_API_KEY"),
    "api.mistral.ai": ("mistral", "MISTRAL_API_KEY"),
    "generativelanguage.googleapis.com": ("google", "GEMINI_API_KEY"),
}


class Server(msgspec.Struct, frozen=True):
    """A server that speaks OpenAI's API.

    Attributes
    ----------
    provider : str
        Whose it is; prices are looked up under this name. `openai-compatible` where unknown.
    key_env : str
        The variable that holds its key; empty where none is known.
    local : bool
        On this machine: it costs nothing and needs no key.
    """

    url: str
    provider: str
    key_env: str
    local: bool

    @property
    def own(self) -> bool:
        """Whether it takes OpenAI's newest names for settings."""
        return self.provider in ("openai", "azure")


def server_of(base_url: str) -> Server:
    """The server that `base_url` means; OpenAI's, or the SDK's `OPENAI_BASE_URL`, where empty.

    Raises
    ------
    UsageError
        The address is none.
    """
    from_environment = "" if base_url else os.environ.get("OPENAI_BASE_URL", "").strip()
    url = (base_url or from_environment or OPENAI_URL).rstrip("/")
    check_url(url)
    if is_loopback(url):
        return Server(url, "openai-compatible", "", local=True)
    host = urlsplit(url).hostname or ""
    for known, (provider, variable) in _KNOWN.items():
        if host == known or host.endswith(f".{known}"):
            return Server(url, provider, variable, local=False)
    # Whoever sets OPENAI_BASE_URL expects OPENAI_API_KEY to go there; a key is sent nowhere else.
    variable = "OPENAI_API_KEY" if from_environment else ""
    return Server(url, "openai-compatible", variable, local=False)


def key_of(server: Server, named: str, model: str) -> str:
    """The key for a server.

    Parameters
    ----------
    named : str
        The variable that the user named; `none` for no key.

    Raises
    ------
    UsageError
        There is none; the message names the variable to set.
    """
    key = key_for(server.url, named=named, variable=server.key_env, model=model)
    return key or _PLACEHOLDER
