"""Fitness: which tool of a namespace is the fittest for a scenario, and why (seed 002)."""
