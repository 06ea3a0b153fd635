"""Each question asked of the real index, once; what each method needs of the answers is kept.

Tools go into an `EdgeIndex` in a temporary folder with the texts and terms of the service, and past
successes as the service would keep them: the training half's questions, at most 32 for a tool.
"""

import tempfile
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bench.quality.choosing_data import ChoosingSet, Question
from bench.quality.choosing_scores import Ranking
from embeddings.protocol import Embedder
from embeddings.text import terms_text
from mongo.records import ToolKey
from retrieval.answers.fitness.relevance import (
    Owner,
    RelevantTool,
    Weights,
    rank_relevant,
    scenario_parts,
    tool_queries,
)
from retrieval.answers.fitness.search import past_query, read_past
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import Hit, IndexPoint, IndexQuery
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rows.documents import Document, Kind
from retrieval.knowledge.rows.statistics import MAX_SCENARIOS, ToolTrials, trial_of
from retrieval.knowledge.rows.tool_texts import tool_terms, tool_text

WORKSPACE = "benchmark"
LIMIT = 10
CANDIDATES = 30
"""Judged by the service for a limit of ten."""
_FUSED = 50
_RRF_K = 60
_BATCH = 256
_START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(slots=True)
class Asked:
    """A question and what the index said."""

    question: Question
    answers: list[list[Hit]]
    """Of `tool_queries`: the first is of the whole scenario, the others of its sentences."""
    fused: dict[str, Ranking] = field(default_factory=dict)
    past: dict[Owner, float] = field(default_factory=dict)
    """What past successes say for each candidate; this question's own are left out."""

    def by_terms(self) -> Ranking:
        """BM25 alone."""
        found = [hit for hit in self.answers[0] if hit.score > 0]
        return _names(sorted(found, key=lambda hit: (-hit.score, hit.document_id)))

    def by_cosine(self) -> Ranking:
        """The vector of the whole question alone."""
        return _names(self.answers[0])

    def by_best_cosine(self) -> Ranking:
        """The vectors of the question and its sentences, the nearest of them."""
        found = sorted(self.relevant(), key=lambda each: (-each.cosine, each.document_id))
        return [each.tool_name or "" for each in found[:LIMIT]]

    def by_relevance(self, weights: Weights | None, *, past: bool, parts: bool = True) -> Ranking:
        """As the service ranks."""
        found = self.relevant(self.past if past else None, weights, parts=parts)
        return [each.tool_name or "" for each in found[:LIMIT]]

    def relevant(
        self,
        past: Mapping[Owner, float] | None = None,
        weights: Weights | None = None,
        *,
        parts: bool = True,
    ) -> list[RelevantTool]:
        """What the service makes of the answers, all of them."""
        answers = self.answers if parts else self.answers[:1]
        return rank_relevant(answers, past, parts=len(answers), weights=weights)


async def ask_all(embedder: Embedder, chosen: ChoosingSet) -> tuple[list[Asked], list[Asked]]:
    """The training half's questions and the test's, asked of the same index."""
    questions = [*chosen.train, *chosen.test]
    vectors = await _question_vectors(embedder, questions)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        async with _opened(folder, embedder) as index:
            await _add_tools(index, embedder, chosen)
            found = []
            for question, own in zip(questions, vectors, strict=True):
                queries = tool_queries(
                    WORKSPACE, own, scenario_parts(question.text), limit=CANDIDATES
                )
                asked = Asked(question, await index.search_points(queries))
                asked.fused = await _fused(index, question, own)
                found.append(asked)
            history = await _add_history(index, chosen.train, vectors)
            for asked, own in zip(found, vectors, strict=True):
                asked.past = await _past(index, asked, own[0], history)
    return found[: len(chosen.train)], found[len(chosen.train) :]


