"""Run a script with every socket but loopback's refused, and say which were tried.

    python loopback_only.py SCRIPT [ARGUMENT...]

Exit status 3: something reached for the network, whatever became of it.
"""

from __future__ import annotations

import runpy
import sys
from ipaddress import ip_address
from typing import Any

tried: list[str] = []


def is_local(host: Any) -> bool:
    """Whether a host is this machine."""
    if host in (None, "", "localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return text == "localhost"


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: no code in Python can get around it."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    if not is_local(host):
        tried.append(f"{event} {host}")
        raise OSError(f"not allowed here: {event} {host}")


if __name__ == "__main__":
    sys.addaudithook(refuse)
    script, sys.argv = sys.argv[1], sys.argv[1:]
    status: Any = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stopped:
        status = stopped.code
    for line in tried:
        print(line, file=sys.stderr)
    sys.exit(3 if tried else status)
