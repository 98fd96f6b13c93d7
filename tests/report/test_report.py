"""Reports: what a cell's summary says, and how it looks in a terminal, a pipe and a file."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console
from support.episodes import cell_of
from support.random_play import play_events

from coordbench.api import CellSummary, Episode, EpisodeJob, EpisodeLog, NoOptions, Reward, Rules
from coordbench.data.events import CallRecord, EpisodeEnded, TurnTaken, Usage
from coordbench.data.manifest import Manifest, ModelRecord
from coordbench.data.plan import Cell
from coordbench.data.seeds import episode_seed
from coordbench.data.spec import Prompt, TaskSpec
from coordbench.models.script import POLICIES
from coordbench.plugins import Registry
from coordbench.report import load_view
from coordbench.report.aggregate import summarise_cell
from coordbench.report.json import build_json
from coordbench.report.markdown import build_markdown
from coordbench.report.terminal import TerminalReporter
from coordbench.scoring.metrics import METRICS
from coordbench.scoring.study import StudyOptions, StudyReward
from coordbench.store import RunWriter, StoredRun

RULES = Rules(rounds=7)
LONG = "openai/a-model-with-a-rather-long-name-2026-12-01,temperature=0.2,reasoning=high"
HOSTILE = "evil/[red]|`<script>\x1b[31m\u2028"


def cell(name: str, episodes: int = 5, n: int = 3) -> Cell:
    safe = "".join(char if char.isalnum() else "-" for char in name)
    return cell_of(n, RULES, id=safe, team=name, seats=(name,) * n, episodes=episodes)


def logs_of(made: Cell, policy: str, failed: int = 0) -> list[EpisodeLog]:
    logs = []
    for index in range(made.episodes):
        seed = episode_seed(0, made.n, index)
        events = play_events(made.n, RULES, seed, POLICIES[policy], index=index, cell=made.id)
        if index < failed:
            ended = events[-1]
            assert isinstance(ended, EpisodeEnded)
            events[-1] = msgspec.structs.replace(ended, status="failed", reason="network")
        logs.append(EpisodeLog(EpisodeJob(made.id, index, seed), tuple(events), {}))
    return logs


def stored_run(folder: Path, cells: Mapping[str, tuple[Cell, list[EpisodeLog]]]) -> StoredRun:
    spec = TaskSpec(
        name="t", rules=RULES, prompt=Prompt(system="", round=""), n=(3,), choices={"Why?": "So."}
    )
    manifest = Manifest(
        run="r",
        spec=spec,
        digest="d",
        cells=tuple(made for made, _ in cells.values()),
        created_at=0.0,
    )
    with RunWriter.create(folder, manifest) as writer:
        for _, logs in cells.values():
            for log in logs:
                writer.append(log)
    return StoredRun.open(writer.path)


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    cells = {
        name: (cell(name), logs_of(cell(name), policy))
        for name, policy in {
            "script/silent": "silent",
            "script/grab-left": "grab-left",
            LONG: "optimal",
            HOSTILE: "parity",
        }.items()
    }
    failing = cell("openai/broken")
    cells["broken"] = (failing, logs_of(failing, "idle", failed=3))
    return stored_run(tmp_path, cells)


def summary(policy: str, *, failed: int = 0, episodes: int = 5, **kwargs: Any) -> CellSummary:
    made = cell("model", episodes)
    return summarise(made, logs_of(made, policy, failed), **kwargs)


def summarise(
    made: Cell,
    logs: list[EpisodeLog],
    *,
    reward: Reward | None = None,
    models: dict[str, ModelRecord] | None = None,
) -> CellSummary:
    from coordbench.data.episode import fold

    episodes = [fold(log.events, RULES) for log in logs]
    metrics = {name: build("", NoOptions()) for name, (_, build) in METRICS.items()}
    return summarise_cell(
        made,
        [episode for episode in episodes if episode is not None],
        {"study": reward or StudyReward(StudyOptions())},
        metrics,
        models or {},
        0.1,
    )


def test_a_deadlocked_cell() -> None:
    found = summary("grab-left")
    assert found.metrics["deadlock"].value == 1.0
    assert found.metrics["deadlock"].method == "wilson"
    assert found.rewards["study"].value == 0.0
    assert found.metrics["fairness"].value is None
    assert "undefined (5)" in found.metrics["fairness"].reason
    assert found.rankable


def test_a_cell_without_one_valid_action_is_not_rankable() -> None:
    found = summary("silent")
    assert not found.rankable
    assert found.metrics["invalid_rate"].value == 1.0
    assert found.metrics["idle_share"].value == 0.0
    assert any("not one valid action" in note for note in found.notes)


def test_failed_episodes_are_counted_bounded_and_make_a_cell_incomplete() -> None:
    found = summary("grab-left", failed=10, episodes=30)
    assert (found.n_scored, found.n_failed) == (20, 10)
    assert found.deadlock_bounds == pytest.approx((20 / 30, 1.0))
    assert found.status == "incomplete"
    assert not found.rankable
    assert found.failure_kinds == {"network": 10}


def test_no_scored_episode_has_no_score() -> None:
    found = summary("idle", failed=5)
    assert found.rewards["study"].value is None
    assert found.metrics["deadlock"].value is None
    assert not found.rankable


def test_a_reward_that_fails_on_one_episode_loses_that_episode_only() -> None:
    class Moody:
        def score(self, episode: Episode) -> Mapping[str, float]:
            if episode.index == 1:
                raise ZeroDivisionError("no")
            return {"x": float("nan") if episode.index == 2 else 1.0}

    found = summary("idle", reward=Moody())
    assert found.rewards["study"].n == 3
    assert "ZeroDivisionError" in found.rewards["study"].reason
    assert "not finite" in found.rewards["study"].reason
    assert found.metrics["deadlock"].n == 5


def test_tokens_and_cost_stay_unknown_where_one_call_does_not_say() -> None:
    priced = ModelRecord(
        provider="p", model="m", tool_mode="native", paid=True, price_in=1.0, price_out=2.0
    )

    def with_usage(*usages: Usage) -> CellSummary:
        made = cell("model", 1)
        (log,) = logs_of(made, "idle")
        events = list(log.events)
        places = [index for index, event in enumerate(events) if isinstance(event, TurnTaken)]
        for index, usage in zip(places, usages, strict=False):
            call = CallRecord(reply="a", usage=usage)
            events[index] = msgspec.structs.replace(events[index], calls=(call,))
        log = msgspec.structs.replace(log, events=tuple(events))
        return summarise(made, [log], models={"model": priced})

    known = with_usage(Usage(input_tokens=100, output_tokens=10), Usage(50, 5))
    assert (known.input_tokens, known.output_tokens) == (150, 15)
    assert known.cost == pytest.approx((150 * 1 + 15 * 2) / 1e6)
    unknown = with_usage(Usage(input_tokens=100, output_tokens=10), Usage())
    assert (unknown.input_tokens, unknown.cost) == (None, None)


def test_markup_in_text_points_at_the_servers_parser() -> None:
    made = cell("model", 1)
    (log,) = logs_of(made, "silent")
    events = tuple(
        msgspec.structs.replace(event, flags=("server_parser_off",))
        if isinstance(event, TurnTaken)
        else event
        for event in log.events
    )
    found = summarise(made, [msgspec.structs.replace(log, events=events)])
    assert any("tool parser" in note for note in found.notes)


def rendered(run: StoredRun, width: int) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    TerminalReporter(console).render(load_view(run, Registry.load()), None)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_terminal_report_fits_and_cuts_nothing(run: StoredRun, width: int) -> None:
    text = rendered(run, width)
    assert "\u2026" not in text
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= width
    names = "".join(line.split("  ")[0].strip() for line in text.splitlines())
    for name in ("script/silent", "script/grab-left", LONG):
        assert name in names
    assert "1.00 [0.57, 1.00]" in text
    assert "[not rankable]" in text
    assert "[incomplete]" in text
    assert "Why? So." in text


def test_hostile_names_are_shown_as_text(run: StoredRun, tmp_path: Path) -> None:
    text = rendered(run, 200)
    assert "[red]" in text
    assert "\\x1b[31m" in text
    view = load_view(run, Registry.load())
    (path,) = build_markdown("", NoOptions()).render(view, tmp_path / "out")
    markdown = path.read_text(encoding="utf-8")
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    rows = [line for line in markdown.splitlines() if line.startswith("| evil")]
    assert len(rows) == 2
    assert "\u2028" not in markdown


def test_the_json_report_is_strict_and_says_why_a_value_is_missing(
    run: StoredRun, tmp_path: Path
) -> None:
    view = load_view(run, Registry.load())
    (path,) = build_json("", NoOptions()).render(view, tmp_path / "out")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    report = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert report["format"] == 1
    by_team = {found["team"]: found for found in report["cells"]}
    fairness = by_team["script/silent"]["metrics"]["fairness"]
    assert fairness["value"] is None
    assert fairness["reason"]
    assert by_team["script/silent"]["rankable"] is False


def test_mixed_tables_are_told_seat_by_seat() -> None:
    made = cell_of(3, RULES, id="mixed", team="mixed", seats=("a", "b", "a"), episodes=2)
    found = summarise(made, logs_of(made, "optimal"))
    assert [(seat.seat, seat.model) for seat in found.seats] == [(0, "a"), (1, "b"), (2, "a")]
    assert sum(seat.meals for seat in found.seats) == pytest.approx(
        found.metrics["meals"].value or 0
    )
