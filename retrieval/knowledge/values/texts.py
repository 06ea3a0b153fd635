"""Texts: what one looks like, and the values that an account states.

Nothing here understands a text: there are forms and neighbouring words only, and no rewriting is a
guess. A `Shape` states what many values looked like.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeGuard, get_args

from aftercall.json_values import JsonValue
from aftercall.redaction import REDACTED, is_redacted
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import JsonType
from retrieval.knowledge.values.scalars import type_of

TextFormat = Literal[
    "empty",
    "date",  # 2025-03-04
    "local-date",  # 03/04/2025, 3.4.25: which day depends on where
    "date-time",  # 2025-03-04T10:00:00Z
    "time",  # 14:30, 14:30:05
    "12-hour-time",  # 2:30 pm
    "uuid",
    "url",
    "email",
    "time-zone",  # Europe/Berlin
    "path",  # /srv/a.md, a/b, C:\a
    "file-name",  # a.md
    "integer-text",  # 42
    "number-text",  # 1,000.5
    "hashtag",  # #launch
    "mention",  # @ada
    "json-text",  # an object or a list, written as text
    "code",  # JFK, USD, ABC-123: capitals and digits
    "identifier",  # snake_case, camelCase, acct-12, a.b
    "word",
    "words",  # any other text
]
"""What a text is, by its look; a closed list, so that counts by format stay small."""
MAX_LOOK = 256
"""Characters of a text that are looked at; a longer one is `words`."""
_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_HOUR = r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:\.\d{1,9})?)?"
_ZONE = r"(?:Z|z|[+-]\d\d:?\d\d)"
# The first that matches the whole text. Each is linear: no two parts that follow one another can
# take the same characters.
_PATTERNS: tuple[tuple[TextFormat, str], ...] = (
    ("date", _DAY),
    ("date-time", rf"{_DAY}[Tt ]{_HOUR} ?{_ZONE}?"),
    ("time", rf"{_HOUR}{_ZONE}?"),
    ("12-hour-time", r"(?:0?\d|1[0-2])(?::[0-5]\d)? ?[AaPp]\.?[Mm]\.?"),
    ("local-date", r"\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d\d)|\d{4}([/.])\d{1,2}\2\d{1,2}"),
    ("integer-text", r"[+-]?\d+"),
    ("number-text", r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?"),
    ("uuid", r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    ("url", r"[A-Za-z][A-Za-z0-9+.-]*://\S+"),
    ("email", r"[^\s@/]+@[\w-]+(?:\.[\w-]+)+"),
    ("hashtag", r"#[^\W_][\w-]*"),
    ("mention", r"@[^\W_][\w.-]*"),
    (
        "time-zone",
        r"(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific"
        r"|Etc)/[A-Za-z][\w+/-]*",
    ),
    ("json-text", r"\{[^\0]*\}|\[[^\0]*\]"),
    ("path", r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\n\r]*|[\w.@-]+(?:[/\\][\w.@-]+)+[/\\]?"),
    ("file-name", r"[\w-](?:[\w ()-]*[\w()-])?\.[A-Za-z][A-Za-z0-9]{0,4}"),
    ("code", r"(?=[^A-Z]*[A-Z])[A-Z0-9]+(?:[-_][A-Z0-9]+)*"),
    ("word", r"[^\W\d_]+"),
    ("identifier", r"[\w$]+(?:[-.:][\w$]+)*"),
)
_FORMATS = tuple((name, re.compile(pattern)) for name, pattern in _PATTERNS)
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]")


@lru_cache(4_096)
def _short_format(text: str) -> TextFormat:
    for name, pattern in _FORMATS:
        if pattern.fullmatch(text):
            return "identifier" if name == "word" and _INNER_CAPITAL.search(text) else name
    return "words"


def outline_text(text: str) -> str:
    """Return the text with one sign for each run of digits and of letters: `#W12` is `#a9`."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text[:MAX_TEXT]))


