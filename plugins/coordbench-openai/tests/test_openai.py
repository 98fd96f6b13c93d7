"""The OpenAI plugin through the real SDK, against a local server that speaks its wire format."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from coordbench.api import (
    UsageError,
)
from coordbench.testing import (
    PROVIDER_CHECKS,
    ProviderKit,
    StubRequest,
    StubResponse,
    StubServer,
    check_name,
    replay_case,
)
from coordbench.testing.chat_bodies import (
    ask,
    chat_call,
    chat_chunk,
    chat_offered,
    chat_text,
    event_stream,
)
from coordbench.testing.provider_kit import make_request, make_tools
from coordbench_openai import client as client_module
from coordbench_openai.model import OpenAIModel
from coordbench_openai.plugin import OpenAIOptions, coordbench_models
from coordbench_openai.servers import key_of, server_of

KEY = "sk-0123456789abcdef"
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "provider_cases.jsonl"
APIS = (
    "openai.chat",
    "openai.responses",
    "openai-compatible.chat",
    "openrouter.chat",
    "vllm.chat",
)


def model_at(url: str, name: str = "gpt-test", **options: Any) -> OpenAIModel:
    return OpenAIModel(name, OpenAIOptions(base_url=f"{url}/v1", **options), api_key=KEY)


KIT = ProviderKit(
    make=model_at,
    key=KEY,
    call_body=chat_call,
    text_body=chat_text,
    offered=chat_offered,
)


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
async def test_conformance(check: Any) -> None:
    await check(KIT)


def reported_cases() -> list[Any]:
    if not CASES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip("no folder of shared cases beside it"))]
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    mine = [case for case in cases if case["input"].get("api") in APIS]
    assert len(mine) > 50
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", reported_cases())
def test_reported_cases_through_the_sdk(case: dict[str, Any]) -> None:
    outcome = replay_case(case)
    assert outcome.status == "passed", outcome.line()


class TestServers:
    @pytest.fixture(autouse=True)
    def no_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "LAN_KEY"):
            monkeypatch.delenv(name, raising=False)

    def key(self, base_url: str, named: str = "") -> str:
        return key_of(server_of(base_url), named, "openai/m")

    def test_a_missing_key_is_named(self) -> None:
        with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
            self.key("")
        with pytest.raises(UsageError, match="OPENROUTER_API_KEY is not set"):
            self.key("https://openrouter.ai/api/v1")
        with pytest.raises(UsageError, match="LAN_KEY is not set"):
            self.key("http://10.0.0.7:8000/v1", "LAN_KEY")

    def test_each_server_gets_its_own_key_and_no_other(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert self.key("") == KEY
        assert self.key("http://127.0.0.1:8000/v1") != KEY
        for elsewhere in ("https://openrouter.ai/api/v1", "http://10.0.0.7:8000/v1"):
            with pytest.raises(UsageError):
                self.key(elsewhere)
        assert self.key("http://10.0.0.7:8000/v1", "none") != KEY
        monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example.com/v1")
        assert server_of("").url == "https://gateway.example.com/v1"
        assert self.key("") == KEY

    def test_only_this_machine_is_free(self) -> None:
        paid = {
            url: OpenAIModel("m", OpenAIOptions(base_url=url), api_key=KEY).info.paid
            for url in ("", "https://api.x.ai/v1", "http://localhost:1/v1", "http://10.0.0.7/v1")
        }
        assert list(paid.values()) == [True, True, False, True]

    def test_prices_are_looked_up_where_the_model_is_from(self) -> None:
        info = OpenAIModel(
            "x-ai/grok-4", OpenAIOptions(base_url="https://openrouter.ai/api/v1"), api_key=KEY
        ).info
        assert (info.provider, info.model) == ("openrouter", "x-ai/grok-4")
        assert info.endpoint == "https://openrouter.ai/api/v1"

    def test_openais_own_servers_take_the_newer_cap(self) -> None:
        from coordbench_openai.chat import ChatWire

        body, sent, cap = ChatWire("gpt-5.4", OpenAIOptions(), server_of("")).body(make_request())
        assert (body["max_completion_tokens"], sent["max_tokens"], cap) == (321, 321, 321)
        assert "max_tokens" not in body

    async def test_names_of_the_account_go_to_openai_only(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
        monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-secret")
        _, asked = await ask(model_at, chat_call("eat"))
        assert "secret" not in json.dumps(asked.headers)

    def test_the_offer_checks_before_it_builds(self) -> None:
        (offer,) = coordbench_models()
        assert offer.check is not None
        for refused in (
            OpenAIOptions(),
            OpenAIOptions(base_url="nowhere"),
            OpenAIOptions(base_url="http://127.0.0.1:1/v1", omit="warmth"),
        ):
            with pytest.raises(UsageError):
                offer.check("m", refused)
            with pytest.raises(UsageError):
                offer.build("m", refused)
        offer.check("m", OpenAIOptions(base_url="http://127.0.0.1:1/v1"))


class TestClient:
    async def test_an_injected_client_is_used_and_left_open(self) -> None:
        seen: list[httpx2.Request] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            return httpx2.Response(200, json=chat_call("eat"))

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            model = OpenAIModel(
                "m",
                OpenAIOptions(base_url="https://api.x.ai/v1"),
                api_key=KEY,
                http_client=http,
            )
            reply = await model.complete(make_request())
            await model.aclose()
            assert reply.calls[0].name == "eat"
            assert str(seen[0].url) == "https://api.x.ai/v1/chat/completions"
            assert not http.is_closed

    @pytest.mark.parametrize("api", ["chat", "responses"])
    @pytest.mark.parametrize("stream", [False, True])
    async def test_an_sdk_without_the_cheap_way_is_used_the_typed_way(
        self, monkeypatch: pytest.MonkeyPatch, api: str, stream: bool
    ) -> None:
        """The same request goes out and the same reply comes back."""

        async def old_post(self: Any, path: str, **options: Any) -> Any:
            raise AssertionError("this SDK's post takes other arguments")

        def answers(request: StubRequest) -> StubResponse:
            if api == "chat":
                delta = {"tool_calls": [{"id": "c1", "function": {"name": "eat"}}]}
                chunks = (chat_chunk(delta), chat_chunk({}, "tool_calls"))
                return event_stream(*chunks) if stream else StubResponse(body=chat_call("eat"))
            call = {"type": "function_call", "call_id": "c1", "name": "eat", "arguments": "{}"}
            whole = {"status": "completed", "output": [call]}
            if not stream:
                return StubResponse(body=whole)
            return event_stream({"type": "response.completed", "response": whole}, done=False)

        results = []
        for cheap in (True, False):
            with StubServer(answers) as server:
                model = model_at(server.url, api=api, stream=stream)
                if not cheap:
                    monkeypatch.setattr(model._sender, "_posts", False)
                results.append((await model.complete(make_request()), server.requests[-1].json()))
                await model.aclose()
        assert results[0] == results[1]
        assert results[0][0].calls[0].name == "eat"

    def test_the_cheap_way_is_there_or_not_by_what_post_takes(self) -> None:
        class Old:
            async def post(self, path: str, *, body: Any, cast_to: Any) -> None: ...

        assert client_module.Sender(Old())._posts is False  # type: ignore[arg-type]
        sdk = openai.AsyncOpenAI(api_key=KEY)
        assert client_module.Sender(sdk)._posts is True

    async def test_a_client_without_aiohttp_works_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(**_: Any) -> None:
            raise RuntimeError("install the aiohttp extra")

        monkeypatch.setattr(client_module, "DefaultAioHttpClient", missing)
        reply, _ = await ask(model_at, chat_call("eat"))
        assert reply.calls[0].name == "eat"

    async def test_hundreds_of_calls_share_the_pool(self) -> None:
        with StubServer(lambda _: StubResponse(body=chat_call("eat"), together=300)) as server:
            model = model_at(server.url, concurrency=300)
            replies = await asyncio.gather(*(model.complete(make_request()) for _ in range(300)))
            await model.aclose()
            assert all(reply.calls[0].name == "eat" for reply in replies)
            assert server.most_in_flight == 300


def run(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    import os

    clean = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    return subprocess.run(
        [sys.executable, "-m", "coordbench", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**clean, **env},
    )


class TestCommand:
    def test_without_a_key_the_variable_is_named_and_nothing_is_done(self, tmp_path: Path) -> None:
        done = run("run", "--model", "openai/gpt-5.4", cwd=tmp_path)
        assert done.returncode == 2
        assert "OPENAI_API_KEY" in done.stderr
        assert "Traceback" not in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_run_against_a_local_server(self, tmp_path: Path) -> None:
        def answer(request: StubRequest) -> StubResponse:
            forced = request.json()["tool_choice"]
            name = forced["function"]["name"] if isinstance(forced, dict) else "think"
            return StubResponse(body=chat_call(name))

        with StubServer(answer) as server:
            name = f"openai/gpt-test,base_url={server.url}/v1"
            done = run(
                *("run", "dining_philosophers", "--model", name, "--n", "2"),
                *("--episodes", "2", "--rounds", "3", "--out", "runs", "--yes"),
                cwd=tmp_path,
                OPENAI_API_KEY=KEY,
            )
        assert done.returncode == 0, done.stderr
        written = b"".join(
            path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()
        )
        assert KEY.encode() not in written
        assert KEY not in done.stdout + done.stderr
        assert b'"test-2026"' in written


def test_making_a_plugin_list_imports_no_sdk() -> None:
    code = (
        "import sys, coordbench_openai.plugin as p; p.coordbench_models(); "
        "sys.exit(any(m.split('.')[0] in ('openai', 'httpx2', 'aiohttp') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_tools_are_sent_as_they_are() -> None:
    from coordbench_openai.chat import ChatWire

    wire = ChatWire("m", OpenAIOptions(), server_of("http://localhost:1"))
    tools = make_tools("-")
    body, _, _ = wire.body(make_request(tools))
    assert [tool["function"]["name"] for tool in body["tools"]] == [tool.name for tool in tools]
