"""The closed registry of recodings: the same value in another form.

A recoding explains one value of a repaired call by one value of the failed call. It either has a
way back, or states what it loses. Nothing else counts as "the same value": what no function here
explains has to be stated by someone, or stays unexplained (`retrieval.knowledge.calls.account`).
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import NamedTuple
from urllib.parse import unquote

from aftercall.change_classes import are_opposites
from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from retrieval import WORDS
from retrieval.knowledge.values.forms import id_within, moment_of, same_moment, seconds_at
from retrieval.knowledge.values.likeness import nearest_value, synonym_of, words_of
from retrieval.knowledge.values.measures import codes_of, measure_text, span_forms
from retrieval.knowledge.values.parameters import ParameterView
from retrieval.knowledge.values.scalars import (
    CastError,
    cast_to_one,
    is_placeholder,
    number_in,
    plain_value,
    same_value,
    says_only,
    strip_marks,
    type_of,
)
from retrieval.knowledge.values.texts import is_number


class Recoding(NamedTuple):
    """How a value was written otherwise; `loses` is empty where there is a way back."""

    why: str
    loses: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of the place that a value is put in: its name, its view, its listed values."""

    name: str
    view: ParameterView | None = None
    listed: tuple[JsonValue, ...] = ()

    @property
    def is_free_text(self) -> bool:
        """Return whether the place holds what its caller wrote: a text, code, a query."""
        written = WORDS["free_text"] | WORDS["never_of_context"]
        return not written.isdisjoint(words_of(self.name))


Recode = Callable[[JsonValue, JsonValue, Place], Recoding | None]
_MAX_TEXT = 20_000
_SHORT = 100
_WORDS = 4
"""Characters and words up to which case and marks around a text are no part of it."""
_SEPARATORS = (",", ", ", ";", "; ", "|", "\n", " ")
_GROUPING = re.compile(r"[\s().-]")
_LONG_NUMBER = re.compile(r"\+?\d{7,}")
_DIGITS = re.compile(r"\d+")
_UNCLEAR = re.compile(r"-?\d{1,3}\.\d{3}")
_COMMA = re.compile(r"-?\d+,\d{1,2}")
"""A number with a comma before its last digits: of parts, or of thousands that were cut."""
_NUMBERS = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?|\d+(?:\.\d+)?")
"""A sign belongs to a number that begins a word: `-5`, not `item-5`."""


