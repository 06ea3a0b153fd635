"""Open an embedder by its name in the settings."""

from pathlib import Path

from embeddings.cache import CachedEmbedder
from embeddings.hashing import HashingEmbedder
from embeddings.model_cache import Progress, bundled_model, local_model
from embeddings.model_files import BUNDLED_NAME, default_cache_dir
from embeddings.onnx import DEFAULT_THREADS, OnnxEmbedder
from embeddings.protocol import Embedder, EmbeddingError
from embeddings.sentence_transformers import SentenceTransformersEmbedder

ACCEPTED = (
    f"'{BUNDLED_NAME}' (the bundled model, on ONNX Runtime), "
    "'onnx:FOLDER' (a sentence-transformers folder, exported to ONNX), "
    "'st:NAME_OR_PATH' (any model of sentence-transformers, on torch), "
    "'hashing' (no model)"
)


async def open_embedder(
    model: str = BUNDLED_NAME,
    *,
    cache_dir: Path | None = None,
    cache_size: int = 10_000,
    threads: int | None = None,
    on_progress: Progress | None = None,
) -> CachedEmbedder:
    """The embedder of that name, with a cache of texts before it. The caller closes it.

    Args:
        model: `all-MiniLM-L6-v2`, `onnx:FOLDER`, `st:NAME_OR_PATH` or `hashing`.
        cache_dir: Where exported models lie; `$XDG_CACHE_HOME/aftercall/models` when `None`.
        cache_size: How many texts' vectors are remembered.
        threads: Threads of ONNX Runtime; 2 when `None`.
        on_progress: Told in one sentence what takes long.

    Raises:
        EmbeddingError: when the name is not accepted, or the model missing or damaged.
    """
    embedder = await _open(
        model, cache_dir or default_cache_dir(), threads or DEFAULT_THREADS, on_progress
    )
    return CachedEmbedder(embedder, cache_size)


async def _open(
    model: str, cache_dir: Path, threads: int, on_progress: Progress | None
) -> Embedder:
    kind, _, argument = model.partition(":")
    if model == "hashing":
        return HashingEmbedder()
    if model == BUNDLED_NAME:
        folder = await bundled_model(cache_dir, on_progress)
        return await OnnxEmbedder.open(folder, threads=threads)
    if kind == "onnx" and argument:
        folder = await local_model(Path(argument), cache_dir, on_progress)
        return await OnnxEmbedder.open(folder, threads=threads)
    if kind == "st" and argument:
        return await SentenceTransformersEmbedder.open(argument)
    raise EmbeddingError(f"unknown embedding model {model!r}; accepted are {ACCEPTED}")
