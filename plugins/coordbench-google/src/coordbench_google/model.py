"""A Gemini model as a `ModelProvider`."""

from __future__ import annotations

from typing import Any

import msgspec

from coordbench.api import ModelInfo, ModelReply, ModelRequest
from coordbench.api.chatwire import decode_body
from coordbench.api.endpoints import is_loopback
from coordbench.api.eventstream import events_of
from coordbench.api.httperrors import turn_of
from coordbench_google.client import HttpClient, Sender
from coordbench_google.options import GOOGLE_URL, GoogleOptions, server_of
from coordbench_google.request import request_body
from coordbench_google.stream import content_from_chunks
from coordbench_google.wire import reply_from_content

__all__ = ["GoogleModel"]

_COLLECTIONS = ("models/", "tunedModels/")


class GoogleModel:
    """A model behind Google's generateContent.

    Parameters
    ----------
    model : str
        As the API names it, with or without `models/`.
    options : GoogleOptions
    api_key : str
    http_client : aiohttp.ClientSession or httpx2.AsyncClient or None
        Used in place of one of its own; whoever made it closes it.
    """

    def __init__(
        self,
        model: str,
        options: GoogleOptions,
        *,
        api_key: str,
        http_client: HttpClient | None = None,
    ) -> None:
        url, version = server_of(options)
        self._path = model if model.startswith(_COLLECTIONS) else f"models/{model}"
        self._options = options
        self._info = ModelInfo(
            provider="google",
            model=model.removeprefix("models/"),
            endpoint=url,
            max_in_flight=options.concurrency,
            paid=not is_loopback(url),
            tool_mode=options.tools,
            price_in=options.price_in,
            price_out=options.price_out,
            price_cached=options.price_cached,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
            settings=options.settings() | ({} if url == GOOGLE_URL else {"base_url": url}),
        )
        self._sender = Sender(url, version, api_key, http_client)

    @property
    def info(self) -> ModelInfo:
        """What the core must know of it."""
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one call.

        Raises
        ------
        ModelError
        """
        body, sent = request_body(self._options, request)
        cap = sent.get("max_tokens")
        turn = turn_of(request)
        answer = await self._sender.send(self._path, body, stream=self._options.stream, turn=turn)
        if answer.refused is not None:
            return msgspec.structs.replace(answer.refused, sent=sent, max_tokens=cap)
        return reply_from_content(_decoded(answer.text), max_tokens=cap, sent=sent, turn=turn)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()


def _decoded(text: str) -> Any:
    """The body, in whichever of the API's forms it came: whole, as events, or as a list."""
    start = text.lstrip()[:6]
    if start.startswith(("data:", "event:", ":")):
        return content_from_chunks(events_of(text.splitlines()))
    body = decode_body(text)
    return content_from_chunks(body) if isinstance(body, list) and body else body
