"""The SDK's client, called the cheapest way that it offers in public.

`chat.completions.create` spends most of its CPU on transforming the request and building typed
objects. `client.post` with the response itself as the result runs all the rest of the SDK
(headers, keys, error classes) and neither of these; aiohttp's pool, which the SDK offers as a
transport, does not slow down as calls in flight grow.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import msgspec
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient

from coordbench.api import ModelError, ModelReply
from coordbench.api.answers import Answer, answer_of_stream
from coordbench.api.httperrors import error_from_response
from coordbench.api.requestbody import encode_body
from coordbench.api.transporterrors import error_from_transport

__all__ = ["Sender", "make_http_client"]

# The core limits how long a call may take; the SDK must not do it before.
_TIMEOUT = httpx2.Timeout(3600.0)
_KEEP_S = 30.0
_SPARE = 8
_JSON = {"Content-Type": "application/json"}


def make_http_client(concurrency: int) -> httpx2.AsyncClient:
    """An HTTP client for so many calls in flight, on aiohttp where that is installed."""
    connections = concurrency + _SPARE
    limits = httpx2.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=_KEEP_S,
    )
    # A redirect is a wrong base_url: following it would send the key to another server.
    try:
        return DefaultAioHttpClient(limits=limits, timeout=_TIMEOUT, follow_redirects=False)
    except RuntimeError:  # the SDK's way to say that aiohttp is not there
        return httpx2.AsyncClient(limits=limits, timeout=_TIMEOUT)


class Sender:
    """Sends bodies and gives back bytes; raises `ModelError` for all that goes wrong.

    Parameters
    ----------
    client : AsyncOpenAI
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client
        self._posts = {"content", "cast_to", "options", "stream"} <= set(
            inspect.signature(client.post).parameters
        )

    async def send(
        self, path: str, body: Mapping[str, Any], *, stream: bool = False, turn: int = 1
    ) -> Answer:
        """Send one body and read the whole answer.

        Parameters
        ----------
        path : str
            `/chat/completions` or `/responses`.
        stream : bool
            Read it line by line as it comes.
        turn : int
            See `error_from_response`.

        Raises
        ------
        ModelError
        """
        try:
            if not stream:
                return await self._send(path, body)
            async with self._opened(path, body) as response:
                return await answer_of_stream(response, response.headers.get("x-request-id"))
        except Exception as error:
            # Adapters let some exceptions of theirs through: all mean that no whole answer came.
            return Answer(refused=_refusal_or_raise(error, turn))

    async def _send(self, path: str, body: Mapping[str, Any]) -> Answer:
        if not self._posts:
            raw = await self._create(path, body)
            return Answer(data=raw.content, request_id=raw.headers.get("x-request-id"))
        response = await self._client.post(
            path, content=encode_body(body), cast_to=httpx2.Response, options={"headers": _JSON}
        )
        return Answer(data=response.content, request_id=response.headers.get("x-request-id"))

    @contextlib.asynccontextmanager
    async def _opened(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[httpx2.Response]:
        if self._posts:
            response = await self._client.post(
                path,
                content=encode_body(body),
                cast_to=httpx2.Response,
                options={"headers": _JSON},
                stream=True,
                stream_cls=None,
            )
        else:
            response = (await self._create(path, body)).http_response
        assert isinstance(response, httpx2.Response)
        try:
            yield response
        finally:
            await response.aclose()

    async def _create(self, path: str, body: Mapping[str, Any]) -> Any:
        """The typed way, for an SDK whose `post` takes other arguments."""
        plain = msgspec.json.decode(encode_body(body))
        resource: Any = self._client
        for part in path.strip("/").split("/"):
            resource = getattr(resource, part)
        return await resource.with_raw_response.create(**plain)


def _refusal_or_raise(error: Exception, turn: int) -> ModelReply:
    if isinstance(error, APIStatusError):
        response = error.response
        made = error_from_response(
            response.status_code, response.headers, response.content, turn=turn
        )
        if isinstance(made, ModelError):
            raise made from None
        request_id = response.headers.get("x-request-id")
        return msgspec.structs.replace(made, request_id=request_id)
    cause = error.__cause__ if isinstance(error, APIConnectionError) else None
    raise error_from_transport(cause or error) from None
