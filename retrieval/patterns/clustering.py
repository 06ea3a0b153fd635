"""Clustering the failures of one tool: each joins the pattern that it is like, or begins one.

A failure belongs where it belonged before. A new one joins a pattern of its category that has the
same letters, or that speaks of the same and whose leader is near; of several the nearest. New ones
come in order, the most frequent first. Leaders never move, so doing it again changes nothing, and
ids last as long as anything of the pattern does. Time grows with failures times patterns of one
category and subject, never over tools.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aftercall.models import ErrorCategory
from mongo.records import ToolKey
from retrieval.patterns.kinship import MIN_SIMILARITY, may_be_one, plain_signature
from retrieval.patterns.record import Pattern, Vector, mark_of, new_pattern_id
from retrieval.reading.faults import FaultKind

MAX_FAILURES = 500
"""Documents of a tool that are looked at, the most frequent: what comes behind them is rare."""

_Kin = tuple[ErrorCategory, tuple[str, ...]]


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


@dataclass(slots=True)
class Grouped:
    """A pattern with the failures that belong to it now."""

    pattern: Pattern
    failures: list[Failure] = field(default_factory=list)


class Clustering:
    """One tool's failures on their way into patterns.

    Args:
        tool: the tool.
        previous: its patterns as they were.
        failures: all of its failures; at most the `MAX_FAILURES` most frequent are looked at.
    """

    def __init__(
        self, tool: ToolKey, previous: Iterable[Pattern], failures: Iterable[Failure]
    ) -> None:
        self._tool = tool
        self._groups = [Grouped(each) for each in sorted(previous, key=lambda p: p.pattern_id)]
        self._by_kin: dict[_Kin, list[Grouped]] = defaultdict(list)
        for group in self._groups:
            self._by_kin[_kin_of(group.pattern)].append(group)
        ordered = sorted(failures, key=_most_frequent_first)[:MAX_FAILURES]
        self._open = self._placed(ordered)

    @property
    def has_choices(self) -> bool:
        """Whether any failure has several places to go, so that vectors must decide."""
        return any(
            len(failures) + len(self._by_kin.get(kin, ())) > 1
            for kin, failures in self._open_by_kin().items()
        )

    def texts(self, embedder: str) -> list[str]:
        """Signatures whose vectors `close` needs, each once: none where there is no choice."""
        wanted: dict[str, None] = {}
        for kin, failures in self._open_by_kin().items():
            groups = self._by_kin.get(kin, [])
            if len(failures) + len(groups) < 2:
                continue
            wanted.update(dict.fromkeys(each.signature for each in failures))
            lacking = (g.pattern for g in groups if g.pattern.vector(embedder) is None)
            wanted.update(dict.fromkeys(pattern.leader for pattern in lacking))
        return list(wanted)

    def close(self, vectors: Mapping[str, Vector], embedder: str) -> list[Grouped]:
        """Place what is open; returns the patterns that have any failure, by id.

        Args:
            vectors: of the `texts`, each of shape (dimension,) and unit length.
            embedder: fingerprint of what made them.
        """
        for failure in self._open:
            kin = (failure.category, failure.subjects)
            vector = vectors.get(failure.signature)
            found = self._like(failure) or self._nearest(failure, kin, vector, vectors, embedder)
            if found is None:
                found = self._begun(failure, kin)
                if vector is not None:
                    found.pattern.set_vector(vector, embedder)
            found.failures.append(failure)
        self._open = []
        kept = [each for each in self._groups if each.failures]
        return sorted(kept, key=lambda each: each.pattern.pattern_id)

    def _placed(self, failures: Sequence[Failure]) -> list[Failure]:
        """Put those where they belong that need no vector; returns the others, in order."""
        homes = {mark: group for group in self._groups for mark in group.pattern.marks()}
        still_open = []
        for failure in failures:
            home = homes.get(mark_of(failure.document_id))
            if home is None or home.pattern.category != failure.category:
                home = self._like(failure)
            if home is None:
                still_open.append(failure)
            else:
                home.failures.append(failure)
        return still_open

    def _like(self, failure: Failure) -> Grouped | None:
        """The pattern whose leader has the same letters."""
        said = plain_signature(failure.signature)
        for group in self._groups:
            pattern = group.pattern
            if pattern.category == failure.category and plain_signature(pattern.leader) == said:
                return group
        return None

    def _nearest(
        self,
        failure: Failure,
        kin: _Kin,
        vector: Vector | None,
        vectors: Mapping[str, Vector],
        embedder: str,
    ) -> Grouped | None:
        if vector is None:
            return None
        best, nearness = None, MIN_SIMILARITY
        for group in self._by_kin.get(kin, ()):
            if not may_be_one(group.pattern.places, failure.places):
                continue
            centre = group.pattern.vector(embedder)
            if centre is None:
                centre = vectors[group.pattern.leader]
                group.pattern.set_vector(centre, embedder)
            similarity = float(centre @ vector)
            if similarity >= nearness:
                best, nearness = group, similarity
        return best

    def _begun(self, failure: Failure, kin: _Kin) -> Grouped:
        group = Grouped(
            Pattern(
                pattern_id=new_pattern_id(self._tool, failure.category, failure.signature),
                server_name=self._tool.server_name,
                tool_name=self._tool.tool_name,
                category=failure.category,
                leader=failure.signature,
                places=dict(failure.places),
                subjects=list(failure.subjects),
            )
        )
        self._groups.append(group)
        self._by_kin[kin].append(group)
        return group

    def _open_by_kin(self) -> dict[_Kin, list[Failure]]:
        by_kin: dict[_Kin, list[Failure]] = defaultdict(list)
        for failure in self._open:
            by_kin[failure.category, failure.subjects].append(failure)
        return by_kin


def _kin_of(pattern: Pattern) -> _Kin:
    return (pattern.category, tuple(pattern.subjects))


def _most_frequent_first(failure: Failure) -> tuple[int, str]:
    return (-failure.count, failure.document_id)
