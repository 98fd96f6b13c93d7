"""CPU per call of the Anthropic, Google and litellm plugins, beside their SDKs alone.

A server in another process answers every call after 200 ms. The SDK's bare loop only sends the
prompts and looks at the calls that come back; coordbench plays whole episodes of N = 5 and ten
rounds, reads every reply and writes and fsyncs its events.

    python benchmarks/provider_cpu_others.py
    python benchmarks/provider_cpu_others.py --only google

Exit status 1: an aim was missed (see `AIMS`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from coordbench.api import ModelRequest, Observation
from coordbench.cli import cli
from coordbench.data.decode import load_task
from coordbench.engine.prompts import render_messages, tools_for
from coordbench.store import StoredRun
from coordbench.testing.chat_bodies import chat_call
from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

LATENCY_S = 0.2
N, ROUNDS = 5, 10
FLIGHTS = (50, 200, 500)
WAVES = 10  # calls = WAVES x calls in flight, but at least MIN_CALLS
MIN_CALLS = 2000
AIM_FLIGHT = 200
AIMS = {"direct": 0.5, "langgraph": 1.0}  # of the bare loop
# What litellm itself does to a call is what it is for: there is no cheaper way in.
AIMS_LITELLM = {"direct": 1.1, "langgraph": 1.2}
FLAT = 1.3  # the dearest of FLIGHTS over the cheapest
HERE = Path(__file__).resolve()

Call = Callable[[], Awaitable[Any]]

ANTHROPIC_BODY = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "test",
    "content": [{"type": "tool_use", "id": "toolu_01", "name": "think", "input": {}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 300, "output_tokens": 20},
}
GOOGLE_BODY = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "think", "args": {}}, "thoughtSignature": "c2ln"}
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 300,
        "candidatesTokenCount": 20,
        "totalTokenCount": 320,
    },
    "modelVersion": "test",
    "responseId": "r-1",
}


def serve() -> None:
    """The server's process."""
    bodies = {
        "generateContent": json.dumps(GOOGLE_BODY).encode(),
        "completions": json.dumps(chat_call("think")).encode(),
        "messages": json.dumps(ANTHROPIC_BODY).encode(),
    }

    def answer(request: StubRequest) -> StubResponse:
        body = next(body for word, body in bodies.items() if word in request.path)
        return StubResponse(body=body, delay_s=LATENCY_S)

    with StubServer(answer, keep=1) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def server_elsewhere() -> Iterator[str]:
    """URL of a server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, str(HERE), "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait()


def request() -> ModelRequest:
    """What one seat's call holds."""
    spec = load_task("dining_philosophers")
    seen = Observation(seat=0, n=N, round=1, rules=spec.rules, left="free", right="free", meals=0)
    return ModelRequest(
        messages=render_messages(spec.prompt, spec.communication, seen),
        tools=tools_for(spec.prompt),
        sampling=spec.sampling,
        seed=7,
    )


@contextlib.asynccontextmanager
async def bare_anthropic(url: str) -> Any:
    """A call of `messages.create`, with what the plugin sends."""
    from anthropic import AsyncAnthropic

    from coordbench_anthropic.options import AnthropicOptions
    from coordbench_anthropic.request import request_body

    body, _ = request_body("test", AnthropicOptions(), request())
    async with AsyncAnthropic(api_key="none", base_url=url, timeout=600) as client:

        async def call() -> None:
            reply = await client.messages.create(**body)
            assert reply.content[0].type == "tool_use"

        yield call


@contextlib.asynccontextmanager
async def bare_google(url: str) -> Any:
    """A call of `generate_content`, with what the plugin sends."""
    from google import genai
    from google.genai import types

    asked = request()
    system, user = (message.text for message in asked.messages)  # type: ignore[union-attr]
    declared: Any = [{"name": tool.name, "description": tool.description} for tool in asked.tools]
    config: types.GenerateContentConfigDict = {
        "system_instruction": system,
        "temperature": asked.sampling.temperature,
        "top_p": asked.sampling.top_p,
        "max_output_tokens": asked.sampling.max_tokens,
        "seed": 7,
        "tools": [{"function_declarations": declared}],
        "automatic_function_calling": {"disable": True},
    }
    options = types.HttpOptions(base_url=url)
    client = genai.Client(api_key="none", vertexai=False, http_options=options)

    async def call() -> None:
        reply = await client.aio.models.generate_content(model="test", contents=user, config=config)
        assert reply.function_calls

    try:
        yield call
    finally:
        await client.aio.aclose()


