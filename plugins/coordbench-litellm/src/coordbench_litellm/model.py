"""Models behind litellm as a `ModelProvider`."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from coordbench.api import (
    AssistantMessage,
    ModelError,
    ModelInfo,
    ModelReply,
    ModelRequest,
    Tool,
    UsageError,
)
from coordbench.api.chatwire import messages_to_chat, tools_to_chat, turn_of
from coordbench.api.chatwire_history import nine_characters
from coordbench.api.endpoints import is_loopback
from coordbench.api.remoteoptions import with_omit_hint
from coordbench.api.settingsaudit import settings_sent
from coordbench_litellm.client import Call, Clients, recording
from coordbench_litellm.plugin import BEST_EFFORT, OMITTABLE, LitellmOptions
from coordbench_litellm.replies import failure_of, reply_of, with_kept

__all__ = ["LitellmModel", "import_litellm"]

_TIMEOUT_S = 3600.0
_UNDERSTOOD = "Understood."
_OLLAMA_URL = "http://localhost:11434"
_PRICES_UNDER = {"gemini": "google"}
_REASONING_FIELDS = {"openrouter": "reasoning_details"}
# Read when it is imported: without these it fetches files, and reads an .env that it finds.
_QUIET_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_POLICY_TEMPLATES": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_MODE": "PRODUCTION",
}


def import_litellm() -> Any:
    """litellm, imported so that it neither fetches nor logs nor sends anything of its own."""
    for name, value in _QUIET_IMPORT.items():
        os.environ.setdefault(name, value)
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # Its warnings would break the progress line, and its debug output shows requests.
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Of its own types, and of arguments that are no text: what to make of those is our own rule's.
    warnings.filterwarnings("ignore", category=UserWarning, module="pydantic")
    return litellm


class LitellmModel:
    """A model that litellm reaches.

    Parameters
    ----------
    target : str
        As litellm names it: `<provider>/<model>`.
    options : LitellmOptions
    api_key : str or None
        Empty where the server needs none; None: litellm finds the credentials by itself.
    http_client : AsyncClient or None
        Used in place of one of its own; whoever made it closes it. See `client.Clients`.

    Raises
    ------
    UsageError
        litellm knows no such provider, or misses its key.
    """

    def __init__(
        self,
        target: str,
        options: LitellmOptions,
        *,
        api_key: str | None,
        http_client: Any = None,
    ) -> None:
        self._litellm = import_litellm()
        model, provider, found = self._resolve(target, options, api_key)
        url = options.base_url or found or (_OLLAMA_URL if provider.startswith("ollama") else "")
        extra = {"reasoning_effort": options.reasoning_effort, "api_version": options.api_version}
        self._info = ModelInfo(
            provider=_PRICES_UNDER.get(provider, provider),
            model=model,
            endpoint=url or f"litellm:{provider}",
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
        self._options = options
        self._nine = provider in ("mistral", "codestral")
        self._reasoning_field = (
            options.reasoning_field or _REASONING_FIELDS.get(provider, "") or None
        )
        supported = self._litellm.get_supported_openai_params(
            model=model, custom_llm_provider=provider
        )
        self._left_out = options.omitted() | (BEST_EFFORT - frozenset(supported or BEST_EFFORT))
        key = "none" if api_key == "" else api_key
        self._fixed: dict[str, Any] = {
            "model": target,
            "api_base": options.base_url or None,
            "api_key": key,
            "timeout": _TIMEOUT_S,
            # The core retries, and nobody changes settings behind the user's back.
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": False,
        }
        if options.api_version:
            self._fixed["api_version"] = options.api_version
        self._clients = Clients(provider, options.concurrency, url or None, key, http_client)
        if self._clients.client is not None:
            self._fixed["client"] = self._clients.client
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
        call = Call()
        token = recording.set(call)
        try:
            response = await self._litellm.acompletion(
                messages=_encodable(self._messages(request)),
                **settings,
                **self._tools_of(request),
                **self._fixed,
            )
        except Exception as error:
            known = self._known(call, settings, request)
            try:
                return failure_of(error, call, known)
            except ModelError as failure:
                raise with_omit_hint(failure, OMITTABLE) from None
        finally:
            recording.reset(token)
        return reply_of(call, response, self._known(call, settings, request))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    def _resolve(
        self, target: str, options: LitellmOptions, key: str | None
    ) -> tuple[str, str, str]:
        """(model, provider, address or empty) as litellm reads the name."""
        try:
            model, provider, found_key, url = self._litellm.get_llm_provider(
                model=target, api_base=options.base_url or None, api_key=key
            )
        except Exception as error:
            message = str(error).split("\n")[0].removeprefix("litellm.BadRequestError: ")
            raise UsageError(
                f"litellm/{target}: {message}",
                hint="write litellm/<provider>/<model>; litellm's documentation lists them",
            ) from None
        if key is None and not found_key:
            with _empty_keys_unset():
                missing = self._litellm.validate_environment(target).get("missing_keys") or []
            # Other credentials, of clouds, may also be in files.
            if missing and all(name.endswith("_API_KEY") for name in missing):
                raise UsageError(
                    f"litellm/{target} needs a key, and {missing[0]} is not set",
                    hint=f"set it: export {missing[0]}=...",
                )
        return str(model), str(provider), str(url or "")

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        if self._nine:
            return messages_to_chat(
                request.messages,
                keep_id=nine_characters,
                empty_content="",
                # A user turn may not follow a tool turn.
                after_tool=_UNDERSTOOD,
            )
        chat = messages_to_chat(request.messages, reasoning_field=self._reasoning_field)
        turns = [turn for turn in chat if turn["role"] == "assistant"]
        said = [message for message in request.messages if isinstance(message, AssistantMessage)]
        for turn, message in zip(turns, said, strict=True):
            with_kept(turn, message.reply.native)
        return chat

    def _settings(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._options.sampling(request)
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
        return {name: value for name, value in settings.items() if name not in self._left_out}

    def _tools_of(self, request: ModelRequest) -> dict[str, Any]:
        if not request.tools:
            return {}
        if self._tools[0] is not request.tools:
            self._tools = (request.tools, tools_to_chat(request.tools))
        return {"tools": self._tools[1]}

    def _known(self, call: Call, settings: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        """What a reply is told of its request; settings as they went out, where that is known."""
        sent = settings
        if call.body:
            try:
                sent = settings_sent(settings, msgspec.json.decode(call.body))
            except (msgspec.DecodeError, TypeError, AttributeError):
                sent = settings
        return {"max_tokens": settings.get("max_tokens"), "sent": sent, "turn": turn_of(request)}


def _encodable(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, where litellm's encoders would fail: without halves of surrogate pairs."""
    try:
        msgspec.json.encode(messages)
    except UnicodeEncodeError:
        text = json.dumps(messages, ensure_ascii=False).encode("utf-8", "replace")
        decoded: list[dict[str, Any]] = json.loads(text)
        return decoded
    return messages


@contextmanager
def _empty_keys_unset() -> Iterator[None]:
    """Litellm takes a variable that is set to nothing for a key."""
    empty = [name for name, value in os.environ.items() if name.endswith("_API_KEY") and not value]
    for name in empty:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(dict.fromkeys(empty, ""))
