"""Relevance: how well a tool fits a scenario, 0 to 1, from cosine, BM25 and past successes.

    log-odds = slope x (cosine + terms_weight x BM25 + past_weight x past)
               - best_terms_weight x (the best BM25 of any tool) + intercept

BM25 is itself evidence in log-odds (Robertson and Zaragoza, "The Probabilistic Relevance Framework:
BM25 and Beyond", 2009), so it is added as it is; ADR 19 states why. 0.5 is a tool that is as likely
right as wrong.

    texts = scenario_parts(scenario)
    vectors = await embedder.embed(texts, "query")
    answers = await index.search(tool_queries(workspace, vectors, texts, limit=30))
    tools = relevant(answers, past, parts=len(texts))

`past` states which tools succeeded in like scenarios (`successes_of`).
Each sentence is a question of its own, and a tool fits as well as it fits the part that it fits
best. From the distance between the best match of all parts and that of its own part, a tool gets
the share `parts` back, times how probably that part asks for any tool at all, so that the first ten
cover all parts.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from aftercall.tables import gather_values
from embeddings.text import terms_text
from retrieval import read_data_file
from retrieval.index.protocol import Hit, IndexQuery
from retrieval.knowledge.confidence import apply_logistic
from retrieval.knowledge.rows.documents import Document

PAST_WIDTH = 0.1
"""By how much less cosine a past success counts e times less. Like the half point, from the
training halves of MetaTool and Seal-Tools (ADR 19)."""
PAST_HALF = 0.7
"""Cosine at which a single past success is evidence 0.5."""
MAX_PARTS = 4
"""Sentences embedded next to the whole; of more, neighbours are put together. On Seal-Tools, whose
scenarios ask for three things and more, 3, 4, 5 and 8 gave an nDCG@10 of 0.922, 0.925, 0.927 and
0.928 on the training half, and each costs one more embedding."""
MIN_CHARACTERS = 12
"""Below that it is no request of its own: "Thanks!", "e.g. 2."."""
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
Owner = tuple[str | None, str | None]
"""Server and name of the tool that a document is about."""
MIN_CANDIDATES = 30
"""Asked of each side of the index at least."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Learned by `python -m bench.quality.choosing_fit`; all but the intercept are above 0."""

    slope: float
    terms: float
    parts: float
    past: float
    best_terms: float
    intercept: float


@dataclass(frozen=True, slots=True)
class RelevantTool:
    """A tool document and how well it fits the scenario."""

    document_id: str
    server_name: str | None
    tool_name: str | None
    similarity: float
    """Relevance, 0 to 1: see `retrieval.answers.fitness.relevance`."""
    cosine: float
    """Of scenario and tool, -1 to 1; the best of the scenario's parts."""
    terms: float
    """BM25, from 0; the best likewise."""
    evidence: float
    """Cosine, terms and past as they were added up, of the part that it fits best."""


@cache
def shipped_weights() -> Weights:
    """Return the weights that were learned on the training halves of MetaTool and Seal-Tools."""
    return Weights(**read_data_file("answers/fitness/relevance.json")["weights"])


def _likelihood_of(evidence: float, best_terms: float, by: Weights) -> float:
    return apply_logistic(by.slope * evidence - by.best_terms * best_terms + by.intercept)


def past_evidence(successes: Iterable[tuple[float, float]]) -> float:
    """Return what past scenarios in which a tool succeeded say for it now, 0 (nothing) to 1.

    A kernel estimate over pairs of cosine and share of successes: each counts exp((cosine - 1) /
    0.1) x its share; the sum saturates, so that many successes cannot outweigh everything.
    """
    near = sum(share * math.exp((cosine - 1) / PAST_WIDTH) for cosine, share in successes)
    return near / (near + math.exp((PAST_HALF - 1) / PAST_WIDTH))


def scenario_parts(scenario: str) -> list[str]:
    """Return the texts to embed for a scenario, 1 to 5: itself, then its sentences when several."""
    sentences = [part.strip() for part in _SENTENCE_END.split(scenario)]
    sentences = [part for part in sentences if len(part) >= MIN_CHARACTERS]
    if len(sentences) > 1:
        return [scenario, *_group_sentences(sentences)]
    return [scenario]


