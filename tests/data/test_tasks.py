"""Finding task files, and the tasks that travel with coordbench."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordbench.data.decode import load_task
from coordbench.data.errors import SpecError, UnknownNameError
from coordbench.data.suggest import did_you_mean, nearest
from coordbench.data.tasks import find_task, shipped_tasks
from coordbench.tables.optimum import fewest_rounds


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "dining_philosophers",
        "dining-philosophers",
        "dining_philosophers.toml",
        "Dining-Philosophers.toml",
    ],
)
def test_shipped_tasks_are_found_by_name_from_anywhere(name: str) -> None:
    assert load_task(name).name == "dining_philosophers"


def test_a_file_at_hand_comes_before_a_shipped_one(tmp_path: Path) -> None:
    own = Path("dining_philosophers.toml")
    own.write_text("")
    assert find_task("dining_philosophers.toml") == own
    assert find_task("dining_philosophers") == shipped_tasks()["dining_philosophers"]


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_task("dinning_philosofers")
    message = str(caught.value)
    assert 'no task "dinning_philosofers"; did you mean "dining_philosophers"?' in message
    assert "shipped tasks: dining_philosophers, study_2606_07845" in message


def test_a_missing_file_gets_its_neighbour(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "small.toml").write_text("")
    with pytest.raises(SpecError, match=r'smal\.toml: no such file; did you mean "small\.toml"'):
        load_task(folder / "smal.toml")
    with pytest.raises(SpecError, match="no such file"):
        load_task(tmp_path / "nowhere" / "x.toml")
    Path("local.toml").write_text("")
    with pytest.raises(UnknownNameError, match=r'did you mean "local\.toml"'):
        load_task("locall.toml")


def test_a_folder_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "small.toml").write_text("")
    with pytest.raises(SpecError, match="is a folder") as caught:
        load_task("mine")
    assert "small.toml" in str(caught.value)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.toml"
    path.write_text("")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SpecError, match=r"secret\.toml: cannot be read: Permission denied"):
        load_task(path)


@pytest.mark.parametrize("name", shipped_tasks())
def test_every_shipped_task_is_valid_and_names_its_choices(name: str) -> None:
    spec = load_task(name)
    assert spec.name == name
    assert spec.n == (5, 10, 15)
    assert spec.episodes == 30
    assert spec.agent == "auto"
    assert len(spec.choices) >= 10
    assert all(question and reading for question, reading in spec.choices.items())


def test_a_perfect_team_can_feed_everyone_twice_in_the_standard_task() -> None:
    spec = load_task("dining_philosophers")
    fewest = {n: fewest_rounds(n, 2, spec.rules) for n in spec.n}
    assert fewest == {5: 10, 10: 9, 15: 10}
    assert all(spec.rules.rounds >= rounds for rounds in fewest.values())


def test_the_replica_plays_as_the_study_did() -> None:
    spec = load_task("study_2606_07845")
    assert spec.rules.rounds == 5
    assert spec.prompt.tool_names == "hyphen"
    assert spec.rewards[0] == "study"
    assert spec.models == ()
    assert spec.teams == ()


def test_nearest_names() -> None:
    assert nearest("STUDY", ["study", "meals"]) == "study"
    assert nearest("pick-up-left", ["pick_up_left"]) == "pick_up_left"
    assert nearest("zebra", ["study", "meals"]) is None
    assert did_you_mean("zebra", ["study"]) == ""
    assert did_you_mean("studdy", ["study"]) == '; did you mean "study"?'
