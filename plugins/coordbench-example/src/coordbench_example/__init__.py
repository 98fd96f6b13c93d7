"""A living template of a coordbench plugin. Its hooks are in `coordbench_example.plugin`."""
