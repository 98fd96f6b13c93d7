"""Built-in rewards and metrics: pure functions of an episode."""
