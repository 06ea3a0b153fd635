"""Text to vectors: one protocol, ONNX Runtime, sentence-transformers and hashing."""

import os

# ONNX Runtime 1.31 has its telemetry on as soon as it is imported, and keeps an identifier in the
# user's cache. Set the variable to 0 to have that.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
