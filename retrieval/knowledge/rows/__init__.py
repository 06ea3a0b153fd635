"""Rows: what the log and the knowledge store hold, and who stated it."""
