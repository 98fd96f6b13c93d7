"""The process in which llama.cpp runs: `python -m coordbench_llamacpp.child`.

It is a process of its own because llama.cpp writes to standard error, takes over the handlers
of SIGINT and SIGTERM, holds the interpreter's lock while it loads, and ends the process when one
of its checks fails. Its first line of input is a `Settings` as JSON, its first line of output a
`Ready`. It lives until its input ends, or its parent.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import urllib.request
from typing import Any

import msgspec

__all__ = ["Ready", "Settings", "main"]

_LOOK_EVERY_S = 2.0
_ERRORS_ONLY = 1


class Settings(msgspec.Struct, frozen=True):
    """What the server is started with.

    Attributes
    ----------
    template : str
        The chat template, whole.
    context : int
        Tokens of each slot.
    folder : str
        Where the state of slots is saved; cleared away at the end.
    key : str
        Asked of every call, so that nobody else on this machine can make one.
    """

    model: str
    alias: str
    template: str
    threads: int
    context: int
    slots: int
    folder: str
    key: str
    lora: str = ""
    lora_scale: float = 1.0


class Ready(msgspec.Struct, frozen=True):
    """What became of the start.

    Attributes
    ----------
    error : str
        Why there is no server; empty where there is one.
    tools : bool
        llama.cpp found a form of tool calls in the chat template.
    context : int
        Tokens that a slot really has.
    """

    address: str = ""
    error: str = ""
    tools: bool = False
    context: int = 0


def main() -> int:
    """Run until the input ends."""
    parent = os.getppid()
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    # llama.cpp may print: what it prints goes where its errors go.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        server = _start(settings)
        ready = _look(server.listening_address, settings.key)
    except Exception as error:
        ready = Ready(error=f"{type(error).__name__}: {error}")
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    with contextlib.suppress(BrokenPipeError):
        out.write(msgspec.json.encode(ready) + b"\n")
        out.flush()
    while not ready.error and os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _LOOK_EVERY_S)
        if readable and not os.read(0, 4096):
            break
    if not ready.error:
        # Also where the parent was killed, and nobody else is left to do it.
        shutil.rmtree(settings.folder, ignore_errors=True)
    # Nothing is to be saved, and llama.cpp's own ending waits for calls that nobody reads.
    os._exit(1 if ready.error else 0)


def _start(settings: Settings) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.model
    params.model_alias = {settings.alias}
    params.chat_template = settings.template
    params.n_ctx = settings.context * settings.slots
    params.n_parallel = settings.slots
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = settings.threads
    if settings.lora:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(settings.lora, settings.lora_scale)]
    params.api_keys = [settings.key]
    params.slot_save_path = f"{settings.folder}/"
    # Slots keep their own prompts, and saved prefixes serve the rest: no third cache.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.ctx_shift = False
    params.endpoint_props = True
    params.ui = False
    params.warmup = False
    params.verbosity = _ERRORS_ONLY
    return xllamacpp.Server(params)


def _look(address: str, key: str) -> Ready:
    request = urllib.request.Request(f"{address}/props", headers={"Authorization": f"Bearer {key}"})
    # No proxy: the address is this machine's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as response:
        props = msgspec.json.decode(response.read())
    return Ready(
        address=address,
        tools=bool(props.get("chat_template_caps", {}).get("supports_tools")),
        context=int(props.get("default_generation_settings", {}).get("n_ctx") or 0),
    )


if __name__ == "__main__":
    sys.exit(main())
