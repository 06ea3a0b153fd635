"""What is counted of a tool's health: bounded, exactly once, rebuilt from the log. Made by ingest.

All events are in tallies. The latest are kept one by one besides, as far as questions about them
look back: each list keeps its latest by time and id, so that it ends the same in any order of
arrival.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from math import ceil
from typing import TypeVar

from pydantic import BaseModel, Field

from aftercall.models import Count, ErrorCategory, ReferralKind, Severity
from retrieval.knowledge.rows.principals import MOST_OF_ONE, fairly_heard, key_mark, principal_of

HALF_LIFE = timedelta(days=7)
"""In which an event's weight halves (4-rules.md)."""
_HALF_LIFE_S = HALF_LIFE.total_seconds()
MAX_REFERRALS = 64
"""Latest boundary referrals remembered one by one: cohesion and recommendations read them."""
MAX_LOW_UTILITY = 32
"""The same of the other kind, by itself: a flood of these must not push out the boundaries."""
MAX_WEAK = 16
MAX_CORRECTIONS = 32
MAX_OWN_FAILURES = 64
"""Moments of the latest failures that are the implementation's own."""
MAX_METHODS = 32
MAX_METHOD_SESSIONS = 2
"""Sessions remembered of a method: from two on its name is common knowledge."""
MAX_BOOK_AXES = 2_000
"""Distinct axes remembered of a workspace; of more, the least heavy make space."""
MAX_BOOK_PAIRS = 4_000
MAX_WORDS = 300
"""Characters kept of what a tool or a user stated."""
MAX_REFERRED = 40_000
"""Characters of a tool's referrals. The texts of a hostile tool may be longer than that."""
_SHED = 4
"""Of referrals that are too long together the oldest quarter goes, until they fit."""
_MAX_PAIRED = 8
"""Axes of one referral that are paired: 28 pairs. A referral of more names a list, no boundary."""
_OVERFLOW = 2
"""A book may grow to twice its bound before it is pruned, so that pruning is rare."""
OWN_FAILURES: frozenset[ErrorCategory] = frozenset({"execution", "contract_violation", "timeout"})
"""Failures that only the tool's maker can repair; they speak for a repair."""


@dataclass(slots=True)
class Tally:
    """How often something happened, and its weight at the latest time; merged in any order."""

    count: int = 0
    weight: float = 0.0
    """As of `at`: an event of then counts 1 and one of a half-life earlier 1/2."""
    at: datetime | None = None

    def add(self, at: datetime) -> None:
        """Count an event, in place; a late arrival counts as its own time states."""
        if self.at is None or at >= self.at:
            self.weight = self.weight_at(at) + 1
            self.at = at
        else:
            self.weight += decayed_weight(self.at, at)
        self.count += 1

    @classmethod
    def from_moments(cls, moments: Iterable[datetime]) -> "Tally":
        """Return the tally of events of these moments."""
        tally = cls()
        for at in moments:
            tally.add(at)
        return tally

    def weight_at(self, now: datetime) -> float:
        """Return the weight now; events of a later time count whole."""
        return 0.0 if self.at is None else self.weight * decayed_weight(now, self.at)

    def show_count(self, now: datetime) -> Count:
        """Return the count for an answer."""
        return Count(count=self.count, weight=round(self.weight_at(now), 4), last_seen=self.at)


def decayed_weight(now: datetime, then: datetime) -> float:
    """Return what an event of then still weighs now, in (0, 1]."""
    return float(0.5 ** (max(0.0, (now - then).total_seconds()) / _HALF_LIFE_S))


class _Event(BaseModel):
    at: datetime
    execution_id: str

    def sort_key(self) -> tuple[datetime, str]:
        return self.at, self.execution_id


class Referred(_Event):
    """One referral."""

    kind: ReferralKind
    session: str
    axes: list[str] = Field(default_factory=list)
    """Normalised (`retrieval.knowledge.patterns.clusters`), each once."""
    spelled: list[str] = Field(default_factory=list)
    """The same in the tool's own words, in the same order."""
    shape: str | None = None
    split: list[str] = Field(default_factory=list)
    evidence: str | None = None
    message: str = ""


class Weak(_Event):
    """One weak success."""

    why: str


