"""The vector index: one protocol, Qdrant Edge and Qdrant servers."""