def format_of(text: str) -> TextFormat:
    """Return what a text is, by its look.

    Linear in its length, and never more than 256 characters' work.

    An identifier of letters alone shows by its inner capitals (`pageSize`); without them it is a
    word, and one of capitals alone is a code (`JFK`, `ASC`).
    """
    if not text:
        return "empty"
    return "words" if len(text) > MAX_LOOK else _short_format(text)


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Return whether a JSON value is a number; `true` is not one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_RARE = 0.05
"""A type of fewer of the values is taken for a slip that the tool let pass."""


@dataclass(slots=True)
class Shape:
    """What many values looked like. Without the values themselves."""

    types: dict[JsonType, int] = field(default_factory=dict)
    formats: dict[TextFormat, int] = field(default_factory=dict)
    """Of texts that are not masked."""
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None

    def observe_shape(self, value: JsonValue) -> None:
        """Count one value."""
        is_masked = isinstance(value, str) and is_redacted(value)
        kind = _masked_type(str(value)) if is_masked else type_of(value)
        self.types[kind] = self.types.get(kind, 0) + 1
        if isinstance(value, str) and not is_masked:
            form = format_of(value)
            self.formats[form] = self.formats.get(form, 0) + 1
            self.longest = max(self.longest or 0, len(value))
        elif is_number(value):
            number = float(value)
            self.minimum = number if self.minimum is None else min(self.minimum, number)
            self.maximum = number if self.maximum is None else max(self.maximum, number)

    def usual_types(self) -> Iterator[JsonType]:
        """Yield the types that are no slips, the most frequent first."""
        total = sum(self.types.values())
        by_count = sorted(self.types.items(), key=lambda item: (-item[1], item[0]))
        return (kind for kind, count in by_count if count >= _RARE * total)

    def usual_format(self) -> tuple[TextFormat, float] | None:
        """Return the most frequent form of the texts, and its share of them (0 to 1)."""
        if not self.formats:
            return None
        form = max(self.formats, key=lambda each: (self.formats[each], each))
        return form, self.formats[form] / sum(self.formats.values())


def _masked_type(text: str) -> JsonType:
    mask = REDACTED.fullmatch(text)
    said = mask[0].split(":")[1] if mask else "string"
    return next((kind for kind in get_args(JsonType) if kind == said), "string")


MAX_ACCOUNT = 4_000
"""Characters that are read; the first, since a request comes before its details."""
_MAX_STATED = 200
_BEFORE, _AFTER = 4, 2
StatedForm = Literal[
    "quoted",
    "pair",
    "file",
    "url",
    "email",
    "mention",
    "hashtag",
    "number",
    "identifier",
    "name",
    "word",
]


@dataclass(frozen=True, slots=True)
class Stated:
    """One value of a text, with the lower-case words just before and after it."""

    text: str
    form: StatedForm
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


# The first that matches at a place decides; each is linear.
_FORMS: list[tuple[StatedForm, str]] = [
    ("url", r"\b[a-z][a-z0-9+.-]{1,15}://[^\s'\"`<>)\]]{1,300}"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}\b"),
    ("quoted", r"(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,300}'(?!\w)|"
               r"\"[^\"\n]{1,300}\"|`[^`\n]{1,300}`|"
               r"[\u201c\u2018][^\u201d\u2019\n]{1,300}[\u201d\u2019]"),
    ("pair", r"(?<![\w./:@-])[\w.-]{1,80}[/:@][\w.-]{1,80}(?![\w/])"),
    ("file", r"(?<![\w./-])[\w-]{1,80}(?:\.[\w-]{1,20}){0,3}\.[A-Za-z][A-Za-z0-9]{0,4}\b"),
    ("mention", r"(?<!\w)@\w{1,50}"),
    ("hashtag", r"(?<!\w)#\w{1,100}"),
    ("number", r"(?<![\w.,-])-?\d{1,15}(?:,\d{3})*(?:\.\d{1,15})?(?![\w-]|\.\d)"),
    ("identifier", r"\b(?=\w*[_\d])\w{2,80}(?:-\w{1,80}){0,3}\b|\b[a-z]{1,40}[A-Z]\w{0,80}\b"),
    ("name", r"\b[A-Z][a-z]{1,30}(?:[ -][A-Z][a-z]{1,30}){1,3}\b|\b[A-Z]{2,10}\b|"
             r"(?<=[a-z,;] )[A-Z][a-z]{2,30}\b"),
    ("word", r"\b[A-Za-z][\w-]{1,60}"),
]  # fmt: skip
_ONE = re.compile("|".join(f"(?P<{form}>{pattern})" for form, pattern in _FORMS))
_WORD = re.compile(r"[a-z0-9]+")
_MARKS = "'\"`\u201c\u201d\u2018\u2019"


