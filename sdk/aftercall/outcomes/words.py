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
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice

from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import clean_text, make_json_value

MAX_LOOKED_AT = 10_000
"""Values that are looked at in one field: bounds the work on junk, far above real referrals."""

_MAX_JOINED = 100
"""Items of an array that are joined to one text."""

_MAX_DEPTH = 5
_MAX_READ = 20_000
"""Characters of one text that are read; of more the rest is cut off anyway."""

_OFTEN_ENOUGH = 4
"""Times the characters that are kept: what is read of a text at first."""

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
    return list(_texts(value, max_chars, _MAX_DEPTH, [MAX_LOOKED_AT], lone=True))


def text_in(value: object, *, max_chars: int) -> str:
    """A value as one text on one line; '' for nothing. Arrays are joined, objects become JSON."""
    if isinstance(value, list | tuple):
        parts = (_as_text(item, max_chars) for item in value[:_MAX_JOINED])
        return one_line("; ".join(dict.fromkeys(part for part in parts if part)), max_chars)
    return _as_text(value, max_chars)


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
    shown = _without_blanks(text[: _OFTEN_ENOUGH * max_chars])
    if len(shown) <= max_chars and len(text) > _OFTEN_ENOUGH * max_chars:  # mostly blanks
        shown = _without_blanks(text[:_MAX_READ])
    if not any(unicodedata.category(char)[0] not in "CZM" for char in shown):
        return ""
    return bounded_text(shown, max_chars)


def _without_blanks(text: str) -> str:
    return clean_text(_BLANKS.sub(" ", text).strip())


def _as_text(value: object, max_chars: int) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return one_line(str.__str__(value), max_chars)
    made = bounded_json(value, max_chars=max_chars)
    if isinstance(made, str | int | float):
        return one_line(str(made), max_chars)
    return one_line(json.dumps(made, ensure_ascii=False), max_chars) if made else ""


def _texts(
    value: object, max_chars: int, depth: int, left: list[int], *, lone: bool = False
) -> Iterator[str]:
    """`left` is how many values may still be looked at; it is counted down in place."""
    left[0] -= 1
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool) or depth <= 0 or left[0] < 0:
        return
    if isinstance(value, str):
        yield from _of_text(str.__str__(value)[:_MAX_READ], max_chars, depth, left, lone=lone)
    elif isinstance(value, Mapping):
        yield from _of_mapping(value, max_chars, depth, left)
    elif isinstance(value, list | tuple):
        yield from _of_items(value, max_chars, depth, left)
    elif isinstance(value, set | frozenset):  # without an order of its own
        yield from sorted(_of_items(value, max_chars, depth, left))
    else:
        made = make_json_value(value)
        if text := one_line("" if made is None else str(made), max_chars):
            yield text


def _of_items(
    items: Iterable[object], max_chars: int, depth: int, left: list[int]
) -> Iterator[str]:
    for item in items:
        if left[0] <= 0:
            return
        yield from _texts(item, max_chars, depth - 1, left)


def _of_text(
    text: str, max_chars: int, depth: int, left: list[int], *, lone: bool
) -> Iterator[str]:
    listed = _json_array(text) if lone else None
    if listed is not None:
        yield from _of_items(listed, max_chars, depth, left)
        return
    for part in _parts(text) if lone else [text]:
        if shown := one_line(part, max_chars):
            yield shown


def _of_mapping(
    value: Mapping[object, object], max_chars: int, depth: int, left: list[int]
) -> Iterator[str]:
    members = list(islice(value.items(), max(left[0], 0)))
    texts = {key: item for key, item in members if isinstance(item, str) and item.strip()}
    name = next((each for each in _NAMING if each in texts), None)
    if name is not None:
        yield from _texts(texts[name], max_chars, depth - 1, left)
    elif all(item is None or isinstance(item, bool | int | float) for _, item in members):
        named = (key for key, item in members if item is not False)
        yield from _of_items(named, max_chars, depth, left)
    else:
        yield from _of_items((item for _, item in members), max_chars, depth, left)


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
