"""Health as it is since a moment: what tells whether evidence has returned."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby

from aftercall.models import ErrorCategory
from retrieval.health.record import KnownHealth, Tally
from retrieval.recommendations.subject import tally_of


def health_since(known: KnownHealth, moment: datetime, *, calls_then: int) -> KnownHealth:
    """A copy with the evidence that is later than a moment, as far as it is remembered.

    Failures of the implementation, referrals, weak successes and corrections are kept one by one
    with their times. Calls are not, so the others since then are taken for successes of the time of
    the latest one.

    Args:
        known: all that is known; not changed.
        moment: what happened then or earlier is left out.
        calls_then: all calls that were known then.
    """
    own = [each for each in known.own_failures if each.at > moment]
    referrals = [each for each in known.referrals if each.at > moment]
    weak = [each for each in known.recent_weak if each.at > moment]
    corrections = [each for each in known.recent_corrections if each.at > moment]
    failed: list[tuple[ErrorCategory, datetime]] = [(each.category, each.at) for each in own]
    failed += [(each.kind, each.at) for each in referrals]
    calls = known.successes.count + known.failures.count - calls_then
    return KnownHealth(
        successes=_all_at(max(len(weak), calls - len(failed)), known.successes.at),
        failures=tally_of(at for _, at in failed),
        categories=_by_category(failed),
        referrals=referrals,
        weak=tally_of(each.at for each in weak),
        recent_weak=weak,
        corrections=tally_of(each.at for each in corrections),
        recent_corrections=corrections,
        own_failures=own,
        violations=[
            each
            for each in known.violations
            if each.tally.at is not None and each.tally.at > moment
        ],
    )


def _by_category(
    failed: Iterable[tuple[ErrorCategory, datetime]],
) -> dict[ErrorCategory, Tally]:
    return {
        category: tally_of(at for _, at in each)
        for category, each in groupby(sorted(failed), key=lambda one: one[0])
    }


def _all_at(count: int, at: datetime | None) -> Tally:
    return Tally() if at is None else Tally(count=count, weight=float(count), at=at)
