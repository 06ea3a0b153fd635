"""Values: JSON types, casts, numbers, marks around a text, and what stands for no value."""

import ast
import json
import re
from collections.abc import Sequence
from functools import cache
from html import unescape
from urllib.parse import unquote
from zoneinfo import available_timezones

from aftercall.json_values import MAX_INTEGER, JsonValue, check_json_value
from retrieval import WORDS
from retrieval.knowledge.values.likeness import DENYING, with_synonyms, words_of
from retrieval.knowledge.values.parameters import JsonType

_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
          "nineteen")  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_UNITS = dict(zip(_SMALL, range(20), strict=True)) | {
    ten: 10 * place for place, ten in enumerate(_TENS, start=2)
}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_TRUE = frozenset({"true", "yes", "on", "1", "y", "t", "enabled"})
_FALSE = frozenset({"false", "no", "off", "0", "n", "f", "disabled"})
_NOTHING = frozenset({"", "null", "none", "nil", "undefined", "nan", "n/a"})


_JSON_TYPES: dict[type, JsonType] = {
    type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string",
    list: "array",
}  # fmt: skip


def type_of(value: JsonValue) -> JsonType:
    """Return the JSON type; a whole number is an `integer`."""
    return _JSON_TYPES.get(type(value), "object")


_WHOLE = 1e16
"""From here on floats do not show neighbouring whole numbers apart."""


def write_number(value: float) -> str:
    """Return a number as people write it: `100`, `0.25`, `1e+20`."""
    is_whole = isinstance(value, int) or value.is_integer()
    if is_whole and abs(value) < _WHOLE:
        return str(int(value))
    return f"{value:.6g}"


