"""A benchmark of repairs of tool calls that any program can enter; `README.md` says how."""