def _group_sentences(sentences: list[str]) -> list[str]:
    """At most `MAX_PARTS` texts of about equal length, each of whole neighbouring sentences."""
    if len(sentences) <= MAX_PARTS:
        return sentences
    groups: list[list[str]] = [[] for _ in range(MAX_PARTS)]
    total = sum(map(len, sentences))
    before = 0
    for sentence in sentences:
        middle = before + len(sentence) / 2
        groups[int(MAX_PARTS * middle / total)].append(sentence)
        before += len(sentence)
    return [" ".join(group) for group in groups if group]


def tool_queries(
    workspace: str,
    vectors: NDArray[np.float32],
    texts: Sequence[str],
    *,
    limit: int,
    document_ids: tuple[str, ...] | None = None,
) -> list[IndexQuery]:
    """Return what to ask the index for `relevant`.

    Tools near the scenario, of these documents or any.

    One question for each text. `texts` are those of `scenario_parts`, `vectors` theirs: shape
    (n, dimension), unit length. `limit` is for each side of the index; 30 at least are asked for.
    """
    return [
        IndexQuery(
            workspaces=(workspace,), kind="tool", vector=vector, terms=terms_text(text),
            limit=max(limit, MIN_CANDIDATES), document_ids=document_ids,
        )
        for text, vector in zip(texts, vectors, strict=True)
    ]  # fmt: skip


def rank_relevant(
    answers: Sequence[Sequence[Hit]],
    past: Mapping[Owner, float] | None = None,
    *,
    parts: int = 1,
    weights: Weights | None = None,
) -> list[RelevantTool]:
    """Return the tools of the answers to `tool_queries`, each once, the most relevant first.

    Ties are in the order of the ids. `past` is as `successes_of` gives it, `parts` the number of
    texts that were asked about.
    """
    by = weights or shipped_weights()
    found: dict[str, Hit] = {}
    cosines: dict[str, float] = {}
    terms: dict[str, float] = {}
    fits: list[dict[str, float]] = []
    bests: list[tuple[float, float]] = []
    for part in range(parts):
        hits = [hit for own in answers[part::parts] for hit in own]
        own: dict[str, float] = {}
        for hit in hits:
            known = hit.document_id
            found[known] = hit
            cosines[known] = max(cosines.get(known, -1.0), hit.similarity)
            terms[known] = max(terms.get(known, 0.0), hit.score)
            fit = hit.similarity + by.terms * hit.score
            own[known] = max(own.get(known, fit), fit)
        fits.append(own)
        best_fit = max(own.values(), default=0.0)
        bests.append(
            (best_fit, _likelihood_of(best_fit, max((hit.score for hit in hits), default=0.0), by))
        )
    evidence: dict[str, float] = {}
    for own, (best_fit, asks) in zip(fits, bests, strict=True):
        more = by.parts * asks * (max(bests)[0] - best_fit)
        for known, fit in own.items():
            evidence[known] = max(evidence.get(known, -inf), fit + more)
    best_terms = max(terms.values(), default=0.0)
    tools = []
    for known, hit in found.items():
        whole = evidence[known] + by.past * (past or {}).get((hit.server_name, hit.tool_name), 0.0)
        similarity = _likelihood_of(whole, best_terms, by)
        tools.append(
            RelevantTool(
                known, hit.server_name, hit.tool_name, similarity, cosines[known], terms[known],
                whole,
            )
        )  # fmt: skip
    return sorted(tools, key=lambda tool: (-tool.similarity, tool.document_id))


def successes_of(hits: Iterable[Hit], documents: Mapping[str, Document]) -> dict[Owner, float]:
    """Return what past scenarios say for each tool, 0 to 1 (`past_evidence`).

    Without any, nothing.
    """
    known = ((hit, documents.get(hit.document_id)) for hit in hits)
    shares = (
        (hit, sum(trial.is_success for trial in document.trials) / len(document.trials))
        for hit, document in known
        if document is not None and document.trials
    )
    successes = gather_values(
        ((hit.server_name, hit.tool_name), (hit.similarity, share)) for hit, share in shares
    )
    return {owner: past_evidence(found) for owner, found in successes.items()}
