"""Finding plugins, one by one, and resolving names to offers."""

from coordbench.plugins.names import Name, parse_name, render_name
from coordbench.plugins.problems import Problem
from coordbench.plugins.registry import Registered, Registry, Resolved

__all__ = [
    "Name",
    "Problem",
    "Registered",
    "Registry",
    "Resolved",
    "parse_name",
    "render_name",
]
