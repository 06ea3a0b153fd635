"""From the rows that a Qdrant found, embedded or served, to hits.

Both engines' rows have `id`, `score`, `payload` and `vector` (by name).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from retrieval.index.fields import DENSE, SERVER, TOOL, VERSION, WORKSPACE
from retrieval.index.protocol import Hit, IndexQuery


def to_hits(found: Sequence[Any], query: IndexQuery, *, is_fused: bool) -> list[Hit]:
    """Rows with their dense vectors: the cosine is taken here, whatever the score is."""
    if not found:
        return []
    vectors = np.array([row.vector[DENSE] for row in found], dtype=np.float32)
    # half precision keeps directions to 1e-5 and lengths to 1e-4, so the length is taken out
    cosines = np.clip(vectors @ query.vector / np.linalg.norm(vectors, axis=1), -1.0, 1.0)
    scores = [row.score for row in found] if is_fused else cosines
    least = -1.0 if query.least_similarity is None else query.least_similarity
    return _best_first(
        _to_hit(row, score=float(score), similarity=float(cosine))
        for row, score, cosine in zip(found, scores, cosines, strict=True)
        if cosine >= least
    )


def to_unfused(dense: Sequence[Any], sparse: Sequence[Any] = ()) -> list[Hit]:
    """What two requests over the same documents found: by cosine, with BM25's score."""
    terms = {row.id: row.score for row in sparse}
    hits = [
        # the lengths of vectors in half precision are off by 1e-4
        _to_hit(row, score=terms.get(row.id, 0.0), similarity=min(1.0, max(-1.0, row.score)))
        for row in dense
    ]
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.document_id))


def _to_hit(row: Any, *, score: float, similarity: float) -> Hit:
    payload = row.payload
    return Hit(
        document_id=str(row.id),
        workspace=payload[WORKSPACE],
        score=score,
        similarity=similarity,
        tool_name=payload[TOOL] or None,
        server_name=payload[SERVER] or None,
        version=payload.get(VERSION, ""),  # shards made before there were versions have none
    )


def _best_first(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.document_id))
