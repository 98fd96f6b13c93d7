from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from support.sites import Site

from coordbench.api import NoOptions, Offer, UsageError, hookimpl
from coordbench.data.errors import AmbiguousNameError, PluginError, UnknownNameError
from coordbench.plugins import Registry


class Reward:
    def __init__(self, target: str, options: Any) -> None:
        self.target = target
        self.options = options

    def score(self, episode: Any) -> dict[str, float]:
        return {}


class PaperOptions(msgspec.Struct, frozen=True):
    variance: float = 1.0
    idle: float = 0.5


def plugin(**hooks: list[Offer[Any]]) -> SimpleNamespace:
    """A plugin object from lists of offers: `rewards=[...]`."""
    thing = SimpleNamespace()
    for name, offers in hooks.items():

        def hook(offers: list[Offer[Any]] = offers) -> list[Offer[Any]]:
            return offers

        hook.__name__ = f"coordbench_{name}"
        setattr(thing, hook.__name__, hookimpl(hook))
    return thing


def reward(name: str, **more: Any) -> Offer[Any]:
    return Offer(name, f"{name}, a reward", **({"build": Reward} | more))


def model(name: str, **more: Any) -> Offer[Any]:
    return Offer(name, f"{name}, a model", **({"build": lambda target, options: None} | more))


@pytest.fixture
def registry() -> Registry:
    """Two plugins that share a name, and one alone."""
    return Registry.of(
        {
            "core": plugin(
                rewards=[reward("paper", options=PaperOptions), reward("study")],
                models=[
                    model("script", traits=frozenset({"target"}), examples=("script/random",)),
                    model("echo", traits=frozenset({"optional-target"})),
                ],
            ),
            "other": plugin(rewards=[reward("study"), reward("kind", options=PaperOptions)]),
        }
    )


def test_a_name_is_resolved_with_its_target_and_options(registry: Registry) -> None:
    resolved = registry.resolve("reward", "paper,variance=0")
    assert resolved.options == PaperOptions(variance=0.0)
    assert resolved.registered.plugin == "core"
    resolved = registry.resolve("model", "script/random")
    assert (resolved.target, resolved.options) == ("random", NoOptions())


@pytest.mark.parametrize(
    ("kind", "name", "canonical"),
    [
        ("model", "script/random", "script/random"),
        ("model", "core:script/random", "script/random"),
        ("model", 'script/"random"', "script/random"),
        ("model", 'script/"a,b"', 'script/"a,b"'),
        ("reward", "paper", "paper"),
        ("reward", "paper,variance=1", "paper"),
        ("reward", "paper, idle=0.50 ,variance=0.0", "paper,variance=0"),
        ("reward", "core:paper,idle=1,variance=0", "paper,variance=0,idle=1"),
        ("reward", "other:study", "other:study"),
        ("reward", "core:study", "core:study"),
    ],
)
def test_one_spelling_for_all_names_that_mean_the_same(
    registry: Registry, kind: str, name: str, canonical: str
) -> None:
    resolved = registry.resolve(kind, name)
    assert resolved.canonical_name == canonical
    again = registry.resolve(kind, canonical)
    assert again == resolved


def test_a_shared_name_is_an_error_only_when_it_is_used_bare(registry: Registry) -> None:
    assert not registry.problems
    with pytest.raises(AmbiguousNameError) as caught:
        registry.resolve("reward", "study")
    assert "core 0 and other 0" in caught.value.message
    assert caught.value.hint == "say which: core:study or other:study"
    assert isinstance(registry.build("reward", "other:study"), Reward)
    assert [[item.plugin for item in group] for group in registry.clashes()] == [["core", "other"]]


def test_plugins_that_share_even_their_own_name_are_told_apart_by_distribution(site: Site) -> None:
    site.reward("cb-one", "paper", plugin="rewards")
    site.reward("cb-two", "paper", plugin="rewards")
    registry = Registry.load()
    for name in ("paper", "rewards:paper"):
        with pytest.raises(AmbiguousNameError) as caught:
            registry.resolve("reward", name)
        assert "cb-one 1.0 and cb-two 1.0" in caught.value.message
        assert caught.value.hint == "say which: cb-one:paper or cb-two:paper"
    built = registry.build("reward", "cb-two:paper")
    assert built.score(None) == {"cb-two": 1.0}  # type: ignore[arg-type]


