"""The SDK's client, called so that the body goes out and comes back as it is.

`generate_content` spends most of its CPU on turning the request into typed objects and back, and
its typed reply hides what it does not know. The client's own request method does neither and runs
all the rest of the SDK; where an SDK has it no more, the public method sends the same body and
hands back the raw one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.request import getproxies

import aiohttp
import httpx2
import msgspec
from google import genai
from google.genai import errors, types

from coordbench.api import ModelError, ModelReply
from coordbench.api.httperrors import error_from_response
from coordbench.api.requestbody import encode_body
from coordbench.api.transporterrors import error_from_transport

__all__ = ["Answer", "HttpClient", "Sender"]

HttpClient = aiohttp.ClientSession | httpx2.AsyncClient

_RAW = "async_request"
"""The client's own request method; feature-tested."""
_KEEP_S = 30.0
_ENCODER = msgspec.json.Encoder()
_NO_RETRY = types.HttpRetryOptions(attempts=1)
# A redirect is a wrong base_url: following it would send the key to another server. The SDK hands
# each HTTP library the word that it knows.
_NO_REDIRECT = {"allow_redirects": False, "follow_redirects": False}


class Answer(msgspec.Struct, frozen=True):
    """What came back: the body's text, or the answer of a safety layer with an error status."""

    text: str = ""
    refused: ModelReply | None = None


class Sender:
    """Sends bodies and gives back text; raises `ModelError` for all that goes wrong.

    Parameters
    ----------
    url, api_version, api_key : str
        An empty version means the SDK's.
    http_client : HttpClient or None
        Used in place of one of its own; whoever made it closes it.
    """

    def __init__(
        self, url: str, api_version: str, api_key: str, http_client: HttpClient | None
    ) -> None:
        self._url = url
        self._api_version = api_version
        self._key = api_key
        self._http = http_client
        self._own: aiohttp.ClientSession | None = None
        self._client: genai.Client | None = None

    async def send(self, model: str, body: dict[str, Any], *, stream: bool, turn: int) -> Answer:
        """Send one body and read the whole answer.

        Parameters
        ----------
        model : str
            With its collection: `models/gemini-3.8-flash`.
        stream : bool
            Ask for the answer as an event stream.
        turn : int
            See `error_from_response`.

        Raises
        ------
        ModelError
        """
        clean = _clean(body)
        try:
            client = self._client or self._open()
            request: Any = getattr(getattr(client, "_api_client", None), _RAW, None)
            if request is None:
                return Answer(await _send_in_public(client, model, clean))
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            response = await request("post", f"{model}:{verb}", clean, None)
            return Answer(response.body or "")
        except errors.APIError as error:
            made = _from_status(error, turn)
        except ValueError as error:
            raise ModelError(
                "invalid_body", f"the answer is no text: {error}", retry=True
            ) from None
        except Exception as error:
            # Transports let some exceptions of theirs through: all mean that no whole answer came.
            raise error_from_transport(error) from None
        if isinstance(made, ModelError):
            raise made
        return Answer(refused=made)

    async def aclose(self) -> None:
        """Close the connections, but not those of an injected client."""
        try:
            if self._client is not None:
                await self._client.aio.aclose()
                self._client.close()
        finally:
            if self._own is not None:
                await self._own.close()

    def _open(self) -> genai.Client:
        """Make the client. aiohttp's session belongs to the running loop, so this waits for it."""
        options = types.HttpOptions(
            base_url=self._url,
            api_version=self._api_version or None,
            retry_options=_NO_RETRY,
            async_client_args=_NO_REDIRECT,
        )
        http = self._http
        if http is None:
            http = self._own = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                response_class=_Response,
                timeout=aiohttp.ClientTimeout(total=None),
                # Where it is set, aiohttp looks for proxies in a thread, at every call.
                trust_env=bool(getproxies()),
            )
        if isinstance(http, aiohttp.ClientSession):
            options.aiohttp_client = http
        else:
            options.httpx_async_client = http
        self._client = genai.Client(api_key=self._key, vertexai=False, http_options=options)
        return self._client


class _Response(aiohttp.ClientResponse):
    """Keeps the status of an error whose body only says that it is JSON: the SDK would lose it."""

    async def json(self, **options: Any) -> Any:
        try:
            return await super().json(**options)
        except ValueError:
            return {"message": await self.text(errors="replace"), "status": self.reason}


def _clean(body: dict[str, Any]) -> dict[str, Any]:
    """The body without lone surrogates, which the SDK would send as they are."""
    try:
        _ENCODER.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.decode(encode_body(body), type=dict[str, Any])
    return body


async def _send_in_public(client: genai.Client, model: str, body: dict[str, Any]) -> str:
    response = await client.aio.models.generate_content(
        model=model,
        contents=".",
        config=types.GenerateContentConfig(
            should_return_http_response=True,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
            http_options=types.HttpOptions(extra_body=body),
        ),
    )
    raw = response.sdk_http_response
    return (raw.body if raw is not None else None) or ""


def _from_status(error: errors.APIError, turn: int) -> ModelError | ModelReply:
    response: Any = error.response
    headers = {str(name): str(value) for name, value in getattr(response, "headers", {}).items()}
    details: Any = error.details or ""
    if isinstance(details, Mapping) and set(details) == {"message", "status"}:
        # The SDK's own words for a body that is no JSON; its status is only HTTP's reason.
        reasons = (getattr(response, "reason", None), getattr(response, "reason_phrase", None))
        if details["status"] in reasons:
            details = str(details["message"])
    return error_from_response(int(error.code or 0), headers, details, turn=turn)
