"""Links: from which earlier call of a session a parameter takes its values.

`flight_number` of a booking is what the search gave at `[].flight_number`; `folder` is what `find`
printed. A link is a place of a result, or of the arguments, of an earlier tool, and a place of the
parameters. It is counted over the successes of all sessions: how often the one value that was there
was the one that was sent. The values themselves stay inside their session; of a result only a
bounded extract of its plain values is looked at.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, read_json
from aftercall.redaction import is_redacted
from aftercall.tables import gathered
from retrieval.likeness import words_of
from retrieval.parameters import leaves_like, place_of

MAX_CALLS = 30
"""Earlier calls of a session that are looked at."""
_MAX_LEAVES = 120
_MAX_TEXT = 20_000
_LONGEST = 200
_MAX_PLACES = 40
_MAX_SOURCES = 6
_MOST = 40
"""Counts beyond which both halve, so that what changes is learned anew."""
_ARGUMENT = "@"
_KEY = re.compile(r"[.\[\]]+(?=\w)")
_PAIR = re.compile(r'"([^"\\]{1,60})"\s*:\s*(?:"([^"\\]{1,200})"|(-?\d+(?:\.\d+)?))')
_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>|]{2,200}")


@dataclass(frozen=True, slots=True)
class SessionCall:
    """An earlier call of a session: its plain values by place, those of its arguments under `@`."""

    tool_name: str
    values: dict[str, list[JsonValue]]
    sources: dict[str, list[JsonValue]]
    """The same by tool and place."""
    holders: dict[str, list[str]]
    """The sources that hold a value, by its text."""


def extract(result: JsonValue) -> JsonObject:
    """The plain values of a result by place, bounded; of a text those of its JSON, or its words."""
    found: dict[str, list[JsonValue]] = {}
    for place, value in islice(_values(result, 0), _MAX_LEAVES):
        known = found.setdefault(place, [])
        if not any(same_json(value, each) for each in known):
            known.append(value)
    return dict(found.items())


def _values(result: JsonValue, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(result, str):
        yield from _of_text(result[:_MAX_TEXT], depth)
        return
    for path, value in leaves_like({"": result}, ()):
        place = place_of(path).lstrip(".")
        if isinstance(value, str) and depth < 2 and value[:1] in "[{":
            yield from _of_text(value[:_MAX_TEXT], depth + 1)
        elif isinstance(value, str) and len(value) > _LONGEST:
            yield from _of_text(value[:_MAX_TEXT], 2)
        elif isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            yield place, value


def _of_text(text: str, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if text[:1] in ("{", "[") and depth < 2:
        try:
            whole = read_json(text)
        except (ValueError, RecursionError):
            for found in _PAIR.finditer(text):
                number = found[3]
                yield found[1], found[2] if number is None else json.loads(number)
        else:
            yield from _values(whole, depth + 1)
        return
    if 0 < len(text) <= _LONGEST:
        yield "text", text
    yield from (("word", word[0].rstrip(".:")) for word in _WORD.finditer(text))


def session_call(tool_name: str, parameters: JsonObject, extracted: JsonValue) -> SessionCall:
    """An earlier call, of its arguments and the extract of its result."""
    values: dict[str, list[JsonValue]] = gathered(
        (_ARGUMENT + place_of(path), value)
        for path, value in leaves_like(parameters, ())
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    )
    for place, each in extracted.items() if isinstance(extracted, dict) else ():
        values[place] = list(each) if isinstance(each, list) else [each]
    sources = {f"{tool_name}\x1f{place}": each for place, each in values.items()}
    holders = gathered((str(each), source) for source, held in sources.items() for each in held)
    return SessionCall(tool_name, values, sources, holders)


@dataclass(slots=True)
class LinkCounts:
    """How often the only value at a source was the one that was sent, and was not.

    `among` and `missed` count the same of sources with several values.
    """

    right: int = 0
    wrong: int = 0
    among: int = 0
    missed: int = 0

    def learn(self, values: Sequence[JsonValue], sent: JsonValue) -> None:
        """Count one success, in place."""
        # Whatever the type: what a text prints as `5` is the number 5.
        is_there = str(sent) in map(str, values)
        if len(values) == 1:
            self.right, self.wrong = self.right + is_there, self.wrong + (not is_there)
        else:
            self.among, self.missed = self.among + is_there, self.missed + (not is_there)
        if self.right + self.wrong + self.among + self.missed > _MOST:
            self.right, self.wrong = self.right // 2, self.wrong // 2
            self.among, self.missed = self.among // 2, self.missed // 2


@dataclass(slots=True)
class Links:
    """Sources of a tool's parameters: by place, then by tool and place of the source."""

    by_place: dict[str, dict[str, LinkCounts]] = field(default_factory=dict)

    def learn(self, parameters: JsonObject, earlier: Sequence[SessionCall]) -> None:
        """Count a success's values against what its session had before, in place."""
        calls = _latest(earlier)
        sources = _sources(calls)
        for path, sent in leaves_like(parameters, ()):
            if isinstance(sent, bool) or sent in (None, "") or is_redacted(sent):
                continue
            place = place_of(path)
            known = [each for each in self.by_place.get(place, ()) if each in sources]
            text = str(sent)
            found = [source for call in calls for source in call.holders.get(text, ())]
            for source in dict.fromkeys([*known, *found]):
                self._link(place, source).learn(sources[source], sent)

    def _link(self, place: str, source: str) -> LinkCounts:
        if place not in self.by_place and len(self.by_place) >= _MAX_PLACES:
            return LinkCounts()
        known = self.by_place.setdefault(place, {})
        if source not in known and len(known) >= _MAX_SOURCES:
            least = min(known, key=lambda each: known[each].right + known[each].among)
            if known[least].right + known[least].among > 1:
                return LinkCounts()
            del known[least]
        return known.setdefault(source, LinkCounts())

    def candidates(
        self, place: str, earlier: Sequence[SessionCall]
    ) -> Iterator[tuple[str, list[JsonValue], LinkCounts]]:
        """The session's values that a place may take, each source's with its link.

        Those whose key is the parameter's name are among them before they were ever seen to be.
        """
        known, wanted = self.by_place.get(place, {}), words_of(place)
        for source, values in _sources(_latest(earlier)).items():
            tool, where = source.split("\x1f", 1)
            is_named = not where.startswith(_ARGUMENT) and words_of(_KEY.split(where)[-1]) == wanted
            if source in known or is_named:
                link = known.get(source, LinkCounts())
                sure = replace(link, right=link.right + is_named, among=link.among + is_named)
                yield f"{tool} {where}", values, sure


def _latest(earlier: Sequence[SessionCall]) -> Collection[SessionCall]:
    calls: dict[str, SessionCall] = {}
    for call in reversed(earlier[-MAX_CALLS:]):
        calls.setdefault(call.tool_name, call)
    return calls.values()


def _sources(calls: Iterable[SessionCall]) -> dict[str, list[JsonValue]]:
    sources: dict[str, list[JsonValue]] = {}
    for call in calls:
        sources.update(call.sources)
    return sources
