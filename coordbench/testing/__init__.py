"""Conformance checks and case replay for plugin authors.

- `ProviderKit`, `PROVIDER_CHECKS`, `run_checks`: is a provider sound? (`.providers`)
- `replay_case`: what comes of a failure case? (`.cases`)
- `StubServer`: a local HTTP server that answers as it is told. (`.stub_server`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coordbench.testing.cases import Outcome, replay_case
    from coordbench.testing.providers import (
        PROVIDER_CHECKS,
        ProviderKit,
        check_name,
        run_checks,
    )
    from coordbench.testing.stub_server import StubRequest, StubResponse, StubServer

__all__ = [
    "PROVIDER_CHECKS",
    "Outcome",
    "ProviderKit",
    "StubRequest",
    "StubResponse",
    "StubServer",
    "check_name",
    "replay_case",
    "run_checks",
]

_MODULES = {"Outcome": "cases", "replay_case": "cases"} | dict.fromkeys(
    ("PROVIDER_CHECKS", "ProviderKit", "check_name", "run_checks"), "providers"
)


def __getattr__(name: str) -> Any:
    # Late, so that `python -m coordbench.testing.cases` is not imported twice.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_MODULES.get(name, 'stub_server')}")
    return getattr(module, name)
