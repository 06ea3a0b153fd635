"""The nightly ingest: what was recorded becomes statistics, patterns, calibration; and upkeep.

Each step is a module. It streams, keeps what it knows of its own progress in the store, and may be
killed at any point and run again: done twice is done once.
"""