class Corrected(_Event):
    """One correction by a user."""

    correction_id: str
    kind: ReferralKind
    text: str
    axes: list[str] = Field(default_factory=list)
    """Normalised, as in `Referred`."""
    by: str = ""
    """The mark of its principal (`retrieval.knowledge.rows.principals.key_mark`)."""

    def sort_key(self) -> tuple[datetime, str]:
        """Return its time and id: a call may be corrected several times."""
        return self.at, self.correction_id


class OwnFailure(_Event):
    """One failure of the implementation."""

    category: ErrorCategory
    message: str


class Marked(_Event):
    """One failure that someone marked, of a call that is not recorded or passed for a success."""

    severity: Severity
    message: str
    by: str = ""
    """The mark of its principal (`retrieval.knowledge.rows.principals.key_mark`)."""


class MethodTallies(BaseModel):
    """What is counted of one method."""

    successes: Tally = Field(default_factory=Tally)
    failures: Tally = Field(default_factory=Tally)
    categories: dict[ErrorCategory, Tally] = Field(default_factory=dict)
    sessions: list[str] = Field(default_factory=list)
    """Short marks of distinct sessions, a few."""

    @property
    def calls(self) -> int:
        """Return all calls."""
        return self.successes.count + self.failures.count


class KnownHealth(BaseModel):
    """All that is counted of one tool."""

    successes: Tally = Field(default_factory=Tally)
    failures: Tally = Field(default_factory=Tally)
    categories: dict[ErrorCategory, Tally] = Field(default_factory=dict)
    methods: dict[str, MethodTallies] = Field(default_factory=dict)
    method_parameter: str | None = None
    """The parameter that states which method is called; None for a tool with one job."""
    repair_attempts: Tally = Field(default_factory=Tally)
    repair_successes: Tally = Field(default_factory=Tally)
    referrals: list[Referred] = Field(default_factory=list)
    """Of both kinds, oldest first."""
    weak: Tally = Field(default_factory=Tally)
    recent_weak: list[Weak] = Field(default_factory=list)
    corrections: Tally = Field(default_factory=Tally)
    recent_corrections: list[Corrected] = Field(default_factory=list)
    own_failures: list[OwnFailure] = Field(default_factory=list)
    marks: list[Marked] = Field(default_factory=list)
    first_seen: datetime | None = None
    used_at: datetime | None = None
    troubled_at: datetime | None = None
    users: list[str] = Field(default_factory=list)
    """The marks of the first two principals that stated something of it."""

    def limit_principals(self) -> "KnownHealth":
        """Return a copy in which a principal counts up to `MOST_OF_ONE` or all others."""
        if len(self.users) < _SEVERAL:
            return self
        said, most = self.recent_corrections, MOST_OF_ONE
        corrections = fairly_heard(said, lambda each: each.by, least=most)
        referrals = []
        for kind in ("wrong_tool_boundary", "low_utility"):
            own = [each for each in self.referrals if each.kind == kind]
            referrals += fairly_heard(own, lambda each: principal_of(each.session), least=most)
        low = [each for each in referrals if each.kind == "low_utility"]
        categories = dict(self.categories)
        if low:
            categories["low_utility"] = Tally.from_moments(each.at for each in low)
        told: dict[str, object] = {
            "referrals": sorted(referrals, key=Referred.sort_key),
            "recent_corrections": corrections,
            "marks": fairly_heard(self.marks, lambda each: each.by, least=most),
            "categories": categories,
            "corrections": Tally.from_moments(each.at for each in corrections),
        }
        return self.model_copy(update=told)


_SEVERAL = 2


def remember_user(known: KnownHealth, principal: str) -> None:
    """Remember who states something of a tool, in place."""
    if len(known.users) < _SEVERAL and key_mark(principal) not in known.users:
        known.users.append(key_mark(principal))


EventT = TypeVar("EventT", bound=_Event)
_LIMITS: dict[type[_Event], int] = {
    Weak: MAX_WEAK, OwnFailure: MAX_OWN_FAILURES, Corrected: MAX_CORRECTIONS,
    Marked: MAX_CORRECTIONS,
}  # fmt: skip


