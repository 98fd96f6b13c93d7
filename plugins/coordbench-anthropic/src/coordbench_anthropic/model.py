"""A Claude model as a `ModelProvider`."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec

from coordbench.api import ModelError, ModelInfo, ModelReply, ModelRequest
from coordbench.api.chatwire import decode_body
from coordbench.api.endpoints import is_loopback
from coordbench.api.httperrors import turn_of
from coordbench_anthropic.client import Sender, make_client, make_http_client
from coordbench_anthropic.options import ANTHROPIC_URL, AnthropicOptions, server_of
from coordbench_anthropic.request import request_body
from coordbench_anthropic.stream import message_from_events
from coordbench_anthropic.wire import reply_from_message

__all__ = ["AnthropicModel"]

_FORCE_WORDS = ("tool_choice", "forces tool use")


class AnthropicModel:
    """A model behind Anthropic's Messages API.

    Parameters
    ----------
    model : str
        As the API names it.
    options : AnthropicOptions
    api_key : str
        Empty for none.
    http_client : httpx2.AsyncClient or None
        Used in place of one of its own; whoever made it closes it.
    """

    def __init__(
        self,
        model: str,
        options: AnthropicOptions,
        *,
        api_key: str,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        url = server_of(options)
        self._model = model
        self._options = options
        self._info = ModelInfo(
            provider="anthropic",
            model=model,
            endpoint=url,
            max_in_flight=options.concurrency,
            paid=not is_loopback(url),
            tool_mode=options.tools,
            price_in=options.price_in,
            price_out=options.price_out,
            price_cached=options.price_cached,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
            settings=options.settings() | ({} if url == ANTHROPIC_URL else {"base_url": url}),
        )
        self._http = http_client or make_http_client(options.concurrency)
        self._closes = http_client is None
        self._sender = Sender(make_client(url, api_key, self._http, options.api_version))
        self._forcing = not options.thinks

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
        if not (request.force and self._forcing):
            return await self._call(request, forcing=False)
        try:
            return await self._call(request, forcing=True)
        except ModelError as error:
            if not _no_force(error):
                raise
        # Models that always think take no forced call: what the prompt asks for must do.
        self._forcing = False
        return await self._call(request, forcing=False)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._closes:
            await self._http.aclose()

    async def _call(self, request: ModelRequest, *, forcing: bool) -> ModelReply:
        body, sent = request_body(self._model, self._options, request, forcing=forcing)
        cap: int = body["max_tokens"]
        turn = turn_of(request)
        answer = await self._sender.send(body, stream=self._options.stream, turn=turn)
        if answer.refused is not None:
            return msgspec.structs.replace(answer.refused, sent=sent, max_tokens=cap)
        message: Any = (
            decode_body(answer.data) if answer.lines is None else message_from_events(answer.lines)
        )
        return reply_from_message(
            message, max_tokens=cap, request_id=answer.request_id, sent=sent, turn=turn
        )


def _no_force(error: ModelError) -> bool:
    said = error.message.lower()
    return error.status == 400 and any(word in said for word in _FORCE_WORDS)
