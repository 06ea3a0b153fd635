"""Reflection: how long failures waited for the success that mended them. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np

from aftercall.models import RepairTimes
from mongo.records import MendedFailure


def joined(
    mined: Iterable[MendedFailure], followed: Iterable[MendedFailure]
) -> list[MendedFailure]:
    """All of both, each once.

    A success may be both when only its outcome was reported; then the outcome says more. Repairs of
    the same moments are as many as either has: times may be whole seconds, and two agents may have
    the same.
    """
    found = list(followed)
    told = Counter((each.failed_at, each.mended_at) for each in found)
    for each in mined:
        times = (each.failed_at, each.mended_at)
        if told[times]:
            told[times] -= 1
        else:
            found.append(each)
    return found


def repair_times(
    mended: Iterable[MendedFailure], since: datetime, until: datetime
) -> tuple[RepairTimes, RepairTimes]:
    """Of the failures that were mended in a window: those by a suggestion, and the others.

    Times are those that callers gave their calls; a success of before its failure, by another
    clock, waited 0 ms.

    Args:
        mended: in any order.
        since: the beginning, with a zone.
        until: the end.
    """
    waited: dict[bool, list[float]] = {True: [], False: []}
    for each in mended:
        if since <= each.mended_at <= until:
            seconds = (each.mended_at - each.failed_at).total_seconds()
            waited[each.followed_suggestion].append(max(0.0, seconds * 1000))
    return _times(waited[True]), _times(waited[False])


def _times(waited_ms: Sequence[float]) -> RepairTimes:
    if not waited_ms:
        return RepairTimes()
    p50, p95 = np.percentile(waited_ms, [50, 95])
    return RepairTimes(
        repairs=len(waited_ms), p50_ms=round(float(p50), 3), p95_ms=round(float(p95), 3)
    )
