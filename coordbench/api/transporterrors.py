"""Calls that got no whole answer, as failures of one kind; whatever HTTP client made them."""

from __future__ import annotations

import re

from coordbench.api.models import ModelError

__all__ = ["error_from_transport"]

_NEVER_WORDS = re.compile(
    r"certificate|ssl.*verif|UnsupportedProtocol|InvalidURL|MissingSchema", re.IGNORECASE
)
_TIMEOUT_WORDS = re.compile(r"time(?:d\s*)?-?\s?out", re.IGNORECASE)
_NO_ANSWER_WORDS = re.compile(
    r"reset by|refused|disconnected|without sending a(?:ny)? response", re.IGNORECASE
)
_CUT_WORDS = re.compile(
    r"RemoteProtocol|IncompleteRead|ChunkedEncoding|PayloadError|peer closed|incomplete chunked|"
    r"without (?:sending )?(?:a )?complete|unexpected eof|body (?:is )?incomplete|ReadError",
    re.IGNORECASE,
)
_OBJECT = re.compile(r" ?\w*:?<[\w.]+ object at 0x[0-9a-f]+>")
"""An object's repr, with its address in memory, within a message."""


def error_from_transport(error: BaseException | str) -> ModelError:
    """The failure of a call that got no whole answer: `timeout`, `network` or `stream_incomplete`.

    A certificate or an address that can never work is `config`, and is not tried again.

    Parameters
    ----------
    error : exception or str
        The HTTP client's exception (told by its classes and message and those of its causes), or
        words.
    """
    if isinstance(error, str):
        words = message = error
    else:
        links = _chain(error)
        words = " | ".join(_words(links))
        message = f"{type(links[0]).__name__}: {_OBJECT.sub('', str(links[0]))}"
    if _NEVER_WORDS.search(words):
        return ModelError("config", message, scope="run")
    if _TIMEOUT_WORDS.search(words):
        return ModelError("timeout", message, retry=True)
    if _CUT_WORDS.search(words) and not _NO_ANSWER_WORDS.search(words):
        return ModelError("stream_incomplete", message, retry=True)
    return ModelError("network", message, retry=True)


def _chain(error: BaseException | None) -> list[BaseException]:
    """An exception, and what caused it."""
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    # Adapters call any lost connection of aiohttp a `ConnectTimeout`: its own word counts.
    own = [at for at, link in enumerate(links) if type(link).__module__.startswith("aiohttp")]
    return links[own[0] :] if own else links


def _words(links: list[BaseException]) -> list[str]:
    """Class names and messages."""
    words: list[str] = []
    for link in links:
        words += [*(kind.__name__ for kind in type(link).__mro__), str(link)]
    return words
