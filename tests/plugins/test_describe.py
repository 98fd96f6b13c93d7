from __future__ import annotations

import msgspec
from support.sites import Site

from coordbench.plugins import Registry
from coordbench.plugins.describe import PluginDescription, describe

FULL = """
import msgspec

class Options(msgspec.Struct, frozen=True):
    temperature: float = 0.5
    stop: tuple[str, ...] = ()

@hookimpl
def coordbench_models():
    return [
        Offer(
            "full",
            "has everything",
            build=print,
            options=Options,
            requires=("no_such_sdk",),
            traits=frozenset({"paid", "local"}),
            examples=("full,temperature=1",),
        )
    ]

@hookimpl
def coordbench_metrics():
    return [Offer("Bad Name", "x", build=print), Offer("good", "x", build=print)]
"""


def described(registry: Registry) -> dict[str, PluginDescription]:
    return {item.plugin: item for item in describe(registry)}


def test_every_plugin_is_described_with_what_it_offers_and_what_is_wrong(site: Site) -> None:
    site.add("cb-full", {"full": "cb_full"}, {"cb_full": FULL}, version="3.1")
    site.add("cb-broken", {"broken": "cb_broken"}, {"cb_broken": "raise ImportError('no')"})
    site.reward("cb-off", "off", plugin="off")
    torn = site.add("cb-torn", {"torn": "cb_torn"})
    (torn / "entry_points.txt").write_text("[coordbench]\nno value\n", encoding="utf-8")
    plugins = described(Registry.load(["off"]))

    full = plugins["full"]
    assert (full.dist, full.version, full.state) == ("cb-full", "3.1", "problem")
    assert full.kinds == ("model", "metric")
    model, metric = full.offers
    assert (model.kind, model.name, model.summary) == ("model", "full", "has everything")
    assert [(o.name, o.type, o.default) for o in model.options] == [
        ("temperature", "number", 0.5),
        ("stop", "list of text", ()),
    ]
    assert model.traits == ("local", "paid")
    assert model.requires == ("no_such_sdk",)
    assert model.examples == ("full,temperature=1",)
    assert metric.name == "good"
    assert "Bad Name" in str(full.problems[0])

    broken = plugins["broken"]
    assert (broken.state, broken.offers) == ("problem", ())
    assert str(broken.problems[0]).startswith(
        "plugin broken (cb-broken 1.0), import: ImportError: no; "
    )
    assert (plugins["off"].state, plugins["off"].offers) == ("disabled", ())
    assert plugins["cb-torn"].state == "problem"


def test_the_description_is_strict_json(site: Site) -> None:
    site.add("cb-full", {"full": "cb_full"}, {"cb_full": FULL})
    decoded = msgspec.json.decode(msgspec.json.encode(describe(Registry.load())))
    (full,) = [item for item in decoded if item["plugin"] == "full"]
    assert full["offers"][0]["options"][0] == {
        "name": "temperature",
        "type": "number",
        "default": 0.5,
    }
    assert full["problems"][0]["code"] == "bad_offer"


def test_a_shared_name_is_a_warning_and_is_shown_as_it_must_be_written(site: Site) -> None:
    site.reward("cb-one", "paper", plugin="one")
    site.reward("cb-two", "paper", plugin="two")
    registry = Registry.load()
    plugins = described(registry)
    assert plugins["one"].state == "ok"
    assert plugins["one"].warnings == (
        'reward "paper" is also offered by cb-two 1.0; write one:paper',
    )
    assert plugins["two"].offers[0].name == "two:paper"
    assert registry.resolve("reward", plugins["two"].offers[0].name).registered.plugin == "two"


def test_the_core_comes_first() -> None:
    first = describe(Registry.load())[0]
    assert (first.plugin, first.dist) == ("builtin", "coordbench")
