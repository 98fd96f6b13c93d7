"""Conformance checks and case replay for plugin authors."""
