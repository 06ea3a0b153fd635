"""What the service can do, as tools of an MCP server (extra `mcp`).

The tools are defined once, over an `AsyncClient`, and served twice: by `aftercall mcp` over stdio,
and by the service itself at `/mcp`. Nothing is imported here, so that the command line stays light.
"""
