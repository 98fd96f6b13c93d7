"""HTTP clients handed to litellm, so that what really went out and came back is known.

litellm turns every provider's answers and errors into OpenAI's. On the way it loses the waiting
time that a server asks for, changes statuses (Anthropic's 529 becomes 500) and rewords stop
reasons. The clients here keep the request and the response of a call as they were.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import msgspec

__all__ = ["HANDLER_PROVIDERS", "SDK_PROVIDERS", "Call", "Clients", "recording"]

_TIMEOUT_S = 3600.0
_KEEP_S = 30.0
_SPARE = 8

HANDLER_PROVIDERS = frozenset(
    {
        "anthropic",
        "azure_ai",
        "databricks",
        "deepseek",
        "fireworks_ai",
        "gemini",
        "groq",
        "hosted_vllm",
        "huggingface",
        "minimax",
        "mistral",
        "ollama",
        "ollama_chat",
        "openrouter",
        "ovhcloud",
        "snowflake",
        "together_ai",
        "xai",
    }
)
"""Providers whose calls litellm makes through an `AsyncHTTPHandler` that it is given."""
SDK_PROVIDERS = frozenset(
    {
        "ai21_chat",
        "baseten",
        "cerebras",
        "custom_openai",
        "dashscope",
        "deepinfra",
        "featherless_ai",
        "friendliai",
        "hyperbolic",
        "lambda_ai",
        "litellm_proxy",
        "llamafile",
        "lm_studio",
        "meta_llama",
        "moonshot",
        "nebius",
        "novita",
        "nscale",
        "nvidia_nim",
        "openai",
        "perplexity",
        "sambanova",
        "vercel_ai_gateway",
        "volcengine",
        "xinference",
        "zai",
    }
)
"""Providers whose calls litellm makes through an `AsyncOpenAI` that it is given."""


class Call(msgspec.Struct):
    """What went over the wire in one call.

    Attributes
    ----------
    body : bytes or None
        Of the request; None where none went out.
    status : int or None
        None where no whole response came.
    headers : mapping
        Of the response.
    data : bytes
        Of the response.
    """

    body: bytes | None = None
    status: int | None = None
    headers: dict[str, str] = {}
    data: bytes = b""


recording: ContextVar[Call] = ContextVar("recording")
"""The call that the current task makes."""


class Clients:
    """The client that litellm is to use for a provider, if it takes one.

    Parameters
    ----------
    provider : str
        As litellm names it.
    concurrency : int
        Calls in flight at once.
    url, key : str or None
        As litellm is told them; None for the provider's own.
    http : AsyncClient or None
        Used in place of one of its own, and left open: of `httpx2` for `SDK_PROVIDERS`, of the
        library that litellm imports (`httpx`) for the others.

    Attributes
    ----------
    client : AsyncOpenAI, AsyncHTTPHandler or None
        None where litellm uses its own clients whatever it is given.
    """

    def __init__(
        self, provider: str, concurrency: int, url: str | None, key: str | None, http: Any = None
    ) -> None:
        self.client: Any = None
        self._http: Any = None
        self._closes = http is None
        if provider in SDK_PROVIDERS:
            from openai import AsyncOpenAI

            self._http = http if http is not None else _sdk_http(concurrency)
            self.client = AsyncOpenAI(
                api_key=key or "none",
                base_url=url,
                max_retries=0,
                timeout=_TIMEOUT_S,
                http_client=self._http,
            )
            if url is not None:
                # The account's names, from the SDK's variables, are no other server's business.
                self.client.organization = self.client.project = None
        elif provider in HANDLER_PROVIDERS:
            from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

            # A redirect is a wrong base_url: following it would send the key to another server.
            self.client = AsyncHTTPHandler(timeout=_TIMEOUT_S, follow_redirects=False)
            self._http = http if http is not None else self.client.client
            if http is not None:
                self.client.client = http
        if self._http is not None:
            hooks = dict(self._http.event_hooks)
            hooks["request"] = [*hooks.get("request", ()), _went_out]
            hooks["response"] = [*hooks.get("response", ()), _came_back]
            self._http.event_hooks = hooks

    async def aclose(self) -> None:
        """Close the connections."""
        if self._closes and self._http is not None:
            await self._http.aclose()


def _sdk_http(concurrency: int) -> Any:
    import httpx2
    from openai import DefaultAioHttpClient

    connections = concurrency + _SPARE
    limits = httpx2.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=_KEEP_S,
    )
    try:
        return DefaultAioHttpClient(limits=limits, timeout=_TIMEOUT_S, follow_redirects=False)
    except RuntimeError:  # the SDK's way to say that its aiohttp transport is not there
        return httpx2.AsyncClient(limits=limits, timeout=_TIMEOUT_S)


async def _went_out(request: Any) -> None:
    call = recording.get(None)
    if call is not None:
        call.body = request.content


async def _came_back(response: Any) -> None:
    call = recording.get(None)
    if call is not None:
        data = await response.aread()
        call.status, call.headers, call.data = response.status_code, dict(response.headers), data
