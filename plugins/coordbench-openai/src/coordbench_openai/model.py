"""OpenAI's models and compatible servers as a `ModelProvider`."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
from openai import AsyncOpenAI

from coordbench.api import ModelError, ModelInfo, ModelReply, ModelRequest
from coordbench.api.chatwire import decode_body, turn_of
from coordbench.api.remoteoptions import with_omit_hint
from coordbench_openai.chat import ChatWire
from coordbench_openai.client import Sender, make_http_client
from coordbench_openai.plugin import OMITTABLE, OpenAIOptions
from coordbench_openai.responses import ResponsesWire
from coordbench_openai.servers import OPENAI_URL, server_of

__all__ = ["OpenAIModel"]

_OTHER_CAP = "cap=max_completion_tokens, or cap=max_tokens"


class OpenAIModel:
    """A model behind OpenAI's API.

    Parameters
    ----------
    model : str
        As the server names it.
    options : OpenAIOptions
    api_key : str
    http_client : httpx2.AsyncClient or None
        Used in place of one of its own; whoever made it closes it.
    """

    def __init__(
        self,
        model: str,
        options: OpenAIOptions,
        *,
        api_key: str,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        server = server_of(options.base_url)
        self._info = ModelInfo(
            provider=server.provider,
            model=model,
            endpoint=server.url,
            max_in_flight=options.concurrency,
            paid=not server.local,
            tool_mode=options.tools,
            price_in=options.price_in,
            price_out=options.price_out,
            price_cached=options.price_cached,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
            settings=_settings(options, server.url),
        )
        self._http = http_client or make_http_client(options.concurrency)
        self._closes = http_client is None
        client = AsyncOpenAI(
            api_key=api_key,
            base_url=server.url,
            organization=options.organization or None,
            project=options.project or None,
            max_retries=0,
            timeout=3600.0,
            http_client=self._http,
        )
        if not server.own:
            # The account's names, from the SDK's variables, are no other server's business.
            client.organization = options.organization or None
            client.project = options.project or None
        self._sender = Sender(client)
        self._wire: ChatWire | ResponsesWire = (
            ResponsesWire(model, options, server)
            if options.api == "responses"
            else ChatWire(model, options, server)
        )
        self._stream = options.stream

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
        wire = self._wire
        body, sent, cap = wire.body(request)
        turn = turn_of(request)
        try:
            answer = await self._sender.send(wire.path, body, stream=self._stream, turn=turn)
        except ModelError as error:
            raise with_omit_hint(error, OMITTABLE, max_tokens=_OTHER_CAP) from None
        if answer.refused is not None:
            return msgspec.structs.replace(answer.refused, sent=sent, max_tokens=cap)
        known: dict[str, Any] = {
            "max_tokens": cap,
            "request_id": answer.request_id,
            "sent": sent,
            "turn": turn,
        }
        if answer.lines is not None:
            return wire.reply_from_stream(answer.lines, **known)
        return wire.reply(decode_body(answer.data), **known)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._closes:
            await self._http.aclose()


def _settings(options: OpenAIOptions, url: str) -> dict[str, Any]:
    named = {
        "base_url": url if url != OPENAI_URL else None,
        "api": options.api if options.api != "chat" else None,
        "reasoning_effort": options.reasoning_effort or None,
        "stream": options.stream or None,
    }
    return options.settings() | {key: value for key, value in named.items() if value is not None}