def same_value(left: JsonValue, right: JsonValue) -> bool:
    """Equal as JSON values: `1` is `1.0`, as JSON has one kind of number; `true` is not `1`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return left == right


def fits_types(value: JsonValue, types: Sequence[JsonType]) -> bool:
    """Return whether a value is of one of the types; no types means any."""
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


def _is_scale(unit: str) -> bool:
    """Return whether a unit states how much one is.

    `5 minutes` is not 5 where seconds are meant, nor 5k 5.

    A counted thing (`10 commits`) is only named. Short units are letters of too many measures.
    """
    known = unit in WORDS["measures"] or unit.removesuffix("s") in WORDS["measures"]
    # The name of an amount need not say that it is money.
    return (len(unit) <= 2 or known) and unit.removesuffix("s") not in WORDS["currencies"]


class CastError(ValueError):
    """The value does not say what it would be in the other type."""


def cast_value(value: JsonValue, to: JsonType, item_types: Sequence[JsonType] = ()) -> JsonValue:
    """Return the same thing stated in another JSON type, such as `"5"` -> `5` or `"a"` -> `["a"]`.

    Raises:
        CastError: when that would be a guess.
    """
    if fits_types(value, (to,)):
        return value
    if isinstance(value, list) and len(value) == 1 and to != "array":
        return cast_value(value[0], to)
    if isinstance(value, dict) and len(value) == 1 and to not in ("array", "object"):
        [(key, held)] = value.items()
        if key.lower() in WORDS["of_values"] and not isinstance(held, dict | list):
            return cast_value(held, to)
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


def cast_to_one(
    value: JsonValue, types: Sequence[JsonType], item_types: Sequence[JsonType] = ()
) -> tuple[JsonType, JsonValue] | None:
    """Return the first of the types in which the same can be stated, with what it is then."""
    for kind in types:
        try:
            return kind, cast_value(value, kind, item_types)
        except CastError:
            continue
    return None


def _to_number(value: JsonValue, to: JsonType) -> JsonValue:
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    if not isinstance(value, str):
        raise CastError("not a number")
    return number_in(value, whole=to == "integer")


_HEX = re.compile(r"0x[0-9a-f]{1,12}")
_COUNTED = re.compile(r"^(?:(\d+)(?:st|nd|rd|th)|(?:int|integer|float|number|decimal)\((.*)\))$")
"""The place in an order, or a number of a program: `3rd`, `int(3)`."""


def number_in(
    text: str, *, whole: bool = False, units: frozenset[str] = frozenset()
) -> int | float:
    """Return the one number that a text states: "5", "five", "10 commits", "~1,000", "1,500.0 USD".

    `units` are those that the tool counts in: `30 seconds` is 30 only where it counts in seconds.

    Raises:
        CastError: when there is no such value, another one, or two readings of it.
    """
    text = without_remark(strip_marks(text[: 2 * _MAX_NUMBER])).lower()
    if (said := _in_words(text)) is not None:
        return said
    if _HEX.fullmatch(text):
        return int(text, 16)
    text = _COUNTED.sub(r"\1\2", text)
    found = _ONE_NUMBER.fullmatch(text) if len(text) <= _MAX_NUMBER else None
    if not found:
        raise CastError("not one number")
    digits = found["digits"]
    unit = found["unit"]
    if unit and _is_scale(unit) and units.isdisjoint(with_synonyms(unit)):
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


def _in_words(text: str) -> int | None:
    """Return a whole number written out: `one thousand two hundred and five`, `a dozen`."""
    words = [word for word in re.split(r"[\s-]+", text) if word != "and"]
    if words[:1] == ["a"] and len(words) > 1:
        words[0] = "one"
    if words and words[0] in _SCALES:
        words.insert(0, "one")
    total = part = 0
    for word in words:
        scale = _SCALES.get(word, 0)
        if word in _UNITS:
            free = 100 if part % 100 == 0 else 10 if part % 10 == 0 and part % 100 > 10 else 0
            if _UNITS[word] >= free:
                return None  # `five five` are two numbers
            part += _UNITS[word]
        elif word == "hundred" and 0 < part < 10:
            part *= scale
        elif scale and word != "hundred" and part and total % (1_000 * scale) == 0:
            total = total + scale * part
            part = 0
        else:
            return None
    if words:
        return total + part
    return None


def without_remark(text: str) -> str:
    """Return a value without the remark behind it.

    One that holds a unit, or denies, is no remark.
    """
    value = text.split(maxsplit=1)[0] if text.strip() else text
    found = _REMARK.fullmatch(text[len(value) :])
    if found and found[1] and words_of(found[1]) == words_of(value):
        return found[1]  # a label, and behind it the value that it is for
    words = {word.removesuffix("s") for word in words_of(found[1] or found[2])} if found else set()
    if words and words.isdisjoint(DENYING | WORDS["measures"]):
        return value
    return text


_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|&#?\w{2,8};")
_LINKED = re.compile(r"\[([^\[\]\n]+)\]\([^()\s]*\)|<a\s[^<>]*>([^<>\n]+)</a>")
_LITERAL = re.compile(r"(?:=|[@$]|[a-zA-Z]{1,2})([\"'])(.*)\1")
"""A text as a program or a sheet writes it: `u"Rome"`, `b'Rome'`, `@"Rome"`, `="Rome"`."""
_FENCED = re.compile(r"\s*(`{3}|~{3})[\w+-]{0,20}\n(.*?)\n?\1\s*", re.DOTALL)
"""What a model writes around code."""
_MAIL = re.compile(r"(?:mailto:|[^<>@]*<)([^<>@\s]+@[^<>@\s]+)>?")


def plain_value(text: str) -> str:
    """Return a value without the additions of an address, a mention, a page or a remark."""
    if fenced := _FENCED.fullmatch(text):
        return fenced[2]
    has_marks = is_marked(text) or (has_odd_signs(text) and not is_placeholder(text))
    is_odd = len(text) <= _LONGEST_MARKED and has_marks
    bare = without_remark(strip_marks(text) if is_odd else text)
    if literal := _LITERAL.fullmatch(bare):
        bare = literal[2]
    words = words_of(bare[:_LONGEST_MARKED]) if bare[:1] == "'" and "'" not in bare[1:] else ()
    if words and len(words[0]) > 1:
        bare = bare[1:]  # a cell of a sheet that holds text
    if linked := _LINKED.fullmatch(bare):
        return linked[1] or linked[2]
    if _ESCAPED.search(bare):
        bare = unescape(unquote(bare))
    mail = _MAIL.fullmatch(bare)
    if mail:
        return mail[1]
    return bare.removeprefix("@")


_ONLY_A_NUMBER = re.compile(rf"[-+]?(?:{_NUMBER})")


def says_only(text: str, value: JsonValue) -> bool:
    """Return whether a text states a number, or yes or no, and nothing next to it."""
    bare = strip_marks(text).lower()
    if isinstance(value, bool):
        return bare in (_TRUE if value else _FALSE)
    if type_of(value) not in ("integer", "number"):
        return False
    says = _in_words(bare) is not None
    if _ONLY_A_NUMBER.fullmatch(bare):
        digits = bare.lstrip("+-")  # 1.000 is one, or a thousand; 01234 is the code of a place
        says = not _UNCLEAR.fullmatch(digits) and not re.match(r"0\d", digits)
    try:
        return says and number_in(text) == value
    except CastError:
        return False


def says_nothing(value: JsonValue) -> bool:
    """Return whether a value is null, empty, or a word for it, such as `"undefined"`."""
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
"""What typesetting puts into a text and no one sees."""


_END_OF_STREAM = re.compile(r"(?:\s*(?:</(?P<tag>\w{1,20})>|<\|\w{1,20}\|>)){1,4}\s*\Z")
"""What ends a model's text or a part of it, and does not belong to it."""


