"""Reports: what is counted of a tool, as the wire shows it. Pure.

All that a tool or a user stated is masked and bounded here, on its way out.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from aftercall import models as m
from aftercall.redaction import Redactor
from retrieval.answers.fitness.history import shown_text
from retrieval.knowledge.patterns.cohesion import shown_cohesion
from retrieval.knowledge.rows.health import KnownHealth, Tally
from retrieval.knowledge.rows.health_signals import common_methods
from retrieval.knowledge.tool.rules import ToolKnowledge

EventT = TypeVar("EventT")
MAX_SHOWN = 20
"""Signatures, methods, and latest events of each kind in one answer."""
CORRECTION_WEIGHT = 3.0
"""What a user's correction counts against a tool's own word (4-rules.md)."""
WEAK_WEIGHT = 0.5
"""What a weak success counts: an empty answer is the right one often enough, so half as much as an
answer that the tool itself states is of little use."""
_PRIOR = 1.0
"""Good answers assumed beforehand, so that one bad answer is no verdict (as in Laplace's rule)."""


def health_report(
    known: KnownHealth,
    *,
    tool: m.ToolName,
    knowledge: ToolKnowledge | None,
    cohesion: m.Cohesion,
    stated_methods: frozenset[str],
    redactor: Redactor,
    now: datetime,
) -> m.ToolHealth:
    """Return the health of a tool at this moment, without recommendations."""

    def clean_text(text: str) -> str:
        return shown_text(text, redactor)

    methods = list(common_methods(known, stated_methods).items())
    all_known = list(knowledge.signatures.values()) if knowledge else []
    signatures = [each for each in all_known if each.count]  # others only have outcomes yet
    return m.ToolHealth(
        tool=tool,
        successes=known.successes.show_count(now),
        failures=known.failures.show_count(now),
        categories=_count_categories(known.categories, now),
        signatures=[
            m.SignatureCount(
                signature=clean_text(each.signature),
                category=each.category,
                count=each.count,
                last_seen=each.last_seen,
            )
            for each in sorted(signatures, key=lambda each: (-each.count, each.signature))
        ][:MAX_SHOWN],
        methods=[
            m.MethodHealth(
                method=name,
                successes=each.successes.show_count(now),
                failures=each.failures.show_count(now),
                categories=_count_categories(each.categories, now),
            )
            for name, each in methods[:MAX_SHOWN]
        ],
        repairs=m.RepairHealth(
            attempts=known.repair_attempts.count,
            succeeded=known.repair_successes.count,
            by_agents=sum(each.mends for each in all_known),
        ),
        utility=m.Utility(
            low_utility=_low_utility(known).show_count(now),
            weak_successes=known.weak.show_count(now),
            corrections=known.corrections.show_count(now),
            score=utility_of(known, now=now),
            recent_weak=[
                m.WeakSuccess(execution_id=each.execution_id, at=each.at, why=clean_text(each.why))
                for each in _latest_events(known.recent_weak)
            ],
            recent_corrections=[
                m.CorrectionSeen(
                    correction_id=each.correction_id,
                    execution_id=each.execution_id,
                    at=each.at,
                    kind=each.kind,
                    text=clean_text(each.text),
                )
                for each in _latest_events(known.recent_corrections)
            ],
        ),
        cohesion=shown_cohesion(cohesion, clean_text),
        recent_referrals=[
            m.ReferralSeen(
                execution_id=each.execution_id,
                at=each.at,
                kind=each.kind,
                boundary_axes=[*map(clean_text, each.spelled)],
                observed_task_shape=None if each.shape is None else clean_text(each.shape),
                suggested_split=[*map(clean_text, each.split)],
                evidence=None if each.evidence is None else clean_text(each.evidence),
                lacks_evidence=each.kind == "wrong_tool_boundary" and each.evidence is None,
            )
            for each in _latest_events(known.referrals)
        ],
    )


def utility_of(known: KnownHealth, *, now: datetime) -> float:
    """Return how useful a tool's answers are, in [0, 1]; higher is better.

        (g + 1) / (g + 1 + 3 c + u + w / 2)

    with the recency-weighted counts g of successes that are not weak, c of users' corrections, u of
    answers that the tool itself called `low_utility`, and w of weak successes: the mean of a Beta
    whose one prior trial was good. 1 as long as no one complained, towards 0 when every answer was
    of little use; failures of other kinds are shown in their own place.
    """
    weak = known.weak.weight_at(now)
    good = max(0.0, known.successes.weight_at(now) - weak) + _PRIOR
    bad = CORRECTION_WEIGHT * known.corrections.weight_at(now) + WEAK_WEIGHT * weak
    return good / (good + bad + _low_utility(known).weight_at(now))


def _low_utility(known: KnownHealth) -> Tally:
    return known.categories.get("low_utility") or Tally()


def _count_categories(
    tallies: Mapping[m.ErrorCategory, Tally], now: datetime
) -> list[m.CategoryCount]:
    counts = [
        m.CategoryCount(category=category, **tally.show_count(now).model_dump())
        for category, tally in tallies.items()
    ]
    return sorted(counts, key=lambda each: (-each.count, each.category))


def _latest_events(events: list[EventT]) -> list[EventT]:
    return events[: -MAX_SHOWN - 1 : -1]
