"""The model `llamacpp`: one tool mode of one GGUF file."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import httpx

from coordbench.api import ModelError, ModelInfo, ModelProvider, ModelReply, ModelRequest
from coordbench.api.chatwire import (
    decode_body,
    error_from_response,
    error_from_transport,
    reply_from_chat,
    turn_of,
)
from coordbench.api.requestbody import encode_body
from coordbench_llamacpp.options import LlamaCppOptions
from coordbench_llamacpp.server import Endpoint, LlamaServer, ServerSpec, release, share
from coordbench_llamacpp.slots import Post
from coordbench_llamacpp.template import takes_tools, with_tools
from coordbench_llamacpp.weights import find_adapter, find_model, find_template
from coordbench_llamacpp.wire import (
    constrained_body,
    constrained_reply,
    native_body,
    sampling_fields,
)

__all__ = ["LlamaCpp", "build_llamacpp"]

_CHAT = "/v1/chat/completions"
_CONNECT_S = 10.0
_NOT_THE_FORM = "does not match the expected"
"""llama.cpp's words where a reply broke off the form of a call that it had begun."""
_REPORTED = ("temperature", "max_tokens", "form", "lora", "lora_scale", "template")


def build_llamacpp(target: str, options: LlamaCppOptions) -> ModelProvider:
    """Build the model. Its server starts at the first call.

    Parameters
    ----------
    target : str
        `smollm2`, or the path of a GGUF file.

    Raises
    ------
    UsageError
        A file is missing, or is not what it should be.
    """
    file = find_model(target)
    own = find_template(options.template, file)
    told = not takes_tools(own)
    spec = ServerSpec(
        model=file,
        template=with_tools(own) if told else own,
        threads=options.threads,
        context=options.context,
        slots=options.slots,
        lora=str(find_adapter(options.lora, file)) if options.lora else "",
        lora_scale=options.lora_scale,
    )
    name = file.path.stem if target.endswith(".gguf") else target
    return LlamaCpp(name, share(spec), options, told=told)


