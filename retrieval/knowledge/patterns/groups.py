"""Groups: which failures of a tool are one pattern, by words, cause and vector."""

import base64
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from aftercall.models import ErrorCategory
from embeddings.protocol import Embedder
from mongo.records import ToolKey
from retrieval.knowledge.patterns.consolidation import (
    ConsolidatedPattern,
    Failure,
    LessonOf,
    Vector,
    mark_of,
    plain_signature,
)
from retrieval.knowledge.tool.causes import (
    Cause,
    are_one_category,
    are_repaired_otherwise,
    contradict_errors,
    is_one_cause,
)

_IDS = uuid.UUID("7c1de1a4-9d55-5a0f-8f52-4d0c2f6b9e31")
MIN_SIMILARITY = 0.65
"""Cosine of two signatures from which on they say one thing, where category and subjects agree.

On the groups of `tests/embeddings/tool_errors.py` (MiniLM, signatures alone) 25 of 36 pairs that
say one thing are joined, and none of the 162 pairs of one category that do not; without the
subjects 3 of these would be, and 7 from 0.60 on. At 0.70 it joins 19. The tool's name is left
out of the text: with it all errors of a tool are near.
"""
MAX_FAILURES = 500
"""Documents of a tool that are looked at, the most frequent: what comes behind them is rare."""
_Kin = tuple[ErrorCategory, tuple[str, ...]]
MAX_SIGNATURES = 8
MAX_AGENTS = 24
MAX_EXAMPLES = 5


@dataclass(slots=True)
class Grouped:
    """A pattern with the failures that belong to it now."""

    pattern: ConsolidatedPattern
    failures: list[Failure] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    """Of its failures, each once: many have the same."""

    def add(self, *failures: Failure) -> None:
        """Put failures into it."""
        for failure in failures:
            self.failures.append(failure)
            if failure.cause not in self.causes:
                self.causes.append(failure.cause)

    def has_cause(self, cause: Cause) -> bool:
        """Return whether any of its failures has this cause."""
        return cause.is_told and any(is_one_cause(cause, each) for each in self.causes)

    def is_contradicted(self, failure: Failure) -> bool:
        """Return whether the failure states something else, or was repaired otherwise."""
        return contradict_errors(self.pattern.places, failure.places) or any(
            are_repaired_otherwise(failure.cause, each) for each in self.causes
        )


class _Groups:
    """The groups of a tool in their order, found by their leaders' words, causes and vectors."""

    def __init__(self, groups: Iterable[Grouped]) -> None:
        self.all: list[Grouped] = []
        self._by_leader: dict[tuple[ErrorCategory, str], Grouped] = {}
        self._centres: dict[_Kin, list[tuple[Grouped, Vector]]] = {}
        for each in groups:
            self.add(each)

    def add(self, group: Grouped) -> None:
        """Put a group behind the others."""
        self.all.append(group)
        leader = plain_signature(group.pattern.leader)
        self._by_leader.setdefault((group.pattern.category, leader), group)

    def add_centre(self, group: Grouped) -> None:
        """Have a group found by its vector, if it has any."""
        pattern = group.pattern
        if (centre := pattern.vector_of(pattern.embedder)) is not None:
            self._centres.setdefault(_kin_of(pattern), []).append((group, centre))

    def find_group(self, failure: Failure) -> Grouped | None:
        """Return the group whose leader has the failure's words."""
        return self._by_leader.get((failure.category, plain_signature(failure.signature)))

    def of_cause(self, failure: Failure) -> Grouped | None:
        """Return the first group that has the failure's cause."""
        return next((each for each in self.all if each.has_cause(failure.cause)), None)

    def nearest_group(self, failure: Failure, vector: Vector | None) -> Grouped | None:
        """Return the nearest group that states nothing else, of equal ones the last."""
        near = self._centres.get(_kin_of(failure))
        if vector is None or not near:
            return None
        similarities = np.stack([centre for _, centre in near]) @ vector
        nearest: list[int] = np.argsort(similarities, kind="stable")[::-1].tolist()
        for place in nearest:
            group, _ = near[place]
            if similarities[place] < MIN_SIMILARITY:
                break
            if not group.is_contradicted(failure):
                return group
        return None


async def group_failures(
    tool: ToolKey,
    previous: Iterable[ConsolidatedPattern],
    failures: Iterable[Failure],
    open_model: Callable[[], Awaitable[Embedder]],
) -> tuple[list[Grouped], int]:
    """Return one tool's failures in its patterns, and how many wordings were embedded for it.

    `previous` are its patterns as they were; of its failures the `MAX_FAILURES` most frequent are
    looked at. `open_model` is called where vectors must decide between several places.
    """
    groups = _Groups(Grouped(each) for each in sorted(previous, key=lambda e: e.pattern_id))
    homes = {mark: group for group in groups.all for mark in group.pattern.member_marks()}
    still_open = []
    for failure in sorted(failures, key=_most_frequent_first)[:MAX_FAILURES]:
        home = homes.get(mark_of(failure.document_id))
        if home is None or not are_one_category(home.pattern.category, failure.category):
            home = groups.find_group(failure)
        if home is None:
            still_open.append(failure)
        else:
            home.add(failure)
    still_open = _join_groups(groups, still_open)
    vectors, made_by = await _embed_failures(groups.all, still_open, open_model)
    for group in groups.all:
        groups.add_centre(group)
    for failure in still_open:
        found = (
            groups.find_group(failure)
            or groups.of_cause(failure)
            or groups.nearest_group(failure, vectors.get(failure.signature))
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
            groups.add(found)
            groups.add_centre(found)
        found.add(failure)
    kept = _merge_causes([each for each in groups.all if each.failures])
    return sorted(kept, key=lambda each: each.pattern.pattern_id), len(vectors)


def _join_groups(groups: _Groups, failures: Iterable[Failure]) -> list[Failure]:
    """Put failures where their cause is; return those that are left."""
    left = []
    for failure in failures:
        home = groups.of_cause(failure)
        if home is None:
            left.append(failure)
        else:
            home.add(failure)
    return left


def _merge_causes(groups: Sequence[Grouped]) -> list[Grouped]:
    """Return the groups, those of one cause as the one of them that is there longest."""
    kept: list[Grouped] = []
    for group in sorted(groups, key=_oldest_first):
        home = next((each for each in kept if any(map(each.has_cause, group.causes))), None)
        if home is None:
            kept.append(group)
        else:
            home.add(*group.failures)
    return kept if len(kept) == len(groups) else _merge_causes(kept)


def _oldest_first(group: Grouped) -> tuple[bool, float, str]:
    seen = group.pattern.first_seen
    return (seen is None, seen.timestamp() if seen else 0.0, group.pattern.pattern_id)


async def _embed_failures(
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
    lacking = [each for each in rivals if each.vector_of(embedder.fingerprint) is None]
    texts = list(wanted | dict.fromkeys(each.leader for each in lacking))
    found = dict(zip(texts, await embedder.embed(texts, "document"), strict=True))
    for each in lacking:
        each.set_vector(found[each.leader], embedder.fingerprint)
    return found, embedder.fingerprint


def merge_group(group: Grouped, lesson_of: LessonOf) -> ConsolidatedPattern:
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


def _kin_of(one: ConsolidatedPattern | Failure) -> _Kin:
    return (one.category, tuple(one.subjects))


def _most_frequent_first(failure: Failure) -> tuple[int, str]:
    return (-failure.count, failure.document_id)
