"""The child process: quiet, shared, restarted where it can be, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordbench.api import ModelError, ModelProvider, ModelRequest
from coordbench_llamacpp.model import LlamaCpp, build_llamacpp
from coordbench_llamacpp.options import LlamaCppOptions
from coordbench_llamacpp.server import LlamaServer
from coordbench_llamacpp.weights import find_model

pytestmark = pytest.mark.llamacpp

Ask = Callable[..., ModelRequest]
ONE: dict[str, Any] = {"threads": 1, "context": 256, "slots": 1, "tools": "constrained"}


@pytest.fixture
def build(installed: None) -> Callable[..., LlamaCpp]:
    def make(target: str = "smollm2", **options: Any) -> LlamaCpp:
        model = build_llamacpp(target, LlamaCppOptions(**{**ONE, **options}))
        assert isinstance(model, LlamaCpp)
        return model

    return make


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield
    assert not list(folder.iterdir())


def process_of(model: ModelProvider) -> subprocess.Popen[bytes]:
    server = model._server  # type: ignore[attr-defined]
    assert isinstance(server, LlamaServer)
    assert server._process is not None
    return server._process


async def test_it_can_be_closed_and_opened_again(build: Callable[..., LlamaCpp], ask: Ask) -> None:
    ended = []
    for _ in range(2):
        model = build()
        assert (await model.complete(ask())).calls
        ended.append(process_of(model))
        await model.aclose()
        await model.aclose()
        with pytest.raises(ModelError, match="closed"):
            await model.complete(ask())
    assert [process.poll() for process in ended] == [0, 0]
    assert ended[0].pid != ended[1].pid


async def test_tool_modes_share_one_process_until_the_last_is_closed(
    build: Callable[..., LlamaCpp], ask: Ask
) -> None:
    first, second = build(context=512), build(context=512, tools="native")
    await first.complete(ask())
    process = process_of(first)
    await first.aclose()
    assert (await second.complete(ask(max_tokens=2))).usage.output_tokens == 2
    assert process_of(second) is process
    await second.aclose()
    assert process.poll() == 0


async def test_a_killed_server_fails_the_call_and_starts_again(
    build: Callable[..., LlamaCpp], ask: Ask
) -> None:
    model = build()
    try:
        await model.complete(ask())
        process_of(model).send_signal(signal.SIGSTOP)  # so that it can't answer before it ends
        call = asyncio.create_task(model.complete(ask()))
        await asyncio.sleep(0.1)
        process_of(model).kill()
        with pytest.raises(ModelError, match="SIGKILL") as raised:
            await call
        assert (raised.value.kind, raised.value.retry) == ("server_error", True)
        assert (await model.complete(ask())).calls
    finally:
        await model.aclose()


async def test_a_server_that_keeps_ending_is_given_up(
    build: Callable[..., LlamaCpp], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build()
    server = model._server
    try:
        for _ in range(4):
            server.start()
            process_of(model).kill()
            process_of(model).wait()
        with pytest.raises(ModelError, match="started 4 times") as raised:
            server.start()
        assert (raised.value.retry, raised.value.scope) == (False, "cell")
    finally:
        await model.aclose()


async def test_weights_that_cannot_be_loaded_say_why(
    build: Callable[..., LlamaCpp], ask: Ask, tmp_path: Path
) -> None:
    whole = find_model("smollm2").path.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: len(whole) // 2])
    model = build(str(path))
    try:
        for _ in range(2):
            with pytest.raises(ModelError, match="not within the file bounds") as raised:
                await model.complete(ask())
            assert (raised.value.kind, raised.value.scope) == ("config", "cell")
            assert str(path) in raised.value.message
    finally:
        await model.aclose()


async def test_closing_ends_a_start_that_is_under_way(
    build: Callable[..., LlamaCpp], ask: Ask
) -> None:
    model = build()
    call = asyncio.create_task(model.complete(ask()))
    await asyncio.sleep(0.1)
    await model.aclose()
    with pytest.raises(ModelError):
        await call


SCRIPT = """
import asyncio, os, signal, sys
from coordbench.testing.provider_kit import make_request
from coordbench_llamacpp.model import build_llamacpp
from coordbench_llamacpp.options import LlamaCppOptions

options = LlamaCppOptions(threads=1, context=512, slots=1, tools="constrained")

async def main():
    model = build_llamacpp("smollm2", options)
    await model.complete(make_request())
    print("child", model._server._process.pid, flush=True)
    {then}

{before}
asyncio.run(main())
{after}
"""


def run_script(then: str, before: str = "", after: str = "") -> subprocess.Popen[str]:
    code = SCRIPT.format(then=then, before=before, after=after)
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def child_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().split()[1])


def end_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, what else came out, and what was complained of."""
    assert process.stdout is not None and process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    return process.wait(), out, err


def ends(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_nothing_is_printed(installed: None) -> None:
    process = run_script("await model.aclose()")
    child = child_of(process)
    assert end_of(process) == (0, "", "")
    assert ends(child)


def test_a_model_that_nobody_closes_ends_with_the_interpreter(installed: None) -> None:
    process = run_script("pass")
    child = child_of(process)
    assert end_of(process) == (0, "", "")
    assert ends(child)


def test_a_killed_parent_takes_it_along(installed: None) -> None:
    process = run_script("await asyncio.sleep(60)")
    child = child_of(process)
    process.kill()
    assert end_of(process)[0] == -signal.SIGKILL
    assert ends(child)


def test_ctrl_c_stays_with_the_program(installed: None) -> None:
    """llama.cpp takes over SIGINT in its process, and that must not be this one."""
    caught = "signal.signal(signal.SIGINT, lambda *_: print('caught', flush=True))"
    process = run_script(
        "os.kill(os.getpid(), signal.SIGINT); await model.complete(make_request());"
        "await model.aclose()",
        before=caught,
    )
    child = child_of(process)
    assert end_of(process) == (0, "caught\n", "")
    assert ends(child)


async def test_ctrl_c_at_the_terminal_does_not_reach_it(
    build: Callable[..., LlamaCpp], ask: Ask
) -> None:
    model = build()
    try:
        await model.complete(ask())
        assert os.getpgid(process_of(model).pid) != os.getpgid(0)
    finally:
        await model.aclose()
