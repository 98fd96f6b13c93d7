"""Conformance checks for model providers behind HTTP, for plugin authors.

Describe your wire format once, and run every check against your real SDK and a local server::

    KIT = ProviderKit(make=..., key=..., call_body=..., text_body=..., offered=...)

    @pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=check_name)
    async def test_conformance(check):
        await check(KIT)

Each check raises `AssertionError` with one sentence on what is wrong. `run_checks` runs all of
them without pytest.
"""

from __future__ import annotations

# The checks register themselves.
from coordbench.testing import provider_checks, provider_faults  # noqa: F401
from coordbench.testing.provider_kit import PROVIDER_CHECKS, ProviderKit, check_name

__all__ = ["PROVIDER_CHECKS", "ProviderKit", "check_name", "run_checks"]


async def run_checks(kit: ProviderKit) -> dict[str, str]:
    """Run every check; the name of each that failed, and what is wrong."""
    failed = {}
    for check in PROVIDER_CHECKS:
        try:
            await check(kit)
        except Exception as error:  # a check may meet anything
            failed[check_name(check)] = f"{type(error).__name__}: {error}"
    return failed
