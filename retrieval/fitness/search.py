"""Choosing a tool: gather what is known of the candidates, and let the pure core judge them.

One embedding, two questions to the index, one read of the statistics; nothing is written.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from aftercall.redaction import Redactor
from aftercall.wire import (
    BestTool,
    ExcludedTool,
    FindRequest,
    FoundTools,
    NamespaceList,
    RankedTool,
    RankingMode,
    SimilarFailure,
    ToolSource,
)
from embeddings.protocol import Embedder
from mongo.records import ToolKey
from retrieval.fitness.failures import NoToolFitsError, UnknownNamespaceError
from retrieval.fitness.finding import RelevantTool, relevant, tool_queries
from retrieval.fitness.gathering import PastScenarios, past_scenarios
from retrieval.fitness.judging import judge, why_excluded
from retrieval.fitness.lineage import Candidate, candidates_of, offered
from retrieval.fitness.registry import Registry
from retrieval.fitness.scenario_parts import scenario_parts
from retrieval.fitness.score import SEMANTIC_WEIGHT, THRESHOLD, ranked
from retrieval.fitness.statistics import ToolStatistics
from retrieval.fitness.tool_documents import tool_document_id, tools_by_document
from retrieval.index.protocol import Hit, IndexQuery, VectorIndex
from retrieval.memory import Memory

MAX_NEAR = 3
"""Tools outside a namespace that are compared with its own."""

MAX_JUDGED = 50
"""Tools of one question that are judged by all that is known of them; the most relevant ones."""

_LEAST_SIMILARITY = THRESHOLD / SEMANTIC_WEIGHT
"""Below it a tool from outside would be marked as hardly fit whatever its record."""

_MAX_SHOWN = 500
"""Characters of a past scenario or message in an answer."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, and how candidates are to be judged."""

    workspace: str
    scenario: str
    tags: tuple[str, ...]
    mode: RankingMode
    now: datetime