@lru_cache(maxsize=256)
def stated_in(text: str) -> tuple[Stated, ...]:
    """Return the values that a text states, in its order, each once."""
    found: dict[tuple[str, StatedForm], Stated] = {}
    for stated in _all_in(text[:MAX_ACCOUNT]):
        found.setdefault((stated.text, stated.form), stated)
        if len(found) >= _MAX_STATED:
            break
    return tuple(found.values())


def _all_in(text: str) -> Iterator[Stated]:
    for match in _ONE.finditer(text):
        form: StatedForm = match.lastgroup  # type: ignore[assignment]  # the groups are the forms
        before = _WORD.findall(text[max(0, match.start() - 60) : match.start()].lower())
        after = _WORD.findall(text[match.end() : match.end() + 40].lower())
        value = match[0]
        if form == "quoted":
            value = value.strip(_MARKS).strip().removesuffix(",")
        elif form in ("url", "pair"):
            value = value.rstrip(".,;:!?")  # what ends the sentence
        if value:
            yield Stated(value, form, tuple(before[-_BEFORE:]), tuple(after[:_AFTER]))


def written_in(text: str, value: str) -> str | None:
    """`value` as the text writes it, whatever its letter case; None when it is not in there."""
    place = text[:MAX_ACCOUNT].lower().find(value.lower())
    if not value or place < 0 or len(text[:MAX_ACCOUNT].lower()) != len(text[:MAX_ACCOUNT]):
        return None
    end = place + len(value)
    inside_a_word = (text[place - 1 : place].isalnum() and value[0].isalnum()) or (
        text[end : end + 1].isalnum() and value[-1].isalnum()
    )
    return None if inside_a_word else text[place:end]


MAX_TEXT = 2_000
"""Characters of a text that is respelt or stripped; a longer one is content."""
Style = Literal["lower", "upper", "title", "capital", "snake", "kebab", "camel", "pascal", "spaced"]


def _pascal_case(text: str) -> str:
    return "".join(word.capitalize() for word in words_of(text))


_STYLES: dict[Style, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "title": str.title,
    "capital": str.capitalize,
    "snake": lambda text: "_".join(words_of(text)),
    "kebab": lambda text: "-".join(words_of(text)),
    "camel": lambda text: _pascal_case(text)[:1].lower() + _pascal_case(text)[1:],
    "pascal": _pascal_case,
    "spaced": lambda text: " ".join(words_of(text)),
}
_BY_WORDS: frozenset[Style] = frozenset({"snake", "kebab", "camel", "pascal", "spaced"})
_SAYABLE = re.compile(r"[\w\s-]+", re.ASCII)


_ONE_THING = re.compile(r"[#@]?[^\s<>\[\]{}#'\x1b]+(?: [\w.-]+){0,2}")
"""What has a letter case: a phrase with an id in it, or a markup, has that of its parts."""


def respell_text(text: str, style: Style) -> str | None:
    """`text` in another case or with other separators; None when that would lose something."""
    shape = _SAYABLE if style in _BY_WORDS else _ONE_THING
    if len(text) > MAX_TEXT or not shape.fullmatch(text):
        return None
    return _STYLES[style](text) or None
