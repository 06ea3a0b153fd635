"""Health: what is counted of a tool beside its fitness, and how it is told."""
