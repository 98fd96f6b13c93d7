"""Chat completions: the body of a request."""

from __future__ import annotations

from typing import Any

from coordbench.api import ModelRequest
from coordbench.api.chatwire import (
    messages_to_chat,
    reply_from_chat,
    reply_from_chat_stream,
    tools_to_chat,
)
from coordbench_openai.plugin import OpenAIOptions
from coordbench_openai.servers import Server

__all__ = ["ChatWire"]


class ChatWire:
    """Chat completions as OpenAI and compatible servers speak them.

    Parameters
    ----------
    model : str
    options : OpenAIOptions
    server : Server
    """

    path = "/chat/completions"
    reply = staticmethod(reply_from_chat)
    reply_from_stream = staticmethod(reply_from_chat_stream)

    def __init__(self, model: str, options: OpenAIOptions, server: Server) -> None:
        self._model = model
        self._options = options
        self._omitted = options.omitted()
        self._cap = options.cap
        if self._cap == "auto":
            self._cap = "max_completion_tokens" if server.own else "max_tokens"
        field = options.reasoning_field
        if not field and server.provider == "openrouter":
            field = "reasoning_details"
        self._reasoning_field = field or None
        self._tools: tuple[Any, list[dict[str, Any]]] = ((), [])

    def body(self, request: ModelRequest) -> tuple[dict[str, Any], dict[str, Any], int | None]:
        """(body, settings as they go out, output cap) of a request."""
        settings = self._settings(request)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": messages_to_chat(request.messages, reasoning_field=self._reasoning_field),
        }
        if request.tools:
            body["tools"] = self._declared(request.tools)
        body |= settings
        cap = settings.get(self._cap)
        if cap is not None:
            settings["max_tokens"] = cap
        return body, settings, cap

    def _settings(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._options.sampling(request)
        settings[self._cap] = settings.pop("max_tokens")
        if request.seed is not None:
            settings["seed"] = request.seed
        if self._options.reasoning_effort:
            settings["reasoning_effort"] = self._options.reasoning_effort
        if request.tools:
            settings["tool_choice"] = (
                {"type": "function", "function": {"name": request.force}}
                if request.force is not None
                else ("required" if self._options.tools == "required" else "auto")
            )
            settings["parallel_tool_calls"] = False
        if self._options.stream:
            settings["stream"] = True
            settings["stream_options"] = {"include_usage": True}
        for name in self._omitted:
            settings.pop(self._cap if name == "max_tokens" else name, None)
        return settings

    def _declared(self, tools: tuple[Any, ...]) -> list[dict[str, Any]]:
        if self._tools[0] is not tools:
            self._tools = (tools, tools_to_chat(tools))
        return self._tools[1]
