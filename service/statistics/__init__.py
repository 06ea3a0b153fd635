"""Statistics of a running service: usage up to now, and what is told of it."""
