"""llama.cpp's server in a child process: started at the first call, shared, always stopped."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import msgspec

from coordbench.api import ModelError
from coordbench_llamacpp.child import Ready, Settings
from coordbench_llamacpp.gguf import ModelFile
from coordbench_llamacpp.slots import Slots

__all__ = ["Endpoint", "LlamaServer", "ServerSpec", "release", "share"]

_DEFAULT_CONTEXT = 4096
_DEFAULT_SLOTS = 16
_DEFAULT_THREADS = 2
_MEMORY_SHARE = 0.25
_MOST_STARTS = 4
_STOP_S = 2.0
_LOG_CHARS = 600
_SPINS = "10000"


class ServerSpec(msgspec.Struct, frozen=True):
    """What makes two models share a server. 0: chosen when the server is made."""

    model: ModelFile
    template: str
    threads: int = 0
    context: int = 0
    slots: int = 0
    lora: str = ""
    lora_scale: float = 1.0


class Endpoint(msgspec.Struct, frozen=True):
    """A server that has started."""

    address: str
    key: str
    tools: bool
    context: int
    slots: Slots


class LlamaServer:
    """One server, stopped until somebody asks for its endpoint.

    Attributes
    ----------
    threads, context, slots : int
        What it runs with; the context is that of each slot.
    """

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.users = 0
        self.threads = spec.threads or min(_DEFAULT_THREADS, _cores())
        trained = spec.model.context or _DEFAULT_CONTEXT
        self.context = spec.context or min(_DEFAULT_CONTEXT, trained)
        self.slots = spec.slots or _slots_that_fit(spec.model.bytes_per_token * self.context)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._endpoint: Endpoint | None = None
        self._folder: Path | None = None
        self._starts = 0
        self._refused = ""
        self._closed = threading.Event()

    def running(self) -> Endpoint | None:
        """The endpoint, while its process lives."""
        process = self._process
        return self._endpoint if process is not None and process.poll() is None else None

    def start(self) -> Endpoint:
        """Start it unless it runs; waits until the model is loaded.

        Raises
        ------
        ModelError
            `config`: it can't be loaded. `server_error`: it has ended too often.
        """
        with self._lock:
            known = self.running()
            if known is not None:
                return known
            if self._refused:
                raise ModelError("config", self._refused, scope="cell")
            if self._starts >= _MOST_STARTS:
                raise ModelError(
                    "server_error",
                    f"llama.cpp was started {self._starts} times and ended every time: "
                    f"{self._last_words()}",
                    scope="cell",
                )
            self._starts += 1
            endpoint = self._endpoint = self._spawn()
            return endpoint

    def answered(self) -> None:
        """A call was answered, so the server works."""
        self._starts = 1

    def end_of(self, endpoint: Endpoint) -> ModelError | None:
        """Why this endpoint is gone; None where its process lives."""
        process = self._process
        if process is None or self._endpoint is not endpoint:
            return ModelError(
                "server_error", "llama.cpp was stopped", retry=not self._closed.is_set()
            )
        try:
            status = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            return None
        how = f"exit status {status}"
        if status < 0:
            how = f"signal {signal.Signals(-status).name}"
        return ModelError(
            "server_error", f"llama.cpp ended ({how}): {self._last_words()}", retry=True
        )

    def stop(self) -> None:
        """Stop it for good."""
        self._closed.set()
        process = self._process
        if process is not None:
            _end(process)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _spawn(self) -> Endpoint:
        if self._closed.is_set():
            raise ModelError("server_error", "llama.cpp was stopped")
        if self._process is not None:
            _end(self._process)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="coordbench-llamacpp-"))
        spec = self.spec
        settings = Settings(
            model=str(spec.model.path),
            alias=spec.model.path.name,
            template=spec.template,
            threads=self.threads,
            context=self.context,
            slots=self.slots,
            folder=str(self._folder),
            key=secrets.token_urlsafe(24),
            lora=spec.lora,
            lora_scale=spec.lora_scale,
        )
        with (self._folder / "log").open("wb") as log:
            # -P: a module of the working directory must not stand in for one of Python's own.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "coordbench_llamacpp.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=_environment(),
            )
        self._process = process
        if self._closed.is_set():
            _end(process)
        assert process.stdin is not None and process.stdout is not None
        line = b""
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(msgspec.json.encode(settings) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if self._closed.is_set():
            raise ModelError("server_error", "llama.cpp was stopped")
        ready = msgspec.json.decode(line, type=Ready) if line else Ready(error="it ended")
        if ready.error:
            _end(process)
            self._refused = self._why_not(ready.error)
            raise ModelError("config", self._refused, scope="cell")
        context = ready.context or self.context
        return Endpoint(
            ready.address, settings.key, ready.tools, context, Slots(self.slots, self._folder)
        )

    def _why_not(self, error: str) -> str:
        text = f"llama.cpp can't load {self.spec.model.path}: {error}; {self._last_words()}"
        if "libgomp" in error:
            text += "; install libgomp (Debian, Ubuntu: apt install libgomp1)"
        return text

    def _last_words(self) -> str:
        """What the log ends with, which is where the cause stands."""
        try:
            log = ((self._folder or Path()) / "log").read_text("utf-8", "replace")
        except OSError:
            return "it left no log"
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()] or lines
        return " | ".join(telling)[-_LOG_CHARS:] or "it said nothing"


_servers: dict[ServerSpec, LlamaServer] = {}
_guard = threading.Lock()


def share(spec: ServerSpec) -> LlamaServer:
    """The server of this spec, made if there is none. Every call needs one of `release`."""
    with _guard:
        server = _servers.get(spec)
        if server is None:
            server = _servers[spec] = LlamaServer(spec)
        server.users += 1
        return server


def release(server: LlamaServer) -> None:
    """Stop the server once nobody uses it."""
    with _guard:
        server.users -= 1
        if server.users > 0:
            return
        if _servers.get(server.spec) is server:
            del _servers[server.spec]
    server.stop()


@atexit.register
def _stop_all() -> None:
    for server in list(_servers.values()):
        server.stop()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it end by itself, which it does when its input ends; else kill it."""
    with contextlib.suppress(OSError, ValueError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(timeout=_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            process.stdout.close()


def _environment() -> dict[str, str]:
    """That of this process. OpenMP's threads wait for each other by spinning, for so long that on
    a busy machine two are slower than one: here they give way sooner, unless told otherwise.
    """
    environment = dict(os.environ)
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", _SPINS)
    return environment


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _slots_that_fit(slot_bytes: int) -> int:
    if slot_bytes <= 0:
        return _DEFAULT_SLOTS
    fit = int(_free_memory() * _MEMORY_SHARE / slot_bytes)
    return max(1, min(_DEFAULT_SLOTS, fit))


def _free_memory() -> float:
    """Bytes that this process may still take: of the machine, or of its control group."""
    free = float("inf")
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text("ascii"))
        used = int((group / "memory.current").read_text("ascii"))
        for line in (group / "memory.stat").read_text("ascii").splitlines():
            if line.startswith("inactive_file "):
                used -= int(line.split()[1])
        free = min(free, limit - used)
    if free == float("inf"):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    return max(free, 0.0)
