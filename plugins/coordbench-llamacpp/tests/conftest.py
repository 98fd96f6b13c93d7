"""GGUF files made on the spot, requests, and the real model where it is installed."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from coordbench.api import (
    Action,
    CallContext,
    ChatMessage,
    ModelProvider,
    ModelRequest,
    Sampling,
    SystemMessage,
    Tool,
    UsageError,
    UserMessage,
)
from coordbench_llamacpp.options import LlamaCppOptions
from coordbench_llamacpp.weights import check_target

TOOLS = tuple(
    Tool(action.value.replace("-", "_"), action, f"The tool {action.value}.") for action in Action
)
NAMES = ", ".join(tool.name for tool in TOOLS)
SYSTEM = SystemMessage(f"You sit at a table with forks. Each round, call one tool of: {NAMES}.")
ASK = UserMessage("Round 1. Left fork: on the table. Right fork: on the table. Call one tool.")

WriteGguf = Callable[..., Path]


def _request(
    *messages: ChatMessage,
    seat: int = 0,
    seed: int | None = 1,
    tools: Sequence[Tool] = TOOLS,
    force: str | None = None,
    temperature: float = 0.7,
    max_tokens: int = 32,
    episode: int = 0,
) -> ModelRequest:
    return ModelRequest(
        messages=messages or (SYSTEM, ASK),
        tools=tuple(tools),
        sampling=Sampling(temperature=temperature, max_tokens=max_tokens),
        seed=seed,
        force=force,
        context=CallContext("cell", episode, 7, 1, seat),
    )


def _gguf(
    pairs: dict[str, Any],
    tensors: dict[str, tuple[tuple[int, ...], Sequence[float]]] | None = None,
    version: int = 3,
) -> bytes:
    """A GGUF file of text, whole numbers, floats, lists of them, and float tensors."""
    tensors = tensors or {}
    head = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(pairs))
    for key, value in pairs.items():
        head += _text(key) + _typed(value)
    body = b""
    for name, (shape, values) in tensors.items():
        head += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", 0, len(body))
        data = struct.pack(f"<{len(values)}f", *values)
        body += data + bytes(-len(data) % 32)
    return head + bytes(-len(head) % 32) + body


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _typed(value: Any) -> bytes:
    match value:
        case str():
            return struct.pack("<I", 8) + _text(value)
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case list():
            items = [_typed(item) for item in value]
            kind = items[0][:4] if items else struct.pack("<I", 4)
            return (
                struct.pack("<I", 9)
                + kind
                + struct.pack("<Q", len(items))
                + b"".join(item[4:] for item in items)
            )
    raise TypeError(value)


@pytest.fixture(scope="session")
def ask() -> Callable[..., ModelRequest]:
    """Makes a request with the six tools."""
    return _request


@pytest.fixture(scope="session")
def gguf() -> Callable[..., bytes]:
    """Makes the bytes of a GGUF file."""
    return _gguf


@pytest.fixture
def write_gguf(tmp_path: Path) -> WriteGguf:
    def write(name: str = "model.gguf", **pairs: Any) -> Path:
        path = tmp_path / name
        path.write_bytes(_gguf({key.replace("__", "."): pairs[key] for key in pairs}))
        return path

    return write


@pytest.fixture
def small_model(write_gguf: WriteGguf) -> Path:
    """The header of a model: all that is read before it is loaded."""
    return write_gguf(
        general__architecture="llama",
        llama__context_length=512,
        llama__block_count=2,
        llama__embedding_length=64,
        llama__attention__head_count=4,
        llama__attention__head_count_kv=2,
        tokenizer__chat_template="{{ messages }} {{ tools }}",
    )


@pytest.fixture(scope="session")
def installed() -> None:
    """Skips where the real model can't run."""
    for module in ("xllamacpp", "httpx"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    try:
        check_target("smollm2", LlamaCppOptions())
    except UsageError as error:
        pytest.skip(str(error))


REAL: dict[str, Any] = {"threads": 1, "context": 1024, "slots": 16}


@pytest.fixture(scope="session")
def kept_server(installed: None) -> Iterator[None]:
    """Keeps the shared server up between tests, as cells of one run do."""
    from coordbench_llamacpp.model import LlamaCpp, build_llamacpp
    from coordbench_llamacpp.server import release

    model = build_llamacpp("smollm2", LlamaCppOptions(**REAL))
    assert isinstance(model, LlamaCpp)
    yield
    release(model._server)


@pytest.fixture
async def real(kept_server: None) -> AsyncIterator[Callable[..., ModelProvider]]:
    """Builds SmolLM2 with options; closed at the end."""
    from coordbench_llamacpp.model import build_llamacpp

    built: list[ModelProvider] = []

    def build(target: str = "smollm2", **options: Any) -> ModelProvider:
        built.append(build_llamacpp(target, LlamaCppOptions(**{**REAL, **options})))
        return built[-1]

    yield build
    for model in built:
        await model.aclose()
