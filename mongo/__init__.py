"""The durable truth: one protocol, embedded SQLite."""