def visible_text(text: str) -> str:
    """Return a text as one sees it.

    No blanks around it, no marks of typesetting, no end of a stream.
    """
    found = _END_OF_STREAM.search(text[-_LONGEST_MARKED:]) if ">" in text else None
    if found and not (found["tag"] and f"<{found['tag']}" in text):
        text = text[: len(text) - len(found[0])]
    return text.translate(_UNSEEN).strip()


def is_marked(text: str) -> bool:
    """Return whether blanks, quotes or marks of a markup stand around a short text of one line."""
    bare = strip_marks(text)
    in_marks = text != visible_text(text) or (
        text[:1] in "\"'`*\u201c\u2018\u00ab" and bare != text
    )
    return in_marks and len(text) <= _LONGEST_MARKED and "\n" not in bare


_ENDS_PLAINLY = re.compile(r"\.\.|[A-Z]:|[\w#@/.~+$*-](?:.*[\w/)%+=*-])?", re.DOTALL)
_AS_NUMBER = re.compile(r"&#\d{2,5};|=[0-9A-F]{2}(?=\w)|\\u[0-9a-fA-F]{4}|\\[a-z]{4,}\{")
_ODD_INSIDE = re.compile(
    r"[{}^`|<>\"]|&#?\w{2,8};|=[0-9A-F]{2}|U\+[0-9A-F]{4}|\\[ux]|['\"]\(|\(['\"]|\[\[|\]\]"
)


_COUNT = re.compile(r"\d{1,3}(?: [a-z]{3,20})?")


def may_count(value: JsonValue) -> bool:
    """Return whether a value may say how many there are.

    A small number, alone or with what it counts.
    """
    return not isinstance(value, bool | float) and _COUNT.fullmatch(str(value)) is not None


def may_be_rounded(value: JsonValue) -> bool:
    """Return whether a number beyond 2^53 ends as those do that a program has rounded."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and abs(int(str(value))) > 2**53 and str(value).endswith("00")


def is_escaped(text: str) -> bool:
    """Return whether a text is a program's literal, or has characters written as their numbers."""
    return _LITERAL.fullmatch(text) is not None or _AS_NUMBER.search(text) is not None


_SYMBOL = re.compile(r"[\u2600-\u27bf\U0001f300-\U0001faff]")
_ENCODED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/_-]{20,}={0,2}")


def is_encoded(text: str) -> bool:
    """Return whether a text may be that of bytes, as base64 writes them."""
    return _ENCODED.fullmatch(text.rpartition(",")[2]) is not None


