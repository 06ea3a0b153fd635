"""The vector index: one protocol, Qdrant Edge."""
