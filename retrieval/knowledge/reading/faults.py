"""What an error states is wrong with which parameter: phrases of tools, and JSON of validators.

The phrases are data (`phrases.toml`): a new one is a line there. Where a message only shows the
value, the parameter is found later by that value (see `reader`).
"""

import json
import math
import re
from ast import literal_eval
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from aftercall.json_values import JsonValue
from aftercall.tables import gather_values
from retrieval import compiled, read_word_table
from retrieval.knowledge.reading.embedded import MAX_LITERAL
from retrieval.knowledge.reading.unwrap import Position
from retrieval.knowledge.values.parameters import JsonType, Path

FaultKind = Literal[
    "missing",  # a required parameter is not there
    "unexpected",  # a parameter that the tool does not have
    "wrong_type",  # the value is of another type than expected
    "out_of_range",  # a number, length or count beyond a bound
    "not_allowed",  # a value outside a closed list
    "bad_format",  # text that is not in the expected form
    "not_found",  # the value names something that does not exist
    "invalid",  # refused, without a reason that could be read
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `path` leads to the parameter; it is empty when not given.

    `minimum` and `maximum` are inclusive bounds of a number, or of a length when `of_length`.
    """

    kind: FaultKind
    path: Path = ()
    expected_types: tuple[JsonType, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    of_length: bool = False
    allowed: tuple[JsonValue, ...] = ()
    suggested: str | None = None
    expected_format: str | None = None
    value_text: str | None = None
    shown_input: str | None = None
    """The input as the message shows it (Python's `repr`, perhaps cut); for "missing" the whole."""
    exclusive: bool = False
    """The message excluded the bound itself: it was moved by 1, right for whole numbers only."""
    from_schema: bool = False
    stated: JsonValue = None
    """The one right value, where the message states it; `value_text` is the wrong one then."""
    multiple_of: float | None = None
    """The number must be a multiple of it."""
    rival: str | None = None
    """The parameter that it may not stand next to (`excludes`), that it must come after, or that
    needs it."""
    excludes: bool = False
    guessed_place: bool = False
    """The name or its place is inferred: one inside the call has that name, or a key was shown."""
    given_types: tuple[JsonType, ...] = ()
    """What the value was, for messages that show types and no name."""
    known: tuple[str, ...] = ()
    """The names that exist where the wrong one stands, if the message lists all of them."""
    position: Position | None = None
    is_first: bool = False
    """The validator stops at the first thing that is wrong: there may be more."""
    of_union: bool = False
    """None of several alternatives took the value; each of them states what it would want."""

    @property
    def parameter(self) -> str | None:
        """Top-level parameter concerned, when it is known."""
        return str(self.path[0]) if self.path else None


# ------------------------------------------------------------------ literals in messages
_LONGEST_NUMBER = 40
_STEPS = re.compile(r"[./\[\]]+")
_QUOTED = re.compile(r"""'([^'\n]{0,300})'|"([^"\n]{0,300})"|`([^`\n]{0,300})`""")


def json_types(names: Iterable[str]) -> tuple[JsonType, ...]:
    """Return the JSON types of type names in any of the usual languages.

    Those of no name are left out.
    """
    return tuple(dict.fromkeys(kind for kind in map(_json_type, names) if kind))


_ARTICLE = re.compile(r"^(?:an?|the|one of|type|of type|valid) ", re.IGNORECASE)
_OF_ARRAYS = ("[]", "list<", "array<", "vec<", "list[", "tuple[", "set[")
_OF_OBJECTS = ("map[", "map<", "struct ", "dict[")


def _json_type(name: str) -> JsonType | None:
    name = name.strip().strip("'\"`*")
    while article := _ARTICLE.match(name):
        name = name[article.end() :]
    low = name.strip().lower()
    if low.startswith(_OF_ARRAYS):
        return "array"
    if low.startswith(_OF_OBJECTS):
        return "object"
    bare = low.partition("<")[0].strip("'\"`[]*")  # `java.util.ArrayList<java.lang.String>`
    return _TYPE_NAMES.get(bare) or _TYPE_NAMES.get(bare.rpartition(".")[2])


def quoted_in(text: str) -> list[str]:
    """Return the texts in quotation marks."""
    return [match[match.lastindex or 0] for match in _QUOTED.finditer(text)]


def values_in(text: str) -> tuple[JsonValue, ...]:
    """Return the values of a list in a message.

    `['a', 'b']`, `"a" | "b"`, `'a', 'b' or 'c'`, `a, b`.
    """
    if re.fullmatch(r"\[[\w.-]+(?: [\w.-]+)+\]", text):
        return tuple(_read_scalar(part) for part in text[1:-1].split())  # as Go prints it
    text = text.strip().rstrip(".").strip("[](){} ")
    if in_quotes := quoted_in(text):
        return tuple(in_quotes)
    parts = re.split(r"\s*(?:,|\||;|/)\s*(?:or |and )?|\s+(?:or|and)\s+", text)
    short = (part for part in parts if 0 < len(part) <= 100)
    return tuple(map(_read_scalar, short))


def _read_scalar(text: str) -> JsonValue:
    text = text.strip()
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text) else text


def _scalar_in(text: str) -> JsonValue:
    """Return a value as a message writes it, without its marks."""
    return {"true": True, "false": False}.get(text.lower(), _read_scalar(_unquote_value(text)))


def read_number(value: JsonValue) -> float | None:
    """Return a number, also as messages write it: `10`, `-1.5`, `1,000`.

    None for `1.2.3` and the like.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value.replace(",", "") if isinstance(value, str) else value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def is_written_number(text: str) -> bool:
    """Return whether a text is a number as people write it."""
    return len(text) <= _LONGEST_NUMBER and read_number(text.strip()) is not None


# ------------------------------------------------------------------ phrases
@dataclass(frozen=True, slots=True)
class Phrase:
    """A pattern and what its matches show; it is tried only where one of the cues stands."""

    pattern: str
    fault: str
    cues: tuple[str, ...]
    types: tuple[JsonType, ...]
    format: str | None
    of_validator: bool
    """Whether it is a validator's sentence, as its makers wrote it."""
    stops: bool


_DIALECT_TABLE = read_word_table("knowledge/reading/dialects.toml")
_STOPPING = frozenset(_DIALECT_TABLE["unwrap"]["stops_at_first"])


def _make_phrase(row: dict[str, Any]) -> Phrase:
    return Phrase(
        f"(?im){row['pattern']}",
        row["fault"],
        tuple(row["cues"]),
        tuple(row.get("types", ())),
        row.get("format"),
        "dialect" in row,
        row.get("dialect") in _STOPPING,
    )


_TABLE = read_word_table("knowledge/reading/phrases.toml")
PHRASES = {family: tuple(map(_make_phrase, rows)) for family, rows in _TABLE["families"].items()}
"""Phrases by family, in the order in which they are tried."""


class _Phrases:
    """Phrases by their cues, so that few of them are tried on a text."""

    def __init__(self, phrases: Iterable[Phrase]) -> None:
        self._phrases = tuple(phrases)
        self._by_cue = gather_values(
            (cue, number) for number, each in enumerate(self._phrases) for cue in each.cues
        )

    def match_text(self, text: str) -> Iterator[tuple[str, Fault]]:
        """Yield the faults that the phrases see in a text, each with its words, in their order."""
        low = text.lower()
        hinted = {n for cue, of_cue in self._by_cue.items() if cue in low for n in of_cue}
        for phrase in map(self._phrases.__getitem__, sorted(hinted)):
            for match in compiled(phrase.pattern).finditer(text):
                for fault in _faults_of(phrase, match):
                    yield match[0], replace(fault, is_first=True) if phrase.stops else fault


_ALL_PHRASES = _Phrases(phrase for family in PHRASES.values() for phrase in family)
DIALECTS = _Phrases(map(_make_phrase, _DIALECT_TABLE["forms"]))
"""Sentences of validators, which win over phrases of any tool."""


def _invert_names(names: dict[str, list[str]]) -> dict[str, Any]:
    return {name: meaning for meaning, several in names.items() for name in several}


_METHODS: dict[str, JsonType] = _invert_names(_TABLE["methods"])
_TYPE_NAMES: dict[str, JsonType] = _invert_names(_TABLE["types"])
FORMATS: dict[str, str] = _invert_names(_TABLE["formats"])
_TYPE_FORMATS: dict[str, str] = _invert_names(_TABLE["type_formats"])
_NAME = re.compile(_TABLE["parts"]["NAME"])
_NOT_NAMES = frozenset(_TABLE["words"]["no_names"])
_ROOTS = frozenset(_TABLE["words"]["roots"])
_INSTANCE = re.compile(
    r"^On instance(?P<place>(?:\[(?:\d{1,6}|'[^'\n\]]{1,64}')\]){1,8}):", re.MULTILINE
)


def read_text(message: str) -> Iterator[Fault]:
    """Yield the faults that the phrases of a message name, in the order of the phrases."""
    # Where in the call jsonschema's full text states that the fault lies.
    instance = _INSTANCE.search(message) if "On instance[" in message else None
    at = re.findall(r"\[(\d+|'[^']+')\]", instance["place"]) if instance else []
    place = tuple(int(part) if part.isdecimal() else part.strip("'") for part in at)
    known = _printed_names(message) if instance else ()
    for _, fault in _ALL_PHRASES.match_text(message):
        above = fault.path if fault.kind in ("missing", "unexpected") else ()
        if fault.kind == "unexpected":
            fault = replace(fault, known=fault.known or known)  # noqa: PLW2901
        yield replace(fault, path=(*place, *above)) if place else fault


_PRINTED_SCHEMA = re.compile(
    r"^Failed validating 'additionalProperties' in schema[^\n]{0,300}:\n"
    r"(?P<schema>(?:[ ]{4}[^\n]*\n){1,200})",
    re.MULTILINE,
)


def _printed_names(message: str) -> tuple[str, ...]:
    """Return the properties of the schema that jsonschema prints with its complaint."""
    found = _PRINTED_SCHEMA.search(message)
    if found is None:
        return ()
    try:
        schema = literal_eval(found["schema"].strip()[:MAX_LITERAL])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ()
    names = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(name for name in names or () if isinstance(name, str))


def path_of(name: str | None, above: str | None = None) -> Path:
    """`/flights/0/date`, `flights.0.date` and `flights[0].date` all lead to the same place."""
    if not name:
        return ()
    parts = [part for part in _STEPS.split(name.strip("/.'\"` ")) if part]
    if len(parts) > 1 and parts[0] in _ROOTS:
        del parts[0]
    in_quotes = name.strip() != name.strip().strip("'\"`")
    if not parts or (parts[0].lower() in _NOT_NAMES and not in_quotes):
        return ()
    upper = [part for part in _STEPS.split((above or "").strip("/.'\"` :")) if part]
    if upper and upper[0] in _ROOTS:
        del upper[0]
    return _path_steps([*upper, *parts])


def _faults_of(phrase: Phrase, match: re.Match[str]) -> Iterator[Fault]:
    groups = {group: text for group, text in match.groupdict().items() if text is not None}
    name = groups.get("name")
    at = groups.get("at")
    place = path_of(name, at)
    match phrase.fault:
        case "missing" | "unexpected" as kind:
            names = [name]
            if listed := groups.get("names"):  # kept in their marks, so that `'a'` is no article
                names = [f"'{each}'" for each in quoted_in(listed)] or _NAME.findall(listed)
            listed = groups.get("known", "")
            known = tuple(quoted_in(listed)) or _list_names(listed)
            near = _without_quotes(groups.get("near"))
            if near is not None and (others := _or_else(match)):
                known = tuple(filter(None, (near, *others)))
                near = None
            rival = next(map(str, path_of(groups.get("rival"))), None)
            paths = [path for path in (path_of(each, at) for each in names) if path]
            for path in paths if any(names) else [()]:
                yield Fault(kind, path, suggested=near, known=known, rival=rival)
        case "key":  # nothing but a key, as `str(KeyError(...))` gives it
            yield Fault("missing", (groups["name"],), value_text=name)
        case "wrong_type" if groups.get("given", "").lower() in ("undefined", "missing"):
            yield from [Fault("missing", place)] if place else []
        case "argument" | "attribute" | "mixed" | "joined":
            yield from _of_types(phrase, groups)
        case "twice":
            yield Fault("unexpected", rival=name)
        case kind:
            value = groups.get("value")
            near = groups.get("near")
            if value is not None and phrase.of_validator:
                value = _unquote_value(value)
            if index := groups.get("index"):
                place = (*place, int(index))
            given = json_types([groups.get("given", "")])
            fault = Fault("invalid", place, value_text=value, suggested=near, given_types=given)
            found = _of_value(kind, fault, groups, phrase)
            yield from [found] if found else []


_OR = re.compile(r"\A['\"`]?(?:,? (?:or )?['\"`][^'\"`\n]{1,64}['\"`]){1,8}")


def _or_else(match: re.Match[str]) -> list[str]:
    """Return what a message names next to the near name: `Did you mean "from" or "to"?`."""
    more = _OR.match(match.string[match.end("near") :])
    if more:
        return [name for name in quoted_in(more[0].lstrip("'\"`")) if name.strip()]
    return []


def _list_names(text: str) -> tuple[str, ...]:
    return tuple(_NAME.findall(text)) if "," in text else ()


_ESCAPED = re.compile(r'\A"(?:[^"\\\n]|\\.)*"\Z')


def _unquote_value(text: str) -> str:
    """Return a value without the marks around it; in double ones it is JSON."""
    if _ESCAPED.match(text):
        with suppress(ValueError):
            return str(json.loads(text))
    return _IN_MARKS.sub(r"\2", text)


_IN_MARKS = re.compile(r"\A(['\"`])(.*)\1\Z", re.DOTALL)


def _without_quotes(text: str | None) -> str | None:
    return text and (quoted_in(text) or [text])[0]


def _of_value(kind: str, fault: Fault, groups: dict[str, str], phrase: Phrase) -> Fault | None:
    match kind:
        case "wrong_type":
            return _of_type(fault, groups, phrase)
        case "union":
            return replace(fault, of_union=True)
        case "not_allowed" | "needs" | "stated":
            return _of_allowed(kind, fault, groups)
        case "bound" | "empty" | "length" | "sign" | "beyond" | "exactly":
            return replace(_of_bound(kind, groups), path=fault.path, value_text=fault.value_text)
        case "multiple":
            return replace(fault, multiple_of=read_number(groups["step"]))
        case "bad_format":
            form = groups.get("format") or phrase.format or groups.get("like")
            known = FORMATS.get((form or "").lower(), form)
            return replace(fault, kind="bad_format", expected_format=known)
        case "not_found":
            shown = groups["value"].rstrip(".:;,").strip("'\"`")
            return replace(fault, kind="not_found", value_text=shown)
        case _:
            words = "_".join(groups.get("name", "").split())
            rival = next(map(str, path_of(groups.get("rival"), None)), None)
            path = path_of(words, groups.get("at"))
            excludes = kind == "exclusive"
            return replace(fault, path=path, rival=rival, excludes=excludes)


def _of_type(fault: Fault, groups: dict[str, str], phrase: Phrase) -> Fault | None:
    names = re.split(r"\s*(?:,|\||\bor\b)\s*", groups.get("types", ""))
    form = next(filter(None, map(_type_format, names)), None)
    if form is not None:
        return replace(fault, kind="bad_format", expected_format=form)
    types = phrase.types or json_types(names)
    if types:
        return replace(fault, kind="wrong_type", expected_types=types)
    return None


def _of_allowed(kind: str, fault: Fault, groups: dict[str, str]) -> Fault | None:
    if kind == "not_allowed":
        allowed = values_in(groups["values"])
        if allowed:
            return replace(fault, kind="not_allowed", allowed=allowed)
        return None
    if kind == "needs":
        path = path_of(f"'{groups['name']}'")
        needed = _scalar_in(groups["stated"])
        return replace(fault, path=path, rival=groups["rival"], allowed=(needed,))
    in_marks = quoted_in(groups["stated"])
    right = in_marks[0] if in_marks else _scalar_in(groups["stated"].replace(",", ""))
    is_word = isinstance(right, str) and not in_marks
    stated = replace(fault, kind="not_allowed", allowed=(right,), stated=right)
    return None if is_word else stated


def _read_ratio(text: str | None) -> float:
    above, _, below = (text or "0").partition("/")
    return float(above) / (float(below or 1) or 1)


def _type_format(name: str) -> str | None:
    """Return the form that a type of another language has as a text."""
    return _TYPE_FORMATS.get(name.strip().strip("'\"`[]*").lower())


def _of_types(phrase: Phrase, groups: dict[str, str]) -> Iterator[Fault]:
    """Yield what Python states of the types of arguments, which it does not name."""
    expected = phrase.types
    given = groups.get("given") or groups.get("other")
    left = groups.get("left", "")
    right = groups.get("right", "")
    if phrase.fault == "attribute":
        method = _METHODS.get(groups["attribute"])
        expected = (method,) if method else ()
        given = given if method else ""
    elif phrase.fault == "mixed":  # a text or a list among numbers is what a caller got wrong
        kinds = {left, right}
        if kinds & {"int", "float"} and kinds & {"str", "list"}:
            expected = ("number",)
            given = (kinds - {"int", "float"}).pop()
        elif "list" in kinds and len(kinds) == 2:
            expected = ("array",)
            given = (kinds - {"list"}).pop()
    elif phrase.fault == "joined":  # to a text or a list; a number in a text is to be a number
        expected = ("string" if left == "str" else "array",)
        given = right
        if right in ("int", "float") and left == "str":
            expected = ("number",)
            given = "str"
    elif given is None:  # of a sequence
        yield Fault("wrong_type", expected_types=expected, given_types=("string", "array"))
    types = json_types([given or ""])
    if types:
        yield Fault("wrong_type", expected_types=expected, given_types=types)


def _of_bound(kind: str, groups: dict[str, str]) -> Fault:
    if kind == "length":
        return Fault("out_of_range", of_length=True)
    if kind == "exactly":
        exact = read_number(groups["high"])
        return beyond_bound((), exact, exact, of_length=True)
    if kind == "beyond":
        limit = _read_ratio(groups["limit"])
        sent = _read_ratio(groups["value"])
        ends = (limit, None) if sent < limit else (None, limit)
        return beyond_bound((), *ends, of_length="length" in groups)
    if kind == "empty":
        return beyond_bound((), 1, None, of_length=True)
    if kind == "sign":
        return beyond_bound((), 0.0, None, exclusive=groups["sign"].lower() == "positive")
    low = read_number(groups.get("low"))
    high = read_number(groups.get("high"))
    is_open = ("above" in groups and low is not None) or ("below" in groups and high is not None)
    return beyond_bound((), low, high, exclusive=is_open, of_length=bool(groups.get("length")))


def beyond_bound(
    path: Path,
    low: float | None,
    high: float | None,
    *,
    exclusive: bool = False,
    of_length: bool = False,
) -> Fault:
    """Return a number, length or count beyond a bound.

    `exclusive` where the bound itself is, too.
    """
    return Fault(
        "out_of_range",
        path,
        of_length=of_length,
        exclusive=exclusive,
        minimum=None if low is None else low + exclusive,
        maximum=None if high is None else high - exclusive,
    )


def _path_steps(parts: JsonValue | list[str]) -> Path:
    return tuple(
        int(part) if isinstance(part, str) and part.isdecimal() else part
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, str | int)
    )
