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
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from aftercall.models import ErrorCategory, Example
from embeddings.protocol import Embedder
from mongo.records import ToolKey
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.tool.causes import (
    Cause,
    Changes,
    are_one_category,
    are_repaired_otherwise,
    contradict,
    is_one_cause,
)

Vector = NDArray[np.float32]
_IDS = uuid.UUID("7c1de1a4-9d55-5a0f-8f52-4d0c2f6b9e31")
_MARK_BYTES = 8
MIN_SIMILARITY = 0.65
"""Cosine of two signatures from which on they say one thing, where category and subjects agree.

On the groups of `tests/embeddings/tool_errors.py` (MiniLM, signatures alone) 25 of 36 pairs that
say one thing are joined, and none of the 162 pairs of one category that do not; without the
subjects 3 of these would be, and 7 from 0.60 on. At 0.70 it joins 19. The tool's name is left
out of the text: with it all errors of a tool are near.
"""
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MASK = re.compile(r"<(?:v|n|id|url|date|path|hex|email)>")
_CALLED = re.compile(r"\b\w+\(\)")
_CAMEL = re.compile(r"[a-z]+[A-Z][A-Za-z]*")
STEP = re.compile(r"\[\]")
MAX_FAILURES = 500
"""Documents of a tool that are looked at, the most frequent: what comes behind them is rare."""
_Kin = tuple[ErrorCategory, tuple[str, ...]]
MAX_SIGNATURES = 8
MAX_AGENTS = 24
MAX_EXAMPLES = 5


_DOCUMENT_NAMES = {"count": "frequency", "mistake": "commonMistake", "agents": "agentsAffected"}
"""Names of seed 004 for what has a shorter one here."""


def _document_name(name: str) -> str:
    return _DOCUMENT_NAMES.get(name) or to_camel(name)


class ConsolidatedPattern(BaseModel):
    """Like failures of a tool. The leader is the wording that it began with, and never changes.

    Its JSON has the names of seed 004's document, which is what a store shows of it.
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
    """Fingerprint of what made `centre`; empty while there is none."""
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

    def vector(self, embedder: str) -> Vector | None:
        """Return the centre, shape (dimension,), if this embedder made it."""
        if not self.centre or self.embedder != embedder:
            return None
        raw = np.frombuffer(base64.b64decode(self.centre), dtype="<f2").astype(np.float32)
        return (raw / np.linalg.norm(raw)).astype(np.float32)

    def set_vector(self, vector: Vector, embedder: str) -> None:
        """Keep the leader's vector."""
        self.centre = base64.b64encode(vector.astype("<f2").tobytes()).decode()
        self.embedder = embedder

    def marks(self) -> set[bytes]:
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


@dataclass(slots=True)
class Grouped:
    """A pattern with the failures that belong to it now."""

    pattern: ConsolidatedPattern
    failures: list[Failure] = field(default_factory=list)

    def has_cause(self, cause: Cause) -> bool:
        """Return whether any of its failures has this cause."""
        return cause.is_told and any(is_one_cause(cause, each.cause) for each in self.failures)


async def grouped(
    tool: ToolKey,
    previous: Iterable[ConsolidatedPattern],
    failures: Iterable[Failure],
    open_model: Callable[[], Awaitable[Embedder]],
) -> tuple[list[Grouped], int]:
    """Return one tool's failures in its patterns, and how many wordings were embedded for it.

    `previous` are its patterns as they were; of its failures the `MAX_FAILURES` most frequent are
    looked at. `open_model` is called where vectors must decide between several places.
    """
    groups = [Grouped(each) for each in sorted(previous, key=lambda each: each.pattern_id)]
    homes = {mark: group for group in groups for mark in group.pattern.marks()}
    still_open = []
    for failure in sorted(failures, key=_most_frequent_first)[:MAX_FAILURES]:
        home = homes.get(mark_of(failure.document_id))
        if home is None or not are_one_category(home.pattern.category, failure.category):
            home = _like(groups, failure)
        if home is None:
            still_open.append(failure)
        else:
            home.failures.append(failure)
    still_open = _joined(groups, still_open)
    vectors, made_by = await _vectors(groups, still_open, open_model)
    for failure in still_open:
        found = (
            _like(groups, failure)
            or next((group for group in groups if group.has_cause(failure.cause)), None)
            or _nearest(groups, failure, vectors.get(failure.signature))
        )
        if found is None:
            named = (tool.server_name or "", tool.tool_name, failure.category, failure.signature)
            found = Grouped(
                ConsolidatedPattern(
                    pattern_id=str(uuid.uuid5(_IDS, "\x1f".join((tool.workspace, *named)))),
                    server_name=tool.server_name,
                    tool_name=tool.tool_name,
                    category=failure.category,
                    leader=failure.signature,
                    places=dict(failure.places),
                    subjects=list(failure.subjects),
                )
            )
            if (vector := vectors.get(failure.signature)) is not None:
                found.pattern.set_vector(vector, made_by)
            groups.append(found)
        found.failures.append(failure)
    kept = _merge_causes([each for each in groups if each.failures])
    return sorted(kept, key=lambda each: each.pattern.pattern_id), len(vectors)


