"""Patterns: failures that the nightly job joins, and tools that are asked to do two jobs."""