def recoding_between(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    """Return the first recoding of the registry that makes `after` of `before`, or None.

    A text and its opposite, or a number and its negative, are never the same value.
    """
    if isinstance(before, str) and is_placeholder(before):
        return None  # what it stands for is not stated
    if isinstance(before, str) and isinstance(after, str):
        bare = strip_marks(before)
        if are_opposites(bare, after) or (bare[:1] == "-") != (after[:1] == "-"):
            return None
    for recode in REGISTRY:
        found = recode(before, after, place)
        if found is not None:
            return found
    return None


def _same_number(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if is_number(before) and is_number(after) and same_value(before, after):
        return Recoding("the same number")
    return None


def _drop_sign(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if is_number(before) and is_number(after) and before < 0 and same_value(-before, after):
        return Recoding("the same number without its sign", "the sign")
    return None


def _number_of_text(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, str) or not is_number(after):
        return None
    if says_only(before, after):
        return Recoding("the number that the text says")
    if _UNCLEAR.fullmatch(before.strip()):
        return None  # a point may stand between thousands
    described = place.view.described_by if place.view else frozenset()
    in_millis = not {"ms", "millis", "milliseconds"}.isdisjoint({*words_of(place.name), *described})
    amounts = (measure_text(before, place.name, described), seconds_at(before, in_millis=in_millis))
    if any(amount is not None and same_value(amount, after) for amount in amounts):
        loses = "what the comma stands for" if _COMMA.fullmatch(before.strip()) else ""
        return Recoding("the same amount in the unit of the place", loses)
    units = frozenset((*words_of(place.name), *described))
    if not (_MEASURES - units).isdisjoint(_words_around(before)):
        return None  # an amount in a unit that the place does not name is another number
    try:
        said = number_in(before, whole=isinstance(after, int), units=units)
    except CastError:
        said = None
    if said is not None and same_value(said, after):
        return Recoding("the number in the text", "the words beside the number")
    numbers = _NUMBERS.findall(before)
    if len(numbers) != 1 or not same_value(float(numbers[0]), after):
        return None
    own = words_of(place.name)
    is_said = all(word in own or place.name.startswith(word) for word in _words_around(before))
    return Recoding("the number in the text", "" if is_said else "the words beside the number")


_MEASURES = WORDS["measures"] | WORDS["currencies"]


def _words_around(text: str) -> set[str]:
    """Return the words and signs of a text that are no numbers, in the singular."""
    found = re.findall(r"[^\W\d_]+|[$\u20ac\u00a3\u00a5%]", text.lower())
    return {word.removesuffix("s") if len(word) > _SHORT_WORD else word for word in found}


_SHORT_WORD = 3


def _read_boolean(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if isinstance(after, bool) and isinstance(before, str) and says_only(before, after):
        return Recoding("yes or no, as the text says")
    if isinstance(after, bool) and type_of(before) == "integer" and before == int(after):
        return Recoding("yes or no, as the number says")
    return None


def _text_of_scalar(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if not isinstance(after, str) or not isinstance(before, bool | int | float):
        return None
    back = cast_to_one(after, [type_of(before)])
    if back is not None and same_value(back[1], before):
        return Recoding("the same as text")
    return None


def _json_read(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if not isinstance(before, str) or not isinstance(after, list | dict):
        return None
    if before.strip()[:1] not in ("[", "{", "(") or len(before) > _MAX_TEXT:
        return None
    read = cast_to_one(before, [type_of(after)])
    if read is not None and same_value(read[1], after):
        return Recoding("the value that the text holds")
    return None


def _json_written(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if not isinstance(after, str) or not isinstance(before, list | dict) or not before:
        return None
    try:
        held = json.loads(after[: _MAX_TEXT + 1])
    except (ValueError, RecursionError):
        return None
    if same_json(held, before):
        return Recoding("written as JSON text")
    return None


def _in_list_of_one(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(after, list) or len(after) != 1 or isinstance(before, list):
        return None
    if same_json(after[0], before):
        return Recoding("a list of one")
    inner = recoding_between(before, after[0], place)
    return inner and inner._replace(why=f"{inner.why}, in a list of one")


def _out_of_list_of_one(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, list) or len(before) != 1:
        return None
    if isinstance(after, list):
        is_text = isinstance(before[0], str) and len(after) > 1
        if is_text:
            return recoding_between(before[0], after, place)
        return None
    if same_json(before[0], after):
        return Recoding("the only one of its list")
    inner = recoding_between(before[0], after, place)
    return inner and inner._replace(why=f"{inner.why}, the only one of its list")


def _split_text(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, str) or not isinstance(after, list) or len(after) < 2:
        return None
    loses = "that they were one text"
    if _stand_in_order(before, after):
        return Recoding("the parts of the text", loses)
    for mark in _SEPARATORS:
        parts = [part.strip() for part in before.split(mark)]
        if len(parts) == len(after) and all(map(_same_or_recoded(place), parts, after)):
            return Recoding("the parts of the text", loses)
    return None


def _stand_in_order(text: str, pieces: list[JsonValue]) -> bool:
    at = 0
    for piece in pieces:
        at = text.find(str(piece), at)
        if isinstance(piece, list | dict | bool) or piece in ("", None) or at < 0:
            return False
        at += len(str(piece))
    return True


def _same_or_recoded(place: Place) -> Callable[[JsonValue, JsonValue], bool]:
    def is_same(before: JsonValue, after: JsonValue) -> bool:
        return same_json(before, after) or recoding_between(before, after, place) is not None

    return is_same


def _join_list(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, list) or not isinstance(after, str) or len(before) < 2:
        return None
    pieces = [str(piece) for piece in before]
    for mark in _SEPARATORS:
        if mark.join(pieces) == after:
            is_stated = place.view is not None and "comma" in place.view.description.lower()
            has_way_back = is_stated and not any(mark.strip() in piece for piece in pieces)
            return Recoding(
                "the items in one text", "" if has_way_back else "which items there are"
            )
    return None


def _each_item(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, list) or not isinstance(after, list) or len(before) != len(after):
        return None
    found = []
    for one, other in zip(before, after, strict=True):
        if not same_json(one, other):
            found.append(recoding_between(one, other, place))
    if not found or any(each is None for each in found):
        return None
    return next((each for each in found if each and each.loses), found[0])


def _listed_value(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, str | int | float) or isinstance(before, bool):
        return None
    if not any(same_json(after, each) for each in place.listed):
        return None
    texts = [str(each) for each in place.listed]
    bare = strip_marks(before) if isinstance(before, str) else str(before)
    near = nearest_value(bare, texts)
    if near is not None and near[0] == str(after) and near[1] not in ("start", "cut"):
        return Recoding("the listed value's own spelling")
    same = synonym_of(bare, texts)
    codes = {each for each in (*codes_of(bare), *span_forms(bare)) if each in texts}
    if same == (str(after), True) or codes == {str(after)}:
        return Recoding("the listed value that means the same")
    return None


def _rewrite_moment(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    if same_moment(strip_marks(before), after):
        return Recoding("the same day and time")
    whole = moment_of(strip_marks(before))
    part = moment_of(after)
    if whole is None or part is None:
        return None
    same_day = part.day in (None, whole.day) and part.zone in (None, whole.zone)
    if same_day and (part.clock is None or same_moment(before, after, by_day=False)):
        return Recoding("the day or the time that the text says", "the rest of the moment")
    return None


def _plain_letters(text: str) -> str:
    """Return a text without case and separators between words; a sign before a number stays."""
    return re.sub(r"(?<=\w)[\s_-]+(?=\w)|\s+|_", "", text).lower()


def _change_marks(before: JsonValue, after: JsonValue, place: Place) -> Recoding | None:
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    bare = strip_marks(before)
    if "/" not in after:
        bare = bare.removeprefix("./").removesuffix("/")
    one = _GROUPING.sub("", bare)
    two = _GROUPING.sub("", after)
    is_regrouped = one == two and _LONG_NUMBER.fullmatch(one) is not None and "(0)" not in bare
    is_same = _plain_letters(bare) == _plain_letters(after) or bare.removeprefix(
        "#"
    ) == after.removeprefix("#")
    is_escaped = _plain_letters(unescape(unquote(before))) == _plain_letters(after)
    if not (is_same or is_regrouped or is_escaped or plain_value(before) == after):
        return None
    indented = before != before.lstrip() and before[:1] == before[1:2]
    is_content = "\n" in before or len(before) > _SHORT or len(before.split()) > _WORDS
    if is_content or indented or (place.is_free_text and len(before.split()) > 1):
        if after not in before and after != unescape(unquote(before)):
            return None  # case and separators are a part of what was written
        return Recoding("the text without marks around it", "blanks and marks around the text")
    if _only_letters(before) != _only_letters(after) and not is_same and not is_escaped:
        return Recoding("the value in the text", "the words around the value")
    return Recoding("the same text in another spelling")


def _only_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _pad_text(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if not isinstance(after, str) or not isinstance(before, str | int) or isinstance(before, bool):
        return None
    text = str(before)
    if _DIGITS.fullmatch(text) and after.endswith(text) and set(after[: -len(text)]) == {"0"}:
        return Recoding("padded with zeros")
    return None


def _take_part(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if not isinstance(before, str) or not isinstance(after, str | int) or isinstance(after, bool):
        return None
    text = str(after)
    is_mail = "@" in text and text in before
    is_id = len(text) > 1 and (id_within(before) == text or _ends_with(before, text))
    if is_mail or is_id:
        return Recoding("the value that the text holds", "the rest of the text")
    return None


def _ends_with(before: str, text: str) -> bool:
    return re.search(rf"[/:#=_ -]{re.escape(text)}/?\Z", before) is not None


def _cut_text(before: JsonValue, after: JsonValue, _: Place) -> Recoding | None:
    if isinstance(before, str) and isinstance(after, str) and after and before.startswith(after):
        return Recoding("the beginning of the text", "the end of the text")
    return None


REGISTRY: tuple[Recode, ...] = (
    _same_number,
    _drop_sign,
    _number_of_text,
    _read_boolean,
    _text_of_scalar,
    _json_read,
    _json_written,
    _in_list_of_one,
    _out_of_list_of_one,
    _each_item,
    _listed_value,
    _rewrite_moment,
    _change_marks,
    _pad_text,
    _split_text,
    _join_list,
    _take_part,
    _cut_text,
)
"""All recodings, those with a way back first."""