def remember_referral(known: KnownHealth, new: Referred) -> None:
    """Add a referral, in place of the oldest of its kind."""
    like = [each for each in known.referrals if each.kind == new.kind]
    others = [each for each in known.referrals if each.kind != new.kind]
    _insert_event(
        like, new, MAX_REFERRALS if new.kind == "wrong_tool_boundary" else MAX_LOW_UTILITY
    )
    known.referrals = sorted([*others, *like], key=Referred.sort_key)
    texts = [
        (*each.axes, *each.spelled, *each.split, each.evidence or "", each.message)
        for each in known.referrals
    ]
    while sum(len(text) for each in texts for text in each) > MAX_REFERRED:
        shed = ceil(len(texts) / _SHED)
        del known.referrals[:shed], texts[:shed]


def remember_event(events: list[EventT], new: EventT) -> None:
    """Add an event of any other kind to its list, in place of the oldest."""
    _insert_event(events, new, _LIMITS[type(new)])


def _insert_event(events: list[EventT], new: EventT, limit: int) -> None:
    events.insert(bisect_right(events, new.sort_key(), key=_Event.sort_key), new)
    del events[:-limit]


def method_to_update(known: KnownHealth, method: str) -> MethodTallies:
    """Return a method's tallies, made when they are new instead of the least called."""
    tallies = known.methods.setdefault(method, MethodTallies())
    while len(known.methods) > MAX_METHODS:
        others = (each for each in known.methods if each != method)
        del known.methods[min(others, key=lambda each: (known.methods[each].calls, each))]
    return tallies


def shorten_line(text: str, limit: int = MAX_WORDS) -> str:
    """Text on one line, of at most so many characters."""
    return " ".join(text[: 4 * limit].split())[:limit]


class AxisSeen(BaseModel):
    """One axis of a workspace."""

    spelled: str
    """As a tool wrote it last."""
    tally: Tally = Field(default_factory=Tally)
    first_seen: datetime | None = None


class AxisBook(BaseModel):
    """What tools and users of a workspace named as boundaries, and which of it together."""

    axes: dict[str, AxisSeen] = Field(default_factory=dict)
    """By their normalised form."""
    pairs: dict[str, Tally] = Field(default_factory=dict)
    """By two normalised forms, sorted, that were named in the same referral."""


_BETWEEN = "\x1f"


def axes_of_pair(key: str) -> tuple[str, str]:
    """Return the two axes of a key of `AxisBook.pairs`."""
    one, _, other = key.partition(_BETWEEN)
    return one, other


def count_axes(book: AxisBook, axes: Mapping[str, str], at: datetime) -> None:
    """Count the axes that were named together, in place."""
    for axis, spelled in axes.items():
        seen = book.axes.get(axis)
        if seen is None:
            seen = book.axes[axis] = AxisSeen(spelled=spelled)
        elif seen.tally.at is None or (at, spelled) > (seen.tally.at, seen.spelled):
            seen.spelled = spelled
        seen.tally.add(at)
        seen.first_seen = at if seen.first_seen is None else min(at, seen.first_seen)
    for one, other in combinations(list(axes)[:_MAX_PAIRED], 2):
        book.pairs.setdefault(_BETWEEN.join(sorted((one, other))), Tally()).add(at)
    if len(book.axes) > _OVERFLOW * MAX_BOOK_AXES or len(book.pairs) > _OVERFLOW * MAX_BOOK_PAIRS:
        prune_book(book)


def prune_book(book: AxisBook) -> None:
    """Forget the least heavy axes and pairs of a book that is too full, in place."""
    tallies = {axis: seen.tally for axis, seen in book.axes.items()}
    for axis in _lightest_names(tallies, MAX_BOOK_AXES):
        del book.axes[axis]
    for pair in _lightest_names(book.pairs, MAX_BOOK_PAIRS):
        del book.pairs[pair]


def _lightest_names(tallies: Mapping[str, Tally], limit: int) -> list[str]:
    """Return what goes so that only the heaviest stay, of equal weight the first by name."""
    if len(tallies) <= limit:
        return []
    now = max(each.at for each in tallies.values() if each.at)
    return sorted(tallies, key=lambda name: (-tallies[name].weight_at(now), name))[limit:]
