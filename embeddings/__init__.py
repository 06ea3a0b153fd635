"""Text to vectors: one protocol, ONNX Runtime, sentence-transformers and hashing."""

import os

# From 1.31 on, ONNX Runtime reports its use to its maker as soon as it is imported, and keeps what
# is to be sent in the user's cache. Whoever wants that sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
