"""Claude models through Anthropic's Messages API. The hook is in `coordbench_anthropic.plugin`."""