def _joined(groups: Sequence[Grouped], failures: Iterable[Failure]) -> list[Failure]:
    """Put failures where their cause is; return those that are left."""
    left = []
    for failure in failures:
        home = next((group for group in groups if group.has_cause(failure.cause)), None)
        if home is None:
            left.append(failure)
        else:
            home.failures.append(failure)
    return left


def _merge_causes(groups: Sequence[Grouped]) -> list[Grouped]:
    """Return the groups, those of one cause as the one of them that is there longest."""
    kept: list[Grouped] = []
    for group in sorted(groups, key=_oldest_first):
        group_causes = [each.cause for each in group.failures if each.cause.is_told]
        home = next((each for each in kept if any(map(each.has_cause, group_causes))), None)
        if home is None:
            kept.append(group)
        else:
            home.failures += group.failures
    return kept if len(kept) == len(groups) else _merge_causes(kept)


def _oldest_first(group: Grouped) -> tuple[bool, float, str]:
    seen = group.pattern.first_seen
    return (seen is None, seen.timestamp() if seen else 0.0, group.pattern.pattern_id)


async def _vectors(
    groups: Sequence[Grouped],
    failures: Sequence[Failure],
    open_model: Callable[[], Awaitable[Embedder]],
) -> tuple[dict[str, Vector], str]:
    """Return the vectors of failures that have a choice, and of whom.

    Patterns of their kin get theirs.
    """
    open_kin = Counter(map(_kin_of, failures))
    kin = open_kin + Counter(_kin_of(group.pattern) for group in groups)
    wanted = dict.fromkeys(each.signature for each in failures if kin[_kin_of(each)] > 1)
    if not wanted:
        return {}, ""
    embedder = await open_model()
    rivals = [group.pattern for group in groups if _kin_of(group.pattern) in open_kin]
    lacking = [each for each in rivals if each.vector(embedder.fingerprint) is None]
    texts = list(wanted | dict.fromkeys(each.leader for each in lacking))
    found = dict(zip(texts, await embedder.embed(texts, "document"), strict=True))
    for each in lacking:
        each.set_vector(found[each.leader], embedder.fingerprint)
    return found, embedder.fingerprint


def _like(groups: Iterable[Grouped], failure: Failure) -> Grouped | None:
    said = plain_signature(failure.signature)
    alike = (each for each in groups if each.pattern.category == failure.category)
    return next((each for each in alike if plain_signature(each.pattern.leader) == said), None)


def _nearest(groups: Iterable[Grouped], failure: Failure, vector: Vector | None) -> Grouped | None:
    if vector is None:
        return None
    best, nearness, kin = None, MIN_SIMILARITY, _kin_of(failure)
    for group in groups:
        pattern = group.pattern
        contradicts = contradict(pattern.places, failure.places) or any(
            are_repaired_otherwise(failure.cause, each.cause) for each in group.failures
        )
        if _kin_of(pattern) == kin and not contradicts:
            centre = pattern.vector(pattern.embedder)
            similarity = -1.0 if centre is None else float(centre @ vector)
            if similarity >= nearness:
                best, nearness = group, similarity
    return best


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


def _kin_of(one: ConsolidatedPattern | Failure) -> _Kin:
    return (one.category, tuple(one.subjects))


def _most_frequent_first(failure: Failure) -> tuple[int, str]:
    return (-failure.count, failure.document_id)


def merged(group: Grouped, lesson_of: LessonOf) -> ConsolidatedPattern:
    """Return the pattern with counts, agents, examples and lesson of its failures."""
    pattern = group.pattern
    failures = sorted(group.failures, key=_most_frequent_first)
    latest = sorted(
        failures, key=lambda e: (e.last_seen.timestamp() if e.last_seen else 0.0, e.document_id)
    )
    said = lesson_of(pattern, failures)
    first_seen = [pattern.first_seen, *(each.first_seen or each.last_seen for each in failures)]
    marks = sorted({mark_of(each.document_id) for each in failures})
    return pattern.model_copy(
        update={
            "members": base64.b64encode(b"".join(marks)).decode(),
            "signatures": [each.signature for each in failures[:MAX_SIGNATURES]],
            "count": sum(each.count for each in failures),
            "mended": sum(each.mended for each in failures),
            "followed": sum(each.followed for each in failures),
            "mistake": said.mistake,
            "correction": said.correction,
            "agents": list(dict.fromkeys(a for e in failures for a in e.agents))[:MAX_AGENTS],
            "execution_ids": list(
                dict.fromkeys(i for e in latest[::-1] for i in e.execution_ids[::-1])
            )[:MAX_EXAMPLES][::-1],
            "lesson": said.lesson,
            "example": said.example,
            "first_seen": min(filter(None, first_seen), default=None),
            "last_seen": max((each.last_seen for each in failures if each.last_seen), default=None),
        }
    )


# What to fix first


def cost_of(unmended: int, failures: int, before: int | None) -> float:
    """Return what a pattern costs now: failures that no one repaired, times 0 to 2 by the trend.

    The trend is the share of the later half of both spans, by Laplace's rule of succession, so that
    few failures say little; it is left out where the span before is not known.
    """
    trend = 1.0 if before is None else 2 * (failures + 1) / (failures + before + 2)
    return round(unmended * trend, 2)
