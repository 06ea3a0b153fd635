"""Failures of one tool for the tests of patterns."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from aftercall.models import ErrorCategory
from embeddings.protocol import Embedder, Role, Vectors
from mongo.records import ToolKey
from retrieval.knowledge.patterns.consolidation import (
    ConsolidatedPattern,
    Failure,
    Lesson,
    Vector,
    subjects_of,
)
from retrieval.knowledge.patterns.groups import group_failures, merge_group
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.tool.causes import NO_CHANGES, Changes

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
    changes: Changes = NO_CHANGES,
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
        changes=changes,
    )


def direction(degrees: float) -> Vector:
    """A unit vector; the cosine of two is that of the angle between them."""
    angle = np.radians(degrees)
    return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


class FlatEmbedder:
    """Puts each text at an angle; one without an angle is far from all others."""

    name, dimension = "flat", 2

    def __init__(self, angles: dict[str, float], fingerprint: str) -> None:
        self.angles = angles
        self.fingerprint = fingerprint

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002
        """As `embeddings.protocol.Embedder`."""
        return np.stack(
            [
                direction(self.angles.get(each, 90.0 + 90.0 * (n % 2)))
                for n, each in enumerate(texts)
            ]
        )

    async def close(self) -> None:
        """Nothing to release."""


def clustered(
    previous: list[ConsolidatedPattern],
    failures: list[Failure],
    angles: dict[str, float] | None = None,
    embedder: str = "flat",
) -> list[ConsolidatedPattern]:
    """The patterns after one night; a signature without an angle is far from all others."""

    async def open_model() -> Embedder:
        return FlatEmbedder(angles or {}, embedder)

    before = [each.model_copy(deep=True) for each in previous]
    groups, _ = asyncio.run(group_failures(TOOL, before, failures, open_model))
    return [merge_group(each, lambda pattern, _: Lesson(pattern.leader)) for each in groups]
