"""Values and names: JSON types, casts, near values, closed lists, and names that mean the same."""

import ast
import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from html import unescape
from typing import Literal
from unicodedata import combining, normalize
from urllib.parse import unquote
from zoneinfo import available_timezones

from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler

from aftercall.change_classes import are_opposites
from aftercall.json_values import MAX_INTEGER, JsonValue, check_json_value
from retrieval import WORDS, read_table
from retrieval.parameters import JsonType

_SEPARATORS = re.compile(r"[\s_-]+")
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
          "nineteen")  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = (
    dict(zip(_SMALL, range(20), strict=True))
    | {f"{ten}{each}": 20 + 10 * place + unit
       for place, ten in enumerate(_TENS)
       for unit, each in enumerate(["", *(f"-{small}" for small in _SMALL[1:10])])}
    | {"a dozen": 12, "hundred": 100, "a hundred": 100, "one hundred": 100, "a thousand": 1000}
)  # fmt: skip
_TRUE = frozenset({"true", "yes", "on", "1", "y", "t", "enabled"})
_FALSE = frozenset({"false", "no", "off", "0", "n", "f", "disabled"})
_DENYING = frozenset(("not", "no", "non", "un", "without", "except", "never", "or", "and"))
_NOTHING = frozenset({"", "null", "none", "nil", "undefined", "nan", "n/a"})


def _groups(groups: list[str]) -> dict[str, frozenset[int]]:
    """The groups that each word is in, by number; a word may stand in several."""
    found: dict[str, frozenset[int]] = {}
    for number, group in enumerate(groups):
        for word in group.split():
            flat = _SEPARATORS.sub("", word.lower())
            found[flat] = found.get(flat, frozenset()) | {number}
    return found


_NO_GROUPS: frozenset[int] = frozenset()


def _share(groups: dict[str, frozenset[int]], one: str, other: str) -> bool:
    return not groups.get(one, _NO_GROUPS).isdisjoint(groups.get(other, _NO_GROUPS))


_SYNONYMS = read_table("synonyms.toml")
_SAME_VALUES, _LIKE_VALUES = map(
    _groups, (_SYNONYMS["values"]["same"], _SYNONYMS["values"]["like"])
)
_SAME_WORDS, _SAME_NAMES = map(_groups, (_SYNONYMS["names"]["words"], _SYNONYMS["names"]["whole"]))


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


_WHOLE = 1e16
"""From here on floats do not tell neighbouring whole numbers apart."""


def number(value: float) -> str:
    """A number as people write it: `100`, `0.25`, `1e+20`."""
    is_whole = isinstance(value, int) or value.is_integer()
    return str(int(value)) if is_whole and abs(value) < _WHOLE else f"{value:.6g}"


