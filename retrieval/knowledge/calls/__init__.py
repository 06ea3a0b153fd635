"""Calls as trees: the account of a repair, and the functions by which a value is recoded."""
