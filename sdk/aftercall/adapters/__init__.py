"""Reflection inside the frameworks that people already use; functions and hooks need no extra."""