class LlamaCpp:
    """A GGUF model in one tool mode.

    Parameters
    ----------
    server : LlamaServer
        Given back by `aclose`.
    told : bool
        The model's own template has no place for tools, so the system turn tells them.
    """

    def __init__(
        self, name: str, server: LlamaServer, options: LlamaCppOptions, *, told: bool
    ) -> None:
        self._server = server
        self._options = options
        self._told = told
        self._client: httpx.AsyncClient | None = None
        self._closed = False
        spec = server.spec
        identity = f"{spec.model.path}\n{spec.threads} {spec.context} {spec.slots}\n{spec.template}"
        identity += f"\n{spec.lora} {spec.lora_scale}"
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        self._info = ModelInfo(
            provider="llamacpp",
            model=name,
            endpoint=f"llamacpp:{spec.model.path.name}:{digest}",
            max_in_flight=server.slots,
            tool_mode=options.tools,
            settings=_changed(options),
        )

    @property
    def info(self) -> ModelInfo:
        """What the core must know of this model."""
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises
        ------
        ModelError
            `context_length`, `config` (the file can't be loaded, or its template takes no
            tools), `server_error` (llama.cpp ended; the next try starts it again).
        """
        if self._closed:
            raise ModelError("server_error", "the model was closed")
        endpoint = self._server.running()
        if endpoint is None:
            endpoint = await asyncio.to_thread(self._server.start)
        native = self._options.tools == "native"
        if native and request.tools and not endpoint.tools:
            raise ModelError(
                "config",
                "llama.cpp finds no form of tool calls in the model's chat template; "
                "use tools=constrained, or give another template=FILE",
                scope="cell",
            )
        body, sent = self._body(request)
        try:
            response = await self._post_in_slot(endpoint, request, body)
        except httpx.HTTPError as error:
            gone = await asyncio.to_thread(self._server.end_of, endpoint)
            raise (gone or error_from_transport(error)) from error
        self._server.answered()
        reply = self._reply(response, request, sent)
        return reply if native else constrained_reply(reply, request, self._options.form)

    async def aclose(self) -> None:
        """Close the connections, and stop the server unless another model uses it."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._client is not None:
                await self._client.aclose()
        finally:
            await asyncio.to_thread(release, self._server)

    def _body(self, request: ModelRequest) -> tuple[dict[str, Any], dict[str, Any]]:
        """The request, and the settings in it that are to be reported."""
        options, asked = self._options, request.sampling
        temperature = asked.temperature if options.temperature is None else options.temperature
        max_tokens = asked.max_tokens if options.max_tokens is None else options.max_tokens
        fields = sampling_fields(request, temperature, max_tokens)
        native = options.tools == "native"
        body = native_body(request) if native else constrained_body(request, options.form)
        sent = {**fields, "tools": options.tools, "threads": self._server.threads}
        if not native:
            sent["form"] = options.form
        elif request.tools:
            sent["parallel_tool_calls"] = False
            sent["tools_told_in"] = "system turn" if self._told else "chat template"
        return {**body, **fields, "cache_prompt": True}, sent

    async def _post_in_slot(
        self, endpoint: Endpoint, request: ModelRequest, body: dict[str, Any]
    ) -> httpx.Response:
        async def post(path: str, data: dict[str, Any]) -> dict[str, Any] | None:
            answer = await self._post(endpoint, path, data)
            found = decode_body(answer.content) if answer.status_code == 200 else None
            return found if isinstance(found, dict) else None

        options, context, slots = self._options, request.context, endpoint.slots
        mode = (options.tools, options.form, bool(request.tools), request.force)
        talk = None
        if context is not None:
            talk = (mode, context.cell, context.episode, context.seat, context.exchange >= 0)
        slot = slots.take(talk)
        if slot is None:
            return await self._post(endpoint, _CHAT, body)
        try:
            if body["messages"][0]["role"] == "system":
                start = {key: body[key] for key in ("tools",) if key in body}
                start["messages"] = body["messages"][:1]
                prefix = (mode, encode_body(start))
                await slots.prime(slot, prefix, lambda: _common_start(start, post), post)
            return await self._post(endpoint, _CHAT, {**body, "id_slot": slot})
        finally:
            slots.give_back(slot)

    async def _post(self, endpoint: Endpoint, path: str, body: Any) -> httpx.Response:
        return await self._connected().post(
            endpoint.address + path,
            content=encode_body(body),
            headers={
                "Authorization": f"Bearer {endpoint.key}",
                "Content-Type": "application/json",
            },
        )

    def _reply(
        self, response: httpx.Response, request: ModelRequest, sent: Mapping[str, Any]
    ) -> ModelReply:
        cap, turn = int(sent["max_tokens"]), turn_of(request)
        if response.status_code != 200:
            return self._refused(response, cap, turn, sent)
        body = decode_body(response.content)
        reply = reply_from_chat(body, max_tokens=cap, sent=sent, turn=turn)
        used = reply.usage.output_tokens
        if reply.stop == "length" and used is not None and used < cap:
            raise ModelError(
                "context_length",
                f"the conversation and its reply outgrew the context of {self._server.context} "
                "tokens; give more: context=N",
                scope="episode",
            )
        return reply

    def _refused(
        self, response: httpx.Response, cap: int, turn: int, sent: Mapping[str, Any]
    ) -> ModelReply:
        if response.status_code == 500 and _NOT_THE_FORM in response.text:
            # The model's doing, not the server's: a call was begun and is none.
            return ModelReply(
                stop="malformed",
                stop_native=_message(response),
                max_tokens=cap,
                model=self._server.spec.model.path.name,
                sent=dict(sent),
            )
        made = error_from_response(
            response.status_code, response.headers, response.content, turn=turn
        )
        if isinstance(made, ModelReply):
            # A local engine has no safety layer that could answer with an error.
            raise ModelError("server_error", _message(response), status=response.status_code)
        raise made

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            # No time-out but the core's, and no proxy: the server is on this machine.
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(None, connect=_CONNECT_S),
                limits=httpx.Limits(max_connections=None),
                trust_env=False,
            )
        return self._client


async def _common_start(start: Mapping[str, Any], post: Post) -> str:
    """What every prompt with this system turn and these tools begins with, as text."""
    prompts = []
    for word in ("A", "B"):
        messages = [*start["messages"], {"role": "user", "content": word}]
        answer = await post("/apply-template", {**start, "messages": messages})
        prompts.append(str((answer or {}).get("prompt", "")))
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(*prompts, strict=False))
    return "".join(pair[0] for pair in pairs)


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:300]


def _changed(options: LlamaCppOptions) -> dict[str, Any]:
    """What the model's name fixes, in as far as it can change a reply."""
    defaults = LlamaCppOptions()
    given = {name: getattr(options, name) for name in _REPORTED}
    return {name: value for name, value in given.items() if value != getattr(defaults, name)}
