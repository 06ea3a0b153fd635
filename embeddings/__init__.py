"""Text to vectors: one protocol, ONNX Runtime, sentence-transformers and hashing."""
