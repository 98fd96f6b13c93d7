"""Task files: what is wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from coordbench.data.decode import decode_spec, load_task, resolve_variant, spec_with
from coordbench.data.errors import CoordbenchError, ExitCode, SpecError, UsageError
from coordbench.data.spec import TaskSpec

GOOD = '''\
name = "small"
n = [5, 10]
episodes = 3
models = ["script/random"]

[rules]
rounds = 5
order = "simultaneous"

[prompt]
system = "You sit at a table of $n."
round = """
Round $round.
Left: $left. $heard
"""
message = "Say something."
'''


def fault(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        decode_spec(text, path="task.toml")
    assert caught.value.exit_code is ExitCode.USAGE
    return str(caught.value)


def first_line(text: str) -> str:
    return fault(text).splitlines()[0]


def replaced(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_a_good_task_is_read() -> None:
    spec = decode_spec(GOOD, path="task.toml")
    assert (spec.name, spec.n, spec.episodes, spec.rules.rounds) == ("small", (5, 10), 3, 5)
    assert msgspec.convert(msgspec.to_builtins(spec), TaskSpec) == spec


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("episodes = 3", "epsiodes = 3", '3: unknown key "epsiodes"; did you mean "episodes"?'),
        ("[rules]", "[ruels]", '6: unknown key "ruels"; did you mean "rules"?'),
        ("order =", "odrer =", '8: unknown key "odrer" in [rules]; did you mean "order"?'),
        ("episodes = 3", 'episodes = "30"', '3: episodes: expected int, got str "30"'),
        ("episodes = 3", "episodes = 3.0", "3: episodes: expected int, got float 3.0"),
        ("episodes = 3", "episodes = true", "3: episodes: expected int, got bool true"),
        ("episodes = 3", "episodes = 2026-01-01", "3: episodes: expected int, got date"),
        ("episodes = 3", "episodes = 0", "3: episodes = 0: must be >= 1"),
        ("n = [5, 10]", "n = 5", "2: n: expected array, got int 5"),
        ("n = [5, 10]", "n = [0]", "2: n[0] = 0: must be >= 2"),
        ("n = [5, 10]", "n = [5, 1]", "2: n[1] = 1: must be >= 2"),
        ("n = [5, 10]", "n = [\n  10,\n  -5,\n]", "4: n[1] = -5: must be >= 2"),
        ("n = [5, 10]", "n = [5000]", "2: n[0] = 5000: must be <= 1000"),
        ("n = [5, 10]", "n = []", "2: n is empty: give at least one table size"),
        ("n = [5, 10]", "n = [5,\n5]", "3: n names 5 twice"),
        ("rounds = 5", "rounds = 0", "7: rules.rounds = 0: must be >= 1"),
        ("rounds = 5", "", '6: [rules] lacks the required key "rounds"'),
        ('name = "small"\n', "", '1: the task lacks the required key "name"'),
        ('name = "small"', 'name = "a/b"', '1: name: "a/b" is not usable as a name'),
        ('name = "small"', 'name = ""', '1: name: "" is not usable as a name'),
        ("[rules]", "rules = 5\n[rules_]", "6: rules: expected table, got int 5"),
        (
            '"simultaneous"',
            '"simultanous"',
            '8: rules.order: "simultanous" is none of simultaneous, sequential; '
            'did you mean "simultaneous"?',
        ),
        (
            'models = ["script/random"]',
            'models = ["a", "b", "a"]',
            '4: models names "a" twice',
        ),
        ('models = ["script/random"]', 'models = ["a", " "]', "4: models[1] is an empty name"),
        ('models = ["script/random"]', 'rewards = ["a", "a"]', '4: rewards names "a" twice'),
        (
            'models = ["script/random"]',
            "rewards = []",
            '1: primary is "reward", but rewards is empty',
        ),
        (
            'models = ["script/random"]',
            "choices = { a = 'x', b = 2 }",
            "4: choices.b: expected str, got int 2",
        ),
        (
            'models = ["script/random"]',
            "limits.max_wait_s = inf",
            "4: limits.max_wait_s = inf: must be a finite number",
        ),
        (
            'models = ["script/random"]',
            "sampling.temperature = nan",
            "4: sampling.temperature = nan: must be >= 0",
        ),
    ],
)
def test_the_message_says_where_and_what(old: str, new: str, message: str) -> None:
    assert first_line(replaced(old, new)) == f"task.toml:{message}"


def test_a_key_in_the_wrong_table_is_sent_home() -> None:
    assert 'unknown key "rounds"\n  "rounds" belongs in [rules] or in [communication]' in fault(
        "rounds = 5\n" + GOOD
    )
    after_table = fault(GOOD + "episodes = 3\n")
    assert 'unknown key "episodes" in [prompt]' in after_table
    assert '"episodes" belongs above the first [table]' in after_table


def test_an_unknown_key_without_a_neighbour_lists_the_known_ones() -> None:
    assert "known keys: name, rules, prompt" in fault("zzz = 1\n" + GOOD)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name = \n", 1),
        ('name = "x"\nn = [1, 2\n', 2),
        ('name = "x"\n[rules\nrounds = 1\n', 2),
        ('name = "x"\n\n\nname = "y"\n', 4),
        ('s = """never ends\n\n', 1),
    ],
)
def test_a_syntax_error_names_its_line(text: str, line: int) -> None:
    with pytest.raises(SpecError, match=r"not valid TOML") as caught:
        decode_spec(text, path="task.toml")
    assert caught.value.line == line


