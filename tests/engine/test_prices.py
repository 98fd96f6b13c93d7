"""Prices and costs: known, unknown, free; never 0 for unknown."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from coordbench.api import ModelInfo, Usage
from coordbench.engine import prices
from coordbench.engine.prices import call_cost, price_of, priced

USAGE = Usage(input_tokens=900, output_tokens=40)


@pytest.fixture
def without_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "_litellm_map", dict)


def info(**fields: object) -> ModelInfo:
    base: dict[str, object] = {"provider": "openai", "model": "gpt-5.4", "paid": True}
    return ModelInfo(**(base | fields))  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_litellm")
def test_a_known_model_has_a_price_with_its_source() -> None:
    found = price_of("openai", "gpt-5.4")
    assert found is not None
    assert (found.input, found.output) == (2.5, 15.0)
    assert "table of 20" in found.source


@pytest.mark.usefixtures("without_litellm")
def test_an_unknown_price_is_none_and_so_is_the_cost() -> None:
    unknown = priced(info(model="qwen3-8b-grpo-step9"))
    assert unknown.price_in is None
    assert call_cost(unknown, USAGE) is None


def test_a_users_own_price_comes_first() -> None:
    own = priced(info(price_in=1.0, price_out=2.0))
    assert call_cost(own, USAGE) == pytest.approx((900 * 1.0 + 40 * 2.0) / 1e6)


def test_cached_input_is_cheaper_where_its_price_is_known() -> None:
    model = info(price_in=10.0, price_out=0.0, price_cached=1.0)
    usage = Usage(input_tokens=1000, output_tokens=0, cached_tokens=400)
    assert call_cost(model, usage) == pytest.approx((600 * 10 + 400 * 1) / 1e6)


def test_a_call_whose_usage_is_unknown_has_an_unknown_cost() -> None:
    assert call_cost(info(price_in=1.0, price_out=1.0), Usage()) is None


def test_a_local_model_is_free() -> None:
    assert call_cost(info(paid=False), Usage()) == 0.0


def test_a_server_on_this_machine_costs_what_the_user_says() -> None:
    proxy = priced(info(paid=False, price_in=100.0, price_out=1000.0))
    assert proxy.paid
    assert call_cost(proxy, USAGE) == pytest.approx(0.13)
    assert not priced(info(paid=False, price_in=0.0, price_out=0.0)).paid


def test_litellms_map_is_read_without_importing_litellm() -> None:
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    code = (
        "import sys; from coordbench.engine.prices import price_of;"
        "found = price_of('google', 'gemini-2.5-flash');"
        "assert found is not None and 'litellm' in found.source;"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
