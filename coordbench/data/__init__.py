"""Plain data: specs, events, episodes, errors. Nothing here does I/O or calls a model."""
