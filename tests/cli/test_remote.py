"""Runs against a server: concurrency, faults, keys. Needs the OpenAI plugin."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from support.chat_stub import chat_answer, chat_stub
from support.command import coordbench, only_run

from coordbench.store import StoredRun
from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("coordbench_openai") is None,
    reason="the plugin coordbench-openai is not installed",
)

KEY = {"OPENAI_API_KEY": "sk-test-0123456789abcdef"}


def model(url: str, **options: object) -> tuple[str, str]:
    said = "".join(f",{key}={value}" for key, value in options.items())
    return "--model", f"openai/m,base_url={url}/v1{said}"


def test_all_seats_of_a_round_and_many_episodes_are_in_flight_at_once(tmp_path: Path) -> None:
    with chat_stub(delay_s=0.4) as stub:
        task = ("run", *model(stub.url, concurrency=100), "--n", "15", "--rounds", "2")
        done = coordbench(*task, "--episodes", "1", "--no-preflight", cwd=tmp_path, env=KEY)
        assert done.returncode == 0, done.stderr
        assert stub.most_in_flight == 15
    with chat_stub(delay_s=0.4) as stub:
        task = ("run", *model(stub.url, concurrency=90), "--n", "15", "--rounds", "2")
        done = coordbench(*task, "--episodes", "12", "--no-preflight", cwd=tmp_path, env=KEY)
        assert done.returncode == 0, done.stderr
        assert stub.most_in_flight == 90
        assert stub.calls == 15 * 2 * 12


def test_without_a_key_it_says_which_variable_and_makes_no_folder(tmp_path: Path) -> None:
    done = coordbench("run", "--model", "openai/gpt-5.4", cwd=tmp_path, env={"OPENAI_API_KEY": ""})
    assert done.returncode == 2
    assert "OPENAI_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_busy_answers_are_tried_again_and_every_call_is_counted_once(tmp_path: Path) -> None:
    error = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}
    refused: list[bytes] = []
    calls_made = 0

    def busy(request: StubRequest) -> StubResponse:
        nonlocal calls_made
        calls_made += 1
        if calls_made % 5 == 0 and refused.count(request.body) < 3:
            refused.append(request.body)
            return StubResponse(status=429, headers={"retry-after": "0.01"}, body=error)
        return StubResponse(body=chat_answer(request))

    with StubServer(busy) as stub:
        task = ("run", *model(stub.url), "--n", "5", "--episodes", "8", "--rounds", "10")
        done = coordbench(*task, "--no-preflight", cwd=tmp_path, env=KEY)
    assert done.returncode == 0, done.stderr
    stored = StoredRun.open(only_run(tmp_path))
    (cell,) = stored.manifest.cells
    episodes = list(stored.episodes(cell.id))
    assert [episode.status for episode in episodes] == ["completed"] * 8
    calls = [call for episode in episodes for _, call in episode.calls]
    assert len(calls) == 5 * 10 * 8
    assert sum(call.tries for call in calls) == stub.calls
    assert sum(len(call.failures) for call in calls) == len(refused) > 50


def test_a_dead_server_ends_in_a_clear_reason_and_resume_completes_it(tmp_path: Path) -> None:
    def dying(number: int) -> StubResponse | None:
        return StubResponse(fault="reset") if number > 40 else None

    spec = tmp_path / "task.toml"
    spec.write_text(
        'name = "short"\nn = [3]\nepisodes = 6\n[rules]\nrounds = 4\n[limits]\ntries = 2\n'
        'max_wait_s = 0.01\n[prompt]\nsystem = "s"\nround = "$round"\n',
        encoding="utf-8",
    )
    with chat_stub(fault=dying) as stub:
        options = model(stub.url, concurrency=3)
        port = int(stub.url.rsplit(":", 1)[1])
        done = coordbench("run", "task.toml", *options, "--no-preflight", cwd=tmp_path, env=KEY)
    assert done.returncode == 6
    assert "no longer be complete" in done.stderr
    assert "--resume" in done.stderr
    run = only_run(tmp_path)
    stored = StoredRun.open(run)
    (cell,) = stored.manifest.cells
    kept = [index for index, status in stored.state(cell.id).items() if status == "completed"]
    assert len(kept) == 3
    again = chat_stub()
    again._port = port
    with again:
        done = coordbench("run", "--resume", str(run), "--no-preflight", cwd=tmp_path, env=KEY)
    assert done.returncode == 0, done.stderr
    assert StoredRun.open(run).missing(cell.id) == []


def test_a_refused_key_stops_at_once_and_the_key_is_nowhere(tmp_path: Path) -> None:
    def refused(number: int) -> StubResponse:
        error = {"message": f"Wrong key {KEY['OPENAI_API_KEY']}", "code": "invalid_api_key"}
        return StubResponse(status=401, body={"error": error})

    with chat_stub(fault=refused) as stub:
        task = ("run", *model(stub.url), "--n", "5", "--episodes", "30")
        preflight = coordbench(*task, cwd=tmp_path, env=KEY)
        assert preflight.returncode == 2
        assert "key was refused" in preflight.stderr
        assert stub.calls == 1
        done = coordbench(*task, "--no-preflight", cwd=tmp_path, env=KEY)
        assert done.returncode == 6
        assert stub.calls < 60
    for path in (tmp_path / "runs").rglob("*"):
        if path.is_file():
            assert KEY["OPENAI_API_KEY"].encode() not in path.read_bytes()
    assert KEY["OPENAI_API_KEY"] not in done.stderr + done.stdout + preflight.stderr


def test_the_cache_answers_a_second_run_without_a_call(tmp_path: Path) -> None:
    with chat_stub() as stub:
        task = ("run", *model(stub.url), "--n", "3", "--episodes", "2", "--rounds", "2")
        flags = ("--no-preflight", "--cache-file", "cache.sqlite")
        assert coordbench(*task, *flags, cwd=tmp_path, env=KEY).returncode == 0
        first = stub.calls
        done = coordbench(*task, *flags, "--out", "again", cwd=tmp_path, env=KEY)
        assert done.returncode == 0
        assert stub.calls == first == 12
        assert "12 calls (12 from the cache)" in done.stderr
        assert "12 of 12 calls were answered from the reply cache" in done.stdout


def test_mixed_tables_seat_models_as_the_spec_says(tmp_path: Path) -> None:
    spec = tmp_path / "task.toml"
    with chat_stub() as stub:
        spec.write_text(
            'name = "mixed"\nn = [4]\nepisodes = 2\n[rules]\nrounds = 6\n'
            '[prompt]\nsystem = "s"\nround = "$round"\n'
            '[[teams]]\nname = "half"\n'
            f'seats = ["script/parity", "openai/m,base_url={stub.url}/v1"]\n',
            encoding="utf-8",
        )
        done = coordbench("run", "task.toml", "--no-preflight", cwd=tmp_path, env=KEY)
    assert done.returncode == 0, done.stderr
    report = json.loads((only_run(tmp_path) / "report" / "report.json").read_text())
    (cell,) = report["cells"]
    think = [seat["think"] for seat in cell["seats"]]
    assert think[1] == think[3] == 1.0
    assert think[0] == 0.0
    assert stub.calls == 2 * 6 * 2


def test_a_budget_is_used_up_but_not_exceeded_and_the_run_can_go_on(tmp_path: Path) -> None:
    with chat_stub(delay_s=0.01) as stub:
        task = ("--n", "5", "--episodes", "30", "--rounds", "5", "--no-preflight", "--yes")
        priced = model(stub.url, price_in=100, price_out=100)
        done = coordbench("run", *priced, *task, "--max-cost", "2", cwd=tmp_path, env=KEY)
        assert done.returncode == 6
        assert "--max-cost 2" in done.stderr
        run = only_run(tmp_path)
        # 105 tokens a call at 100 dollars a million: 190 calls cost 2 dollars.
        assert 150 < stub.calls <= 190
        again = coordbench("run", "--resume", str(run), "--yes", cwd=tmp_path, env=KEY)
    assert again.returncode == 0, again.stderr
    stored = StoredRun.open(run)
    (cell,) = stored.manifest.cells
    assert stored.missing(cell.id) == []
