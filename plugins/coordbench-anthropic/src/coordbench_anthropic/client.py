"""The SDK's client, called the cheapest way that it offers in public.

`messages.create` transforms the request and builds typed objects; `client.post` with bytes and
the response itself as the result runs all the rest of the SDK (headers, keys, errors) and neither
of these, and hands over the body as it came. aiohttp's pool, which the SDK offers as a transport,
does not slow down as calls in flight grow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import httpx2
import msgspec
from anthropic import (
    APIConnectionError,
    APIStatusError,
    AsyncAnthropic,
    DefaultAioHttpClient,
    Omit,
)

from coordbench.api import ModelError, ModelReply
from coordbench.api.httperrors import error_from_response
from coordbench.api.requestbody import encode_body
from coordbench.api.transporterrors import error_from_transport

__all__ = ["Answer", "Sender", "make_client", "make_http_client"]

_PATH = "/v1/messages"
_KEEP_S = 30.0
_SPARE = 8
_REQUEST_ID = "request-id"


class Answer(msgspec.Struct, frozen=True):
    """What came back.

    Attributes
    ----------
    data : bytes
        The body; empty where it came as a stream.
    lines : list of str or None
        Lines of a stream: all that came before its end, or before the connection broke.
    refused : ModelReply or None
        Set where a safety layer answered with an error status.
    """

    data: bytes = b""
    lines: list[str] | None = None
    request_id: str | None = None
    refused: ModelReply | None = None


def make_http_client(concurrency: int) -> httpx2.AsyncClient:
    """An HTTP client for so many calls in flight, on aiohttp where that is installed.

    It has no time-outs: the core limits how long a call may take.
    """
    connections = concurrency + _SPARE
    limits = httpx2.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=_KEEP_S,
    )
    # A redirect is a wrong base_url: following it would send the key to another server.
    try:
        return DefaultAioHttpClient(limits=limits, timeout=None, follow_redirects=False)
    except RuntimeError:  # the SDK's way to say that aiohttp is not there
        return httpx2.AsyncClient(limits=limits, timeout=None)


def make_client(
    url: str, api_key: str, http_client: httpx2.AsyncClient, api_version: str
) -> AsyncAnthropic:
    """The SDK's client. An empty key sends none, and none of the environment's either."""
    headers: dict[str, Any] = {} if api_key else {"Authorization": Omit()}
    if api_version:
        headers["anthropic-version"] = api_version
    return AsyncAnthropic(
        api_key=api_key,
        base_url=url,
        max_retries=0,
        timeout=None,
        http_client=http_client,
        default_headers=headers,
        open_telemetry=False,
    )


class Sender:
    """Sends bodies and gives back bytes; raises `ModelError` for all that goes wrong.

    Parameters
    ----------
    client : AsyncAnthropic
    """

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client

    async def send(self, body: Mapping[str, Any], *, stream: bool, turn: int) -> Answer:
        """Send one body and read the whole answer.

        Parameters
        ----------
        stream : bool
            Read it line by line as it comes.
        turn : int
            See `error_from_response`.

        Raises
        ------
        ModelError
        """
        content = encode_body(body)
        try:
            if stream:
                return await self._stream(content)
            response = await self._client.post(_PATH, content=content, cast_to=httpx2.Response)
            return Answer(data=response.content, request_id=response.headers.get(_REQUEST_ID))
        except Exception as error:
            # Transports let some exceptions of theirs through: all mean that no whole answer came.
            return Answer(refused=_refusal_or_raise(error, turn))

    async def _stream(self, content: bytes) -> Answer:
        response = await self._client.post(
            _PATH, content=content, cast_to=httpx2.Response, stream=True, stream_cls=None
        )
        assert isinstance(response, httpx2.Response)
        request_id = response.headers.get(_REQUEST_ID)
        lines: list[str] = []
        try:
            # Whether a stream that broke was whole is for its last event to say.
            with contextlib.suppress(Exception):
                async for line in response.aiter_lines():
                    lines.append(line)  # noqa: PERF401
        finally:
            await response.aclose()
        labelled = "event-stream" in response.headers.get("content-type", "")
        if labelled or any(line.startswith("data:") for line in lines):
            return Answer(lines=lines, request_id=request_id)
        return Answer(data="\n".join(lines).encode(), request_id=request_id)


def _refusal_or_raise(error: Exception, turn: int) -> ModelReply:
    if isinstance(error, APIStatusError):
        response = error.response
        made = error_from_response(
            response.status_code, response.headers, response.content, turn=turn
        )
        if isinstance(made, ModelError):
            raise made from None
        return msgspec.structs.replace(made, request_id=response.headers.get(_REQUEST_ID))
    cause = error.__cause__ if isinstance(error, APIConnectionError) else None
    raise error_from_transport(cause or error) from None
