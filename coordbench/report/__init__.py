"""From stored events to tables: aggregation and the built-in reporters."""

from coordbench.report.view import StoredRunView, load_view

__all__ = ["StoredRunView", "load_view"]
