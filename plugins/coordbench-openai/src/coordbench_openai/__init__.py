"""OpenAI and compatible servers for coordbench. Hooks are in `coordbench_openai.plugin`."""
