"""Finding the tools that are relevant to a scenario: what to ask the index, what its answers say.

    vectors = await embedder.embed(scenario_parts(scenario), "query")
    queries = tool_queries(workspace, vectors, scenario, limit=30, document_ids=ids)
    answers = await index.search([*queries, *others])
    tools = relevant(answers[: len(queries)], past)

So whoever has questions of his own asks all in one batch. `document_ids` are of `tool` documents
whose relevance is asked for whether or not they are found, such as those of a namespace; what has
no document yet is not in the answers. `past` tells which tools succeeded in like scenarios:
`successes_of` makes it of hits on `scenario` documents. A hit names its tool, so nothing has to be
read to know whose document it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embeddings.terms import terms_text
from retrieval.documents import Document
from retrieval.fitness.relevance import Weights, past_evidence, relevance
from retrieval.index.protocol import Hit, IndexQuery

Owner = tuple[str | None, str | None]
"""Server and name of the tool that a document is about."""

MIN_CANDIDATES = 30
"""Asked of each side of the index at least."""


@dataclass(frozen=True, slots=True)
class RelevantTool:
    """A tool document and how well it fits the scenario."""

    document_id: str
    server_name: str | None
    tool_name: str | None
    similarity: float
    """Relevance, 0 to 1: see `retrieval.fitness.relevance`."""
    cosine: float
    """Of scenario and tool, -1 to 1; the best of the scenario's parts."""
    terms: float
    """BM25, from 0."""
    past: float
    """What past successes in like scenarios say for it, 0 to 1; part of `similarity` already."""


def tool_queries(
    workspace: str,
    vectors: NDArray[np.float32],
    scenario: str,
    *,
    limit: int,
    document_ids: Sequence[str] = (),
) -> list[IndexQuery]:
    """What to ask the index for `relevant`: tools near the scenario, and those of the ids.

    One question for each vector, and one more for each when there are ids.

    Args:
        workspace: Whose tools.
        vectors: Shape (n, dimension), unit length: of the texts of `scenario_parts`, in order. Of
            the whole scenario alone is well too; it is less when several things are asked for.
        scenario: The text as asked.
        limit: Tools from each side of the index; 30 at least are asked for.
        document_ids: Of tools that are to be in the answer in any case.
    """
    terms = terms_text(scenario)
    asked: list[tuple[int, tuple[str, ...] | None]] = [(max(limit, MIN_CANDIDATES), None)]
    if document_ids:
        asked.append((len(document_ids), tuple(document_ids)))
    return [
        IndexQuery(
            workspaces=(workspace,), kind="tool", vector=vector, terms=terms, limit=count,
            document_ids=ids, fused=False,
        )
        for count, ids in asked
        for vector in vectors
    ]  # fmt: skip


def relevant(
    answers: Iterable[Sequence[Hit]],
    past: Mapping[Owner, float] | None = None,
    *,
    weights: Weights | None = None,
) -> list[RelevantTool]:
    """The tools of the answers to `tool_queries`, each once, the most relevant first.

    Ties are in the order of the ids. `past` is as `successes_of` gives it.
    """
    found: dict[str, Hit] = {}
    cosines: dict[str, float] = {}
    terms: dict[str, float] = defaultdict(float)
    for hit in (hit for hits in answers for hit in hits):
        known = hit.document_id
        found[known] = hit
        cosines[known] = max(cosines.get(known, -1.0), hit.similarity)
        terms[known] = max(terms[known], hit.score)
    best_terms = max(terms.values(), default=0.0)
    tools = []
    for document_id, hit in found.items():
        successes = (past or {}).get((hit.server_name, hit.tool_name), 0.0)
        cosine, bm25 = cosines[document_id], terms[document_id]
        similarity = relevance(cosine, bm25, best_terms=best_terms, past=successes, weights=weights)
        tools.append(
            RelevantTool(
                document_id, hit.server_name, hit.tool_name, similarity, cosine, bm25, successes
            )
        )
    return sorted(tools, key=lambda tool: (-tool.similarity, tool.document_id))


def successes_of(hits: Iterable[Hit], documents: Mapping[str, Document]) -> dict[Owner, float]:
    """What past scenarios say for each tool, 0 to 1 (`past_evidence`); tools without are left out.

    Args:
        hits: On `scenario` documents of any number of tools; `similarity` is what counts.
        documents: The documents of the hits; a hit without its document is passed over.
    """
    successes: dict[Owner, list[tuple[float, float]]] = defaultdict(list)
    for hit in hits:
        document = documents.get(hit.document_id)
        if document is not None and document.trials:
            share = sum(trial.is_success for trial in document.trials) / len(document.trials)
            successes[hit.server_name, hit.tool_name].append((hit.similarity, share))
    return {owner: past_evidence(found) for owner, found in successes.items()}
