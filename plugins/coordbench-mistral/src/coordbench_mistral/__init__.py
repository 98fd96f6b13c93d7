"""Mistral's models for coordbench. Hooks are in `coordbench_mistral.plugin`."""