def same_value(left: JsonValue, right: JsonValue) -> bool:
    """Equal as JSON values: `1` is `1.0`, as JSON has one kind of number; `true` is not `1`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return left == right


def fits(value: JsonValue, types: Sequence[JsonType]) -> bool:
    """Whether a value is of one of the types; no types means any."""
    if not types:
        return True
    kind = type_of(value)
    return kind in types or (kind == "integer" and "number" in types)


_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[ '_\u00a0\u202f]\d{3})+(?:\.\d+)?"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?"
)
_REMARK = re.compile(r"\s+(?:\((\D+)\)|(?:#|//|-{1,2}|\u2014)\s+(\D+))")
"""A remark behind a value: `5 (as asked)`, `5 # as asked`."""
_ONE_NUMBER = re.compile(
    r"(?P<about>~|\u2248|about|around|approx\.?|approximately|roughly|circa|ca\.)?\s*#?"
    r"(?P<currency>[$\u20ac\u00a3\u00a5]|(?:usd|eur|gbp|chf|jpy)\b)?\s*(?P<sign>[-+])?"
    rf"(?P<digits>{_NUMBER})\s*(?P<unit>[%$\u20ac\u00a3\u00a5]|[a-z]{{1,20}})?"
)
_UNCLEAR = re.compile(r"\d{1,3}\.\d{3}")
_MAX_NUMBER = 60
_MEASURES = frozenset(WORDS["measures"])
_CURRENCIES = frozenset(WORDS["currencies"])


def _scales(unit: str) -> bool:
    """Whether a unit says how much one is: `5 minutes` is not 5 where seconds are meant, nor 5k 5.

    A counted thing (`10 commits`) is only named. Short units are letters of too many measures.
    """
    known = unit in _MEASURES or unit.removesuffix("s") in _MEASURES
    # The name of an amount need not say that it is money.
    return (len(unit) <= 2 or known) and unit.removesuffix("s") not in _CURRENCIES


def _with_synonyms(unit: str) -> frozenset[str]:
    of_unit = _SAME_VALUES.get(unit, _NO_GROUPS)
    same = (word for word, groups in _SAME_VALUES.items() if not groups.isdisjoint(of_unit))
    return frozenset({unit, unit.removesuffix("s"), *same})


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
    return number_in(value, whole=to == "integer")


_COUNTED = re.compile(r"^(?:(\d+)(?:st|nd|rd|th)|(?:int|integer|float|number|decimal)\((.*)\))$")
"""The place in an order, or a number of a program: `3rd`, `int(3)`."""


def number_in(
    text: str, *, whole: bool = False, units: frozenset[str] = frozenset()
) -> int | float:
    """The one number that a text says: "5", "five", "10 commits", "~1,000", "1,500.0 USD".

    `units` are those that the tool counts in: `30 seconds` is 30 only where it counts in seconds.

    Raises:
        CastError: when there is none or another one, or it could be read in two ways.
    """
    text = without_remark(unmarked(text[: 2 * _MAX_NUMBER])).lower()
    if (words := re.sub(r"(?<=[a-z]y) ", "-", text)) in _NUMBER_WORDS:
        return _NUMBER_WORDS[words]
    text = _COUNTED.sub(r"\1\2", text)
    found = _ONE_NUMBER.fullmatch(text) if len(text) <= _MAX_NUMBER else None
    if not found:
        raise CastError("not one number")
    digits, unit = found["digits"], found["unit"]
    if unit and _scales(unit) and units.isdisjoint(_with_synonyms(unit)):
        raise CastError("the tool may count in another unit")
    if _UNCLEAR.fullmatch(digits) and (found["about"] or found["currency"] or unit):
        raise CastError("a point may stand between thousands")
    if "," in digits and digits.rfind(".") < digits.rfind(",") and "." in digits:
        digits = digits.replace(".", "").replace(",", ".")  # 1.234,50
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    number = float((found["sign"] or "") + re.sub(r"[ ,'_\u00a0\u202f]", "", digits))
    if abs(number) > MAX_INTEGER:
        raise CastError("more than 64 bits")
    if number.is_integer():
        return int(number)
    if whole:
        raise CastError("not a whole number")
    return number


def without_remark(text: str) -> str:
    """A value without the remark behind it; one that holds a unit, or denies, is no remark."""
    value = text.split(maxsplit=1)[0] if text.strip() else text
    found = _REMARK.fullmatch(text[len(value) :])
    words = {word.removesuffix("s") for word in words_of(found[1] or found[2])} if found else set()
    return value if words and words.isdisjoint(_DENYING | _MEASURES) else text


_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|&#?\w{2,8};")
_LINKED = re.compile(r"\[([^\[\]\n]+)\]\([^()\s]*\)|<a\s[^<>]*>([^<>\n]+)</a>")
_MAIL = re.compile(r"(?:mailto:|[^<>@]*<)([^<>@\s]+@[^<>@\s]+)>?")


def plainer(text: str) -> str:
    """A value without what an address, a mention or a page adds to it, nor a remark behind it."""
    bare = without_remark(unmarked(text)) if is_marked(text) else without_remark(text)
    if linked := _LINKED.fullmatch(bare):
        return linked[1] or linked[2]
    if _ESCAPED.search(bare):
        bare = unescape(unquote(bare))
    mail = _MAIL.fullmatch(bare)
    return mail[1] if mail else bare.removeprefix("@")


_ONLY_A_NUMBER = re.compile(rf"[-+]?(?:{_NUMBER})")


def says_only(text: str, value: JsonValue) -> bool:
    """Whether a text says a number, or yes or no, and nothing beside it."""
    bare = unmarked(text).lower()
    if isinstance(value, bool):
        return bare in (_TRUE if value else _FALSE)
    if type_of(value) not in ("integer", "number"):
        return False
    says = bare in _NUMBER_WORDS or bare.replace(" ", "-") in _NUMBER_WORDS
    if _ONLY_A_NUMBER.fullmatch(bare):
        digits = bare.lstrip("+-")  # 1.000 is one, or a thousand; 01234 is the code of a place
        says = not _UNCLEAR.fullmatch(digits) and not re.match(r"0\d", digits)
    try:
        return says and number_in(text) == value
    except CastError:
        return False


def says_nothing(value: JsonValue) -> bool:
    """Whether a value is null, empty, or a word for it, such as `"undefined"`."""
    if isinstance(value, str):
        return value.strip().lower() in _NOTHING
    return value is None or value in ([], {})


_PAIRS = {'"': '"', "'": "'", "`": "`", "<": ">", "(": ")", "[": "]", "\u201c": "\u201d",
          "\u2018": "\u2019", "\u00ab": "\u00bb", "*": "*"}  # fmt: skip
_LONGEST_MARKED = 100
_CUT = re.compile(r"(?:\.{2,}|\u2026)$")
"""Dots where the rest of a text was left out."""
_UNSEEN = str.maketrans(
    {0xA0: " ", 0x202F: " ", 0x2010: "-", 0x2011: "-"}
    | dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
)
"""What typesetting puts into a text and nobody sees."""


_END_OF_STREAM = re.compile(r"(?:\s*(?:</(?P<tag>\w{1,20})>|<\|\w{1,20}\|>)){1,4}\Z")
"""What ends a model's text or a part of it, and is none of it."""


