"""Settings: one class per concern, the environment read in one place."""
