"""Reports: what is counted of a tool, as the wire tells it. Pure.

All that a tool or a user said is masked and bounded here, on its way out.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from aftercall.models import (
    CategoryCount,
    Cohesion,
    CorrectionSeen,
    ErrorCategory,
    MethodHealth,
    ReferralSeen,
    RepairHealth,
    SignatureCount,
    ToolHealth,
    ToolName,
    Utility,
    WeakSuccess,
)
from aftercall.redaction import Redactor
from retrieval.health.record import Corrected, KnownHealth, Referred, Tally, Weak
from retrieval.health.signals import common_methods
from retrieval.knowledge.rules import ToolKnowledge

EventT = TypeVar("EventT")

MAX_SHOWN = 20
"""Signatures, methods, and latest events of each kind in one answer."""

_MAX_TEXT = 500
"""Characters of a signature, of a message, of a user's words (as in answers about failures)."""

CORRECTION_WEIGHT = 3.0
"""What a user's correction counts against a tool's own word (4-rules.md)."""

WEAK_WEIGHT = 0.5
"""What a weak success counts: an empty answer is the right one often enough, so half as much as an
answer that the tool itself says is of little use."""

_PRIOR = 1.0
"""Good answers assumed beforehand, so that one bad answer is no verdict (as in Laplace's rule)."""


def health_report(
    known: KnownHealth,
    *,
    tool: ToolName,
    knowledge: ToolKnowledge | None,
    cohesion: Cohesion,
    stated_methods: frozenset[str],
    redactor: Redactor,
    now: datetime,
) -> ToolHealth:
    """The health of a tool at this moment, without recommendations.

    Args:
        known: what is counted of it.
        tool: its names.
        knowledge: its signatures; None when there are none.
        cohesion: of the same tool, as told by its room.
        stated_methods: names of methods that its registered schema states.
        redactor: masks secrets in what was said.
        now: from when the weights count.
    """
    shown = _Shown(redactor, now)
    methods = list(common_methods(known, stated_methods).items())
    return ToolHealth(
        tool=tool,
        successes=known.successes.shown(now),
        failures=known.failures.shown(now),
        categories=shown.categories(known.categories),
        signatures=shown.signatures(knowledge),
        methods=[
            MethodHealth(
                method=name,
                successes=each.successes.shown(now),
                failures=each.failures.shown(now),
                categories=shown.categories(each.categories),
            )
            for name, each in methods[:MAX_SHOWN]
        ],
        repairs=RepairHealth(
            attempts=known.repair_attempts.count, succeeded=known.repair_successes.count
        ),
        utility=Utility(
            low_utility=_low_utility(known).shown(now),
            weak_successes=known.weak.shown(now),
            corrections=known.corrections.shown(now),
            score=utility_of(known, now=now),
            recent_weak=[shown.weak(each) for each in _latest(known.recent_weak)],
            recent_corrections=[
                shown.correction(each) for each in _latest(known.recent_corrections)
            ],
        ),
        cohesion=shown.cohesion(cohesion),
        recent_referrals=[shown.referral(each) for each in _latest(known.referrals)],
    )


def utility_of(known: KnownHealth, *, now: datetime) -> float:
    """How useful a tool's answers are, in [0, 1]; higher is better.

        (g + 1) / (g + 1 + 3 c + u + w / 2)

    with the recency-weighted counts g of successes that are not weak, c of users' corrections, u of
    answers that the tool itself called `low_utility`, and w of weak successes. 1 as long as nobody
    complained, towards 0 when every answer was of little use. It is the mean of a Beta whose one
    prior trial was good.

    A further good success never lowers it; a further correction, `low_utility` or weak success
    never raises it, and the three lower it in this order. Failures of other kinds change nothing:
    they are told in their own place.
    """
    weak = known.weak.weight_at(now)
    good = max(0.0, known.successes.weight_at(now) - weak) + _PRIOR
    bad = (
        CORRECTION_WEIGHT * known.corrections.weight_at(now)
        + _low_utility(known).weight_at(now)
        + WEAK_WEIGHT * weak
    )
    return good / (good + bad)


def _low_utility(known: KnownHealth) -> Tally:
    return known.categories.get("low_utility") or Tally()


class _Shown:
    """What leaves the room: without secrets, and bounded."""

    def __init__(self, redactor: Redactor, now: datetime) -> None:
        self._redactor = redactor
        self._now = now

    def categories(self, tallies: Mapping[ErrorCategory, Tally]) -> list[CategoryCount]:
        """Most first."""
        counts = [
            CategoryCount(category=category, **tally.shown(self._now).model_dump())
            for category, tally in tallies.items()
        ]
        return sorted(counts, key=lambda each: (-each.count, each.category))

    def signatures(self, knowledge: ToolKnowledge | None) -> list[SignatureCount]:
        """Most first."""
        known = knowledge.signatures.values() if knowledge else ()
        first = sorted(known, key=lambda each: (-each.count, each.signature))[:MAX_SHOWN]
        return [
            SignatureCount(
                signature=self.text(each.signature),
                category=each.category,
                count=each.count,
                last_seen=each.last_seen,
            )
            for each in first
        ]

    def referral(self, referred: Referred) -> ReferralSeen:
        return ReferralSeen(
            execution_id=referred.execution_id,
            at=referred.at,
            kind=referred.kind,
            boundary_axes=self.texts(referred.spelled),
            observed_task_shape=self.optional(referred.shape),
            suggested_split=self.texts(referred.split),
            evidence=self.optional(referred.evidence),
            lacks_evidence=referred.kind == "wrong_tool_boundary" and referred.evidence is None,
        )

    def weak(self, weak: Weak) -> WeakSuccess:
        return WeakSuccess(execution_id=weak.execution_id, at=weak.at, why=self.text(weak.why))

    def correction(self, corrected: Corrected) -> CorrectionSeen:
        return CorrectionSeen(
            correction_id=corrected.correction_id,
            execution_id=corrected.execution_id,
            at=corrected.at,
            kind=corrected.kind,
            text=self.text(corrected.text),
        )

    def cohesion(self, cohesion: Cohesion) -> Cohesion:
        axes = [
            each.model_copy(update={"name": self.text(each.name), "axes": self.texts(each.axes)})
            for each in cohesion.axes
        ]
        return cohesion.model_copy(update={"axes": axes, "message": self.text(cohesion.message)})

    def text(self, text: str) -> str:
        masked = self._redactor.text(text)
        return masked if len(masked) <= _MAX_TEXT else f"{masked[: _MAX_TEXT - 1]}…"

    def texts(self, texts: Iterable[str]) -> list[str]:
        return [self.text(each) for each in texts]

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)


def _latest(events: list[EventT]) -> list[EventT]:
    return events[: -MAX_SHOWN - 1 : -1]
