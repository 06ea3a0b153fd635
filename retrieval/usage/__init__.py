"""Usage: what tools were asked for and how that went, by hour, and in windows up to now. Pure."""
