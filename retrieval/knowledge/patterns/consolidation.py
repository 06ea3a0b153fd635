"""Patterns: like failures of one tool, consolidated each night under ids that last.

A failure belongs where it belonged before. A new one joins a pattern of its category that has the
same letters, that has the same cause (`tool.causes`), or that speaks of the same and whose
leader is near; of several the nearest. New ones come in order, the most frequent first. Leaders
never move, so doing it again changes nothing. Patterns that turn out to have one cause become the
oldest of them; else ids last as long as anything of the pattern does. Time grows with failures
times patterns of one category and subject, never over tools.

The lesson of a pattern is what repaired such failures, as far as everyone may hear it. A pattern
stands for many calls, so what one value was replaced by, or that a call worked without a parameter,
is shown as what was seen; what holds for all of them comes from what was wrong.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from aftercall.models import ErrorCategory, Example
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.tool.causes import Cause, Changes

Vector = NDArray[np.float32]
_MARK_BYTES = 8
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MASK = re.compile(r"<(?:v|n|id|url|date|path|hex|email)>")
_CALLED = re.compile(r"\b\w+\(\)")
_CAMEL = re.compile(r"[a-z]+[A-Z][A-Za-z]*")
STEP = re.compile(r"\[\]")


_DOCUMENT_NAMES = {"count": "frequency", "mistake": "commonMistake", "agents": "agentsAffected"}
"""Names of seed 004 for what has a shorter one here."""


def _document_name(name: str) -> str:
    return _DOCUMENT_NAMES.get(name) or to_camel(name)


class ConsolidatedPattern(BaseModel):
    """Like failures of a tool. The leader is the wording that it began with, and never changes.

    Its JSON has the names of seed 004's document, which is what a store shows it.
    """

    model_config = ConfigDict(
        alias_generator=_document_name,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )
    pattern_id: str
    server_name: str | None
    tool_name: str
    category: ErrorCategory
    leader: str
    """The signature that others are compared with."""
    places: dict[str, FaultKind] = Field(default_factory=dict)
    """What is wrong with the leader, by place (`retrieval.knowledge.tool.rules.skeleton_of`)."""
    subjects: list[str] = Field(default_factory=list)
    """What the leader speaks of (`subjects_of`), sorted."""
    embedder: str = ""
    """Fingerprint of what made `centre`; empty without a centre."""
    centre: str = ""
    """The leader's vector: unit length, float16, base64. Empty until one is needed."""
    members: str = ""
    """Marks of the documents that belong to it, 8 bytes each, sorted, base64."""
    signatures: list[str] = Field(default_factory=list)
    count: int = 0
    mended: int = 0
    """Failures that agents repaired without a suggestion."""
    followed: int = 0
    """Failures that a suggestion repaired."""
    error_type: str = ""
    """The type that most of the latest failures gave."""
    mistake: str = ""
    """What is wrong with such calls, in words."""
    correction: str = ""
    """What repaired them, in words; empty where nothing did."""
    agents: list[str] = Field(default_factory=list)
    execution_ids: list[str] = Field(default_factory=list)
    lesson: str = ""
    example: Example | None = None
    """What failed and what worked, in the parameters that the lesson is about."""
    first_seen: datetime | None = None
    last_seen: datetime | None = None

    def vector_of(self, embedder: str) -> Vector | None:
        """Return the centre, shape (dimension,), if this embedder made it."""
        if not self.centre or self.embedder != embedder:
            return None
        raw = np.frombuffer(base64.b64decode(self.centre), dtype="<f2").astype(np.float32)
        return (raw / np.linalg.norm(raw)).astype(np.float32)

    def set_vector(self, vector: Vector, embedder: str) -> None:
        """Keep the leader's vector."""
        self.centre = base64.b64encode(vector.astype("<f2").tobytes()).decode()
        self.embedder = embedder

    def member_marks(self) -> set[bytes]:
        """Return the marks of its members."""
        raw = base64.b64decode(self.members)
        return {raw[at : at + _MARK_BYTES] for at in range(0, len(raw), _MARK_BYTES)}


@dataclass(frozen=True, slots=True)
class Failure:
    """A reflection document with what is known of its signature."""

    document_id: str
    category: ErrorCategory
    signature: str
    count: int
    last_seen: datetime | None
    agents: tuple[str, ...] = ()
    execution_ids: tuple[str, ...] = ()
    places: Mapping[str, FaultKind] = field(default_factory=dict)
    subjects: tuple[str, ...] = ()
    first_seen: datetime | None = None
    mended: int = 0
    followed: int = 0
    changes: Changes = field(default_factory=dict)
    """What repaired it, by place."""

    @property
    def cause(self) -> Cause:
        """Return what shows its cause, next to its words."""
        return Cause(self.category, self.places, self.changes)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What there is to say about a pattern."""

    lesson: str = ""
    example: Example | None = None
    mistake: str = ""
    correction: str = ""


LessonOf = Callable[[ConsolidatedPattern, Sequence[Failure]], Lesson]


def mark_of(document_id: str) -> bytes:
    """Return what a document is known by in the list of members."""
    return hashlib.sha256(document_id.encode()).digest()[:_MARK_BYTES]


def plain_signature(signature: str) -> str:
    """Return a signature as it is compared letter by letter.

    Words only, in lower case, without masks.
    """
    return " ".join(WORD.findall(MASK.sub(" ", signature))).casefold()


def subjects_of(
    signature: str, places: Mapping[str, FaultKind], parameters: Collection[str]
) -> list[str]:
    """Return what a failure speaks of, sorted.

    Parameters at fault, else parameters and identifiers named.

    Two that differ in it are two kinds, however alike their words: `'from' is required` and
    `'to' is required` need two different corrections.
    """
    if places:
        return sorted({STEP.sub("", place) for place in places})
    words = set(WORD.findall(_CALLED.sub(" ", MASK.sub(" ", signature))))
    # Names of code; a word with digits in it is rather a caller's data.
    names = {word for word in words if "_" in word.strip("_") or _CAMEL.fullmatch(word)}
    plain = {word for word in names if not any(map(str.isdigit, word))}
    return sorted(plain | (words & set(parameters)))


# What to fix first


def cost_of(unmended: int, failures: int, before: int | None) -> float:
    """Return what a pattern costs now: failures that no one repaired, times 0 to 2 by the trend.

    The trend is the share of the later half of both spans, by Laplace's rule of succession, so that
    few failures say little; it is left out where the span before is not known.
    """
    trend = 1.0 if before is None else 2 * (failures + 1) / (failures + before + 2)
    return round(unmended * trend, 2)
