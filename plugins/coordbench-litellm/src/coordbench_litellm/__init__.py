"""Models behind litellm for coordbench. Hooks are in `coordbench_litellm.plugin`."""
