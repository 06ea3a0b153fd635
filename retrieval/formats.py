"""Forms of text: which one it is, and times and dates rewritten without changing what they say."""

import re
from datetime import date, datetime, time
from typing import Literal

_CLOCK = re.compile(
    r"(?P<h>\d{1,2})(?::(?P<m>\d{2}))?(?::(?P<s>\d{2})(?:\.\d+)?)?\s*(?P<half>[ap]\.?m\.?)?(?:\s*h)?",
    re.IGNORECASE,
)
_NAMED = {
    "hh:mm": "%H:%M", "hh:mm:ss": "%H:%M:%S", "%h:%m": "%H:%M", "yyyy-mm-dd": "%Y-%m-%d",
    "%y-%m-%d": "%Y-%m-%d", "date": "%Y-%m-%d", "time": "%H:%M:%S", "dd/mm/yyyy": "%d/%m/%Y",
    "mm/dd/yyyy": "%m/%d/%Y", "yyyy/mm/dd": "%Y/%m/%d", "yyyymmdd": "%Y%m%d",
}  # fmt: skip
# Only forms that read one way: 03/04/2025 is two different days and is left alone.
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d %B %Y", "%B %d, %Y", "%B %d %Y",
          "%d %b %Y", "%b %d, %Y", "%b %d %Y")  # fmt: skip


def rewrite(text: str, wanted: str) -> str | None:
    """`text` in the form `wanted` (`HH:MM`, `YYYY-MM-DD`, ...); None when that would be a guess."""
    form = _NAMED.get(wanted.strip().lower())
    if form is None:
        return None
    if "%H" in form:
        moment = _clock(text)
        return moment.strftime(form) if moment else None
    day = _day(text)
    return day.strftime(form) if day else None


def _clock(text: str) -> time | None:
    text = text.strip()
    if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", text):
        text = text[11:].split("+")[0].rstrip("Zz")
    if re.fullmatch(r"([01]\d|2[0-3])[0-5]\d", text):
        text = f"{text[:2]}:{text[2:]}"
    found = _CLOCK.fullmatch(text)
    if not found or not (found["m"] or found["half"]):
        return None
    hour, minute = int(found["h"]), int(found["m"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    if hour == 24 and minute == 0:
        hour = 0  # ISO 8601-1:2004 writes the end of the day as 24:00
    try:
        return time(hour, minute, int(found["s"] or 0))
    except ValueError:
        return None


def _day(text: str) -> date | None:
    text = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text.strip())
    if re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        text = text[:10]
    for form in _DATES:
        try:
            return datetime.strptime(text, form).date()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
    return None


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

LetterCase = Literal["none", "lower", "upper", "title", "camel", "snake", "kebab", "mixed"]
"""How a text is written: `snake`, `kebab` and `camel` are of one word in parts, `title` is Like
This, and `none` has no letters that have a case."""

MAX_LOOK = 256
"""Characters of a text that are looked at; a longer one is `words` and of the case of its start."""

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


def format_of(text: str) -> TextFormat:
    """What a text is, by its look. Linear in its length, and never more than 256 characters' work.

    An identifier of letters alone shows by its inner capitals (`pageSize`); without them it is a
    word, and one of capitals alone is a code (`JFK`, `ASC`).
    """
    if not text:
        return "empty"
    if len(text) > MAX_LOOK:
        return "words"
    for name, pattern in _FORMATS:
        if pattern.fullmatch(text):
            if name == "word" and _INNER_CAPITAL.search(text):
                return "identifier"
            return name
    return "words"


def case_of(text: str) -> LetterCase:
    """How the letters of a text, or of its first 256 characters, are written."""
    text = text[:MAX_LOOK]
    upper, lower = text.isupper(), text.islower()
    one_word = not any(char.isspace() for char in text)
    if upper:
        return "upper"
    if lower:
        if one_word and "_" in text:
            return "snake"
        return "kebab" if one_word and "-" in text else "lower"
    if text.istitle():
        return "title"
    if one_word and text.isalnum() and text[0].islower():
        return "camel"
    return "mixed" if any(char.isupper() or char.islower() for char in text) else "none"
