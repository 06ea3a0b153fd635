"""Answers: repairs, warnings, the fittest tool, and what an agent should know before it calls."""
