"""Values: what a value is, how it is written, and which values are near each other."""
