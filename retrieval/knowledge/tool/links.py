"""Links: from which earlier call of a session a parameter takes its values.

`flight_number` of a booking is what the search gave at `[].flight_number`; `folder` is what `find`
printed. A link is a place of a result, or of the arguments, of an earlier tool, and a place of the
parameters. It is counted over the successes of all sessions: how often the one value that was there
was the one that was sent. The values themselves stay inside their session; of a result only a
bounded extract of its plain values is looked at.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.redaction import is_redacted
from retrieval import WORDS
from retrieval.knowledge.session.session_calls import ARGUMENT, EarlierCall, nouns_of
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import leaves_like, written_place

MAX_CALLS = 30
"""Earlier calls of a session that are looked at."""
_MAX_PLACES = 40
_MAX_SOURCES = 6
_MOST = 40
"""Counts beyond which both halve, so that what changes is learned again."""
_KEY = re.compile(r"[.\[\]]+(?=\w)")
_SAYS_NO_KIND = WORDS["of_ids"] | WORDS["of_names"]
_SAYS_NOTHING = WORDS["of_envelopes_of_results"]


@dataclass(slots=True)
class LinkCounts:
    """How often the only value at a source was the one that was sent, and was not.

    `among` and `missed` count the same of sources with several values.
    """

    right: int = 0
    wrong: int = 0
    among: int = 0
    missed: int = 0

    @property
    def confirmed(self) -> int:
        """Successes that had a value of the source."""
        return self.right + self.among

    def learn_success(self, values: Sequence[JsonValue], sent: JsonValue) -> None:
        """Count one success, in place."""
        # Whatever the type: what a text prints as `5` is the number 5.
        is_there = str(sent) in map(str, values)
        if len(values) == 1:
            self.right += is_there
            self.wrong += not is_there
        else:
            self.among += is_there
            self.missed += not is_there
        if self.right + self.wrong + self.among + self.missed > _MOST:
            self.right //= 2
            self.wrong //= 2
            self.among //= 2
            self.missed //= 2


@dataclass(slots=True)
class Links:
    """Sources of a tool's parameters: by place, then by tool and place of the source."""

    by_place: dict[str, dict[str, LinkCounts]] = field(default_factory=dict)

    def learn_values(self, parameters: JsonObject, earlier: Sequence[EarlierCall]) -> None:
        """Count a success's values against what its session had before, in place."""
        calls = _latest_calls(earlier)
        sources = _value_sources(calls)
        for path, sent in leaves_like(parameters, ()):
            if isinstance(sent, bool) or sent in (None, "") or is_redacted(sent):
                continue
            place = written_place(path)
            text = str(sent)
            found = [each for each in self.by_place.get(place, ()) if each in sources]
            for call in calls:
                found += call.holders.get(text, ())
            for source in dict.fromkeys(found):
                self._link_counts(place, source).learn_success(sources[source], sent)

    def _link_counts(self, place: str, source: str) -> LinkCounts:
        if place not in self.by_place and len(self.by_place) >= _MAX_PLACES:
            return LinkCounts()
        known = self.by_place.setdefault(place, {})
        if source not in known and len(known) >= _MAX_SOURCES:
            least = min(known, key=lambda each: known[each].confirmed)
            if known[least].confirmed > 1:
                return LinkCounts()
            del known[least]
        return known.setdefault(source, LinkCounts())

    def list_candidates(
        self, place: str, earlier: Sequence[EarlierCall], *, tool: str = ""
    ) -> Iterator[tuple[str, list[JsonValue], LinkCounts]]:
        """Yield the session's values that a place of a `tool` may take, with their links.

        Those whose key is the parameter's name are among them before they were ever seen to be; of
        a name such as `id` only those of the kind that the tool is about.
        """
        known = self.by_place.get(place, {})
        wanted = words_of(place)
        for source, values in _value_sources(_latest_calls(earlier)).items():
            other, where = source.split("\x1f", 1)
            *above, key = _KEY.split(where)
            is_named = not where.startswith(ARGUMENT) and words_of(key) == wanted
            if is_named and _SAYS_NO_KIND.issuperset(wanted):
                is_named = _may_be_of(tool, other, above)
            link = known.get(source)
            if is_named:
                link = replace(link) if link else LinkCounts()
                link.right += 1
                link.among += 1
            if link:
                yield f"{other} {where}", values, link


def _may_be_of(tool: str, other: str, above: Sequence[str]) -> bool:
    """Return whether a key below others, in another tool's result, fits a tool's kind."""
    about = nouns_of(tool)
    if not about:
        return True
    kind = nouns_of(other)
    for key in above:
        kind = nouns_of(f"get_{key}") - _SAYS_NOTHING or kind
    return not kind.isdisjoint(about)


def _latest_calls(earlier: Sequence[EarlierCall]) -> Collection[EarlierCall]:
    calls: dict[str, EarlierCall] = {}
    for call in reversed(earlier[-MAX_CALLS:]):
        calls.setdefault(call.tool_name, call)
    return calls.values()


def _value_sources(calls: Iterable[EarlierCall]) -> dict[str, list[JsonValue]]:
    sources: dict[str, list[JsonValue]] = {}
    for call in calls:
        sources.update(call.sources)
    return sources


MAX_HEARD = 12
"""Sessions that are remembered of a call that has to come first."""
MAX_FIRST_CALLS = 8
MAX_SHOWN = 3
"""Executions that are named as evidence."""


@dataclass(slots=True)
class FirstCall:
    """A tool that was called between a failure and the same call's success.

    `parameters` states by its own parameters those of the failed call that had the same value, in
    every session; `is_whole` states that these were all that it was given.
    """

    tool_name: str
    sessions: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    is_whole: bool = True
    execution_ids: list[str] = field(default_factory=list)

    def learn_session(
        self, session: str, parameters: JsonObject, failed: JsonObject, execution_id: str
    ) -> None:
        """Add one session, in place."""
        is_first = not self.sessions
        found: dict[str, str] = {}
        for name, value in parameters.items():
            same = [other for other, mine in failed.items() if same_json(mine, value)]
            if same and (is_first or self.parameters.get(name) == same[0]):
                found[name] = same[0]
        self.parameters = found
        self.is_whole = self.is_whole and len(found) == len(parameters)
        others = [each for each in self.sessions if each != session]
        self.sessions = [*others, session][-MAX_HEARD:]
        self.execution_ids = [*self.execution_ids, execution_id][-MAX_SHOWN:]