class ToolChooser:
    """Answers which tool to take.

    Args:
        memory: what is known, cached.
        index: where tools and past scenarios are found.
        embedder: makes the scenario's vectors.
        redactor: masks secrets before anything is answered.
        clock: the time now, with a zone.
        draw: what the mode `thompson` draws with.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        index: VectorIndex,
        embedder: Embedder,
        redactor: Redactor,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        draw: Random | None = None,
    ) -> None:
        self._memory = memory
        self._index = index
        self._embedder = embedder
        self._redactor = redactor
        self._clock = clock
        self._draw = draw or Random()  # noqa: S311  # explores, keeps no secret

    async def namespaces(self, workspace: str) -> NamespaceList:
        """All namespaces of a workspace, by name.

        Raises:
            StoreError: when the store cannot say.
        """
        return NamespaceList(namespaces=(await self._memory.registry(workspace)).namespaces())

    async def best(
        self,
        workspace: str,
        namespace: str,
        scenario: str,
        *,
        use_rag: bool = True,
        mode: RankingMode = "fitness",
        limit: int = 10,
    ) -> BestTool:
        """The fittest tool of a namespace, with at most `limit` candidates, best first.

        Raises:
            UnknownNamespaceError: no tool serves the namespace.
            NoToolFitsError: those that do are not to be offered for the scenario.
            StoreError, EmbeddingError, VectorIndexError: when these cannot answer.
        """
        scenario = self._redactor.text(scenario)
        registry = await self._memory.registry(workspace)
        candidates = candidates_of(registry, namespace)
        if not candidates:
            raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))
        question = _Question(workspace, scenario, (), mode, self._clock())
        if use_rag:
            tools, excluded = await self._searched(question, registry, candidates)
        else:
            own = [each for each in candidates if each.source != "semantic"]
            statistics = await self._memory.statistics([each.key for each in own])
            tools, excluded = self._judged(
                question, [(each, each.source) for each in own], statistics
            )
        if not tools:
            reasons = "; ".join(f"{each.tool_id!r}: {each.reason}" for each in excluded[:3])
            raise NoToolFitsError(f"no tool of the namespace is offered for this: {reasons}")
        shown = [self._shown(each) for each in ranked(tools)[:limit]]
        return BestTool(
            **dict(shown[0]),
            candidates=shown,
            excluded=[self._shown_excluded(each) for each in excluded],
            threshold=THRESHOLD,
            mode=mode,
        )

    async def find(self, workspace: str, request: FindRequest) -> FoundTools:
        """Tools of any namespace for a scenario, best first; empty when none fits.

        Raises:
            StoreError, EmbeddingError, VectorIndexError: when these cannot answer.
        """
        scenario = self._redactor.text(request.scenario)
        tags = tuple(request.tags)
        registry = await self._memory.registry(workspace)
        question = _Question(workspace, scenario, tags, request.mode, self._clock())
        ids = _with_tags(registry, tags) if tags else None
        if not registry.by_id or ids == ():
            return FoundTools(candidates=[], threshold=THRESHOLD, mode=request.mode)
        vectors = await self._embedder.embed(scenario_parts(scenario), "query")
        vectors = vectors.astype(np.float32, copy=False)
        count = min(MAX_JUDGED, 2 * request.limit + 10)
        queries = tool_queries(workspace, vectors, scenario, limit=count)
        if ids is not None:
            queries = [replace(query, document_ids=ids) for query in queries]
        answers = await self._index.search(queries)
        relevant_tools = relevant(answers)
        found = list(_offered(registry, relevant_tools[:count]))
        statistics = await self._memory.statistics([each.candidate.key for each in found])
        past = await self._past(workspace, vectors[0], statistics)
        similarities = _similarities(relevant_tools, answers, past)
        tools, excluded = self._judged(
            question,
            [(each.candidate, "semantic") for each in found],
            statistics,
            past,
            {each.tool_id: similarities[each.document_id] for each in found},
        )
        fit = [each for each in ranked(tools) if each.score > 0]
        return FoundTools(
            candidates=[self._shown(each) for each in fit[: request.limit]],
            excluded=[self._shown_excluded(each) for each in excluded],
            threshold=THRESHOLD,
            mode=request.mode,
        )

    async def _searched(
        self, question: _Question, registry: Registry, candidates: Sequence[Candidate]
    ) -> tuple[list[RankedTool], list[ExcludedTool]]:
        """The candidates of a namespace and what is near it, judged by all that is known."""
        workspace = question.workspace
        # What is known of the candidates is read while the model is at work.
        [vector], _ = await asyncio.gather(
            self._embedder.embed([question.scenario], "query"),
            self._memory.statistics([each.key for each in candidates[:MAX_JUDGED]]),
        )
        vector = vector.astype(np.float32, copy=False)
        near_queries = _near_queries(registry, question, candidates, vector)
        by_cosine = relevant(await self._index.search(near_queries))
        own = _most_relevant(registry, candidates, by_cosine)
        near = _outside(registry, candidates, by_cosine)
        compared = [*own, *(replace(each.candidate, source="semantic") for each in near)]
        statistics = await self._memory.statistics([each.key for each in compared])
        documents = {each.tool.tool_id: _document_id(registry, each) for each in own}
        documents |= {each.tool_id: each.document_id for each in near}
        ids = tuple(dict.fromkeys(documents.values()))
        queries = tool_queries(
            workspace, vector[np.newaxis], question.scenario, limit=1, document_ids=ids
        )
        answers, past = await asyncio.gather(
            self._index.search(queries[1:]),  # without the question for what else is near
            self._past(workspace, vector, statistics),
        )
        similarities = _similarities(relevant(answers), answers, past)
        fit = [
            each
            for number, each in enumerate(compared)
            if number < len(own)
            or similarities.get(documents[each.tool.tool_id], 0.0) >= _LEAST_SIMILARITY
        ]
        return self._judged(
            question,
            [(each, each.source) for each in fit],
            statistics,
            past,
            {id_: similarities[key] for id_, key in documents.items() if key in similarities},
        )

    async def _past(
        self,
        workspace: str,
        vector: NDArray[np.float32],
        statistics: Mapping[ToolKey, ToolStatistics],
    ) -> PastScenarios:
        return await past_scenarios(
            workspace, vector, statistics, index=self._index, memory=self._memory
        )

    def _judged(
        self,
        question: _Question,
        candidates: Iterable[tuple[Candidate, ToolSource]],
        statistics: Mapping[ToolKey, ToolStatistics],
        past: PastScenarios | None = None,
        similarity: Mapping[str, float] | None = None,
    ) -> tuple[list[RankedTool], list[ExcludedTool]]:
        tools: list[RankedTool] = []
        excluded: list[ExcludedTool] = []
        for candidate, source in candidates:
            known = statistics.get(candidate.key)
            tool_id = candidate.tool.tool_id
            why_not = why_excluded(candidate, known, question.tags, question.scenario)
            if why_not is not None:
                excluded.append(ExcludedTool(tool_id=tool_id, reason=why_not))
                continue
            tools.append(
                judge(
                    candidate,
                    source,
                    similarity=similarity.get(tool_id) if similarity else None,
                    statistics=known,
                    like=past.of(candidate) if past else (),
                    mode=question.mode,
                    draw=self._draw,
                    now=question.now,
                )
            )
        return tools, excluded

    def _shown(self, ranked_tool: RankedTool) -> RankedTool:
        """As it is answered: without secrets, past words bounded."""
        factors = ranked_tool.factors
        failures = [shown_failure(each, self._redactor) for each in factors.similar_failures]
        return ranked_tool.model_copy(
            update={
                "tool": self._redactor.tool(ranked_tool.tool),
                "factors": factors.model_copy(update={"similar_failures": failures}),
            }
        )

    def _shown_excluded(self, excluded: ExcludedTool) -> ExcludedTool:
        return excluded.model_copy(
            update={"reason": _bounded(self._redactor.text(excluded.reason))}
        )


def shown_failure(failure: SimilarFailure, redactor: Redactor) -> SimilarFailure:
    """A past failure as it is answered: without secrets, its words bounded."""
    message = failure.error_message
    return failure.model_copy(
        update={
            "scenario": _bounded(redactor.text(failure.scenario)),
            "error_message": None if message is None else _bounded(redactor.text(message)),
        }
    )


def _bounded(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


@dataclass(frozen=True, slots=True)
class _Found:
    """A tool that was found, as it is offered, and the document that it was found by."""

    candidate: Candidate
    document_id: str

    @property
    def tool_id(self) -> str:
        return self.candidate.tool.tool_id


def _document_id(registry: Registry, candidate: Candidate) -> str:
    stored = registry.by_id[candidate.tool.tool_id]
    return tool_document_id(stored.tool_key, stored.tool.tool_id)


def _with_tags(registry: Registry, tags: Iterable[str]) -> tuple[str, ...]:
    """The documents of tools that have at least one of the tags, whatever their case."""
    wanted = {tag.casefold() for tag in tags}
    return tuple(
        document_id
        for document_id, stored in tools_by_document(registry).items()
        if not wanted.isdisjoint(tag.casefold() for tag in stored.tool.tags)
    )


def _near_queries(
    registry: Registry,
    question: _Question,
    candidates: Sequence[Candidate],
    vector: NDArray[np.float32],
) -> list[IndexQuery]:
    """Which tools are nearest by cosine; of very many candidates, also which of these are.

    BM25 over all tools takes as long as the rest of the question, so it is left to what is near.
    """
    nearest = IndexQuery(
        workspaces=(question.workspace,), kind="tool", vector=vector, terms="",
        limit=min(MAX_JUDGED, len(candidates)) + MAX_NEAR, fused=False,
    )  # fmt: skip
    if len(candidates) <= MAX_JUDGED:
        return [nearest]
    own = tuple(_document_id(registry, each) for each in candidates)
    return [nearest, replace(nearest, limit=MAX_JUDGED, document_ids=own)]


def _offered(registry: Registry, found: Iterable[RelevantTool]) -> Iterator[_Found]:
    """The found tools as they are offered, each once, under the most relevant of its documents."""
    tools: set[str] = set()
    for each in found:
        stored = tools_by_document(registry).get(each.document_id)
        if stored is None:  # deleted a moment ago
            continue
        tool = _Found(offered(registry, stored), each.document_id)
        if tool.tool_id not in tools:
            tools.add(tool.tool_id)
            yield tool


def _most_relevant(
    registry: Registry, candidates: Sequence[Candidate], found: Sequence[RelevantTool]
) -> list[Candidate]:
    """The candidates to be judged: all, or the promoted one and the most relevant of many."""
    if len(candidates) <= MAX_JUDGED:
        return list(candidates)
    place = {each.document_id: number for number, each in enumerate(found)}

    def order(candidate: Candidate) -> tuple[bool, int]:
        known = place.get(_document_id(registry, candidate), len(found))
        return (candidate.source != "evolved", known)

    return sorted(candidates, key=order)[:MAX_JUDGED]


def _outside(
    registry: Registry, candidates: Iterable[Candidate], found: Iterable[RelevantTool]
) -> list[_Found]:
    """The nearest tools that are none of the candidates."""
    inside = {each.tool.tool_id for each in candidates}
    outside = (each for each in _offered(registry, found) if each.tool_id not in inside)
    return list(islice(outside, MAX_NEAR))


def _similarities(
    found: Iterable[RelevantTool], answers: Sequence[Sequence[Hit]], past: PastScenarios
) -> dict[str, float]:
    """How relevant each tool is, by its document, with what past successes say for it."""
    successes = past.successes()
    tools = relevant(answers, successes) if any(successes.values()) else found
    return {each.document_id: each.similarity for each in tools}
