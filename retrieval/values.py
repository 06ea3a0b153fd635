"""Values: their JSON types, casts between them, and near ones."""

import json
import re
from collections.abc import Sequence

from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler

from aftercall.json_values import MAX_INTEGER, JsonValue, check_json_value
from retrieval.reading.faults import JsonType

_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve")  # fmt: skip
_NUMBER_WORDS = dict(zip(_SMALL, range(13), strict=True)) | {
    "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100, "a hundred": 100, "dozen": 12,
}  # fmt: skip

_TRUE = frozenset({"true", "yes", "on", "1", "y"})
_FALSE = frozenset({"false", "no", "off", "0", "n"})


def type_of(value: JsonValue) -> JsonType:
    """The JSON type; a whole number is an `integer`, also when a tool asks for a `number`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def fits(value: JsonValue, types: Sequence[JsonType]) -> bool:
    """Whether a value is of one of the types; no types means any."""
    if not types:
        return True
    kind = type_of(value)
    return kind in types or (kind == "integer" and "number" in types)


class CastError(ValueError):
    """The value does not say what it would be in the other type."""


def cast(value: JsonValue, to: JsonType, item_types: Sequence[JsonType] = ()) -> JsonValue:
    """The same thing said in another JSON type, such as `"5"` -> `5` or `"a"` -> `["a"]`.

    Raises:
        CastError: when that would be a guess.
    """
    if fits(value, (to,)):
        return value
    if isinstance(value, list) and len(value) == 1 and to != "array":
        return cast(value[0], to)
    if to in ("integer", "number"):
        return _to_number(value, to)
    if to == "boolean":
        return _to_boolean(value)
    if to == "string":
        return _to_string(value)
    if to == "array":
        return _to_array(value, item_types)
    if to == "object" and isinstance(value, str):
        return _from_json_text(value, dict)
    raise CastError(f"{type_of(value)} to {to} would be a guess")


def _to_number(value: JsonValue, to: JsonType) -> JsonValue:
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    if not isinstance(value, str):
        raise CastError("not a number")
    text = value.strip().lower()
    if text in _NUMBER_WORDS:
        return _NUMBER_WORDS[text]
    # One number with at most a unit behind it: "5", "10 commits", "1,000", "$12.50", "20%".
    found = re.fullmatch(r"[$€£]?\s*(-?\d+(?:,\d{3})*(?:\.\d+)?)\s*(?:%|[a-z]{1,20})?", text)
    if not found:
        raise CastError("not one number")
    number = float(found[1].replace(",", ""))
    if abs(number) > MAX_INTEGER:
        raise CastError("more than 64 bits")
    if number.is_integer():
        return int(number)
    if to == "integer":
        raise CastError("not a whole number")
    return number


def _to_boolean(value: JsonValue) -> bool:
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise CastError("neither yes nor no")


def _to_string(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise CastError("a text of it would be a guess")


def _to_array(value: JsonValue, item_types: Sequence[JsonType]) -> JsonValue:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            return _from_json_text(text, list)
        parts = [part.strip() for part in text.split(",")]
        if len(parts) > 1 and all(parts) and all(" " not in part for part in parts):
            return [_item(part, item_types) for part in parts]
    if value is None or (isinstance(value, dict) and "object" not in item_types):
        raise CastError("a list of it would be a guess")
    return [_item(value, item_types)]


def _item(value: JsonValue, item_types: Sequence[JsonType]) -> JsonValue:
    if fits(value, item_types):
        return value
    return cast(value, item_types[0])


def _from_json_text(
    text: str, kind: type[dict[str, JsonValue]] | type[list[JsonValue]]
) -> JsonValue:
    try:
        parsed = check_json_value(json.loads(text))
    except (ValueError, RecursionError):  # InvalidJsonValueError is a ValueError
        raise CastError("not JSON") from None
    if not isinstance(parsed, kind):
        raise CastError("JSON of another type")
    return parsed


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier: `sourceTimeZone` and `source_time_zone` give the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return tuple(re.findall(r"[a-z0-9]+", spaced.lower()))


def name_similarity(left: str, right: str) -> float:
    """How likely two parameter names mean the same, 0 to 1; 1 is equal up to case and separators.

    Equal words count most, then abbreviations (`tz` of `timezone`, `msg` of `message`), then
    spelling (Jaro-Winkler).
    """
    a, b = words_of(left), words_of(right)
    if not a or not b:
        return 0.0
    if "".join(a) == "".join(b):
        return 1.0
    if sorted(a) == sorted(b):
        return 0.95
    shared = _matched(a, b)
    spelling = JaroWinkler.similarity("".join(a), "".join(b))
    containment = shared / min(len(a), len(b))
    coverage = shared / max(len(a), len(b))
    by_words = 0.55 * containment + 0.4 * coverage
    return max(by_words, spelling if spelling >= 0.85 else 0.6 * spelling)


def _matched(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    """The sum over the shorter name's words of how well each matches one of the other's."""
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    rest, total = list(long), 0.0
    for word in short:
        best = max(rest, key=lambda other: _word_similarity(word, other), default=None)
        if best is not None and (score := _word_similarity(word, best)) > 0:
            total += score
            rest.remove(best)
    return total


def _word_similarity(a: str, b: str) -> float:
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    if long.rstrip("s") == short.rstrip("s"):
        return 0.98
    if long.startswith(short):
        return 0.9 if len(short) >= 2 else 0.6
    if len(short) >= 2 and short[0] == long[0] and _is_subsequence(short, long):
        return 0.8
    return 0.75 if len(short) >= 4 and DamerauLevenshtein.distance(a, b) == 1 else 0.0


def _is_subsequence(short: str, long: str) -> bool:
    letters = iter(long)
    return all(char in letters for char in short)


def nearest(text: str, known: Sequence[str]) -> tuple[str, float] | None:
    """The known value that `text` most likely means, with a score in (0, 1]; None when unclear.

    1.0 is equal up to case and separators; then a misspelling, a last or first part of a path-like
    value, and a prefix. A tie between two different values is unclear.
    """
    scored = sorted(((_nearness(text, value), value) for value in known), reverse=True)
    if not scored or scored[0][0] <= 0:
        return None
    best, value = scored[0]
    if len(scored) > 1 and scored[1][0] >= best - 0.02 and scored[1][1] != value:
        return None
    return value, best


def _nearness(text: str, value: str) -> float:
    a, b = text.strip().lower(), value.strip().lower()
    flat_a, flat_b = re.sub(r"[\s_-]+", "", a), re.sub(r"[\s_-]+", "", b)
    if not flat_a or not flat_b:
        return 0.0
    if flat_a == flat_b:
        return 1.0
    last = re.split(r"[/.:]", b)[-1]
    if flat_a == re.sub(r"[\s_-]+", "", last):
        return 0.92
    distance = DamerauLevenshtein.distance(flat_a, flat_b, score_cutoff=3)
    allowed = 0 if len(flat_a) < 4 else 1 if len(flat_a) < 8 else 2
    if distance <= allowed:
        return 0.9 - 0.08 * (distance - 1)
    if len(flat_a) >= 3 and (flat_b.startswith(flat_a) or flat_a.startswith(flat_b)):
        return 0.6
    return 0.0