@asynccontextmanager
async def _opened(folder: Path, embedder: Embedder) -> AsyncIterator[EdgeIndex]:
    index = await EdgeIndex.open(
        folder, dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    try:
        yield index
    finally:
        await index.close()


async def _question_vectors(
    embedder: Embedder, questions: Sequence[Question]
) -> list[NDArray[np.float32]]:
    parts = [scenario_parts(each.text) for each in questions]
    flat = [text for texts in parts for text in texts]
    vectors = await _embed(embedder, flat)
    ends = np.cumsum([len(texts) for texts in parts])
    return np.split(vectors, ends[:-1])


async def _embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    batches = [
        await embedder.embed(texts[start : start + _BATCH], "document")
        for start in range(0, len(texts), _BATCH)
    ]
    return np.concatenate(batches)


async def _add_tools(index: EdgeIndex, embedder: Embedder, chosen: ChoosingSet) -> None:
    vectors = await _embed(embedder, [tool_text(tool) for tool in chosen.tools])
    await index.upsert_points(
        [
            _point("tool", tool.name, "", vector, tool_terms(tool))
            for tool, vector in zip(chosen.tools, vectors, strict=True)
        ]
    )


@dataclass(slots=True)
class _History:
    """What the service's store holds of past scenarios."""

    by_id: dict[str, Document] = field(default_factory=dict)
    by_tool: defaultdict[str, dict[str, datetime]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    async def read_documents(self, _: str, ids: Sequence[str]) -> dict[str, Document]:
        """As `Memory.read_documents`."""
        return {each: self.by_id[each] for each in ids if each in self.by_id}

    def statistics(self, tool: str, other_than: str) -> ToolTrials:
        """A tool's table of scenarios, without the one of this text."""
        others = {
            each: at for each, at in self.by_tool[tool].items()
            if self.by_id[each].text != other_than
        }  # fmt: skip
        return ToolTrials(scenarios=others)


async def _add_history(
    index: EdgeIndex, questions: Sequence[Question], vectors: Sequence[NDArray[np.float32]]
) -> _History:
    """Each question as a success of its tools, as far as a tool's table has room."""
    history = _History()
    points = []
    for number, (question, own) in enumerate(zip(questions, vectors, strict=False)):
        for name in sorted(question.relevant):
            if len(history.by_tool[name]) >= MAX_SCENARIOS:
                continue
            point = _point("scenario", name, question.text, own[0], terms_text(question.text))
            at = _START + timedelta(minutes=number)
            history.by_tool[name][point.document_id] = at
            history.by_id[point.document_id] = Document(
                document_id=point.document_id, kind="scenario", server_name=None, tool_name=name,
                text=question.text, trials=[trial_of(at, point.document_id, "success")],
            )  # fmt: skip
            points.append(point)
    await index.upsert_points(points)
    return history


async def _past(
    index: EdgeIndex, asked: Asked, vector: NDArray[np.float32], history: _History
) -> dict[Owner, float]:
    """As the service gathers it for its candidates, without this very question."""
    statistics = {
        ToolKey(WORKSPACE, None, name): history.statistics(name, asked.question.text)
        for each in asked.relevant()[:CANDIDATES]
        if (name := each.tool_name)
    }
    [hits] = await index.search_points([past_query(WORKSPACE, vector, statistics)])
    return (await read_past(WORKSPACE, hits, cast("Memory", history))).count_successes()


async def _fused(
    index: EdgeIndex, question: Question, own: NDArray[np.float32]
) -> dict[str, Ranking]:
    """What the usual fusions make of the best `_FUSED` of each side.

    Reciprocal ranks (Cormack, Clarke and Buettcher, SIGIR 2009), and Qdrant's DBSF: each side's
    scores scaled by their mean and three standard deviations, then added.
    """
    query = IndexQuery((WORKSPACE,), "tool", own[0], terms_text(question.text), _FUSED)
    [hits] = await index.search_points([query])
    by_rank, by_score = defaultdict[Hit, float](float), defaultdict[Hit, float](float)
    for side in (
        {hit: hit.similarity for hit in hits[:_FUSED]},
        {hit: hit.score for hit in hits if hit.score > 0},
    ):
        best = sorted(side, key=lambda hit: (-side[hit], hit.document_id))[:_FUSED]
        scores = [side[hit] for hit in best]
        spread = 3 * float(np.std(scores)) or 1.0
        for rank, hit in enumerate(best, start=1):
            by_rank[hit] += 1 / (_RRF_K + rank)
            by_score[hit] += 0.5 + (side[hit] - float(np.mean(scores))) / (2 * spread)
    return {
        name: _names(sorted(found, key=lambda hit: (-found[hit], hit.document_id)))
        for name, found in (("rrf", by_rank), ("dbsf", by_score))
    }


def _point(kind: Kind, tool: str, what: str, vector: NDArray[np.float32], terms: str) -> IndexPoint:
    made = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}\x1f{tool}\x1f{what}"))
    return IndexPoint(made, WORKSPACE, kind, None, tool, vector, terms)


def _names(hits: Sequence[Hit]) -> Ranking:
    return [hit.tool_name or "" for hit in hits[:LIMIT]]
