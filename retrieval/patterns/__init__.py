"""Patterns: like failures of one tool as one thing, whatever their wording. Pure."""
