"""How good repairs are: damaged calls, what is suggested for them, and what it would have done."""
