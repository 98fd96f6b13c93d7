"""A local HTTP server that answers as it is told: the far end of every provider test.

It runs on loopback in a thread with its own event loop, counts calls in flight, and can delay,
cut, reset or never finish an answer, so that real SDKs meet real sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

__all__ = ["StubRequest", "StubResponse", "StubServer"]

_WAIT_S = 0.02
_LONGEST_WAITS = 1500
_READ_LIMIT = 1 << 20
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class StubRequest(msgspec.Struct, frozen=True):
    """One request as it came in. Header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class StubResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One answer.

    Attributes
    ----------
    body : bytes or mapping or list
        Bytes go out as they are; anything else as JSON.
    delay_s : float
        Before the first byte.
    together : int
        Answer once so many calls have been in flight at once, or after half a minute.
    fault : str
        `reset`: close the connection without an answer. `cut`: send half of the body and close.
        `hang`: never answer.
    """

    status: int = 200
    headers: dict[str, str] = {}
    body: Any = b""
    delay_s: float = 0.0
    together: int = 0
    fault: Literal["", "reset", "cut", "hang"] = ""


class StubServer:
    """A server on 127.0.0.1 with a free port. Use it as a context manager.

    Parameters
    ----------
    answer : callable
        `answer(request) -> StubResponse`; runs in the server's thread.
    port : int
        0 for any free one.

    Attributes
    ----------
    url : str
        `http://127.0.0.1:<port>`.
    requests : list of StubRequest
        In the order they came in, the latest `keep` of them.
    calls, in_flight, most_in_flight : int
    """

    def __init__(
        self, answer: Callable[[StubRequest], StubResponse], *, port: int = 0, keep: int = 10_000
    ) -> None:
        self._answer = answer
        self._port = port
        self._keep = keep
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="stub-server", daemon=True)
        self._error: BaseException | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.requests: list[StubRequest] = []
        self.calls = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._stop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._error = error
            self._ready.set()
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, limit=_READ_LIMIT, backlog=1024
        )
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _read_request(reader)
        if request is None:
            return False
        self.calls += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if len(self.requests) < self._keep:
            self.requests.append(request)
        try:
            return await self._respond(self._answer(request), writer)
        finally:
            self.in_flight -= 1

    async def _respond(self, response: StubResponse, writer: asyncio.StreamWriter) -> bool:
        if response.delay_s:
            await asyncio.sleep(response.delay_s)
        waited = 0
        while self.most_in_flight < response.together and waited < _LONGEST_WAITS:
            waited += 1
            await asyncio.sleep(_WAIT_S)
        if response.fault == "hang":
            assert self._stop is not None
            await self._stop.wait()
            return False
        if response.fault == "reset":
            writer.transport.abort()
            return False
        body = response.body
        if not isinstance(body, bytes):
            body = json.dumps(body).encode("utf-8", "surrogatepass")
        writer.write(_head(response.status, response.headers, len(body)))
        if response.fault == "cut":
            writer.write(body[: len(body) // 2])
            await writer.drain()
            return False
        writer.write(body)
        await writer.drain()
        return True


async def _read_request(reader: asyncio.StreamReader) -> StubRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, separator, value = line.partition(":")
        if separator:
            headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return StubRequest(method, path, headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        part = await reader.readexactly(size + 2)
        if not size:
            return b"".join(parts)
        parts.append(part[:-2])


def _head(status: int, headers: Mapping[str, str], length: int) -> bytes:
    named = {name.lower() for name in headers}
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if "content-type" not in named:
        lines.append("content-type: application/json")
    if "content-length" not in named:
        lines.append(f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
