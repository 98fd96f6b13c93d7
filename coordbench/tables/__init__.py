"""The rules of the table: pure, deterministic, fast."""
