"""The offer, as the core finds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from coordbench.api import UsageError
from coordbench.plugins import Registry
from coordbench_llamacpp import plugin


@pytest.fixture
def registry() -> Registry:
    return Registry.of({"llamacpp": plugin})


def test_importing_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, coordbench_llamacpp.plugin as plugin; plugin.coordbench_models();"
        "print(sorted({'xllamacpp', 'httpx', 'numpy', 'asyncio.subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_offer_is_sound(registry: Registry) -> None:
    assert not registry.problems
    (offer,) = [item.offer for item in registry.offers("model")]
    assert {"bundled", "local"} <= offer.traits
    for example in offer.examples:
        assert registry.resolve("model", example).canonical_name == example


def test_building_starts_nothing(registry: Registry, small_model: Path) -> None:
    """`coordbench plan` builds every model and never closes one."""
    model = registry.build("model", f"llamacpp/{small_model},slots=3")
    info = model.info
    assert (info.provider, info.model, info.max_in_flight) == ("llamacpp", "model", 3)
    assert (info.instant, info.reads_text, info.paid) == (False, True, False)
    assert model._server.running() is None  # type: ignore[attr-defined]


async def test_both_tool_modes_share_a_server(registry: Registry, small_model: Path) -> None:
    name = f"llamacpp/{small_model}"
    native = registry.build("model", name)
    constrained = registry.build("model", f"{name},tools=constrained,temperature=0.1")
    other = registry.build("model", f"{name},context=128")
    assert native.info.endpoint == constrained.info.endpoint != other.info.endpoint
    assert (native.info.tool_mode, constrained.info.tool_mode) == ("native", "constrained")
    assert native._server is constrained._server  # type: ignore[attr-defined]
    for model in (native, other):
        await model.aclose()
    again = registry.build("model", name)
    assert again._server is constrained._server  # type: ignore[attr-defined]
    for model in (again, constrained):
        await model.aclose()
    fresh = registry.build("model", name)
    assert fresh._server is not constrained._server  # type: ignore[attr-defined]
    await fresh.aclose()


async def test_a_small_model_gets_as_many_slots_as_a_table_has_seats(
    registry: Registry, small_model: Path
) -> None:
    model = registry.build("model", f"llamacpp/{small_model}")
    assert model.info.max_in_flight == 16
    await model.aclose()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tools=maybe", "tools"),
        ("context=-1", "context"),
        ("form=xml", "form"),
        ("lora=nowhere.gguf", "no file nowhere.gguf"),
        ("thread=2", "did you mean"),
    ],
)
def test_bad_options_are_named(
    registry: Registry, small_model: Path, options: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        registry.build("model", f"llamacpp/{small_model},{options}")


@pytest.mark.parametrize(
    ("template", "tools", "system"),
    [
        ("{% for m in messages %}{{ m.role == 'system' }}{% endfor %}", False, True),
        ("{% if tools %}{% endif %}{{ 'system' }}", True, True),
        (
            "{% if m.system %}{{ raise_exception('System role not supported') }}{% endif %}",
            False,
            False,
        ),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", False, False),
    ],
)
def test_what_a_template_takes_is_seen_in_it(template: str, tools: bool, system: bool) -> None:
    from coordbench_llamacpp.template import takes_system, takes_tools, with_tools

    assert (takes_tools(template), takes_system(template)) == (tools, system)
    assert with_tools(template).endswith(template)
