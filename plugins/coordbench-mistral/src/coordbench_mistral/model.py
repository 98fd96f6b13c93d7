"""Mistral's models as a `ModelProvider`."""

from __future__ import annotations

from typing import Any

import msgspec

from coordbench.api import ModelError, ModelInfo, ModelReply, ModelRequest, Tool
from coordbench.api.chatwire import (
    decode_body,
    messages_to_chat,
    reply_from_chat,
    reply_from_chat_stream,
    tools_to_chat,
    turn_of,
)
from coordbench.api.chatwire_history import nine_characters
from coordbench.api.endpoints import is_loopback
from coordbench.api.remoteoptions import with_omit_hint
from coordbench_mistral.client import Sender, make_http_client
from coordbench_mistral.plugin import OMITTABLE, MistralOptions, server_url

__all__ = ["MistralModel"]

_UNDERSTOOD = "Understood."


class MistralModel:
    """A model behind Mistral's API.

    Parameters
    ----------
    model : str
        As Mistral names it.
    options : MistralOptions
    api_key : str
        Empty where the server needs none.
    http_client : AsyncClient or None
        Of the HTTP library that the SDK uses, in place of one of its own; whoever made it
        closes it.
    """

    def __init__(
        self, model: str, options: MistralOptions, *, api_key: str, http_client: Any = None
    ) -> None:
        url = server_url(options)
        extra = {"reasoning_effort": options.reasoning_effort, "stream": options.stream}
        self._info = ModelInfo(
            provider="mistral",
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
            settings=options.settings() | {key: value for key, value in extra.items() if value},
        )
        self._model = model
        self._options = options
        self._omitted = options.omitted()
        self._http = (
            http_client if http_client is not None else make_http_client(options.concurrency)
        )
        self._closes = http_client is None
        self._sender = Sender(self._http, url, api_key)
        self._tools: tuple[tuple[Tool, ...], list[dict[str, Any]]] = ((), [])

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
        settings = self._settings(request)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": messages_to_chat(
                request.messages,
                keep_id=nine_characters,
                empty_content="",
                # A user turn may not follow a tool turn.
                after_tool=_UNDERSTOOD,
            ),
            **settings,
        }
        if request.tools:
            body["tools"] = self._declared(request.tools)
        sent = dict(settings)
        if "random_seed" in sent:
            sent["seed"] = sent["random_seed"]
        cap, turn = settings.get("max_tokens"), turn_of(request)
        try:
            answer = await self._sender.send(body, stream=self._options.stream, turn=turn)
        except ModelError as error:
            raise with_omit_hint(error, OMITTABLE) from None
        if answer.refused is not None:
            return msgspec.structs.replace(answer.refused, sent=sent, max_tokens=cap)
        known: dict[str, Any] = {
            "max_tokens": cap,
            "request_id": answer.request_id,
            "sent": sent,
            "turn": turn,
        }
        if answer.lines is not None:
            return reply_from_chat_stream(answer.lines, **known)
        return reply_from_chat(decode_body(answer.data), **known)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._closes:
            await self._http.aclose()

    def _settings(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._options.sampling(request)
        if request.seed is not None:
            settings["random_seed"] = request.seed
        if self._options.reasoning_effort:
            settings["reasoning_effort"] = self._options.reasoning_effort
        if request.tools:
            settings["tool_choice"] = (
                {"type": "function", "function": {"name": request.force}}
                if request.force is not None
                else ("any" if self._options.tools == "required" else "auto")
            )
            settings["parallel_tool_calls"] = False
        if self._options.stream:
            settings["stream"] = True
        for name in self._omitted:
            settings.pop("random_seed" if name == "seed" else name, None)
        return settings

    def _declared(self, tools: tuple[Tool, ...]) -> list[dict[str, Any]]:
        if self._tools[0] is not tools:
            self._tools = (tools, tools_to_chat(tools))
        return self._tools[1]
