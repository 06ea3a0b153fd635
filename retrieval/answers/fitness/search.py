"""Choosing a tool: gather what is known of the candidates, and let the pure core judge them.

One embedding, two questions to the index, one read of the statistics; nothing is written.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from aftercall import models as m
from aftercall.redaction import Redactor
from aftercall.tables import gather_values
from embeddings.protocol import Embedder
from embeddings.text import terms_text
from mongo.records import ToolKey
from retrieval.answers.fitness.expected import LEAST_NEARNESS, LikeScenario, experience_of
from retrieval.answers.fitness.history import shown_failure, shown_text
from retrieval.answers.fitness.relevance import (
    Owner,
    RelevantTool,
    rank_relevant,
    scenario_parts,
    successes_of,
    tool_queries,
)
from retrieval.answers.fitness.score import (
    SEMANTIC_WEIGHT,
    THRESHOLD,
    exclusion_reason,
    rank_candidates,
    score_candidate,
    trials_of,
)
from retrieval.index.protocol import Hit, IndexQuery, VectorIndex
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rows.documents import Document
from retrieval.knowledge.rows.principals import key_mark
from retrieval.knowledge.rows.registry import (
    NoToolFitsError,
    Registry,
    ToolCandidate,
    UnknownNamespaceError,
    candidates_of,
    offer_tool,
    tool_document_id,
)
from retrieval.knowledge.rows.statistics import ToolTrials, gravest_trials, heard_trials

MAX_NEAR = 3
"""Tools outside a namespace that are compared with its own."""
MAX_JUDGED = 50
"""Tools of one question that are judged by all that is known of them; the most relevant ones."""
_LEAST_SIMILARITY = THRESHOLD / SEMANTIC_WEIGHT
"""Below it a tool from outside would be marked as hardly fit whatever its record."""
_PER_TOOL = 32
"""Past scenarios asked for, times the tools asked about: what is nearest over all of them counts
most, so they are asked for together, which takes half the time of a question for each."""
_MAX_SCENARIOS = 400


@dataclass(frozen=True, slots=True)
class _Question:
    workspace: str
    scenario: str
    tags: tuple[str, ...]
    mode: m.RankingMode
    now: datetime
    own: str | None = None
    """The mark of the asker's principal; None hears all alike."""
    explore: bool = False
    """Whether the caller allows to try out tools that may change something."""
    members: tuple[str, ...] = ()
    """Ids of the tools that serve the namespace asked about."""


