"""Found: which registered tools the index is asked for, and which its answers stand for. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from retrieval.fitness.finding import RelevantTool
from retrieval.fitness.lineage import Candidate, offered
from retrieval.fitness.registry import Registry
from retrieval.fitness.tool_documents import tool_document_id, tools_by_document
from retrieval.index.protocol import IndexQuery

MAX_NEAR = 3
"""Tools outside a namespace that are compared with its own."""

MAX_JUDGED = 50
"""Tools of one question that are judged by all that is known of them; the most relevant ones."""


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool that was found, as it is offered, and the document that it was found by."""

    candidate: Candidate
    document_id: str

    @property
    def tool_id(self) -> str:
        """Of the tool as it is offered."""
        return self.candidate.tool.tool_id


def document_of(registry: Registry, candidate: Candidate) -> str:
    """The id of the document that a candidate is found by: its own, or its original's."""
    stored = registry.by_id[candidate.tool.tool_id]
    return tool_document_id(stored.tool_key, stored.tool.tool_id)


def documents_with_tags(registry: Registry, tags: Iterable[str]) -> tuple[str, ...]:
    """The documents of tools that have at least one of the tags, whatever their case."""
    wanted = {tag.casefold() for tag in tags}
    return tuple(
        document_id
        for document_id, stored in tools_by_document(registry).items()
        if not wanted.isdisjoint(tag.casefold() for tag in stored.tool.tags)
    )


def near_queries(
    registry: Registry,
    workspace: str,
    candidates: Sequence[Candidate],
    vector: NDArray[np.float32],
) -> list[IndexQuery]:
    """Which tools are nearest by cosine; of very many candidates, also which of these are.

    BM25 over all tools takes as long as the rest of the question, so it is left to what is near.

    Args:
        registry: where the candidates are from.
        workspace: whose.
        candidates: of a namespace.
        vector: of the scenario; shape (dimension,), unit length.
    """
    nearest = IndexQuery(
        workspaces=(workspace,), kind="tool", vector=vector, terms="",
        limit=min(MAX_JUDGED, len(candidates)) + MAX_NEAR, fused=False,
    )  # fmt: skip
    if len(candidates) <= MAX_JUDGED:
        return [nearest]
    own = tuple(document_of(registry, each) for each in candidates)
    return [nearest, replace(nearest, limit=MAX_JUDGED, document_ids=own)]


def offered_tools(registry: Registry, found: Iterable[RelevantTool]) -> Iterator[FoundTool]:
    """The found tools as they are offered, each once, under the most relevant of its documents."""
    tools: set[str] = set()
    for each in found:
        stored = tools_by_document(registry).get(each.document_id)
        if stored is None:  # deleted a moment ago
            continue
        tool = FoundTool(offered(registry, stored), each.document_id)
        if tool.tool_id not in tools:
            tools.add(tool.tool_id)
            yield tool


def most_relevant(
    registry: Registry, candidates: Sequence[Candidate], found: Sequence[RelevantTool]
) -> list[Candidate]:
    """The candidates to be judged: all, or the promoted one and the most relevant of many."""
    if len(candidates) <= MAX_JUDGED:
        return list(candidates)
    place = {each.document_id: number for number, each in enumerate(found)}

    def order(candidate: Candidate) -> tuple[bool, int]:
        known = place.get(document_of(registry, candidate), len(found))
        return (candidate.source != "evolved", known)

    return sorted(candidates, key=order)[:MAX_JUDGED]


def outside(
    registry: Registry, candidates: Iterable[Candidate], found: Iterable[RelevantTool]
) -> list[FoundTool]:
    """The nearest tools that are none of the candidates."""
    inside = {each.tool.tool_id for each in candidates}
    others = (each for each in offered_tools(registry, found) if each.tool_id not in inside)
    return list(islice(others, MAX_NEAR))
