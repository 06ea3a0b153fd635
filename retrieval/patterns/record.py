"""A consolidated pattern, as it is stored: what it stands for, and what belongs to it."""

import base64
import hashlib
import uuid
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from aftercall.models import ErrorCategory
from mongo.records import ToolKey
from retrieval.reading.faults import FaultKind

Vector = NDArray[np.float32]

_IDS = uuid.UUID("7c1de1a4-9d55-5a0f-8f52-4d0c2f6b9e31")
_MARK_BYTES = 8


class Pattern(BaseModel):
    """Like failures of a tool. The leader is the wording that it began with, and never changes.

    What is counted is made anew from the documents each time; ids, leader and members last.
    """

    pattern_id: str
    server_name: str | None
    tool_name: str
    category: ErrorCategory
    leader: str
    """The signature that others are compared with."""
    places: dict[str, FaultKind] = Field(default_factory=dict)
    """What is wrong with the leader, by place (`retrieval.knowledge.skeleton_of`)."""
    subjects: list[str] = Field(default_factory=list)
    """What the leader speaks of (`retrieval.patterns.kinship`), sorted."""
    embedder: str = ""
    """Fingerprint of what made `centre`; empty while there is none."""
    centre: str = ""
    """The leader's vector: unit length, float16, base64. Empty until one is needed."""
    members: str = ""
    """Marks of the documents that belong to it, 8 bytes each, sorted, base64."""
    signatures: list[str] = Field(default_factory=list)
    """The most frequent wordings, most frequent first."""
    count: int = 0
    mended: int = 0
    agents: list[str] = Field(default_factory=list)
    execution_ids: list[str] = Field(default_factory=list)
    lesson: str = ""
    first_seen: datetime | None = None
    last_seen: datetime | None = None

    def vector(self, embedder: str) -> Vector | None:
        """The centre, shape (dimension,), if this embedder made it."""
        if not self.centre or self.embedder != embedder:
            return None
        raw = np.frombuffer(base64.b64decode(self.centre), dtype="<f2").astype(np.float32)
        return (raw / np.linalg.norm(raw)).astype(np.float32)

    def set_vector(self, vector: Vector, embedder: str) -> None:
        """Keep the leader's vector."""
        self.centre = base64.b64encode(vector.astype("<f2").tobytes()).decode()
        self.embedder = embedder

    def marks(self) -> set[bytes]:
        """The marks of its members."""
        raw = base64.b64decode(self.members)
        return {raw[at : at + _MARK_BYTES] for at in range(0, len(raw), _MARK_BYTES)}

    def set_marks(self, marks: set[bytes]) -> None:
        """Keep who belongs to it."""
        self.members = base64.b64encode(b"".join(sorted(marks))).decode()


def mark_of(document_id: str) -> bytes:
    """What a document is known by in the list of members."""
    return hashlib.sha256(document_id.encode()).digest()[:_MARK_BYTES]


def new_pattern_id(tool: ToolKey, category: str, leader: str) -> str:
    """The id of a pattern that begins with this signature: a UUID, the same wherever it is made."""
    parts = (tool.workspace, tool.server_name or "", tool.tool_name, category, leader)
    return str(uuid.uuid5(_IDS, "\x1f".join(parts)))


def encoded(pattern: Pattern) -> bytes:
    """As it is stored."""
    return pattern.model_dump_json(exclude_defaults=True).encode()


def decoded(data: bytes) -> Pattern:
    """The reverse of `encoded`."""
    return Pattern.model_validate_json(data)