def test_a_key_set_twice_is_explained() -> None:
    assert "a key stands twice" in fault('name = "x"\nname = "y"\n')


def test_deep_nesting_is_no_crash() -> None:
    assert "nested too deeply" in fault("a = " + "[" * 100_000)


TEAMS = '\n[[teams]]\nname = "mixed"\nseats = ["a", "b"]\n'


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[teams]]\nname = "none"\nseats = []\n', '19: team "none" seats no model'),
        (TEAMS + TEAMS, '23: team "mixed" has the name of team "mixed" above it'),
        (
            '[[teams]]\nname = "script/random"\nseats = ["a"]\n',
            '18: team "script/random" has the name of model "script/random"',
        ),
        ('[[teams]]\nname = ""\nseats = ["a"]\n', "18: teams[0]: the team's name is empty"),
        ('[[teams]]\nname = "t"\n', '17: [teams[0]] lacks the required key "seats"'),
        ('[[teams]]\nname = "t"\nseats = ["a", ""]\n', "19: teams[0].seats[1] is an empty name"),
        ('[[teams]]\nname = "t"\nseats = ["a"]\nn = [5, 5]\n', "20: teams[0].n names 5 twice"),
        ('[[teams]]\nname = "t"\nseats = ["a"]\nn = [1]\n', "20: teams[0].n[0] = 1: must be >= 2"),
        (
            '[[teams]]\nname = "t"\nseats = ["a"]\nseat = 1\n',
            '20: unknown key "seat" in [teams[0]]; did you mean "seats"?',
        ),
    ],
)
def test_teams(more: str, message: str) -> None:
    assert first_line(GOOD + more) == f"task.toml:{message}"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[[variants]]\nname = "a"\nrules = { ordr = "sequential" }\n',
            '19: unknown key "ordr" in [variants[0].rules]; did you mean "order"?',
        ),
        (
            '[[variants]]\nname = "a"\n[[variants]]\nname = "b"\n[variants.rules]\nrounds = 0\n',
            "22: variants[1].rules.rounds = 0: must be >= 1",
        ),
        (
            '[[variants]]\nname = "a"\nrules.rounds = "5"\n',
            '19: variants[0].rules.rounds: expected int, got str "5"',
        ),
        (
            '[[variants]]\nname = "a"\ncommunication = { audience = "everyone" }\n',
            '19: variants[0].communication.audience: "everyone" is none of neighbours, all',
        ),
        ('[[variants]]\nname = "a"\n[[variants]]\nname = "A"\n', '20: two variants are called "A"'),
        ('[[variants]]\nname = ""\n', '18: variants[0].name: "" is not usable as a name'),
        (
            '[[variants]]\nname = "a"\nprompt.round = "now $rond"\n',
            '19: variants[0].prompt.round: unknown placeholder "$rond"; did you mean "$round"?',
        ),
        (
            '[[variants]]\nname = "talk"\ncommunication.rounds = 1\nprompt.round = "$left"\n',
            "20: communication.rounds is 1, but variants[0].prompt.round does not show what was "
            "said",
        ),
        (
            '[[variants]]\nname = "talk"\ncommunication.rounds = 1\nprompt.message = " "\n',
            "20: communication.rounds is 1, but variants[0].prompt.message is empty",
        ),
    ],
)
def test_variants(more: str, message: str) -> None:
    assert first_line(GOOD + more) == f"task.toml:{message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "Left: $left.",
            "Left: $lefft.",
            '14: prompt.round: unknown placeholder "$lefft"; did you mean "$left"?',
        ),
        (
            "table of $n",
            "table of ${round}",
            '11: prompt.system: unknown placeholder "$round"',
        ),
        ("Left: $left.", "It costs $5.", '14: prompt.round: "$5. $heard" is no placeholder'),
        ("Say something.", "$exchnge", '16: prompt.message: unknown placeholder "$exchnge"'),
    ],
)
def test_templates(old: str, new: str, message: str) -> None:
    assert first_line(replaced(old, new)).startswith(f"task.toml:{message}")


