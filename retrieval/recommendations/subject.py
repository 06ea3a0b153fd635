"""One tool as recommendations see it, and what all of them are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from aftercall.models import (
    Cohesion,
    EvidenceCount,
    Recommendation,
    RecommendationEvidence,
    RecommendationKind,
    ToolName,
)
from mongo.records import ToolKey
from retrieval.health.record import Corrected, KnownHealth, OwnFailure, Referred, Tally, Weak
from retrieval.recommendations.identity import MATTERS, id_of_tool_matter
from retrieval.recommendations.words import MAX_EXECUTIONS, Words

EventT = TypeVar("EventT", OwnFailure, Referred, Weak, Corrected)


@dataclass(frozen=True, slots=True)
class Subject:
    """A tool with its health, at one moment.

    Args:
        tool: as executions name it.
        tool_id: what it is registered under, if it is.
        known: its health; not changed.
        cohesion: that of `known`.
        now: from when age counts.
        words: makes what tools and users said fit to be told.
    """

    tool: ToolKey
    tool_id: str | None
    known: KnownHealth
    cohesion: Cohesion
    now: datetime
    words: Words

    @property
    def name(self) -> str:
        """Its name, as messages quote it."""
        return self.words.quoted(self.tool_id or self.tool.tool_name)

    @property
    def calls(self) -> int:
        """All calls that are known."""
        return self.known.successes.count + self.known.failures.count


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of evidence.

    Args:
        what: its name.
        tally: how often, and when last.
        points: what one event of now weighs.
    """

    what: str
    tally: Tally
    points: float = 1.0

    def weight(self, now: datetime) -> float:
        """What it weighs now, in points."""
        return self.tally.weight_at(now) * self.points


def priority_of(parts: Iterable[Part], confidence: float, now: datetime) -> float:
    """The weight of the evidence in points, halving every 7 days, times the confidence.

    So it grows with how often, how lately and how surely. A user's correction has three points,
    a failure or a tool's own word one (see `RecommendationRules`).
    """
    return sum(part.weight(now) for part in parts) * confidence


def recommendation(
    subject: Subject,
    kind: RecommendationKind,
    message: str,
    *,
    parts: Sequence[Part],
    confidence: float,
    events: Iterable[tuple[datetime, str]],
    quotes: Iterable[str],
) -> Recommendation:
    """A recommendation about the subject.

    Args:
        subject: whom it is about.
        kind: what it suggests.
        message: the same in words, bounded and redacted.
        parts: what it rests on.
        confidence: in [0, 1].
        events: moments and executions of the evidence that is remembered, in any order.
        quotes: what was said, as it was said; what matters most first.
    """
    latest = sorted(events, reverse=True)
    seen = [part.tally.at for part in parts if part.tally.at is not None]
    seen += [at for at, _ in latest]
    weighed = sorted(
        (part for part in parts if part.tally.count),
        key=lambda part: (-part.weight(subject.now), part.what),
    )
    return Recommendation(
        recommendation_id=id_of_tool_matter(MATTERS[kind], subject.tool),
        kind=kind,
        tool=ToolName(
            tool_id=subject.tool_id,
            server_name=subject.tool.server_name,
            tool_name=subject.tool.tool_name,
        ),
        message=message,
        confidence=round(confidence, 4),
        priority=round(priority_of(parts, confidence, subject.now), 4),
        evidence=RecommendationEvidence(
            counts=[
                EvidenceCount(
                    what=part.what,
                    count=part.tally.count,
                    weight=round(part.tally.weight_at(subject.now), 4),
                )
                for part in weighed
            ],
            calls=subject.calls,
            quotes=subject.words.distinct(quotes),
            execution_ids=list(dict.fromkeys(each for _, each in latest))[:MAX_EXECUTIONS],
        ),
        first_seen=min(seen, default=None),
        last_seen=max(seen, default=None),
    )


def latest_first(events: Sequence[EventT]) -> list[EventT]:
    """By their moments; of the same moment the one that was remembered last."""
    return sorted(events, key=lambda each: each.at)[::-1]


def tally_of(moments: Iterable[datetime]) -> Tally:
    """The tally of events of these moments."""
    tally = Tally()
    for at in moments:
        tally.add(at)
    return tally


def times(count: int, thing: str) -> str:
    """`1 thing`, `2 things`."""
    if count == 1:
        return f"1 {thing}"
    return f"{count:,} {thing}es" if thing.endswith("ss") else f"{count:,} {thing}s"
