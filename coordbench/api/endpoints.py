"""Where a provider's calls go, and the key they need: checked before anything is built."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from coordbench.data.errors import UsageError

__all__ = ["check_url", "is_loopback", "key_for", "key_from"]

_NO_KEY = "none"


def check_url(url: str) -> None:
    """Check that `url` is the whole address of an HTTP server.

    Raises
    ------
    UsageError
    """
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f'base_url "{url}" is no address of a server',
            hint="write it whole, such as base_url=http://127.0.0.1:8000/v1",
        )


def is_loopback(url: str) -> bool:
    """Whether `url` is on this machine: `localhost` or a loopback address."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def key_from(*variables: str, model: str, hint: str = "") -> str:
    """The key in the first of these environment variables that holds one.

    Parameters
    ----------
    model : str
        The name that was asked for, such as `openai/gpt-5.4`.
    hint : str
        What else can be done, after how to set the variable.

    Raises
    ------
    UsageError
        None is set; the message names the first.
    """
    for variable in variables:
        key = os.environ.get(variable, "").strip()
        if key:
            # A key that cannot be sent would fail at every call, and be shown by some clients.
            if not key.isascii() or not key.isprintable():
                raise UsageError(
                    f"{model}: {variable} holds characters that no key has",
                    hint=f"set it anew: export {variable}=...",
                )
            return key
    first = variables[0]
    said = f"set it: export {first}=..."
    raise UsageError(
        f"{model} needs a key, and {first} is not set", hint=f"{said}; {hint}" if hint else said
    )


def key_for(url: str, *, named: str, variable: str, model: str) -> str:
    """The key for a server; empty where it needs none.

    Parameters
    ----------
    named : str
        The variable that the user named for it; `none`: it needs no key.
    variable : str
        The variable of whoever runs the server; empty where that is not known. A server on this
        machine needs no key unless one is named.
    model : str
        The name that was asked for.

    Raises
    ------
    UsageError
        The key is missing, or the server is unknown: a provider's key is sent to nobody else.
    """
    if named == _NO_KEY or (is_loopback(url) and not named):
        return ""
    if not (named or variable):
        raise UsageError(
            f"{model} needs to know which variable holds the key of {url}",
            hint="add api_key_env=NAME_OF_THE_VARIABLE, or api_key_env=none where it needs no key",
        )
    return key_from(named or variable, model=model)
