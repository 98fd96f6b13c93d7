"""A place to install plugins for one test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sites import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder on `sys.path`; what is imported from it is forgotten afterwards."""
    site = Site(tmp_path / "site")
    monkeypatch.delenv("COORDBENCH_STRICT", raising=False)
    monkeypatch.syspath_prepend(str(site.path))
    before = set(sys.modules)
    yield site
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