def test_a_template_fault_lists_what_is_allowed() -> None:
    assert "allowed here: $audience, $eat, " in fault(replaced("$left", "$zzzzz"))


def test_an_empty_round_prompt_is_refused() -> None:
    text = GOOD[: GOOD.index("round = ")] + 'round = " "\n'
    assert "prompt.round is empty" in fault(text)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(b'name = "x"\n# \xff\xfe\n')
    with pytest.raises(SpecError, match="not UTF-8 text") as caught:
        load_task(path)
    assert caught.value.line == 2


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_task(path).name == "small"


def test_windows_line_ends_keep_the_line(tmp_path: Path) -> None:
    path = tmp_path / "crlf.toml"
    path.write_bytes(replaced("rounds = 5", "rounds = 0").replace("\n", "\r\n").encode())
    with pytest.raises(SpecError) as caught:
        load_task(path)
    assert caught.value.line == 7


def test_resolving_a_variant_changes_what_it_names_and_nothing_else() -> None:
    spec = decode_spec(
        GOOD + '[[variants]]\nname = "slow"\nrules = { order = "sequential" }\nprompt.memory = 2\n',
        path="task.toml",
    )
    rules, communication, prompt = resolve_variant(spec, spec.variants[0])
    assert rules == msgspec.structs.replace(spec.rules, order="sequential")
    assert communication == spec.communication
    assert prompt == msgspec.structs.replace(spec.prompt, memory=2)
    assert resolve_variant(spec, None) == (spec.rules, spec.communication, spec.prompt)


def test_the_command_line_changes_a_spec() -> None:
    spec = decode_spec(
        GOOD
        + TEAMS
        + "n = [5]\nepisodes = 1\n"
        + '[[variants]]\nname = "long"\nrules.rounds = 9\n',
        path="task.toml",
    )
    changed = spec_with(spec, n=[3], episodes=2, rounds=7, seed=4, agent="direct")
    assert (changed.n, changed.episodes, changed.rules.rounds) == ((3,), 2, 7)
    assert (changed.seed, changed.agent) == (4, "direct")
    assert (changed.teams[0].n, changed.teams[0].episodes) == ((), None)
    assert resolve_variant(changed, changed.variants[0])[0].rounds == 9
    assert spec_with(spec, rounds=7).teams == spec.teams
    named = spec_with(spec, models=["script/parity"])
    assert (named.models, named.teams) == (("script/parity",), ())
    assert spec_with(spec) is spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": [0]}, "--n 0: must be >= 2"),
        ({"n": [5, 1]}, "--n 1: must be >= 2"),
        ({"n": [-3]}, "--n -3: must be >= 2"),
        ({"n": [5, 5]}, "--n 5: given twice"),
        ({"n": []}, "--n: give at least one value"),
        ({"episodes": 0}, "--episodes 0: must be >= 1"),
        ({"rounds": 0}, "--rounds 0: must be >= 1"),
        ({"seed": -1}, "--seed -1: must be >= 0"),
        ({"models": ["a", "a"]}, "--model a: given twice"),
        ({"models": [""]}, "--model: the name is empty"),
    ],
)
def test_impossible_changes_name_their_flag(changes: dict[str, object], message: str) -> None:
    spec = decode_spec(GOOD, path="task.toml")
    with pytest.raises(UsageError) as caught:
        spec_with(spec, **changes)  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert isinstance(caught.value, CoordbenchError)
