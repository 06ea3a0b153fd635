"""The gateway: reflection in front of any MCP servers (extra `gateway`).

Nothing is imported here, so that the command line stays light.
"""
