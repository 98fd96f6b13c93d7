"""What a call costs: a user's own price, litellm's map where installed, or a dated table.

An unknown price is None, never 0.
"""

from __future__ import annotations

import importlib.util
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from coordbench.api.models import ModelInfo
from coordbench.data.events import Usage
from coordbench.data.manifest import ModelRecord

__all__ = ["Price", "call_cost", "price_of", "priced"]

_OWN_TABLE = Path(__file__).with_name("prices.toml")
_LITELLM_MAP = "model_prices_and_context_window_backup.json"
_MILLION = 1e6
_LITELLM_PREFIXES = {"google": "gemini"}


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens, and where the figures are from.

    `cached` is the price of input read from the provider's cache; None: as other input.
    """

    input: float
    output: float
    cached: float | None
    source: str


def price_of(provider: str, model: str) -> Price | None:
    """The price of a model, or None where it is not known.

    Parameters
    ----------
    provider, model : str
        As in `ModelInfo`, e.g. `openai` and `gpt-5.4`.
    """
    return _from_litellm(provider, model) or _from_own_table(provider, model)


def priced(info: ModelInfo) -> ModelInfo:
    """The info with a price filled in where the model is paid and its name gave none.

    A price given by the name makes a model paid wherever it is: a proxy on this machine may bill.
    """
    if info.price_in or info.price_out:
        return msgspec.structs.replace(info, paid=True)
    if not info.paid or (info.price_in is not None and info.price_out is not None):
        return info
    found = price_of(info.provider, info.model)
    if found is None:
        return info
    return msgspec.structs.replace(
        info, price_in=found.input, price_out=found.output, price_cached=found.cached
    )


def call_cost(info: ModelInfo | ModelRecord, usage: Usage) -> float | None:
    """Price of one call in US dollars; None where price or usage is unknown, 0 where free."""
    if not info.paid:
        return 0.0
    if info.price_in is None or info.price_out is None:
        return None
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    price_cached = info.price_in if info.price_cached is None else info.price_cached
    total = (usage.input_tokens - cached) * info.price_in + cached * price_cached
    return (total + usage.output_tokens * info.price_out) / _MILLION


def _from_own_table(provider: str, model: str) -> Price | None:
    table = _own_table()
    figures = table.get(provider, {}).get(model)
    if figures is None:
        return None
    cached = figures[2] if len(figures) > 2 else None
    return Price(figures[0], figures[1], cached, f"coordbench's table of {table['date']}")


def _from_litellm(provider: str, model: str) -> Price | None:
    prefix = _LITELLM_PREFIXES.get(provider, provider)
    names = (model,) if provider == "litellm" else (f"{prefix}/{model}", model)
    table = _litellm_map()
    for name in names:
        entry = table.get(name)
        if not isinstance(entry, dict):
            continue
        if name == model and provider not in ("litellm", _provider_of(entry)):
            continue
        into, out = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
        if into is None or out is None:
            continue
        cached = entry.get("cache_read_input_token_cost")
        return Price(
            into * _MILLION,
            out * _MILLION,
            None if cached is None else cached * _MILLION,
            "litellm's cost map",
        )
    return None


def _provider_of(entry: dict[str, Any]) -> str:
    named = str(entry.get("litellm_provider"))
    return next((own for own, theirs in _LITELLM_PREFIXES.items() if theirs == named), named)


@lru_cache(maxsize=1)
def _own_table() -> dict[str, Any]:
    return tomllib.loads(_OWN_TABLE.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _litellm_map() -> dict[str, Any]:
    """The map as a file: importing litellm takes seconds and may reach for the network."""
    spec = importlib.util.find_spec("litellm")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / _LITELLM_MAP
        if path.is_file():
            try:
                found = msgspec.json.decode(path.read_bytes())
            except (OSError, msgspec.DecodeError):
                return {}
            return found if isinstance(found, dict) else {}
    return {}
