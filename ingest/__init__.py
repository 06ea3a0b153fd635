"""Executions to knowledge: intake, indexing, repair mining, reflections, seed corpus."""
