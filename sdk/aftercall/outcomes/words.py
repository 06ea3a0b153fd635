"""Texts in whatever a tool put where a text, or a list of texts, belongs. Pure, bounded.

What counts as one text and what as several:

- an array is several; so is a text that is a JSON array;
- a lone text is several only where it is unmistakably a list: lines, parts between arrows,
  semicolons or bars, and parts between commas (or ` + `) that are all short names of at most three
  words without an `and` inside (`transport, extraction`, but not `read, parse and render it`);
- an object with a `name` (or `axis`, `label`, `text`, `value`) is that text; of any other, the keys
  count where the values are weights (`{"transport": 0.9}`), else the values;
- null, booleans and what is blank or invisible are nothing; numbers are their digits.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice

from aftercall.json_values import bounded_json, bounded_text, clean_text, make_json_value

MAX_LOOKED_AT = 10_000
"""Values that are looked at in one field: bounds the work on junk, far above real referrals."""

_MAX_JOINED = 100
"""Items of an array that are joined to one text."""

_MAX_DEPTH = 5
_MAX_READ = 20_000
"""Characters of one text that are read; of more the rest is cut off anyway."""

_NAMING = ("name", "axis", "label", "text", "value")
_SHORT_WORDS = 3
_SHORT_CHARS = 40
"""A part between commas of at most three words and 40 characters is a name; more is a clause."""

# Controls, marks of direction and the byte order mark are blanks; joiners stay, for emoji and
# several scripts need them.
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]+")
_SURE_BREAK = re.compile(r"[\r\n;\uff1b|]+|->|=>|→|⇒")
_COMMA = re.compile(r"[,\uff0c\u3001]| \+ ")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\(?\d{1,2}[.)])\s+")
_LAST_OF_LIST = re.compile(r"^\s*(?:and|or|&)\s+", re.IGNORECASE)
_JOINED = re.compile(r"\s(?:and|or|&)\s", re.IGNORECASE)


def texts_in(value: object, *, max_chars: int) -> list[str]:
    """All texts in a value, each clean, on one line and of at most `max_chars` characters."""
    if isinstance(value, str):
        listed = _json_array(value[:_MAX_READ])
        value = _parts(str.__str__(value)[:_MAX_READ]) if listed is None else listed
    leaves = islice(_leaves(value, _MAX_DEPTH), MAX_LOOKED_AT)
    return [text for each in leaves if (text := text_in(each, max_chars=max_chars))]


def text_in(value: object, *, max_chars: int) -> str:
    """A value as one text on one line; '' for nothing. Arrays are joined, objects become JSON."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, list | tuple):
        parts = (text_in(item, max_chars=max_chars) for item in value[:_MAX_JOINED])
        return one_line("; ".join(dict.fromkeys(part for part in parts if part)), max_chars)
    if not isinstance(value, str):
        made = bounded_json(value, max_chars=max_chars)
        if isinstance(made, dict | list):
            return one_line(json.dumps(made, ensure_ascii=False), max_chars) if made else ""
        value = "" if made is None else str(made)
    return one_line(str.__str__(value), max_chars)


def distinct(texts: list[str], most: int) -> list[str]:
    """The first `most` of the texts, each once whatever its case; the first spelling stays."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(text.casefold(), text)
        if len(found) == most:
            break
    return list(found.values())


def one_line(text: str, max_chars: int) -> str:
    """Clean text on one line, cut with an ellipsis; '' when there is nothing to be seen in it."""
    shown = clean_text(_BLANKS.sub(" ", text[:_MAX_READ]).strip())
    if not any(unicodedata.category(char)[0] not in "CZM" for char in shown[:max_chars]):
        return ""
    return bounded_text(shown, max_chars)


def _leaves(value: object, depth: int) -> Iterator[object]:
    """What is no container, in order; None for a container, so that empty ones count as work."""
    yield None
    if depth <= 0:
        return
    if isinstance(value, Mapping):
        items: list[object] = _named(value)
    elif isinstance(value, list | tuple):
        items = list(value[:MAX_LOOKED_AT])
    elif isinstance(value, set | frozenset):
        items = sorted(value, key=str)  # without an order of its own
    else:
        yield value if isinstance(value, str | Enum | bool | None) else make_json_value(value)
        return
    for item in items:
        yield from _leaves(item, depth - 1)


def _named(value: Mapping[object, object]) -> list[object]:
    members = dict(islice(value.items(), MAX_LOOKED_AT))
    for name in _NAMING:
        text = members.get(name)
        if isinstance(text, str) and text.strip():
            return [text]
    if all(item is None or isinstance(item, bool | int | float) for item in members.values()):
        return [key for key, item in members.items() if item is not False]
    return list(members.values())


def _json_array(text: str) -> list[object] | None:
    if not (text.lstrip().startswith("[") and text.rstrip().endswith("]")):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, list) else None


def _parts(text: str) -> list[str]:
    sure = [part for part in _SURE_BREAK.split(text) if part.strip()]
    if len(sure) > 1:
        return [_BULLET.sub("", part) for part in sure]
    parts = [_LAST_OF_LIST.sub("", part) for part in _COMMA.split(text)]
    return parts if len(parts) > 1 and all(map(_is_short_name, parts)) else [text]


def _is_short_name(part: str) -> bool:
    words = part.split()
    return 0 < len(words) <= _SHORT_WORDS and len(part) <= _SHORT_CHARS and not _JOINED.search(part)
