"""What finding tools costs the index, at 5,000 tools and 100,000 past scenarios in one folder.

Texts and vectors are of MetaTool's and Seal-Tools' questions and tools, repeated with noise in the
vectors. Measured as it stands after filling, while the latest documents are not yet compacted, and
again when the compaction that runs meanwhile is over.
"""

import itertools
import random
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from aftercall.models import Tool
from bench.quality.choosing_data import SETS, load
from embeddings.embedders import CachedEmbedder
from embeddings.protocol import Embedder
from embeddings.text import terms_text
from retrieval.answers.fitness.relevance import tool_queries
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import IndexPoint, IndexQuery
from retrieval.knowledge.rows.tool_texts import tool_terms, tool_text

T = TypeVar("T")

TOOLS = 5_000
SCENARIOS = 100_000
LIMIT = 30
NAMESPACE = 8
"""Tools of the namespace that is asked about."""
NEAR = 3
"""Tools outside of it that are compared with them."""
EMBEDDING = "one embedding"
_WORKSPACE = "benchmark"
_NOISE = 0.35
_BATCH = 5_000
_SAMPLES = 400


@dataclass(slots=True)
class Speed:
    """p50 and p95 in milliseconds by what was asked, and of one embedding in between these."""

    embedding: tuple[float, float] = (0.0, 0.0)
    asked: dict[str, tuple[float, float]] = field(default_factory=dict)
    compacted: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(slots=True)
class _Material:
    questions: list[tuple[str, NDArray[np.float32]]]
    tools: list[tuple[Tool, NDArray[np.float32]]]


async def measure_speed(embedder: Embedder) -> Speed | None:
    """The figures; None where a set is missing."""
    sets = [load(name) for name in SETS]
    if None in sets:
        return None
    asked = [q for each in sets if each for q in random.Random(7).sample(each.test, _SAMPLES // 2)]
    texts = [each.text for each in asked]
    material = _Material(
        list(zip(texts, await embedder.embed(texts, "query"), strict=True)),
        await _tools(embedder, [tool for each in sets if each for tool in each.tools]),
    )
    inner = embedder.embedder if isinstance(embedder, CachedEmbedder) else embedder
    speed, rng = Speed(), np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        index = await EdgeIndex.open(
            Path(folder), dimension=embedder.dimension, fingerprint=embedder.fingerprint
        )
        try:
            await _fill(index, material, rng)
            speed.asked = await _times(index, inner, material)
            await index.wait_compacted()
            speed.compacted = await _times(index, inner, material)
        finally:
            await index.close()
    speed.embedding = speed.asked.pop(EMBEDDING)
    speed.compacted.pop(EMBEDDING)
    return speed


async def _times(
    index: EdgeIndex, embedder: Embedder, material: _Material
) -> dict[str, tuple[float, float]]:
    """One of each in turn, so that whatever else the machine does slows all of them alike."""
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for text, vector in material.questions:
        started = time.perf_counter()
        await embedder.embed([text], "query")
        taken[EMBEDDING].append(time.perf_counter() - started)
        for what, queries in _questions(text, vector).items():
            started = time.perf_counter()
            await index.search_points(queries)
            taken[what].append(time.perf_counter() - started)
    found = {}
    for what, seconds in taken.items():
        # the first find nothing in any cache
        p50, p95 = np.percentile(np.array(seconds[5:]) * 1_000, (50, 95))
        found[what] = (float(p50), float(p95))
    return found


def _questions(text: str, vector: NDArray[np.float32]) -> dict[str, list[IndexQuery]]:
    ids = tuple(_id("tool", number) for number in range(NAMESPACE + NEAR))
    vectors = vector[np.newaxis]
    return {
        "tools near a scenario": tool_queries(_WORKSPACE, vectors, [text], limit=LIMIT),
        f"{NAMESPACE + NEAR} tools": tool_queries(
            _WORKSPACE, vectors, [text], limit=LIMIT, document_ids=ids
        ),
        f"the past of {NAMESPACE + NEAR} tools": [_past(vector, NAMESPACE + NEAR)],
        f"the past of {LIMIT} tools": [_past(vector, LIMIT)],
        "the past of all tools (the service does not ask it)": [_scenarios(vector, limit=50)],
    }


def _past(vector: NDArray[np.float32], count: int) -> IndexQuery:
    first = int(1e6 * abs(float(vector[0])))  # other tools each time
    tools = [(first + 97 * each) % TOOLS for each in range(count)]
    known = count * SCENARIOS // TOOLS
    named = tuple(("", _name(tool)) for tool in tools)
    return _scenarios(vector, limit=min(known, 32 * count, 400), tools=named)


def _scenarios(
    vector: NDArray[np.float32], *, limit: int, tools: tuple[tuple[str, str], ...] | None = None
) -> IndexQuery:
    return IndexQuery((_WORKSPACE,), "scenario", vector, "", limit, tools=tools)


async def _fill(index: EdgeIndex, material: _Material, rng: np.random.Generator) -> None:
    await index.upsert_points(
        [
            IndexPoint(
                _id("tool", number), _WORKSPACE, "tool", None, _name(number), vector,
                tool_terms(tool),
            )
            for number, (tool, vector) in enumerate(_repeated(material.tools, TOOLS, rng))
        ]
    )  # fmt: skip
    scenarios = enumerate(_repeated(material.questions, SCENARIOS, rng))
    while batch := list(itertools.islice(scenarios, _BATCH)):
        await index.upsert_points(
            [
                IndexPoint(
                    _id("scenario", number), _WORKSPACE, "scenario", None, _name(number % TOOLS),
                    vector, terms_text(text), version="1.0.0",
                )
                for number, (text, vector) in batch
            ]
        )  # fmt: skip


def _repeated(
    items: Sequence[tuple[T, NDArray[np.float32]]], count: int, rng: np.random.Generator
) -> Iterator[tuple[T, NDArray[np.float32]]]:
    """So many of the items with their vectors, over and over; all but the first ones with noise."""
    for number, (what, vector) in zip(range(count), itertools.cycle(items), strict=False):
        if number < len(items):
            yield what, vector
            continue
        noise = rng.standard_normal(vector.shape).astype(np.float32)
        moved = vector + _NOISE * noise / np.sqrt(len(vector))
        yield what, (moved / np.linalg.norm(moved)).astype(np.float32)


async def _tools(embedder: Embedder, tools: list[Tool]) -> list[tuple[Tool, NDArray[np.float32]]]:
    vectors = [
        await embedder.embed([tool_text(tool) for tool in tools[start : start + 256]], "document")
        for start in range(0, len(tools), 256)
    ]
    return list(zip(tools, np.concatenate(vectors), strict=True))


def _id(kind: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind} {number}"))


def _name(number: int) -> str:
    return f"tool{number}"