def visible(text: str) -> str:
    """A text as one sees it: no blanks around it, no marks of typesetting, no end of a stream."""
    found = _END_OF_STREAM.search(text[-_LONGEST_MARKED:])
    if found and not (found["tag"] and f"<{found['tag']}" in text):
        text = text[: len(text) - len(found[0])]
    return text.translate(_UNSEEN).strip()


def is_marked(text: str) -> bool:
    """Whether blanks, quotes or marks of a markup stand around a short text of one line."""
    bare = unmarked(text)
    in_marks = text != visible(text) or (text[:1] in "\"'`*\u201c\u2018\u00ab" and bare != text)
    return in_marks and len(text) <= _LONGEST_MARKED and "\n" not in bare


_PLACEHOLDER = re.compile(
    r"<[^<>]{1,80}>|\$?\{\{?[^{}]{0,80}\}?\}|\[[a-z]{1,30}(?:[ _-][a-z]{1,30}){0,4}\]|\.{3}|x{3,}"
    r"|(?:your|insert|enter)[_ -].{1,60}|.{1,60}[_ -]here"
    r"|todo|tbd|placeholder|undefined|null|none|nan|string",
    re.IGNORECASE,
)


def is_placeholder(text: str) -> bool:
    """Whether a text stands for a value that its writer did not have, such as `<your folder>`."""
    bare = text.strip()
    is_cut = _CUT.search(bare) is not None and any(map(str.isdigit, bare)) and " " not in bare
    return is_cut or _PLACEHOLDER.fullmatch(bare) is not None


_REFERENCES = frozenset(WORDS["references"])


def refers(text: str, name: str) -> bool:
    """Whether a text says which one is meant by words alone, such as `my_order_id` or `latest`."""
    words = set(words_of(text))
    return bool(words) and words <= _REFERENCES | set(words_of(name))


def unmarked(text: str) -> str:
    """A text without blanks, marks and brackets around it, and without what ends a sentence."""
    bare, before = visible(text), ""
    while bare != before:
        before = bare
        bare = bare if _CUT.search(bare) else bare.rstrip(".,;!").strip()
        inner = bare[1:-1].strip("*") if bare.startswith("**") else bare[1:-1]
        if len(bare) > 2 and _PAIRS.get(bare[0]) == bare[-1] and bare[-1] not in inner:
            bare = inner.strip()
    return bare or text.strip()


def _to_boolean(value: JsonValue) -> bool:
    text = unmarked(str(value)).lower() if isinstance(value, str) else str(value).lower()
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
    if isinstance(value, dict) and value:
        return json.dumps(value, ensure_ascii=False)
    raise CastError("a text of it would be a guess")


_BETWEEN = ("\n", ";", "|")
_SEVERAL = re.compile(r"[,;|\n]|\s(?:and|or|und|y|et)\s|&")


