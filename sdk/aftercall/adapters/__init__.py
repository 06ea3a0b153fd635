"""Reflection inside the frameworks that people already use; each module needs its own extra."""
