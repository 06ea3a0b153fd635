"""Other memories for agents, measured beside ours on the same machine, model and texts."""