@contextlib.asynccontextmanager
async def bare_litellm(url: str) -> Any:
    """A call of `acompletion`, with what the plugin sends."""
    from coordbench.api.chatwire import messages_to_chat, tools_to_chat
    from coordbench_litellm.model import import_litellm

    litellm, asked = import_litellm(), request()
    arguments: dict[str, Any] = {
        "model": "openai/test",
        "messages": messages_to_chat(asked.messages),
        "tools": tools_to_chat(asked.tools),
        "temperature": asked.sampling.temperature,
        "top_p": asked.sampling.top_p,
        "max_tokens": asked.sampling.max_tokens,
        "seed": 7,
        "api_base": f"{url}/v1",
        "api_key": "none",
    }

    async def call() -> None:
        reply = await litellm.acompletion(**arguments)
        assert reply.choices[0].message.tool_calls

    yield call


BARE: dict[str, Callable[[str], Any]] = {
    "anthropic": bare_anthropic,
    "google": bare_google,
    "litellm": bare_litellm,
}
PATHS = {"litellm": ("litellm/openai/test", "/v1")}


def calls_for(flight: int) -> int:
    """How many calls are made, so that what is done once does not show."""
    return max(MIN_CALLS, WAVES * flight)


async def gather_limited(call: Call, count: int, flight: int) -> None:
    """`count` calls, `flight` at once."""
    slots = asyncio.Semaphore(flight)

    async def one() -> None:
        async with slots:
            await call()

    await asyncio.gather(*(one() for _ in range(count)))


def bare_cpu(provider: str, url: str, flight: int) -> float:
    """CPU seconds per call of a loop around the SDK's own method."""

    async def measure() -> float:
        async with BARE[provider](url) as call:
            await gather_limited(call, flight, flight)  # connections opened, modules loaded
            began = time.process_time()
            await gather_limited(call, calls_for(flight), flight)
            return (time.process_time() - began) / calls_for(flight)

    return asyncio.run(measure())


def coordbench_cpu(provider: str, url: str, flight: int, agent: str) -> float:
    """CPU seconds per call of `coordbench run`, from plan to report."""
    target, path = PATHS.get(provider, (f"{provider}/test", ""))
    name = f"{target},base_url={url}{path},concurrency={flight}"

    def play(episodes: int) -> tuple[float, int]:
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["run", "dining_philosophers", "--model", name, "--agent", agent]
            arguments += ["--n", str(N), "--rounds", str(ROUNDS), "--episodes", str(episodes)]
            arguments += ["--out", folder, "--no-preflight", "--yes"]
            said = io.StringIO()
            began = time.process_time()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                cli.main(args=arguments, prog_name="coordbench", standalone_mode=False)
            cpu = time.process_time() - began
            run = StoredRun.open(next(Path(folder).iterdir()))
            cells = [cell.id for cell in run.manifest.cells]
            return cpu, sum(e.decisions for cell in cells for e in run.episodes(cell))

    play(2)
    cpu, calls = play(calls_for(flight) // (N * ROUNDS))
    return cpu / calls


def main() -> int:
    """Measure, print a table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=sorted(BARE), help="measure this provider alone")
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return 0
    missed = 0
    print(f"CPU per call in ms; server at {LATENCY_S * 1000:g} ms, N={N}, {ROUNDS} rounds")
    with server_elsewhere() as url:
        for provider in [chosen.only] if chosen.only else BARE:
            missed += compare(provider, url)
    return int(missed > 0)


def compare(provider: str, url: str) -> int:
    """Measure one provider; how many aims were missed."""
    rows: dict[str, Callable[[int], float]] = {
        "bare": lambda flight: bare_cpu(provider, url, flight),
        "direct": lambda flight: coordbench_cpu(provider, url, flight, "direct"),
        "langgraph": lambda flight: coordbench_cpu(provider, url, flight, "langgraph"),
    }
    found: dict[str, dict[int, float]] = {}
    print(f"\n{provider + ', calls in flight':<34}" + "".join(f"{it:>8}" for it in FLIGHTS))
    for name, measure in rows.items():
        found[name] = {flight: measure(flight) for flight in FLIGHTS}
        cells = "".join(f"{cpu * 1e3:>8.2f}" for cpu in found[name].values())
        print(f"  {name:<32}{cells}", flush=True)
    missed = 0
    bare = found["bare"][AIM_FLIGHT]
    aims = AIMS_LITELLM if provider == "litellm" else AIMS
    for agent, aim in aims.items():
        ours = found[agent]
        for what, ratio, limit in (
            (f"{agent} / bare, {AIM_FLIGHT} in flight", ours[AIM_FLIGHT] / bare, aim),
            (f"{agent}, dearest / cheapest", max(ours.values()) / min(ours.values()), FLAT),
        ):
            missed += ratio > limit
            print(f"  {what:<40}{ratio:>6.2f}  (aim: at most {limit:g})")
    return missed


if __name__ == "__main__":
    sys.exit(main())
