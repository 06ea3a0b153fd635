"""Which of the outcomes of suggestions count, so that nobody's flood hides the others'."""

from collections import Counter

from mongo.records import JudgedSuggestion

PAGE = 1_000
"""Outcomes that a store reads at once."""

_LEAST_OF_AN_AGENT = 50
_SHARE_OF_AN_AGENT = 10
"""No agent fills more than this part of the limit, so that a flood leaves the others in sight."""

_LEAST_PAGES = 10
_LOOKED_AT = 5
"""So many times the limit is looked at, and no more: where one agent said more than all of that
since, the others' older outcomes are out of sight, which bounds the time."""


class LatestJudged:
    """Outcomes of suggestions, gathered latest first: at most `limit`, some of each agent."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 0)
        self._most = max(_LEAST_OF_AN_AGENT, self._limit // _SHARE_OF_AN_AGENT)
        self._seen: Counter[str | None] = Counter()
        self.found: list[JudgedSuggestion] = []

    @property
    def pages(self) -> int:
        """How many pages are read at most."""
        return max(_LEAST_PAGES, _LOOKED_AT * self._limit // PAGE)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is wanted."""
        return len(self.found) >= self._limit

    def add(self, judged: JudgedSuggestion) -> None:
        """Take the next older outcome, unless its agent said enough or nothing more is wanted."""
        if not self.is_full and self._seen[judged.agent] < self._most:
            self._seen[judged.agent] += 1
            self.found.append(judged)