def has_odd_signs(text: str) -> bool:
    """Return whether a plain value holds signs of a notation, or ends with one."""
    is_one = " " not in text
    is_odd = "\n" in text or _ODD_INSIDE.search(text) or _SYMBOL.search(text)
    return bool(is_odd) or (is_one and not _ENDS_PLAINLY.fullmatch(text))


_PLACEHOLDER = re.compile(
    r"<[^<>!]{1,80}>|\$?\{\{?[^{},:]{0,80}\}?\}|\[[a-z]{1,30}(?:[ _-][a-z]{1,30}){0,4}\]"
    r"|\.{3}|x{3,}"
    r"|(?:your|insert|enter)[_ -].{1,60}|.{1,60}[_ -]here"
    r"|todo|tbd|placeholder|undefined|null|none|nan|string",
    re.IGNORECASE,
)


def is_placeholder(text: str) -> bool:
    """Return whether a text stands for a missing value, such as `<your folder>`."""
    bare = text.strip()
    is_cut = _CUT.search(bare) is not None and any(map(str.isdigit, bare)) and " " not in bare
    return is_cut or _PLACEHOLDER.fullmatch(bare) is not None


_EMOJI = re.compile(r":([a-z0-9_+-]+):")


def strip_marks(text: str) -> str:
    """Return a text without blanks, marks and brackets around it, or a final stop."""
    bare = visible_text(text)
    before = ""
    if named := _EMOJI.fullmatch(bare):
        return named[1]
    while bare != before:
        before = bare
        bare = bare if _CUT.search(bare) else bare.rstrip(".,;!?:").strip()
        inner = bare[1:-1].strip("*") if bare.startswith("**") else bare[1:-1]
        is_glob = bare[:1] == "*" and not (inner[:1].isalnum() and inner[-1:].isalnum())
        if len(bare) > 2 and _PAIRS.get(bare[0]) == bare[-1] and bare[-1] not in inner:
            bare = bare if is_glob else inner.strip()
    if any(map(str.isalnum, bare)):
        return bare
    return text.strip()


def _to_boolean(value: JsonValue) -> bool:
    text = strip_marks(str(value)).lower() if isinstance(value, str) else str(value).lower()
    if text not in _TRUE | _FALSE:
        raise CastError("neither yes nor no")
    return text in _TRUE


def _to_string(value: JsonValue) -> str:
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, int | float):
        return str(value)
    is_of_objects = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    if value and (isinstance(value, dict) or is_of_objects):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    raise CastError("a text of it would be a guess")


_BETWEEN = ("\n", ";", "|")
_LINE = re.compile(r"(?:[-*\u2022]|\d{1,3}[.)])\s+(\S.*)")
"""An item of a list that a text writes in lines."""
_FILE = re.compile(r"[\w./-]*[\w-]\.[a-z]{1,5}")
"""A file's name: no sentence is made of these."""
_LAST_OF_SEVERAL = re.compile(r",?\s(?:and|&|und|y|et)\s(\S+)\Z")
_BARE_WORDS = re.compile(
    r"\[\s*((?!(?:true|false|null|none)\b)[A-Za-z][\w.-]*(?:\s*,\s*[A-Za-z][\w.-]*)*)\s*\]"
)
"""A list whose texts have no quotes, as YAML writes it."""
_BRACKETS = frozenset("()[]{}<>\"'`")


def _to_array(value: JsonValue, item_types: Sequence[JsonType]) -> JsonValue:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("(") and (held := _in_python(text)) is not None:
            return held
        if text.startswith("{") and text.endswith("}") and ":" not in text:
            text = text[1:-1]  # as a database writes a list
        if text.startswith("["):
            return _in_brackets(text)
        items = _items_in(text)
        if items:
            return [_cast_item(item, item_types) for item in items]
    if value is None or (isinstance(value, dict) and "object" not in item_types):
        raise CastError("a list of it would be a guess")
    return [_cast_item(value, item_types)]


def _in_brackets(text: str) -> JsonValue:
    """Return the list that a text in brackets states: as Python or JSON writes it, or of words."""
    held = _in_python(text)
    if held is not None:
        return held
    bare = _BARE_WORDS.fullmatch(text) if len(text) <= _MAX_JSON_TEXT else None
    if bare is None:
        return _from_json_text(text, list)
    return [part.strip() for part in bare[1].split(",")]


