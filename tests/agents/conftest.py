"""Both agents, for tests that hold for each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordbench.agents.direct import build_direct
from coordbench.agents.langgraph import build_langgraph
from coordbench.agents.options import LangGraphOptions
from coordbench.api import Agent, NoOptions

AGENTS: dict[str, Callable[[], Agent]] = {
    "direct": lambda: build_direct("", NoOptions()),
    "langgraph": lambda: build_langgraph("", LangGraphOptions()),
}


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    """Each of the agents."""
    return AGENTS[request.param]()