def may_be_several(text: str) -> bool:
    """Whether a text may stand for more than one thing, though it cannot be told which."""
    return _SEVERAL.search(text) is not None


_LINE = re.compile(r"(?:[-*\u2022]|\d{1,3}[.)])\s+(\S.*)")
"""An item of a list that a text writes in lines."""
_BRACKETS = frozenset("()[]{}<>\"'`")


def _to_array(value: JsonValue, item_types: Sequence[JsonType]) -> JsonValue:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("(") and (held := _in_python(text)) is not None:
            return held
        if text.startswith("["):
            held = _in_python(text)
            return _from_json_text(text, list) if held is None else held
        lines = [_LINE.fullmatch(line.strip()) for line in text[:_MAX_JSON_TEXT].splitlines()]
        if len(lines) > 1 and len(found := list(filter(None, lines))) == len(lines):
            return [_item(line[1], item_types) for line in found]
        mark = next((each for each in _BETWEEN if each in text), ",")
        parts = [part.strip() for part in text[:_MAX_JSON_TEXT].split(mark)]
        if (
            len(text) <= _MAX_JSON_TEXT
            and len(parts) > 1
            and all(parts)
            and _BRACKETS.isdisjoint(text)  # what stands in them belongs together
            and all(" " not in part for part in parts)
            and _are_of_one_kind(parts)
        ):
            return [_item(part, item_types) for part in parts]
    if value is None or (isinstance(value, dict) and "object" not in item_types):
        raise CastError("a list of it would be a guess")
    return [_item(value, item_types)]


