"""Finding plugins, one by one, and resolving names to offers."""
