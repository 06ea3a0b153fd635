"""Boundaries: axes in the tools' own words become clusters, clusters become cohesion."""
