"""Earlier calls of a session: their arguments, and what their results hold.

A result is read as plain values by place, bounded; as the words of its texts; and as records, the
objects that it describes. The values stay inside their session.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, read_json
from aftercall.redaction import is_redacted
from aftercall.tables import gather_values
from retrieval import WORDS
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import leaves_like, written_place

ARGUMENT = "@"
"""What stands before the place of an argument."""
_MAX_LEAVES = 120
_MAX_TEXT = 20_000
_LONGEST = 200
_PAIR = re.compile(r'"([^"\\]{1,60})"\s*:\s*(?:"([^"\\]{1,200})"|(-?\d+(?:\.\d+)?))')
_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>|]{2,200}")
_ONE_WORD = re.compile(r"\s*[^\s{}\[\]]{2,80}\s*")
_MAX_WORDS = 3_000
_MAX_READ = 60_000
"""Characters of a result that are read as words and records."""
_MAX_RECORDS = 200
_MAX_FIELDS = 30
_MAX_DEPTH = 6
_OF_ITSELF = frozenset(
    ("property", "properties", "attributes", "details", "profile", "info", "meta")
)


@dataclass(frozen=True, slots=True)
class Record:
    """An object of an earlier result: its tool, its kind in words, its plain values."""

    tool_name: str
    kind: frozenset[str]
    fields: JsonObject


@dataclass(frozen=True, eq=False)
class EarlierCall:
    """An earlier call of a session: its plain values by place, those of its arguments under `@`."""

    tool_name: str
    values: dict[str, list[JsonValue]]
    sources: dict[str, list[JsonValue]]
    """The same by tool and place."""
    holders: dict[str, list[str]]
    """The sources that hold a value, by its text."""
    result: JsonValue = None
    """What it gave, where that is looked at as a whole."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of the result's texts, each once; a path and a name are words."""
        found: dict[str, None] = {}
        left = _MAX_READ
        for _, value in leaves_like({"": self.result}, ()):
            if isinstance(value, str) and left > 0:
                found.update(dict.fromkeys(_WORD.findall(value[:left])))
                left -= len(value)
        return tuple(islice(found, _MAX_WORDS))

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Objects of the result that have plain values."""
        kind = nouns_of(self.tool_name)
        result = self.result
        if isinstance(result, str) and _ONE_WORD.fullmatch(result):
            result = {"name": result.strip()}
        found = _walk_records(result, kind, self.tool_name, 0)
        return tuple(islice(found, _MAX_RECORDS))


def extract_values(result: JsonValue) -> JsonObject:
    """Return the plain values of a result by place, bounded.

    Of a text those of its JSON, or its words.
    """
    found: dict[str, list[JsonValue]] = {}
    for place, value in islice(_walk_values(result, 0), _MAX_LEAVES):
        known = found.setdefault(place, [])
        if not any(same_json(value, each) for each in known):
            known.append(value)
    return dict(found.items())


def _walk_values(result: JsonValue, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(result, str):
        yield from _of_text(result[:_MAX_TEXT], depth)
        return
    for path, value in leaves_like({"": result}, ()):
        place = written_place(path).lstrip(".")
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
            pairs = list(_PAIR.finditer(text))
            for found in pairs:
                number = found[3]
                yield found[1], found[2] if number is None else json.loads(number)
            if pairs:
                return
        else:
            yield from _walk_values(whole, depth + 1)
            return
    if 0 < len(text) <= _LONGEST:
        yield "text", text
    yield from (("word", word[0].rstrip(".:")) for word in _WORD.finditer(text))


def session_call(
    tool_name: str, parameters: JsonObject, extracted: JsonValue, result: JsonValue = None
) -> EarlierCall:
    """Return an earlier call, of its arguments and the extract of its result."""
    values: dict[str, list[JsonValue]] = gather_values(
        (ARGUMENT + written_place(path), value)
        for path, value in leaves_like(parameters, ())
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    )
    for place, each in extracted.items() if isinstance(extracted, dict) else ():
        values[place] = list(each) if isinstance(each, list) else [each]
    sources = {f"{tool_name}\x1f{place}": each for place, each in values.items()}
    holders = gather_values(
        (str(each), source) for source, held in sources.items() for each in held
    )
    return EarlierCall(tool_name, values, sources, holders, result)


def _walk_records(
    value: JsonValue, kind: frozenset[str], tool_name: str, depth: int
) -> Iterator[Record]:
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= _MAX_READ:
        try:
            value = read_json(value)
        except (ValueError, RecursionError):
            return
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value[:_MAX_RECORDS]:
            yield from _walk_records(item, kind, tool_name, depth + 1)
    elif isinstance(value, dict):
        fields = _plain_values(value)
        for name, held in islice(value.items(), _MAX_FIELDS):  # what it says of itself, one deeper
            if isinstance(held, dict) and not _OF_ITSELF.isdisjoint(words_of(name)):
                fields = {**_plain_values(held), **fields}
        if fields:
            yield Record(tool_name, kind, fields)
        for name, held in islice(value.items(), _MAX_FIELDS):
            if isinstance(held, dict | list | str):
                inner = singular_words(words_of(name)) - WORDS["of_envelopes_of_results"]
                yield from _walk_records(held, inner or kind, tool_name, depth + 1)


def _plain_values(value: JsonObject) -> JsonObject:
    return {
        name: held
        for name, held in islice(value.items(), _MAX_FIELDS)
        if isinstance(held, str | int | float) and not isinstance(held, bool)
        and len(str(held)) <= _LONGEST and not is_redacted(held)
    }  # fmt: skip


def nouns_of(tool_name: str) -> frozenset[str]:
    """Return what a tool is about: its name's words without its verb, each in its singular."""
    words = words_of(tool_name)
    return singular_words(words[1:] if len(words) > 1 else words)


def singular_words(words: Sequence[str]) -> frozenset[str]:
    """Return words without the usual ending of plurals."""
    return frozenset(map(_singular_word, words))


def _singular_word(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if len(word) > 3 and not word.endswith("ss"):
        return word.removesuffix("s")
    return word
