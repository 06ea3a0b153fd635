"""Rewrites: what turns one call into another, how it is learned and what it does to a call."""
