"""What the simulation speaks of: kinds of requests in the words of users, and a tool for each.

Two catalogues, each with the requests that people wrote for one and the same tool. `development` is
the training half of MetaTool's questions. `held_out` is BFCL's questions to live functions (and to
single Python ones), which nothing here was fitted on: neither the weights of relevance nor the
weights of likeness. Each request also comes in the words of people who say more than they need.
"""

import hashlib
import importlib.util
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from numpy.typing import NDArray

from aftercall.models import Tool
from bench.quality import choosing_data
from embeddings.protocol import Embedder
from retrieval.answers.fitness.relevance import rank_relevant, tool_queries
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import IndexPoint
from retrieval.knowledge.rows.tool_texts import tool_terms, tool_text

CatalogueName = Literal["development", "held_out"]
LEAST_TEXTS = 9
"""Requests that a kind must have."""
MOST_TEXTS, MOST_KINDS = 16, 32
_FRAMES = (
    "{}", "Hi! {} Thanks a lot.", "For the meeting on Monday: {}", "My colleague asks: {}",
    "{} Keep it short, please.", "I tried this before without success. {}",
)  # fmt: skip
"""What people say around a request."""
_BFCL = ("live_simple", "live_multiple", "simple_python", "multiple")
_WORKSPACE = "simulation"
_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Kinds of requests with one tool each, and what model and index say of their words."""

    kinds: NDArray[np.int64]
    """The kind of each text."""
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]
    """Of the texts, unit length, texts x dimension."""
    cosines: NDArray[np.float64]
    """Texts x tools; the tool of a kind has its number."""
    terms: NDArray[np.float64]
    """BM25, texts x tools."""


async def catalogue(embedder: Embedder, name: CatalogueName) -> Catalogue | None:
    """A catalogue; None where its data are not there."""
    known = _metatool() if name == "development" else _bfcl()
    if known is None:
        return None
    tools, requests = known
    texts = [frame.format(each) for each in requests for frame in _FRAMES]
    kinds = np.repeat(np.array(list(requests.values())), len(_FRAMES))
    vectors = await embedder.embed(texts, "query")
    with tempfile.TemporaryDirectory() as folder:
        index = await EdgeIndex.open(
            Path(folder), dimension=embedder.dimension, fingerprint=embedder.fingerprint
        )
        try:
            await _add(index, embedder, tools)
            cosines, terms = await _asked(index, tools, texts, vectors)
        finally:
            await index.close()
    return Catalogue(kinds, tuple(texts), vectors, cosines, terms)


async def _add(index: EdgeIndex, embedder: Embedder, tools: list[Tool]) -> None:
    vectors = await embedder.embed([tool_text(each) for each in tools], "document")
    await index.upsert_points(
        [
            IndexPoint(_id(tool), _WORKSPACE, "tool", None, tool.name, vector, tool_terms(tool))
            for tool, vector in zip(tools, vectors, strict=True)
        ]
    )


async def _asked(
    index: EdgeIndex, tools: list[Tool], texts: list[str], vectors: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    place = {_id(tool): number for number, tool in enumerate(tools)}
    cosines, terms = np.zeros((2, len(texts), len(tools)))
    for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        queries = tool_queries(_WORKSPACE, vector[np.newaxis], [text], limit=len(tools))
        for each in rank_relevant(await index.search_points(queries)):
            cosines[number, place[each.document_id]] = each.cosine
            terms[number, place[each.document_id]] = each.terms
    return cosines, terms


def _id(tool: Tool) -> str:
    return str(uuid5(NAMESPACE_URL, tool.name))


def _metatool() -> tuple[list[Tool], dict[str, int]] | None:
    known = choosing_data.load("metatool")
    if known is None:
        return None
    by_tool: dict[str, list[str]] = defaultdict(list)
    for each in known.train:
        if len(each.relevant) == 1:
            by_tool[next(iter(each.relevant))].append(each.text)
    return _kinds(by_tool, {each.name: each for each in known.tools})


def _bfcl() -> tuple[list[Tool], dict[str, int]] | None:
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "data"
    by_tool: dict[str, list[str]] = defaultdict(list)
    tools: dict[str, Tool] = {}
    for name in _BFCL:
        file = f"BFCL_v4_{name}.json"
        right = {row["id"]: row["ground_truth"] for row in _rows(folder / "possible_answer" / file)}
        for row in _rows(folder / file):
            [wanted] = right[row["id"]][0]
            by_tool[wanted].append(row["question"][0][-1]["content"])
            for each in row["function"]:
                tools[each["name"]] = Tool(
                    tool_id=each["name"], name=each["name"], description=each["description"],
                    updated_at=_AT,
                )  # fmt: skip
    return _kinds(by_tool, tools)


def _rows(file: Path) -> Iterator[dict[str, list]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _kinds(
    by_tool: dict[str, list[str]], tools: dict[str, Tool]
) -> tuple[list[Tool], dict[str, int]]:
    """The kinds that have enough requests, in an order that nobody chose."""
    rich = [name for name, texts in by_tool.items() if len(set(texts)) >= LEAST_TEXTS]
    chosen = sorted(rich, key=_place)[:MOST_KINDS]
    requests = {
        text: kind
        for kind, name in enumerate(chosen)
        for text in sorted(set(by_tool[name]), key=_place)[:MOST_TEXTS]
    }
    return [tools[name] for name in chosen], requests


def _place(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