_Judged = tuple[list[m.RankedTool], list[m.ExcludedTool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChooser:
    """Answers which tool to take; the same knowledge at the same time gives the same answer."""

    memory: Memory
    index: VectorIndex
    embedder: Embedder
    redactor: Redactor
    """Masks secrets before anything is answered."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def list_namespaces(self, workspace: str) -> m.NamespaceList:
        """Return all namespaces of a workspace, by name."""
        return m.NamespaceList(
            namespaces=(await self.memory.read_registry(workspace)).list_namespaces()
        )

    async def find_best(
        self,
        workspace: str,
        namespace: str,
        scenario: str,
        *,
        use_rag: bool = True,
        mode: m.RankingMode = "fitness",
        limit: int = 10,
        principal: str | None = None,
        explore: bool = False,
    ) -> m.BestTool:
        """Return the fittest tool of a namespace, with at most `limit` candidates, best first.

        What other principals than the one that asks say counts as `heard_trials` shows. With
        `explore` tools may be tried out that may change something.
        """
        registry = await self.memory.read_registry(workspace)
        candidates = candidates_of(registry, namespace)
        if not candidates:
            raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))
        question = _Question(
            workspace, self.redactor.text(scenario), (), mode, self.clock(), _own_mark(principal),
            explore, tuple(each.tool.tool_id for each in candidates),
        )  # fmt: skip
        if use_rag:
            judged, left_out = await self._score_searched(question, registry, candidates)
        else:  # the promoted version and the originals, by base and quality
            own = [each for each in candidates if each.source != "semantic"]
            statistics = await self.memory.read_statistics([each.key for each in own])
            sources = [(each, each.source) for each in own]
            judged, left_out = self._score_candidates(question, sources, statistics)
        excluded = [self._shown_excluded(each) for each in left_out[:MAX_JUDGED]]
        if not judged:
            reasons = "; ".join(f"{each.tool_id!r}: {each.reason}" for each in excluded[:3])
            raise NoToolFitsError(f"no tool of the namespace is offered for this: {reasons}")
        shown = [self._show_ranked(registry, each) for each in rank_candidates(judged)[:limit]]
        return m.BestTool(
            **dict(shown[0]), candidates=shown, excluded=excluded, threshold=THRESHOLD, mode=mode
        )

    async def find_tools(
        self, workspace: str, request: m.FindRequest, *, principal: str | None = None
    ) -> m.FoundTools:
        """Tools of any namespace for a scenario, best first; empty when none fits."""
        scenario, tags = self.redactor.text(request.scenario), tuple(request.tags)
        registry = await self.memory.read_registry(workspace)
        question = _Question(
            workspace,
            scenario,
            tags,
            request.mode,
            self.clock(),
            _own_mark(principal),
            request.explore,
        )
        wanted = {tag.casefold() for tag in tags}
        tagged = (
            document_id
            for document_id, stored in registry.by_document.items()
            if not wanted.isdisjoint(tag.casefold() for tag in stored.tool.tags)
        )
        ids = tuple(tagged) if tags else None
        if not registry.by_id or ids == ():
            return m.FoundTools(candidates=[], threshold=THRESHOLD, mode=request.mode)
        texts = scenario_parts(scenario)
        vectors = await self.embedder.embed(texts, "query")
        count = min(MAX_JUDGED, 2 * request.limit + 10)
        answers = await self.index.search_points(
            tool_queries(workspace, vectors, texts, limit=count, document_ids=ids)
        )
        found = list(_offered_tools(registry, rank_relevant(answers, parts=len(texts))[:count]))
        statistics = await self.memory.read_statistics([each.key for each, _ in found])
        [hits] = await self.index.search_points([past_query(workspace, vectors[0], statistics)])
        past = await read_past(workspace, hits, self.memory)
        by_document = {
            each.document_id: each.similarity
            for each in rank_relevant(answers, past.count_successes(), parts=len(texts))
        }
        judged, left_out = self._score_candidates(
            question,
            [(each, "semantic") for each, _ in found],
            statistics,
            past,
            {each.tool.tool_id: by_document[document_id] for each, document_id in found},
        )
        fit = [each for each in rank_candidates(judged) if each.score > 0]
        return m.FoundTools(
            candidates=[self._show_ranked(registry, each) for each in fit[: request.limit]],
            excluded=[self._shown_excluded(each) for each in left_out],
            threshold=THRESHOLD,
            mode=request.mode,
        )

    async def _score_searched(
        self, question: _Question, registry: Registry, candidates: Sequence[ToolCandidate]
    ) -> _Judged:
        # The documents that they are found by: their own, or their original's.
        ids = [each.tool.tool_id for each in candidates]
        documents = {each: tool_document_id(registry.by_id[each].tool_key, each) for each in ids}
        # What is known of the candidates is read while the model is at work.
        [vector], statistics = await asyncio.gather(
            self.embedder.embed([question.scenario], "query"),
            self.memory.read_statistics([each.key for each in candidates[:MAX_JUDGED]]),
        )
        # Which tools are nearest by cosine: BM25 over all tools takes as long as all the rest, so
        # it is left to the candidates and to what is near.
        nearest = IndexQuery(
            (question.workspace,), "tool", vector, terms="",
            limit=min(MAX_JUDGED, len(candidates)) + MAX_NEAR,
        )  # fmt: skip
        own = list(candidates)
        if len(own) > MAX_JUDGED:  # the promoted one and the most relevant of many
            among = replace(nearest, limit=MAX_JUDGED, document_ids=tuple(documents.values()))
            [hits] = await self.index.search_points([among])
            place = {hit.document_id: number for number, hit in enumerate(hits, start=1)}
            place |= {documents[each.tool.tool_id]: 0 for each in own if each.source == "evolved"}
            last = len(place) + 1
            own.sort(key=lambda each: place.get(documents[each.tool.tool_id], last))
            own = own[:MAX_JUDGED]
            statistics = await self.memory.read_statistics([each.key for each in own])
        own_past = past_query(question.workspace, nearest.vector, statistics)
        [by_cosine, past] = await self.index.search_points([nearest, own_past])
        outside = [
            (replace(each, source="semantic"), document_id)
            for each, document_id in _offered_tools(registry, by_cosine)
            if each.tool.tool_id not in documents
        ][:MAX_NEAR]
        further = await self.memory.read_statistics([each.key for each, _ in outside])
        compared = [(each, documents[each.tool.tool_id]) for each in own] + outside
        asked = tuple(document_id for _, document_id in compared)
        terms = terms_text(question.scenario)
        fit = replace(nearest, terms=terms, limit=len(asked), document_ids=asked)
        its_past = past_query(question.workspace, nearest.vector, further)
        [fits, also_past] = await self.index.search_points([fit, its_past])
        gathered = await read_past(question.workspace, [*past, *also_past], self.memory)
        by_document = {
            each.document_id: each.similarity
            for each in rank_relevant([fits], gathered.count_successes())
        }
        similarity = {
            each.tool.tool_id: by_document[document_id]
            for each, document_id in compared
            if document_id in by_document
        }
        least = _LEAST_SIMILARITY
        near = [each for each, _ in outside if similarity.get(each.tool.tool_id, 0.0) >= least]
        sources = [(each, each.source) for each in [*own, *near]]
        return self._score_candidates(
            question, sources, {**further, **statistics}, gathered, similarity
        )

    def _score_candidates(
        self,
        question: _Question,
        candidates: Iterable[tuple[ToolCandidate, m.ToolSource]],
        statistics: Mapping[ToolKey, ToolTrials],
        past: "PastScenarios | None" = None,
        similarity: Mapping[str, float] | None = None,
    ) -> _Judged:
        judged: list[m.RankedTool] = []
        excluded: list[m.ExcludedTool] = []
        known_of = []
        for each, source in candidates:
            trials = heard_trials(trials_of(each, statistics.get(each.key)), question.own)
            like = [
                scenario._replace(trials=heard_trials(scenario.trials, question.own))
                for scenario in (past.scenarios_of(each) if past else ())
            ]
            known_of.append((each, source, trials, like))
        # What is found next to a namespace states nothing of how its tools do.
        serving = [each for each in known_of if each[0].tool.tool_id in question.members]
        experience = experience_of(
            [trials for _, _, trials, _ in serving or known_of],
            question.members,
            [like for _, _, _, like in serving or known_of],
        )
        for candidate, source, trials, like in known_of:
            known, tool = statistics.get(candidate.key), candidate.tool
            negative = [
                *tool.negative_tags,
                *(known.list_negative_tags(question.own) if known else ()),
            ]
            why_not = (
                exclusion_reason(negative, question.tags, question.scenario) if negative else None
            )
            if why_not is not None:
                excluded.append(m.ExcludedTool(tool_id=tool.tool_id, reason=why_not))
                continue
            judged.append(
                score_candidate(
                    candidate,
                    source,
                    similarity=similarity.get(tool.tool_id) if similarity else None,
                    trials=trials,
                    like=like,
                    mode=question.mode,
                    experience=experience,
                    now=question.now,
                    may_be_tried=question.explore,
                )
            )
        return judged, excluded

    def _show_ranked(self, registry: Registry, ranked: m.RankedTool) -> m.RankedTool:
        failures = [shown_failure(each, self.redactor) for each in ranked.factors.similar_failures]
        factors = ranked.factors.model_copy(update={"similar_failures": failures})
        tool = registry.show_tool(ranked.tool, self.redactor)
        return ranked.model_copy(update={"tool": tool, "factors": factors})

    def _shown_excluded(self, excluded: m.ExcludedTool) -> m.ExcludedTool:
        return excluded.model_copy(update={"reason": shown_text(excluded.reason, self.redactor)})


def _own_mark(principal: str | None) -> str | None:
    return None if principal is None else key_mark(principal)


@dataclass(frozen=True, slots=True)
class PastScenarios:
    """Past scenarios of some tools that are near enough to say something."""

    hits: Mapping[Owner, Sequence[Hit]] = field(default_factory=dict)
    """By tool, nearest first."""
    documents: Mapping[str, Document] = field(default_factory=dict)

    def scenarios_of(self, candidate: ToolCandidate) -> list[LikeScenario]:
        """Return those of a candidate's own versions, nearest first, each call in one of them."""
        own = [
            (hit, document)
            for hit in self.hits.get((candidate.tool.server_name, candidate.tool.name), ())
            if candidate.counts_version(hit.version)
            and (document := self.documents.get(hit.document_id)) is not None
        ]
        left = gravest_trials(trial for _, document in own for trial in document.trials)
        return [
            LikeScenario(
                document.text,
                hit.similarity,
                [
                    each
                    for each in document.trials
                    if left.get(each.key) == each and left.pop(each.key)
                ],
                document.message,
            )
            for hit, document in own
        ]

    def count_successes(self) -> dict[Owner, float]:
        """Return what they say for each tool's relevance, 0 to 1."""
        hits = (hit for several in self.hits.values() for hit in several)
        return successes_of(hits, self.documents)


def past_query(
    workspace: str, vector: NDArray[np.float32], statistics: Mapping[ToolKey, ToolTrials]
) -> IndexQuery:
    """Asks for the past scenarios of these tools nearest to a scenario, of cosine 0.2 and above.

    `vector` is the scenario's, shape (dimension,), of unit length. By the tools' names: a set of
    all their documents' ids would take longer to hand over than the search.
    """
    known = sum(len(each.scenarios) for each in statistics.values())
    return IndexQuery(
        workspaces=(workspace,), kind="scenario", vector=vector, terms="",
        limit=min(known, _PER_TOOL * len(statistics), _MAX_SCENARIOS),
        tools=tuple((each.server_name or "", each.tool_name) for each in statistics),
        least_similarity=LEAST_NEARNESS,
    )  # fmt: skip


async def read_past(workspace: str, near: Sequence[Hit], memory: Memory) -> PastScenarios:
    """Return what is kept of the past scenarios that were found."""
    documents = await memory.read_documents(workspace, [hit.document_id for hit in near])
    by_tool = gather_values(((hit.server_name, hit.tool_name), hit) for hit in near)
    return PastScenarios(by_tool, documents)


def _offered_tools(
    registry: Registry, found: Iterable[Hit | RelevantTool]
) -> Iterator[tuple[ToolCandidate, str]]:
    """Yield the tools of these documents, each once, with its first document."""
    tools: set[str] = set()
    for each in found:
        stored = registry.by_document.get(each.document_id)
        if stored is None:  # deleted a moment ago
            continue
        candidate = offer_tool(registry, stored)
        if candidate.tool.tool_id not in tools:
            tools.add(candidate.tool.tool_id)
            yield candidate, each.document_id
