"""A package, so that one browser lasts for all its tests."""
