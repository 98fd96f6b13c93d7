"""Local GGUF models through llama.cpp. The hooks are in `coordbench_llamacpp.plugin`."""
