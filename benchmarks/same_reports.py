"""The same task through all five providers, against servers that speak their wire formats.

One policy answers in every format: it looks at nothing but the newest turn that it is shown, and
now and then it speaks instead of calling a tool, or calls one that was never offered. Whatever
differs between the five reports, apart from names, is then the doing of a plugin. The lines that
say which settings an API does not take may: Anthropic's has no seed, and no top_p beside a
temperature.

    python benchmarks/same_reports.py

Exit status 1: the reports differ; the lines that do are printed.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from coordbench.cli import cli
from coordbench.store import StoredRun
from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

TASK = ("--n", "5", "--rounds", "8", "--episodes", "4")
PROSE = "After you, I insist."
STRANGE = "steal_fork"
KEY = "not-a-real-key-0123456789"
WIRES = {
    "openai/m": ("/v1", "chat"),
    "anthropic/m,api_version=2023-06-01": ("", "anthropic"),
    "google/m": ("", "google"),
    "mistral/m": ("", "chat"),
    "litellm/openai/m": ("/v1", "chat"),
}


def decide(shown: str, tools: list[str]) -> str | None:
    """A tool for what was shown; None: speak instead."""
    drawn = zlib.crc32(shown.encode()) % (len(tools) + 2)
    return (*tools, None, STRANGE)[drawn]


def text_of(content: Any) -> str:
    """All text in a turn's content, whatever the format."""
    if isinstance(content, str):
        return content
    texts: Iterable[Any] = (part.get("text") for part in content or ())
    return "".join(text for text in texts if isinstance(text, str))


def chat(body: Any) -> dict[str, Any]:
    """A chat completion."""
    shown = text_of([turn for turn in body["messages"] if turn["role"] == "user"][-1]["content"])
    tool = decide(shown, [tool["function"]["name"] for tool in body["tools"]])
    message: dict[str, Any] = {"role": "assistant", "content": PROSE}
    if tool is not None:
        function = {"name": tool, "arguments": "{}"}
        call = {"id": "call00001", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": "reply",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }


def anthropic(body: Any) -> dict[str, Any]:
    """A message."""
    shown = text_of(body["messages"][-1]["content"])
    tool = decide(shown, [tool["name"] for tool in body["tools"]])
    block: dict[str, Any] = {"type": "text", "text": PROSE}
    if tool is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
    return {
        "id": "reply",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [block],
        "stop_reason": "tool_use" if tool else "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }


def google(body: Any) -> dict[str, Any]:
    """A candidate."""
    shown = text_of(body["contents"][-1]["parts"])
    declared = [tool["name"] for group in body["tools"] for tool in group["functionDeclarations"]]
    tool = decide(shown, declared)
    part: dict[str, Any] = {"text": PROSE}
    if tool is not None:
        part = {"functionCall": {"name": tool, "args": {}}}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 5,
            "totalTokenCount": 105,
        },
        "modelVersion": "m",
        "responseId": "reply",
    }


FORMATS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "chat": chat,
    "anthropic": anthropic,
    "google": google,
}


def command(*args: str) -> str:
    """What a coordbench command prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = cli(args, standalone_mode=False)
    if status not in (None, 0):
        raise SystemExit(f"coordbench {' '.join(args)}: exit {status}\n{said.getvalue()}")
    return said.getvalue()


def play(name: str, folder: Path) -> str:
    """What a run of one provider says, without names: every outcome, then the report."""
    path, wire = WIRES[name]

    def answer(request: StubRequest) -> StubResponse:
        return StubResponse(body=FORMATS[wire](request.json()))

    out = folder / re.sub(r"\W", "-", name)
    with StubServer(answer) as server:
        model = f"{name},base_url={server.url}{path}"
        command("run", "--model", model, *TASK, "--no-preflight", "--yes", "--out", str(out))
    (path_of_run,) = out.iterdir()
    run = StoredRun.open(path_of_run)
    (cell,) = run.manifest.cells
    played = [
        f"episode {episode.index}, round {turn.round}, seat {turn.seat}: "
        f"{turn.action or turn.invalid or turn.failure} {turn.effect} {turn.flags}"
        for episode in run.episodes(cell.id)
        for turn in episode.turns
    ]
    command("report", str(path_of_run), "--reporter", "markdown", "--out", str(out / "report"))
    (report,) = (out / "report").glob("*.md")
    text = report.read_text(encoding="utf-8")
    names = (str(path_of_run), path_of_run.name, cell.id, cell.team, name)
    return without_names("\n".join(played) + "\n\n" + text, names)


def without_names(report: str, names: Iterable[str]) -> str:
    """The report with what is a name, an address or a time on the clock blotted out."""
    for name in names:
        report = report.replace(name, "NAME")
    report = re.sub(r"http://127\.0\.0\.1:\d+(/v1)?", "URL", report)
    report = re.sub(r"\n- .*: asked for [^\n]*, not sent", "", report)
    report = re.sub(r"\b\d+(\.\d+)?s \|", "TIME |", report)
    return re.sub(r"[ \t]+|-{3,}", " ", report)


def main() -> int:
    """Run all five, and compare."""
    for variable in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL"):
        os.environ.setdefault(f"{variable}_API_KEY", KEY)
    with tempfile.TemporaryDirectory() as folder:
        played = {name: play(name, Path(folder)) for name in WIRES}
    first, *others = played
    differ = False
    for name in others:
        lines = difflib.unified_diff(
            played[first].splitlines(), played[name].splitlines(), first, name, lineterm=""
        )
        for line in lines:
            differ = True
            print(line)
    print(f"{len(played)} reports, {'which differ' if differ else 'identical apart from names'}")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
