"""Kinds of answers: what is counted of an answer of `/suggest`, as text for the store, and back.

Pure. A kind is the hour of the day (UTC) and what was answered, such as `13 action:switch_tool`, so
that windows which begin with an hour can be told.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Final, TypeVar, get_args

from aftercall.models import ActionCount, AnswerCounts, CategoryAbstentions, SuggestResponse
from aftercall.models.calls import Action, ErrorCategory
from mongo.records import AnswerCount

CONFIDENT: Final = 0.80
"""Above it a suggestion is told to be sure, as wherever harm is measured (`bench/quality`)."""

_ASKED, _ABSTAINED, _CONFIDENT = "asked", "abstained", "confident"
_ACTIONS: Final[Mapping[str, Action]] = {f"action:{each}": each for each in get_args(Action)}
_ABSTENTIONS: Final[Mapping[str, ErrorCategory]] = {
    f"abstained:{each}": each for each in get_args(ErrorCategory)
}

LabelT = TypeVar("LabelT", bound=str)


def kinds_of(response: SuggestResponse, at: datetime) -> list[str]:
    """What one answer counts as; each kind once.

    Args:
        response: what was answered.
        at: when, with a zone.
    """
    hour = at.astimezone(UTC).hour
    return [f"{hour:02} {each}" for each in _answered(response)]


def _answered(response: SuggestResponse) -> list[str]:
    if not response.suggestions:
        return [_ASKED, _ABSTAINED, f"{_ABSTAINED}:{response.pattern.category}"]
    best = response.suggestions[0]
    sure = [_CONFIDENT] if best.confidence > CONFIDENT else []
    return [_ASKED, f"action:{best.action}", *sure]


def told(counts: Iterable[AnswerCount], since: datetime) -> AnswerCounts:
    """Counts of the hours from `since` on, as they are told; kinds that nobody knows count nothing.

    Args:
        counts: in any order; of one day and kind there may be several.
        since: the beginning of an hour, with a zone.
    """
    sums: Counter[str] = Counter()
    for each in counts:
        number, _, kind = each.kind.partition(" ")
        if number.isascii() and number.isdigit() and int(number) < 24:
            midnight = datetime.combine(each.day, time(), UTC)
            if midnight + timedelta(hours=int(number)) >= since:
                sums[kind] += each.count
    return AnswerCounts(
        asked=sums[_ASKED],
        abstained=sums[_ABSTAINED],
        confident=sums[_CONFIDENT],
        by_action=[
            ActionCount(action=action, answers=count) for action, count in _most(sums, _ACTIONS)
        ],
        abstentions=[
            CategoryAbstentions(category=category, answers=count)
            for category, count in _most(sums, _ABSTENTIONS)
        ],
    )


def _most(sums: Mapping[str, int], labels: Mapping[str, LabelT]) -> list[tuple[LabelT, int]]:
    """Labels with what was counted of them, most first."""
    found = [(label, sums[kind]) for kind, label in labels.items() if sums.get(kind)]
    return sorted(found, key=lambda each: (-each[1], each[0]))
