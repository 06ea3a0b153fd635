"""Fitness: which tool of a namespace is the fittest, and why."""
