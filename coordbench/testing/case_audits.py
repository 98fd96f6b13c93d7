"""Cases about requests and money: what became of settings, and what calls cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordbench.api import ModelInfo, Usage
from coordbench.api.settingsaudit import audit_settings
from coordbench.engine.prices import call_cost, priced

__all__ = ["audit_of", "unmet_fields"]


def audit_of(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is found about a `request_audit`: of settings, or of the cost of a usage.

    None where the input is neither.
    """
    if "requested" in given and "sent" in given:
        audit = audit_settings(given["requested"], given["sent"])
        return {
            "type": "audit",
            "dropped": sorted(audit.dropped),
            "renamed": audit.renamed,
            "changed": audit.changed,
            "comparable": audit.comparable,
        }
    if "usage" in given and "model" in given:
        provider, _, _ = str(given.get("api") or "litellm").partition(".")
        info = priced(
            ModelInfo(
                provider=provider,
                model=given["model"],
                paid=True,
                price_in=given.get("price_in"),
                price_out=given.get("price_out"),
            )
        )
        said = given["usage"]
        usd = call_cost(info, Usage(said.get("prompt_tokens"), said.get("completion_tokens")))
        return {"type": "cost", "usd": usd, "known": usd is not None}
    return None


def unmet_fields(expect: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The fields of an expectation that what was found does not have, described."""
    return [
        f"{key} {found[key]!r}"
        for key, wanted in expect.items()
        if key in found and found[key] != (sorted(wanted) if key == "dropped" else wanted)
    ]
