"""Built-in model providers: scripted policies and replay."""
