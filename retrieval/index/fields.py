"""What a document is in any Qdrant: the names of its vectors and of its payload's fields."""

from dataclasses import replace

from retrieval.index.protocol import IndexPoint, IndexQuery

DENSE = "dense"
TERMS = "terms"

WORKSPACE, KIND, TOOL, SERVER = "workspace", "kind", "tool_name", "server_name"
VERSION = "version"

OF_A_HIT = [WORKSPACE, TOOL, SERVER, VERSION]
"""Fields of the payload that a hit repeats."""

MIN_PREFETCH = 50
"""Candidates a side gives to the fusion at least: DBSF takes mean and deviation over them."""


def prefetch_limit(query: IndexQuery) -> int:
    """How many candidates each side gives to the fusion."""
    return max(MIN_PREFETCH, 3 * query.limit)


def payload_of(point: IndexPoint) -> dict[str, str]:
    """The payload of a document; '' is "none", since a missing field would match no filter."""
    return {
        WORKSPACE: point.workspace,
        KIND: point.kind,
        TOOL: point.tool_name or "",
        SERVER: point.server_name or "",
        VERSION: point.version,
    }


def idf_corpus(query: IndexQuery) -> IndexQuery | None:
    """The question whose filter selects what the IDF is counted over; None for all there is."""
    if query.kind == "tool":
        # Tools are told apart among all tools of the workspace: scenarios, which outnumber them,
        # must not say which words are rare. It costs 0.2 ms at 5,000 tools.
        return IndexQuery(query.workspaces, query.kind, query.vector, query.terms, query.limit)
    if query.tool_name is not None:
        # A tool's own documents all share its name and much else: what tells them apart is rare
        # among them, so the IDF is counted there. Over a whole workspace that costs 1.4 ms more.
        return replace(query, versions=None, document_ids=None)
    return None