def test_a_clash_does_not_depend_on_the_order_of_the_path(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    site.reward("cb-one", "paper")
    other.reward("cb-two", "paper")
    messages = set()
    for place in (0, len(sys.path)):
        sys.path.insert(place, str(other.path))
        with pytest.raises(AmbiguousNameError) as caught:
            Registry.load().resolve("reward", "paper")
        messages.add(str(caught.value))
        del sys.path[place]
    assert len(messages) == 1


def test_the_targets_an_offer_takes(registry: Registry) -> None:
    with pytest.raises(UsageError, match="script needs a target") as caught:
        registry.resolve("model", "script")
    assert caught.value.hint == "for example: script/random"
    assert registry.resolve("model", "echo").target == ""
    assert registry.resolve("model", "echo/x").target == "x"
    with pytest.raises(UsageError, match="paper takes no target") as caught:
        registry.resolve("reward", "paper/variance=0")
    assert caught.value.hint == "options follow a comma: paper,variance=0"


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("reward", "papr", 'no reward is named "papr"; did you mean "paper"?'),
        ("reward", "Paper", 'did you mean "paper"?'),
        ("reward", "zzz", "rewards: paper, study, kind"),
        ("reward", "echo", 'no reward is named "echo"; it is a model'),
        ("metric", "paper", "no plugin offers a metric"),
        ("model", "openai/gpt-5.4", "pip install coordbench-openai"),
        ("model", "opnai/gpt-5.4", "pip install coordbench-openai"),
        ("model", "llamacpp/smollm2", "pip install coordbench-llamacpp"),
        ("model", "gemini/x", "pip install coordbench-google"),
        ("executor", "ray", "pip install coordbench-ray"),
        ("reward", "othr:kind", 'no plugin is named "othr"; did you mean "other"?'),
        ("reward", "other:papr", 'plugin other offers no reward "papr"'),
        ("reward", "other:kid", 'did you mean "kind"?'),
        ("metric", "other:kind", "it offers no metric at all"),
        ("model", "script:random", "a target follows a slash: script/random"),
        ("model", "openai:gpt-5.4,a=1", "a target follows a slash: openai/gpt-5.4,a=1"),
    ],
)
def test_unknown_names_say_what_to_do(registry: Registry, kind: str, name: str, says: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry.resolve(kind, name)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_broken_plugin_asked_for_by_name_is_an_error_with_its_traceback(site: Site) -> None:
    site.add("cb-broken", {"broken": "cb_broken"}, {"cb_broken": "raise ImportError('no SDK')"})
    site.reward("cb-brokem", "brokem")
    registry = Registry.load()
    for name in ("broken", "broken/x", "broken:x", "cb-broken:x", "broken,a=1"):
        with pytest.raises(PluginError) as caught:
            registry.build("model", name)
        assert "plugin broken (cb-broken 1.0) is broken (import)" in caught.value.message
        assert "ImportError: no SDK" in caught.value.message
        assert caught.value.exit_code == 2
        assert any("cb_broken.py" in note for note in caught.value.__notes__)
    with pytest.raises(UnknownNameError, match=r"broken plugins: .*\bbroken\b"):
        registry.resolve("model", "zzz")


def test_a_first_party_plugin_that_is_installed_but_broken_is_not_to_be_installed(
    site: Site,
) -> None:
    site.add("coordbench-openai", {"gpt": "cb_gpt"}, {"cb_gpt": "raise ImportError('torn')"})
    with pytest.raises(PluginError, match="ImportError: torn"):
        Registry.load().resolve("model", "openai/gpt-5.4")


def test_a_broken_offer_is_not_replaced_by_another_of_its_name() -> None:
    registry = Registry.of(
        {
            "sound": plugin(rewards=[reward("paper")]),
            "torn": plugin(rewards=[reward("paper", options=dict)]),
        }
    )
    with pytest.raises(PluginError, match="also by torn") as caught:
        registry.resolve("reward", "paper")
    assert caught.value.hint == "say which: sound:paper"
    assert isinstance(registry.build("reward", "sound:paper"), Reward)
    with pytest.raises(PluginError, match=r"not a msgspec\.Struct class"):
        registry.resolve("reward", "torn:paper")


def test_a_plugin_that_is_switched_off_says_so(site: Site) -> None:
    site.reward("cb-off", "off", plugin="off")
    registry = Registry.load(["off"])
    for name in ("off", "off:off"):
        with pytest.raises(UnknownNameError) as caught:
            registry.resolve("reward", name)
        assert "leave out --no-plugin off" in caught.value.hint


def test_wrong_options_are_refused_before_anything_is_built(registry: Registry) -> None:
    with pytest.raises(UsageError, match='unknown option "varience" for paper; did you mean'):
        registry.build("reward", "paper,varience=0")


def test_building_gives_the_target_and_the_options(registry: Registry) -> None:
    built: Any = registry.build("reward", "paper,idle=2")
    assert (built.target, built.options) == ("", PaperOptions(idle=2.0))


def build_with(**more: Any) -> Registry:
    return Registry.of({"cb": plugin(rewards=[reward("paper", **more)])})


def raises(error: BaseException) -> Any:
    def build(target: str, options: Any) -> Any:
        raise error

    return build


def test_a_missing_module_is_reported_before_anything_is_built() -> None:
    registry = build_with(build=raises(AssertionError()), requires=("msgspec", "no_such_sdk"))
    with pytest.raises(PluginError) as caught:
        registry.build("reward", "paper")
    assert caught.value.message == "reward paper of cb needs `no_such_sdk`"
    assert caught.value.hint == "pip install no_such_sdk"


def test_a_missing_module_is_named_as_the_plugins_own_metadata_names_it(site: Site) -> None:
    source = """
    @hookimpl
    def coordbench_rewards():
        return [Offer("far", "s", build=print, requires=("no_such.sdk", "not_here"))]
    """
    headers = "Requires-Dist: No_Such-SDK>=2\nRequires-Dist: Not-Here\n"
    site.add("cb-far", {"far": "cb_far"}, {"cb_far": source}, headers=headers)
    with pytest.raises(PluginError, match=r"cb-far needs `no_such.sdk` and `not_here`") as caught:
        Registry.load().build("reward", "far")
    assert caught.value.hint == "pip install No_Such-SDK Not-Here"


def test_a_module_found_missing_while_building_is_reported_alike() -> None:
    def build(target: str, options: Any) -> Any:
        import no_such_sdk  # type: ignore[import-not-found]

        return no_such_sdk

    with pytest.raises(PluginError, match="paper of cb needs `no_such_sdk`"):
        build_with(build=build).build("reward", "paper")


@pytest.mark.parametrize("error", [ValueError("two\nlines"), SystemExit(4), AssertionError()])
def test_a_build_that_raises_names_the_plugin_and_keeps_the_cause(error: BaseException) -> None:
    with pytest.raises(PluginError) as caught:
        build_with(build=raises(error)).build("reward", "paper")
    assert "cb 0 could not build reward paper" in caught.value.message
    assert type(error).__name__ in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.__cause__ is error


def test_what_the_plugin_itself_says_is_passed_on() -> None:
    error = UsageError("no key", hint="set EXAMPLE_API_KEY")
    with pytest.raises(UsageError) as caught:
        build_with(build=raises(error)).build("reward", "paper")
    assert caught.value is error


def test_what_was_built_must_be_of_its_kind() -> None:
    with pytest.raises(PluginError, match="it built int, which is no Reward: it lacks score"):
        build_with(build=lambda target, options: 7).build("reward", "paper")


def test_check_tells_without_building() -> None:
    def check(target: str, options: Any) -> None:
        raise UsageError("no weights here", hint="fetch them")

    registry = build_with(build=raises(AssertionError()), check=check)
    with pytest.raises(UsageError, match="no weights here"):
        registry.check("reward", "paper")
    fine = build_with(build=raises(AssertionError()), check=lambda target, options: None)
    assert fine.check("reward", "paper").canonical_name == "paper"
    odd = build_with(check=raises(KeyError("x")))
    with pytest.raises(PluginError, match="could not check reward paper: KeyError"):
        odd.check("reward", "paper")
