"""Whatever one plugin does, it becomes a problem of that plugin and of nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.sites import Site, problem_of, problems_of

from coordbench import __version__
from coordbench.api.hookspecs import API_VERSION
from coordbench.data.errors import PluginError, UnknownNameError
from coordbench.plugins import Registry

GOOD = """
@hookimpl
def coordbench_metrics():
    return [Offer("fine", "works", build=lambda target, options: None)]
"""


def names(registry: Registry, kind: str) -> set[str]:
    return {item.offer.name for item in registry.offers(kind)}


def needs(requirement: str) -> str:
    return f"Requires-Dist: {requirement}\n"


@pytest.fixture
def good(site: Site) -> Site:
    """A site that already holds a sound plugin, which must keep working."""
    site.reward("cb-good", "good")
    return site


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise ImportError('broken on purpose')", "ImportError: broken on purpose"),
        ("import a_module_nobody_has", "ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("def (:", "SyntaxError: invalid syntax"),
        ("x = x", "NameError"),
        ("def f(): return f()\nf()", "RecursionError"),
        (
            "class Bad(Exception):\n    def __str__(self): return 1 / 0\nraise Bad",
            "Bad: (its message cannot be shown)",
        ),
    ],
)
def test_a_plugin_that_fails_on_import(good: Site, source: str, error: str) -> None:
    (good.path / "cb_bad.py").write_text(source, encoding="utf-8")
    good.add("cb-bad", {"bad": "cb_bad"}, version="2.5")
    registry = Registry.load()
    problem = problem_of(registry, "bad")
    assert (problem.dist, problem.version, problem.stage) == ("cb-bad", "2.5", "import")
    assert error in problem.error
    assert "\n" not in problem.error
    assert problem.hint
    assert "cb_bad.py" in problem.traceback
    assert "good" in names(registry, "reward")
    assert registry.build("reward", "good").score(None) == {"cb-good": 1.0}  # type: ignore[arg-type]


def test_ctrl_c_during_an_import_is_ctrl_c(good: Site) -> None:
    good.add("cb-bad", {"bad": "cb_bad"}, {"cb_bad": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        Registry.load()


def test_a_module_that_is_gone_is_told_apart_from_one_it_needs(good: Site) -> None:
    good.add("gone-pkg", {"stale": "gone_pkg:plugin"})
    good.add("cb-poor", {"poor": "cb_poor"}, {"cb_poor": "import a_module_nobody_has"})
    good.add("cb-old", {"old": "cb_old"}, {"cb_old": "from coordbench.api import Gone"})
    good.add("cb-attr", {"attr": "cb_good:nothing_here"})
    registry = Registry.load()
    assert "pip uninstall gone-pkg" in problem_of(registry, "stale").hint
    assert "needs the module a_module_nobody_has" in problem_of(registry, "poor").hint
    assert f"another version than coordbench {__version__}" in problem_of(registry, "old").hint
    assert "nothing_here" in problem_of(registry, "attr").error


def test_a_plugin_may_be_an_object_in_a_module(site: Site) -> None:
    source = """
    class Plugin:
        @hookimpl
        def coordbench_metrics(self):
            yield Offer("from-object", "works", build=lambda target, options: None)

    plugin = Plugin()
    """
    site.add("cb-object", {"object": "cb_object:plugin"}, {"cb_object": source})
    registry = Registry.load()
    assert "from-object" in names(registry, "metric")
    assert not problems_of(registry, "object")


def test_a_class_in_place_of_an_object_is_explained(good: Site) -> None:
    source = """
    class Plugin:
        @hookimpl
        def coordbench_metrics(self):
            return []
    """
    good.add("cb-class", {"class": "cb_class:Plugin"}, {"cb_class": source})
    problem = problem_of(Registry.load(), "class")
    assert problem.stage == "hook"
    assert "name an instance" in problem.hint


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (
            "Requires-Dist: coordbench>=99\n",
            f"coordbench >=99, and this is coordbench {__version__}",
        ),
        ("Requires-Dist: coordbench (<0.0.1)\n", "coordbench <0.0.1"),
        ('Requires-Dist: Coordbench[x]>=99; python_version>"3"\n', "coordbench >=99"),
        ("Requires-Dist: coordbench-plugin-api>=99\n", f"this is plugin API {API_VERSION}"),
        ("Requires-External: coordbench_plugin_api (>=99)\n", "plugin API >=99"),
        ("Keywords: forks,coordbench-plugin-api>=99,<100\n", "plugin API >=99,<100"),
        ("Requires-Python: >=99\n", "Python >=99"),
    ],
)
def test_versions_are_checked_before_anything_is_imported(
    good: Site, headers: str, says: str
) -> None:
    good.add("cb-new", {"new": "cb_new"}, {"cb_new": GOOD}, headers=headers)
    registry = Registry.load()
    problem = problem_of(registry, "new")
    assert (problem.stage, problem.code) == ("requirements", "api_version")
    assert says in problem.error
    assert "cb-new" in problem.hint
    assert "cb_new" not in sys.modules
    assert "good" in names(registry, "reward")


@pytest.mark.parametrize(
    "headers",
    [
        "Requires-Dist: coordbench\n",
        "Requires-Dist: coordbench>=0.0.1\nRequires-Python: >=3.8\n",
        "Requires-Dist: coordbench @ file:///somewhere/else\n",
        'Requires-Dist: coordbench>=99; extra == "next"\n',
        'Requires-Dist: coordbench>=99; python_version < "3"\n',
        f"Requires-Dist: coordbench-plugin-api=={API_VERSION}\n",
        f"Keywords: coordbench,coordbench-plugin-api>={API_VERSION}\n",
        "Requires-External: libpng (>=1.5)\nRequires-Dist: other>=99\n",
    ],
)
def test_versions_that_hold_are_no_problem(site: Site, headers: str) -> None:
    site.add("cb-fine", {"fine": "cb_fine"}, {"cb_fine": GOOD}, headers=headers)
    registry = Registry.load()
    assert not problems_of(registry, "fine")
    assert "fine" in names(registry, "metric")


def test_a_development_version_satisfies_what_its_number_satisfies(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordbench.plugins.requirements.__version__", "0.9.0.dev3")
    site.add("cb-fine", {"fine": "cb_fine"}, {"cb_fine": GOOD}, headers=needs("coordbench>=0.8"))
    site.add("cb-next", {"next": "cb_next"}, {"cb_next": GOOD}, headers=needs("coordbench>=0.9"))
    registry = Registry.load()
    assert not problems_of(registry, "fine")
    assert "0.9.0.dev3" in problem_of(registry, "next").error


@pytest.mark.parametrize(
    ("source", "code", "says", "hint"),
    [
        (
            "@hookimpl\ndef coordbench_reward():\n    return []",
            "unknown_hook",
            'no hook "coordbench_reward"; did you mean "coordbench_rewards"?',
            "hooks are: coordbench_models",
        ),
        (
            "@hookimpl\ndef scoer():\n    return []",
            "unknown_hook",
            'no hook "scoer"',
            "hooks are:",
        ),
        (
            "@hookimpl\ndef coordbench_rewards(episode, weights):\n    return []",
            "api_mismatch",
            "coordbench_rewards",
            f"cb-bad 1.0 was written for another plugin API than this: coordbench {__version__}, "
            f"plugin API {API_VERSION}",
        ),
        (
            "@hookimpl(wrapper=True)\ndef coordbench_rewards():\n    return (yield)",
            "api_mismatch",
            "is a wrapper",
            "",
        ),
        (
            "def coordbench_rewards():\n    return []",
            "no_hook",
            "coordbench_rewards is not marked",
            "put @hookimpl above it",
        ),
        ("x = 1", "no_hook", "implements no hook", "hooks are:"),
    ],
)
def test_hooks_that_nobody_would_call(
    good: Site, source: str, code: str, says: str, hint: str
) -> None:
    (good.path / "cb_bad.py").write_text(f"from coordbench.api import hookimpl\n{source}\n")
    good.add("cb-bad", {"bad": "cb_bad"})
    registry = Registry.load()
    problem = problem_of(registry, "bad")
    assert (problem.stage, problem.code) == ("register", code)
    assert says in problem.error
    assert hint in problem.hint
    assert "good" in names(registry, "reward")


def test_an_optional_hook_may_be_unknown(site: Site) -> None:
    source = (
        GOOD + "\n@hookimpl(optionalhook=True)\ndef coordbench_of_next_year():\n    return []\n"
    )
    site.add("cb-eager", {"eager": "cb_eager"}, {"cb_eager": source})
    registry = Registry.load()
    assert not problems_of(registry, "eager")
    assert "fine" in names(registry, "metric")


def test_a_misspelt_hook_leaves_the_plugins_other_hooks_working(site: Site) -> None:
    source = GOOD + "\n@hookimpl\ndef coordbench_reward():\n    return []\n"
    site.add("cb-typo", {"typo": "cb_typo"}, {"cb_typo": source})
    registry = Registry.load()
    assert problem_of(registry, "typo").code == "unknown_hook"
    assert "fine" in names(registry, "metric")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("return Offer('x', 'one', build=print)", "returned Offer; hooks return a list"),
        ("return 7", "returned int; hooks return a list"),
        ("return 'echo'", "returned str; hooks return a list"),
        ("yield Offer('x', 'one', build=print)\n    raise ValueError('late')", "late"),
    ],
)
def test_a_hook_that_fails_costs_only_its_own_offers(good: Site, body: str, says: str) -> None:
    source = "from coordbench.api import Offer, hookimpl\n"
    source += f"@hookimpl\ndef coordbench_rewards():\n    {body}\n"
    source += GOOD
    (good.path / "cb_bad.py").write_text(source, encoding="utf-8")
    good.add("cb-bad", {"bad": "cb_bad"})
    registry = Registry.load()
    problem = problem_of(registry, "bad")
    assert (problem.stage, problem.kind) == ("hook", "reward")
    assert says in problem.error
    assert "fine" in names(registry, "metric")
    assert "good" in names(registry, "reward")


def test_an_async_hook_is_a_problem_and_leaves_no_warning_behind(good: Site) -> None:
    source = "@hookimpl\nasync def coordbench_models():\n    return []\n"
    good.add("cb-async", {"async": "cb_async"}, {"cb_async": source})
    assert "hooks are synchronous" in problem_of(Registry.load(), "async").error


def test_a_hook_may_return_nothing(site: Site) -> None:
    source = "@hookimpl\ndef coordbench_models():\n    return None\n"
    site.add("cb-shy", {"shy": "cb_shy"}, {"cb_shy": source})
    assert not problems_of(Registry.load(), "shy")


@pytest.mark.parametrize(
    ("offer", "says"),
    [
        ("'echo'", "'echo' is str, not Offer"),
        ("None", "None is NoneType, not Offer"),
        ("Offer('Echo', 's', build=print)", '"Echo" is no name for an offer'),
        ("Offer('a/b', 's', build=print)", '"a/b" is no name'),
        ("Offer('a:b', 's', build=print)", '"a:b" is no name'),
        ("Offer('', 's', build=print)", '"" is no name'),
        ("Offer('-a', 's', build=print)", '"-a" is no name'),
        ("Offer(['a'], 's', build=print)", "is no name"),
        ("Offer('a', '', build=print)", "summary of one line"),
        ("Offer('a', 'two\\nlines', build=print)", "summary of one line"),
        ("Offer('a', 's', build=None)", "not callable"),
        ("Offer('a', 's', build=print, requires='numpy')", "requires is 'numpy', not a tuple"),
        ("Offer('a', 's', build=print, options=dict)", "not a msgspec.Struct class"),
        ("Offer('a', 's', build=print, options=NoOptions())", "not a msgspec.Struct class"),
        ("Offer('a', 's', build=print, options=Thawed)", "Thawed, are not frozen"),
        ("Offer('a', 's', build=print, options=Needy)", "missing required field"),
        ("Offer('a', 's', build=print, options=Unknown)", "NameError"),
        ("Offer('a', 's', build=print, options=Strange)", "cannot be made without arguments"),
    ],
)
def test_an_offer_that_is_none_costs_only_itself(good: Site, offer: str, says: str) -> None:
    source = f"""
    import msgspec

    class Thawed(msgspec.Struct):
        a: int = 1

    class Needy(msgspec.Struct, frozen=True):
        a: int

    class Unknown(msgspec.Struct, frozen=True):
        a: "NotDefinedAnywhere" = 1

    class Strange(msgspec.Struct, frozen=True):
        a: int = 1

        def __post_init__(self):
            raise ValueError("never")

    @hookimpl
    def coordbench_metrics():
        return [Offer("before", "works", build=print), {offer}, Offer("after", "x", build=print)]
    """
    good.add("cb-bad", {"bad": "cb_bad"}, {"cb_bad": source})
    registry = Registry.load()
    problem = problem_of(registry, "bad")
    assert (problem.stage, problem.code, problem.kind) == ("offer", "bad_offer", "metric")
    assert problem.error.startswith("coordbench_metrics: ")
    assert says in problem.error
    assert {"before", "after"} <= names(registry, "metric")
    assert "good" in names(registry, "reward")


def test_one_name_twice_in_a_plugin_is_nobodys(good: Site) -> None:
    source = """
    @hookimpl
    def coordbench_metrics():
        return [Offer("twice", "one", build=print), Offer("twice", "other", build=print),
                Offer("once", "fine", build=print)]

    @hookimpl
    def coordbench_rewards():
        return [Offer("once", "another kind", build=print)]
    """
    good.add("cb-twice", {"twice": "cb_twice"}, {"cb_twice": source})
    registry = Registry.load()
    assert problem_of(registry, "twice").code == "duplicate_name"
    assert "once" in names(registry, "metric")
    with pytest.raises(PluginError, match='returned 2 offers named "twice"'):
        registry.resolve("metric", "twice")


def test_the_same_distribution_through_a_linked_folder_is_loaded_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.reward("cb-linked", "linked")
    link = site.path.parent / "lib64"
    link.symlink_to(site.path, target_is_directory=True)
    monkeypatch.syspath_prepend(str(link))
    sys.path.append(str(site.path))
    registry = Registry.load()
    assert [item.dist for item in registry.offers("reward") if item.offer.name == "linked"] == [
        "cb-linked"
    ]
    assert [item.found.dist for item in registry.plugins].count("cb-linked") == 1
    assert not problems_of(registry, "cb_linked")


def test_of_two_versions_the_first_on_the_path_counts(site: Site, tmp_path: Path) -> None:
    older = Site(tmp_path / "older")
    sys.path.append(str(older.path))
    older.add("cb-twice", {"old": "cb_gone_long_ago"}, version="0.1")
    site.add("cb-twice", {"new": "cb_twice"}, {"cb_twice": GOOD}, version="0.2")
    registry = Registry.load()
    found = [item.found for item in registry.plugins if item.found.dist == "cb-twice"]
    assert [(item.plugin, item.version) for item in found] == [("new", "0.2")]
    assert not problems_of(registry, "old")


def test_a_copy_further_back_is_not_loaded_for_what_the_first_no_longer_has(
    site: Site, tmp_path: Path
) -> None:
    older = Site(tmp_path / "older")
    sys.path.append(str(older.path))
    older.add("cb-twice", {"old": "cb_gone_long_ago"}, version="0.1")
    site.add("cb-twice", {"command": "cb_twice"}, version="0.2", group="console_scripts")
    registry = Registry.load()
    assert not [item for item in registry.plugins if item.found.dist == "cb-twice"]
    assert not problems_of(registry, "old")


def test_what_is_wrong_with_a_distribution_is_said_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = site.add("cb-torn", {"torn": "cb_torn"})
    (torn / "entry_points.txt").write_text("[coordbench]\nno value here\n", encoding="utf-8")
    link = site.path.parent / "lib64"
    link.symlink_to(site.path, target_is_directory=True)
    monkeypatch.syspath_prepend(str(link))
    assert len(problems_of(Registry.load(), "cb-torn")) == 1


def test_one_object_under_two_names_is_loaded_once(site: Site) -> None:
    site.add("cb-one", {"one": "cb_shared"}, {"cb_shared": GOOD})
    site.add("cb-two", {"two": "cb_shared"})
    registry = Registry.load()
    assert [item.plugin for item in registry.offers("metric") if item.offer.name == "fine"] == [
        "one"
    ]
    problem = problem_of(registry, "two")
    assert problem.code == "same_plugin"
    assert "plugin one of cb-one" in problem.error


def test_metadata_that_cannot_be_read_is_a_problem_of_its_own(good: Site) -> None:
    torn = good.add("cb-torn", {"torn": "cb_torn"}, {"cb_torn": GOOD})
    (torn / "entry_points.txt").write_text("[coordbench]\nno value here\n", encoding="utf-8")
    bare = good.add("cb-bare", {"bare": "cb_bare"}, {"cb_bare": GOOD})
    (bare / "METADATA").unlink()
    registry = Registry.load()
    for dist in ("cb-torn", "cb_bare"):
        (problem,) = [problem for problem in registry.problems if problem.dist == dist]
        assert (problem.stage, problem.plugin, problem.version) == ("metadata", dist, "1.0")
        assert f"pip install --force-reinstall {dist}" in problem.hint
    assert "good" in names(registry, "reward")


def test_an_entry_point_in_a_group_of_its_own_is_pointed_out(good: Site) -> None:
    good.add("cb-lost", {"paper": "cb_lost"}, {"cb_lost": GOOD}, group="coordbench.rewards")
    problem = problem_of(Registry.load(), "paper")
    assert 'group "coordbench.rewards"' in problem.error
    assert "cb_lost" not in sys.modules


def test_what_a_plugin_prints_stays_off_standard_output(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "print('hello from import')\n" + GOOD.replace("return", "print('hook'); return")
    site.add("cb-loud", {"loud": "cb_loud"}, {"cb_loud": source})
    Registry.load()
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello from import" in err
    assert "hook" in err


def test_a_plugin_that_is_switched_off_is_not_imported(good: Site) -> None:
    good.add("cb-bad", {"bad": "cb_bad"}, {"cb_bad": "raise ImportError"})
    registry = Registry.load(["bad"])
    assert "cb_bad" not in sys.modules
    assert not problems_of(registry, "bad")
    assert "good" in names(registry, "reward")


def test_a_plugin_is_switched_off_by_its_distribution_as_well(good: Site) -> None:
    assert "good" not in names(Registry.load(["cb-good"]), "reward")
    assert "good" not in names(Registry.load(["CB_Good"]), "reward")


def test_switching_off_what_is_not_there_is_a_slip(good: Site) -> None:
    with pytest.raises(UnknownNameError, match='"cb_god"; did you mean "cb_good"'):
        Registry.load(["cb_god"])


def test_strict_turns_problems_into_one_error(good: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    good.add("cb-bad", {"bad": "cb_bad"}, {"cb_bad": "raise ImportError('broken')"})
    good.add("cb-worse", {"worse": "cb_worse"}, {"cb_worse": "raise ValueError('torn')"})
    for value in ("0", "", "false"):
        monkeypatch.setenv("COORDBENCH_STRICT", value)
        assert Registry.load().problems
    monkeypatch.setenv("COORDBENCH_STRICT", "1")
    with pytest.raises(PluginError) as caught:
        Registry.load()
    assert "ImportError: broken" in caught.value.message
    assert "ValueError: torn" in caught.value.message
    assert "COORDBENCH_STRICT" in caught.value.message
    assert caught.value.exit_code == 2
    assert any("cb_bad.py" in note for note in caught.value.__notes__)
    assert Registry.load(strict=False).problems
    with pytest.raises(PluginError):
        Registry.load(strict=True)


def test_the_order_of_the_path_changes_nothing(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    sys.path.append(str(other.path))
    site.reward("cb-b", "b")
    other.reward("cb-a", "a")
    one = [item.offer.name for item in Registry.load().offers("reward")]
    sys.path.remove(str(other.path))
    sys.path.insert(0, str(other.path))
    assert [item.offer.name for item in Registry.load().offers("reward")] == one
    assert one.index("a") < one.index("b")
