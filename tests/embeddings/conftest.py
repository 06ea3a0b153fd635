"""Embedders for the tests. The exported model is shared by all runs on a machine."""

import asyncio
import os
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from embeddings.embedders import OnnxEmbedder, SentenceTransformersEmbedder
from embeddings.models import bundled_model, bundled_source, default_cache_dir

T = TypeVar("T")


@pytest.fixture(scope="session")
def model_cache_dir() -> Path:
    """`AFTERCALL_MODEL_CACHE`, or the folder that the service uses."""
    given = os.environ.get("AFTERCALL_MODEL_CACHE")
    return Path(given) if given else default_cache_dir()


@pytest.fixture(scope="session", name="bundled_source")
def bundled_source_folder() -> Path:
    """The sentence-transformers folder of the bundled model."""
    return bundled_source()


@pytest.fixture(scope="session")
def onnx_folder(model_cache_dir: Path) -> Path:
    """The bundled model exported; made on the first run of a machine (10 s)."""
    return _run(bundled_model(model_cache_dir))


@pytest.fixture(scope="session")
def onnx_embedder(onnx_folder: Path) -> Iterator[OnnxEmbedder]:
    """The bundled model on ONNX Runtime; usable from every test's event loop."""
    embedder = _run(OnnxEmbedder.open(onnx_folder))
    yield embedder
    _run(embedder.close())


@pytest.fixture(scope="session")
def torch_embedder(bundled_source: Path) -> Iterator[SentenceTransformersEmbedder]:
    """The bundled model on sentence-transformers."""
    embedder = _run(SentenceTransformersEmbedder.open(str(bundled_source)))
    yield embedder
    _run(embedder.close())


def _run(work: Coroutine[None, None, T]) -> T:
    """In a thread, because the test that first asks for a session's fixture may be in a loop."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, work).result()
