"""The SDK's client, called the cheapest way that it has.

`chat.complete_async` validates every message and reply with pydantic: 12 ms of CPU a call where
all the rest takes 0.6. `chat.do_request_async`, which it calls itself, runs the SDK's hooks and
sends a request as it is; where an SDK has it in another form, `complete_async` is used and the
response is taken before pydantic changes it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
from mistralai.client import Mistral, httpclient

from coordbench.api import ModelError, ModelReply
from coordbench.api.answers import Answer, answer_of_stream
from coordbench.api.httperrors import error_from_response
from coordbench.api.requestbody import encode_body
from coordbench.api.transporterrors import error_from_transport

__all__ = ["Sender", "make_http_client"]

# The core limits how long a call may take; the SDK must not do it before.
_TIMEOUT_S = 3600.0
_KEEP_S = 30.0
_SPARE = 8
_PATH = "/v1/chat/completions"
_OPERATION = "chat_completion_v1_chat_completions_post"
_NEEDS = {"hook_ctx", "request", "is_error_status_code", "stream"}


def make_http_client(concurrency: int) -> Any:
    """An HTTP client for so many calls in flight, of the library that the SDK uses (httpx2, or
    httpx before version 3), on aiohttp where that is installed.
    """
    library: Any = httpclient.httpx  # type: ignore[attr-defined]
    connections = concurrency + _SPARE
    limits = library.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=_KEEP_S,
    )
    make: Any = library.AsyncClient
    with contextlib.suppress(ImportError):
        import httpx_aiohttp
        import httpx_aiohttp.httpx2

        new = library.__name__ == "httpx2"
        make = httpx_aiohttp.httpx2.Httpx2AiohttpClient if new else httpx_aiohttp.HttpxAiohttpClient
    # A redirect is a wrong base_url: following it would send the key to another server.
    return make(limits=limits, timeout=_TIMEOUT_S, follow_redirects=False)


class Sender:
    """Sends bodies and gives back bytes; raises `ModelError` for all that goes wrong.

    Parameters
    ----------
    http : httpx2.AsyncClient
    url : str
        Without `/v1`.
    key : str
        Empty where the server needs none.
    """

    def __init__(self, http: Any, url: str, key: str) -> None:
        self._http = http
        self._url = url + _PATH
        self._sdk = Mistral(
            api_key=key or "none",
            server_url=url,
            async_client=http,
            retry_config=None,
            timeout_ms=int(_TIMEOUT_S * 1000),
            debug_logger=_Silent(),
        )
        self._headers = {
            "accept": "application/json",
            "authorization": f"Bearer {key or 'none'}",
            "content-type": "application/json",
            "user-agent": self._sdk.sdk_configuration.user_agent,
        }
        self._context = _hook_context(self._sdk)
        self._responses: ContextVar[Any] = ContextVar("responses")
        if self._context is None:
            hooks = dict(http.event_hooks)
            http.event_hooks = {**hooks, "response": [*hooks.get("response", ()), self._keep]}

    async def send(self, body: Mapping[str, Any], *, stream: bool, turn: int) -> Answer:
        """Send one body and read the whole answer.

        Raises
        ------
        ModelError
        """
        try:
            if self._context is None:
                response = await self._send_typed(body, stream)
            else:
                request = self._http.build_request(
                    "POST", self._url, content=encode_body(body), headers=self._headers
                )
                response = await self._sdk.chat.do_request_async(
                    hook_ctx=self._context,
                    request=request,
                    is_error_status_code=_is_error,
                    stream=stream,
                    retry_config=None,
                )
            return await _read(response, stream, turn)
        except ModelError:
            raise
        except Exception as error:
            raise error_from_transport(error) from None

    async def _send_typed(self, body: Mapping[str, Any], stream: bool) -> Any:
        plain = msgspec.json.decode(encode_body(body))
        plain.pop("stream", None)
        token = self._responses.set(None)
        try:
            if stream:
                return (await self._sdk.chat.stream_async(**plain)).response
            await self._sdk.chat.complete_async(**plain)
            return self._responses.get()
        except Exception:
            # What pydantic or the SDK refuses is still an answer, to be read by our own rules.
            response = self._responses.get()
            if response is None:
                raise
            return response
        finally:
            self._responses.reset(token)

    async def _keep(self, response: Any) -> None:
        # Set in the task that waits for it: hooks run there.
        self._responses.set(response)


class _Silent:
    """The SDK's logger would write headers and bodies where MISTRAL_DEBUG is set."""

    def debug(self, msg: str, *args: Any, **kwargs: Any) -> None: ...


def _hook_context(sdk: Mistral) -> Any:
    """What `do_request_async` wants to know of a call; None where it takes other arguments."""
    try:
        from mistralai.client._hooks import HookContext

        if not set(inspect.signature(sdk.chat.do_request_async).parameters) >= _NEEDS:
            return None
        return HookContext(
            config=sdk.sdk_configuration,
            base_url=sdk.sdk_configuration.get_server_details()[0],
            operation_id=_OPERATION,
            oauth2_scopes=None,
            security_source=None,
            tags=["chat"],
            extensions=None,
        )
    except (ImportError, AttributeError, TypeError):
        return None


async def _read(response: Any, stream: bool, turn: int) -> Answer:
    request_id = response.headers.get("mistral-correlation-id") or response.headers.get(
        "x-request-id"
    )
    try:
        if response.status_code != 200:
            data = await response.aread()
            made = error_from_response(response.status_code, response.headers, data, turn=turn)
            if isinstance(made, ModelReply):
                return Answer(refused=msgspec.structs.replace(made, request_id=request_id))
            raise made
        if stream:
            return await answer_of_stream(response, request_id)
        return Answer(data=await response.aread(), request_id=request_id)
    finally:
        if stream:
            await response.aclose()


def _is_error(status: int) -> bool:
    return status >= 400
