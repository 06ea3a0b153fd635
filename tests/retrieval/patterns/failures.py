"""Failures of one tool for the tests of patterns."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from aftercall.models import ErrorCategory
from mongo.records import ToolKey
from retrieval.patterns import Clustering, ConsolidatedPattern, Failure, Vector, merged, subjects_of
from retrieval.reading.faults import FaultKind

TOOL = ToolKey("default", "rag-server", "rag_query")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARAMETERS = ("topK", "query", "from", "to")


def failure(
    number: int,
    signature: str,
    *,
    category: ErrorCategory = "invalid_parameters",
    count: int = 1,
    places: dict[str, FaultKind] | None = None,
) -> Failure:
    """The document of that number; what it speaks of is read from its words."""
    return Failure(
        document_id=str(UUID(int=number)),
        category=category,
        signature=signature,
        count=count,
        last_seen=NOON + timedelta(minutes=number),
        agents=(f"agent-{number}",),
        execution_ids=(f"execution-{number}",),
        places=places or {},
        subjects=tuple(subjects_of(signature, places or {}, PARAMETERS)),
    )


def direction(degrees: float) -> Vector:
    """A unit vector; the cosine of two is that of the angle between them."""
    angle = np.radians(degrees)
    return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def clustered(
    previous: list[ConsolidatedPattern],
    failures: list[Failure],
    angles: dict[str, float] | None = None,
    embedder: str = "flat",
) -> list[ConsolidatedPattern]:
    """The patterns after one night; a signature without an angle is far from all others."""
    clustering = Clustering(TOOL, [each.model_copy(deep=True) for each in previous], failures)
    known = angles or {}
    texts = clustering.texts(embedder)
    vectors = {
        each: direction(known.get(each, 90.0 + 90.0 * (n % 2))) for n, each in enumerate(texts)
    }
    groups = clustering.close(vectors, embedder)
    return [merged(each, lambda pattern, _: pattern.leader) for each in groups]
