"""What the same session called before, and the latest calls of a tool."""
