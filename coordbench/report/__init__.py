"""From stored events to tables: aggregation and the built-in reporters."""