def _in_python(text: str) -> list[JsonValue] | None:
    """A list or tuple as Python writes it; nothing is run."""
    try:
        held = ast.literal_eval(text[:_MAX_JSON_TEXT])
        plain: list[JsonValue] = json.loads(json.dumps(held, allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return plain if isinstance(held, list | tuple) else None


_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def _are_of_one_kind(parts: Sequence[str]) -> bool:
    """Whether each piece could stand alone: numbers, or texts with the same marks in them.

    `a,b.txt` is one file, `color=red,blue` one condition, `1,500` one number.
    """
    kinds = {
        (part.isdigit(), *sorted({each for each in part if each in "./:=@#"})) for part in parts
    }
    return len(kinds) == 1 and not _GROUPED.fullmatch(",".join(parts))


def _item(value: JsonValue, item_types: Sequence[JsonType]) -> JsonValue:
    if fits(value, item_types):
        return value
    return cast(value, item_types[0])


_MAX_JSON_TEXT = 20_000


def _from_json_text(
    text: str, kind: type[dict[str, JsonValue]] | type[list[JsonValue]]
) -> JsonValue:
    if len(text) > _MAX_JSON_TEXT:
        raise CastError("too much to read while somebody waits")
    try:
        parsed = check_json_value(json.loads(text))
    except (ValueError, RecursionError):  # InvalidJsonValueError is a ValueError
        raise CastError("not JSON") from None
    if not isinstance(parsed, kind):
        raise CastError("JSON of another type")
    return parsed


_MAX_TEXT = 200
_MAX_KNOWN = 2_000
_DIGITS = re.compile(r"\d+")


Nearness = Literal["same", "last", "slip", "slips", "start"]
"""How a text is near a value: equal up to case and separators; the last part of a path-like value,
or its name without the ending; one letter wrong, or two; the start of the other."""


def nearest(text: str, known: Sequence[str]) -> tuple[str, Nearness] | None:
    """The known value that `text` most likely means, and how it is near; None when unclear.

    A tie between two different values is unclear, and so are one slip and the last part of another.
    Values that differ in a digit name different things (`acct-12`, `acct-13`), however alike they
    look. Only the first 2,000 known values count, and no text longer than 200 characters.
    """
    flat = _flat(text)
    if not flat or len(text) > _MAX_TEXT:
        return None
    near = [
        (how, value)
        for value in known[:_MAX_KNOWN]
        if len(value) <= _MAX_TEXT and (how := _nearness(flat, value)) is not None
    ]
    ranked = sorted(near, key=lambda each: (_RANKS[each[0]], each[1]))
    if not ranked:
        return None
    how, value = ranked[0]
    if how == "start" and may_be_several(text) and not may_be_several(value):
        return None  # the first of several is not what they mean
    if len(ranked) > 1 and _RANKS[ranked[1][0]] == _RANKS[how] and ranked[1][1] != value:
        return None
    return None if are_opposites(text, value) else (value, how)


_RANKS: dict[Nearness, int] = {"same": 0, "last": 1, "slip": 1, "slips": 2, "start": 3}


def _means(groups: dict[str, frozenset[int]], text: str, value: str) -> bool:
    """Whether a text and a value are in one group, as a whole or word by word."""
    if _share(groups, _flat(text), _flat(value)):
        return True
    one, two = words_of(text[:_MAX_NAME]), words_of(value[:_MAX_NAME])
    several = len(one) == len(two) > 1
    return several and all(a == b or _share(groups, a, b) for a, b in zip(one, two, strict=True))


def synonym_of(text: str, known: Sequence[str]) -> tuple[str, bool] | None:
    """The only known value that is a synonym of `text`, and whether it means just the same.

    By a list of words (`synonyms.toml`), of which some only mean nearly the same (done, closed).
    """
    for groups, exact in ((_SAME_VALUES, True), (_LIKE_VALUES, False)):
        found = {each for each in known[:_MAX_KNOWN] if _means(groups, text, each)}
        if found:
            return (found.pop(), exact) if len(found) == 1 else None
    return None


def named_in(text: str, known: Sequence[str]) -> str | None:
    """The only known value whose words a short text holds beside others: `open` of `State.OPEN`."""
    words = words_of(text[:_MAX_NAME])
    if not _DENYING.isdisjoint(words) or len(text.split()) > _MAX_LABEL:
        return None
    found = {
        value: places
        for value in known[:_MAX_KNOWN]
        if (parts := words_of(value[:_MAX_NAME])) and len(parts) < len(words)
        and (places := [at for at in range(len(words)) if words[at : at + len(parts)] == parts])
    }  # fmt: skip
    longest = max(found, key=lambda value: len(words_of(value)), default=None)
    inside = set(words_of(longest or ""))
    alone = all(set(words_of(value)) <= inside for value in found)
    return longest if longest and alone and len(found[longest]) == 1 else None


def differ_in_digits(left: str, right: str) -> bool:
    """Whether two texts hold different numbers, and so name different things."""
    return _DIGITS.findall(left) != _DIGITS.findall(right)


def _flat(text: str) -> str:
    return _SEPARATORS.sub("", text.strip().lower()) if len(text) <= _MAX_TEXT else ""


def _nearness(flat: str, value: str) -> Nearness | None:
    other = _flat(value)
    if not other or flat == other:
        return "same" if other else None
    ends = (re.split(r"[/.:]", value)[-1], value.rpartition(".")[0])
    if flat in map(_flat, ends) or flat.strip("./\\") == other:
        return "last"
    if differ_in_digits(flat, other):
        return None
    allowed = 0 if len(flat) < 4 else 1 if len(flat) < 8 else 2
    distance = DamerauLevenshtein.distance(flat, other, score_cutoff=allowed)
    is_other_word = abs(len(flat) - len(other)) > 1 and (
        flat.endswith(other) or other.endswith(flat)
    )  # weekly and biweekly, active and reactive: no slip adds a syllable in front
    if distance <= allowed and not is_other_word:
        return "slip" if distance == 1 else "slips"
    starts = len(flat) >= 3 and (other.startswith(flat) or flat.startswith(other))
    return "start" if starts else None


_OF_ZONES = re.compile(r"time[ _-]?zone|\btz|tz\b|_tz", re.IGNORECASE)


@cache
def catalogue(name: str) -> tuple[str, ...]:
    """The values of a catalogue: `iana_time_zones`, as this machine (or `tzdata`) has them.

    Raises:
        KeyError: when there is no catalogue of that name.
    """
    if name != "iana_time_zones":
        raise KeyError(name)
    return tuple(sorted(zone for zone in available_timezones() if "/" in zone or zone == "UTC"))


def is_about_zones(parameter: str, words: str) -> bool:
    """Whether a parameter holds a time zone, by its name or the error's words."""
    return bool(_OF_ZONES.search(parameter) or _OF_ZONES.search(words))


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier: `sourceTimeZone` and `source_time_zone` give the same."""
    return _words(name) if len(name) <= _MAX_NAME else _words.__wrapped__(name)


@lru_cache(8_192)
def _words(name: str) -> tuple[str, ...]:
    if not name.isascii():  # `dirección` is `direccion`
        name = "".join(c for c in normalize("NFKD", name.replace("ß", "ss")) if not combining(c))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return tuple(re.findall(r"[a-z0-9]+", spaced.lower()))


_MAX_NAME = 80
_MAX_LABEL = 4
_JOINING = frozenset(("of", "for", "the"))
"""Words that turn a name round: `owner_of_item` is the `item_owner`."""
_SYNONYM = 0.85
_ASPECTS = frozenset(WORDS["aspects"])
_HARMLESS = frozenset(WORDS["harmless"])
# An id and what it is the id of share a name, and only the value tells which of them is there.
_IDS = frozenset(("id", "ids", "uuid", "key"))
_ID_OR_THING = 0.6
_COULD_BE_MEANT = 0.5
_SAME_START = 0.8
"""Likeness below which no name is taken for the other."""
_UNLIKE = frozenset(map(frozenset, WORDS["unlike"]))


def _mean_different_things(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    only_a, only_b = set(a) - set(b), set(b) - set(a)
    if len(only_a) == 1 and len(only_b) == 1 and frozenset(only_a | only_b) in _UNLIKE:
        return True
    aspects_a, aspects_b = only_a & _ASPECTS, only_b & _ASPECTS
    if aspects_a and aspects_b:
        # `tz_source` against `target_tz`; an abbreviation (`min`, `minimum`) is the same aspect.
        return not any(_word_similarity(x, y) >= 0.8 for x in aspects_a for y in aspects_b)
    if not (aspects_a or aspects_b):
        return False
    # One name has the aspect alone: another thing when the other name is all the rest of it.
    aspects, rest = (aspects_a, only_b) if aspects_a else (aspects_b, only_a)
    return not rest and not aspects <= _HARMLESS


def name_similarity(left: str, right: str) -> float:
    """How likely two parameter names mean the same, 0 to 1; 1 is equal up to case and separators.

    Equal words count most, then listed synonyms and translations (`synonyms.toml`), abbreviations
    (`tz` of `timezone`), then spelling (Jaro-Winkler). A word that makes another thing of it
    (`page` and `page_size`) or its opposite (`min_price` and `max_price`) makes it 0, however alike
    the rest is.
    """
    a, b = words_of(left[:_MAX_NAME]), words_of(right[:_MAX_NAME])
    if not a or not b:
        return 0.0
    if "".join(a) == "".join(b):
        return 1.0
    if set() != {*a} - _JOINING == {*b} - _JOINING:
        return 0.95
    if _share(_SAME_NAMES, "".join(a), "".join(b)):
        return _SYNONYM
    if _mean_different_things(a, b):
        return 0.0
    shared = _matched(a, b)
    spelling = JaroWinkler.similarity("".join(a), "".join(b))
    if not shared and a[0][0] != b[0][0]:
        spelling *= _SAME_START  # a slip is seldom in the first letter: `reason` is no `season`
    containment = shared / min(len(a), len(b))
    coverage = shared / max(len(a), len(b))
    by_words = 0.55 * containment + 0.4 * coverage
    likeness = max(by_words, spelling if spelling >= 0.85 else 0.6 * spelling)
    if likeness >= _COULD_BE_MEANT and are_opposites(left, right):
        return 0.0
    return min(likeness, _ID_OR_THING) if {*a} ^ {*b} <= _IDS else likeness


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
    if _share(_SAME_WORDS, a, b):
        return 0.9
    short, long = sorted((a, b), key=len)
    if long.rstrip("s") == short.rstrip("s"):
        return 0.98
    if long.startswith(short):
        return 0.9 if len(short) >= 2 else 0.6
    letters = iter(long)  # `tz` of `timezone`
    if len(short) >= 2 and short[0] == long[0] and all(char in letters for char in short):
        return 0.8
    return 0.75 if len(short) >= 4 and DamerauLevenshtein.distance(a, b) == 1 else 0.0


_PORTION = frozenset(WORDS["portions"])


def is_portion(name: str) -> bool:
    """Whether a parameter says how much is wanted at a time, such as `limit` or `topK`."""
    return not _PORTION.isdisjoint(words_of(name))