def _items_in(text: str) -> list[str]:
    """Return the items that a text lists, in lines or between marks; none where it lists none."""
    lines = [_LINE.fullmatch(line.strip()) for line in text[:_MAX_JSON_TEXT].splitlines()]
    if len(lines) > 1 and all(lines):
        return [line[1] for line in lines if line]
    text = _LAST_OF_SEVERAL.sub(r", \1", text)
    # What stands in brackets belongs together.
    if len(text) > _MAX_JSON_TEXT or not _BRACKETS.isdisjoint(text):
        return []
    mark = next((each for each in _BETWEEN if each in text), ",")
    if all(map(_FILE.fullmatch, text.split())):
        mark = " "
    parts = [part.strip() for part in text.split(mark)]
    if len(parts) > 1 and all(parts) and _are_items(parts, mark):
        return parts
    return []


def _in_python(text: str, kind: type = list) -> JsonValue:
    """Return a list or tuple, or another `kind`, as Python writes it; nothing is run."""
    try:
        held = ast.literal_eval(text[:_MAX_JSON_TEXT].strip())
        plain: JsonValue = json.loads(json.dumps(held, allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(held, (list, tuple) if kind is list else kind):
        return plain
    return None


_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def _are_items(parts: Sequence[str], mark: str) -> bool:
    """Return whether the parts between marks of a text are items of a list."""
    if mark == " ":
        return True
    if mark == ",":
        return all(" " not in part for part in parts) and _are_of_one_kind(parts)
    return _are_of_one_kind([part.split()[0] for part in parts])


def _are_of_one_kind(parts: Sequence[str]) -> bool:
    """Return whether each piece could stand alone: numbers, or texts with the same marks in them.

    `a,b.txt` is one file, `color=red,blue` one condition, `1,500` one number.
    """
    kinds = {
        (part.isdigit(), *sorted({each for each in part if each in "./:=@#"})) for part in parts
    }
    return len(kinds) == 1 and not _GROUPED.fullmatch(",".join(parts))


def _cast_item(value: JsonValue, item_types: Sequence[JsonType]) -> JsonValue:
    if fits_types(value, item_types):
        return value
    return cast_value(value, item_types[0])


_MAX_JSON_TEXT = 20_000


_MARKUP = re.compile(r"(?:\s|```|</?[^<>\s{}\[\]]{1,80}>)*\Z")
"""Tags and fences that a model wrote behind a value: the ends of its call."""


def _without_markup(text: str) -> str:
    """Return a text without the tags and fences behind its last bracket."""
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if end and _MARKUP.match(text, end):
        return text[:end]
    return text


def _from_json_text(
    text: str, kind: type[dict[str, JsonValue]] | type[list[JsonValue]]
) -> JsonValue:
    if len(text) > _MAX_JSON_TEXT:
        raise CastError("too much to read while somebody waits")
    try:
        parsed = check_json_value(json.loads(_without_markup(text)))
    except (ValueError, RecursionError):  # InvalidJsonValueError is a ValueError
        if kind is dict and (held := _in_python(text, dict)) is not None:
            return held
        raise CastError("not JSON") from None
    if not isinstance(parsed, kind):
        raise CastError("JSON of another type")
    return parsed


_OF_ZONES = re.compile(r"time[ _-]?zone|\btz|tz\b|_tz", re.IGNORECASE)


@cache
def read_catalogue(name: str) -> tuple[str, ...]:
    """Return the values of a catalogue.

    `iana_time_zones`, as this machine (or `tzdata`) has them.
    """
    zones = {"iana_time_zones": available_timezones()}[name]
    return tuple(sorted(zone for zone in zones if "/" in zone or zone == "UTC"))


def is_about_zones(parameter: str, words: str) -> bool:
    """Return whether a parameter holds a time zone, by its name or the error's words."""
    return bool(_OF_ZONES.search(parameter) or _OF_ZONES.search(words))
