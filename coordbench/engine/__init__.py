"""Plan, limits, and the episode loop: the only part that calls a model."""
