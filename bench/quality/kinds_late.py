"""A fifth batch of mistakes, in yet other voices.

What comes by voice, from a scanner, a sheet or a form; names and values in the notation of other
tools and tongues; shapes of other protocols (`kinds_late_shapes`). More of them than before hold no
right repair: a value that is vague, contradicted or made up, a wish that the tool has no place for.
By a hash of its name a half of the kinds, and of the voices, is kept, and measured on other tools.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from typing import Any

from bench.quality import kinds_damage
from bench.quality import kinds_fresh as fresh
from bench.quality.damage import aliases_of
from bench.quality.kinds_damage import Draw, Made, Maker
from bench.quality.kinds_fresh import Sent, all_named, is_number, is_plain, with_text, with_value
from bench.quality.kinds_late_shapes import CALLS, LISTS
from bench.quality.kinds_wild import IS_KEY, Batch, formed, renamed
from bench.quality.kinds_words import (
    CHINESE,
    LISTED_ABROAD,
    RUSSIAN,
    joined_as,
    lower_words,
    number_in_words,
    words_of,
)
from bench.quality.trial import Json
from bench.quality.voices_late import VOICES

_IDS = frozenset(("id", "ids", "number", "sha", "no", "code", "zip", "key", "hash"))


def names_id(name: str) -> bool:
    """Whether a name says that its value is a key."""
    return not _IDS.isdisjoint(word.lower() for word in words_of(name))


# Names


def initials(draw: Draw) -> Iterator[Json]:
    """A compound name as its initials, where no other has them."""
    every = [_short(name) for name in draw.properties]
    return renamed(
        draw,
        lambda name: (
            [_short(name)] if len(lower_words(name)) > 1 == every.count(_short(name)) else []
        ),
    )


def _short(name: str) -> str:
    return "".join(word[0] for word in lower_words(name))


def builders(draw: Draw) -> Iterator[Json]:
    """The methods of a builder."""
    for before in draw.shuffled(("set", "with")):
        yield {joined_as("aB", [before, *lower_words(n)]): value for n, value in draw.sent.items()}
        yield {joined_as("a_b", [before, *lower_words(n)]): value for n, value in draw.sent.items()}


def equal_in_name(draw: Draw) -> Iterator[Json]:
    """The operator of equality in a name, as queries of object mappers have it."""
    return renamed(draw, lambda name: [f"{name}__exact", f"{name}_eq", f"filter[{name}]",
                                       f"{name}.eq", f"where_{name}", f"by_{name}"])  # fmt: skip


def headings(draw: Draw) -> Iterator[Json]:
    """The labels of a form, or the headings of a sheet."""
    bare = ("{}",) if any(len(lower_words(name)) > 1 for name in draw.sent) else ()
    for form in draw.shuffled((*bare, "{} *", "{}:", "{} (please fill in)")):
        for write in draw.shuffled((str.title, str.capitalize, str.upper)):
            yield {form.format(write(" ".join(lower_words(name)))): value
                   for name, value in draw.sent.items()}  # fmt: skip


def environment(draw: Draw) -> Iterator[Json]:
    """The variables of an environment."""
    tool = "_".join(lower_words(draw.call.tool)).upper()
    for before in draw.shuffled(("INPUT", tool, "ARG", "TF_VAR")):
        yield {
            f"{before}_{'_'.join(lower_words(n)).upper()}": value for n, value in draw.sent.items()
        }


def namespaces(draw: Draw) -> Iterator[Json]:
    """Names with the space that they are of."""
    return all_named(draw, "ns1:{}", "tns:{}", "data-{}", "X-{}", "urn:{}", "_{}", "this.{}")


def questions(draw: Draw) -> Iterator[Json]:
    """The question of a form for a name."""
    return renamed(draw, lambda name: [
        form.format(" ".join(lower_words(name)))
        for form in ("What is the {}?", "Which {}?", "Please enter the {}", "Enter {} here")
    ])  # fmt: skip


def other_script(draw: Draw) -> Iterator[Json]:
    """A name in Chinese or Russian."""

    def forms(name: str) -> list[str]:
        words = lower_words(name)
        chinese = ["".join(CHINESE[w] for w in words)] if {*words} <= CHINESE.keys() else []
        return [*chinese, *([RUSSIAN[name]] if name in RUSSIAN else [])]

    return renamed(draw, forms)


def scanned_names(draw: Draw) -> Iterator[Json]:
    """A name as a scanner reads it."""
    pairs = (("m", "rn"), ("l", "1"), ("o", "0"), ("w", "vv"), ("i", "l"), ("d", "cl"), ("_", " _"))
    return renamed(draw, lambda name: [name.replace(old, new, 1) for old, new in pairs
                                       if old in name and len(name) > 3])  # fmt: skip


# Numbers and flags


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def spelt_digits(draw: Draw) -> Iterator[Json]:
    """A number digit by digit, as one says it on the telephone."""

    def forms(_: str, value: Any) -> list[str]:
        digits = str(value) if is_number(value) else ""
        if not re.fullmatch(r"\d{2,}(\.\d+)?", digits):
            return []
        said = " ".join("point" if each == "." else _DIGITS[int(each)] for each in digits)
        return [said, "-".join(digits) if "." not in digits and len(digits) > 3 else said,
                said.replace("zero", "oh")]  # fmt: skip

    return with_value(draw, forms)


def numerals(draw: Draw) -> Iterator[Json]:
    """A number in Arabic or Devanagari digits, or of Rome."""

    def forms(_: str, value: Any) -> list[str]:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return []
        other = [str(value).translate({48 + at: start + at for at in range(10)})
                 for start in (0x660, 0x6F0, 0x966)]  # fmt: skip
        return [*other, _roman(value)] if value < 200 else other

    return with_value(draw, forms)


def _roman(value: int) -> str:
    found = ""
    for of, sign in ((100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"),
                     (4, "IV"), (1, "I")):  # fmt: skip
        found, value = found + sign * (value // of), value % of
    return found


def scanned_digits(draw: Draw) -> Iterator[Json]:
    """A number in which a scanner took digits for letters."""

    def forms(_: str, value: Any) -> list[str]:
        text = str(value) if is_number(value) and len(str(value)) > 1 else ""
        return [text.replace(old, new) for old, new in (("0", "O"), ("1", "l"), ("5", "S"))
                if old in text and set(text) - {old}]  # fmt: skip

    return with_value(draw, forms)


def flags_elsewhere(draw: Draw) -> Iterator[Json]:
    """Yes and no in other languages, of people and of programs."""
    ways = (("ja", "nein"), ("oui", "non"), ("sí", "no"), ("да", "нет"), ("是", "否"), (".TRUE.",
            ".FALSE."), ("wahr", "falsch"), ("#t", "#f"), ("yep", "nope"))  # fmt: skip
    return with_value(draw, lambda _, value: [yes if value else no for yes, no in ways]
                      if isinstance(value, bool) else ())  # fmt: skip


def flag_by_its_name(draw: Draw) -> Iterator[Json]:
    """A flag that is set, with its own name as the value, as HTML and XML have it."""
    return with_value(draw, lambda name, value: [name, f"--{name}"] if value is True else ())


# Texts


def listed_elsewhere(draw: Draw) -> Iterator[Json]:
    """A listed value in another language."""
    return with_text(
        draw, lambda name, v: LISTED_ABROAD.get(v.lower(), ()) if v in draw.listed(name) else ()
    )


def listed_start(draw: Draw) -> Iterator[Json]:
    """As much of a listed value as makes it the only one."""

    def forms(name: str, value: str) -> list[str]:
        others = [each.lower() for each in draw.listed(name) if each != value]
        if value not in draw.listed(name) or not others:
            return []
        starts = [value[:at] for at in range(1, len(value) - 1)]
        return [s for s in starts if not any(o.startswith(s.lower()) for o in others)][:2]

    return with_text(draw, forms)


def emoji(draw: Draw) -> Iterator[Json]:
    """A value with a picture beside it, or a number as keys."""

    def forms(_: str, value: Any) -> list[str]:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return ["".join(f"{each}\ufe0f\u20e3" for each in str(value)), f"\U0001f522 {value}"]
        pictures = ("\u2705", "\U0001f4c4", "\U0001f534")
        short = isinstance(value, str) and 0 < len(value) < 40
        return [f"{pictures[len(value) % 3]} {value}", f"{value} \u2728"] if short else []

    return with_value(draw, forms)


_MARKS = {"_": "underscore", "-": "dash", ".": "dot", "/": "slash", "@": "at", "#": "hash"}


def spoken_marks(draw: Draw) -> Iterator[Json]:
    """The marks of a value in words, as one dictates it."""

    def forms(_: str, value: str) -> list[str]:
        if " " in value or not 3 < len(value) < 40 or not set(value) & _MARKS.keys():
            return []
        said = "".join(f" {_MARKS[each]} " if each in _MARKS else each for each in value)
        return [" ".join(said.split()), " ".join(said.lower().split())][: 1 + value.islower()]

    return with_text(draw, forms)


def id_in_groups(draw: Draw) -> Iterator[Json]:
    """A long id in groups of digits, as one reads it out."""

    def forms(name: str, value: Any) -> list[str]:
        if not names_id(name) or not is_plain(value) or not re.search(r"\d{6}", str(value)):
            return []
        return [re.sub(r"(\d{3})(?=\d)", rf"\1{mark}", str(value)) for mark in (" ", "-")]

    return with_value(draw, forms)


def escapes(draw: Draw) -> Iterator[Json]:
    """A mark as its number, in the ways of JSON, HTML and mail."""

    def forms(_: str, value: str) -> list[str]:
        found = [each for each in _MARKS if each in value]
        return [value.replace(m, form.format(ord(m))) for m in found
                for form in ("\\u{:04x}", "&#{};", "={:02X}", "U+{:04X}")]  # fmt: skip

    return with_text(draw, forms)


def broken(draw: Draw) -> Iterator[Json]:
    """A value that goes over two lines."""

    def forms(_: str, value: str) -> list[str]:
        half = len(value) // 2
        whole = len(value) > 7 and not re.search(r"\s", value)
        marks = ("\n", " ", "\n    ", "\u00ad", "\\\n") if whole else ()
        return [f"{value[:half]}{mark}{value[half:]}" for mark in marks]

    return with_text(draw, forms)


def one_as_text(draw: Draw) -> Iterator[Json]:
    """A list's only item as the text of that list, where no list is due."""

    def forms(_: str, value: Any) -> list[str]:
        if not is_plain(value) or isinstance(value, bool):
            return []
        return [json.dumps([value]), str([value]), f"[{value}]", f"({value!r},)"]

    return with_value(draw, forms)


def by_language(draw: Draw) -> Iterator[Json]:
    """A text under its language."""
    return with_text(draw, lambda _, v: ({"en": v}, {"en-US": v}, [{"lang": "en", "value": v}],
                                         {"default": v, "translations": {}}))  # fmt: skip


_PROSE = frozenset(("body", "description", "message", "content", "comment", "title", "text",
                    "summary", "note", "resolution", "details", "comments"))  # fmt: skip


def rich_text(draw: Draw) -> Iterator[Json]:
    """Prose as the document of an editor."""

    def forms(name: str, v: str) -> list[Any]:
        if not _PROSE & set(lower_words(name)):
            return []
        text = {"type": "text", "text": v}
        return [
            {"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [text]}]},
            {"ops": [{"insert": v}]},
            [{"type": "paragraph", "children": [{"text": v}]}],
            {"rich_text": [{"type": "text", "text": {"content": v}}]},
            {"raw": v, "html": None},
        ]

    return with_text(draw, forms)  # fmt: skip


def stored(draw: Draw) -> Iterator[Json]:
    """An id as a store's reference to what it is the id of."""

    def forms(name: str, value: Any) -> list[Json]:
        noun = lower_words(name)[0]
        return [{"$oid": value}, {"type": noun, "id": value}, {"@id": value},
                {"__typename": noun.title(), "id": value}] if (
            names_id(name) and is_plain(value)) else []  # fmt: skip

    return with_value(draw, forms)


# Days


def _each_day(draw: Draw, form: Callable[[date], Sequence[str]]) -> Iterator[Made]:
    """A day in another form; a number of ten digits is none."""
    return fresh.each_day(draw, lambda day: form(day) if day.year < 2100 else ())


def sheet_days(draw: Draw) -> Iterator[Made]:
    """A day as a sheet counts it."""
    start = date(1899, 12, 30)
    return _each_day(draw, lambda day: [str((day - start).days), f"{(day - start).days}.0"])


def program_days(draw: Draw) -> Iterator[Made]:
    """A day as a program or a database writes it."""

    def forms(day: date) -> list[Any]:
        seconds = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        return [f"/Date({1000 * seconds})/", f"datetime.date({day.year}, {day.month}, {day.day})",
                f"Timestamp('{day} 00:00:00')", f"DATE '{day}'", f'ISODate("{day}T00:00:00Z")',
                f"TO_DATE('{day}', 'YYYY-MM-DD')", f"#{day}#",
                f"{day:%d-%b-%Y}".upper()]  # fmt: skip

    return _each_day(draw, forms)


def counted_days(draw: Draw) -> Iterator[Made]:
    """A day of the year, of an era, or with its month in Roman numerals."""

    def forms(day: date) -> list[str]:
        era = [f"令和{day.year - 2018}年{day.month}月{day.day}日"] if day.year > 2019 else []
        return [f"{day:%Y-%j}", f"{day.day}.{_roman(day.month)}.{day.year}", *era]

    return _each_day(draw, forms)


def other_zone(draw: Draw) -> Iterator[Made]:
    """A moment by the clock of another zone."""
    for name in draw.shuffled(draw.sent):
        text = draw.sent[name]
        if not isinstance(text, str) or not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}Z", text):
            continue
        for hours in draw.shuffled((2, -5, 9)):
            moment = datetime.fromisoformat(text).astimezone(timezone(timedelta(hours=hours)))
            said = f"{name}: expected a timestamp in UTC, YYYY-MM-DDTHH:MM:SSZ"
            yield fresh.refused_with(draw, draw.valued(name, moment.isoformat()), said)


# Beyond repair


def unknown_key(draw: Draw, texts: Callable[[str, Any], Sequence[Any]]) -> Iterator[Made]:
    """What a server looks up in vain, in the place of a key that nobody stated."""

    def of_keys(name: str, value: Any) -> Sequence[Any]:
        return texts(name, value) if {*lower_words(name)} & {*IS_KEY, *_IDS} else ()

    return fresh.unknown(draw, of_keys)


def is_said(draw: Draw, value: Any) -> bool:
    """Whether the user or the session says a value."""
    said = [draw.call.context, *(json.dumps([each.parameters, each.result, each.context],
                                            default=str) for each in draw.earlier)]  # fmt: skip
    text = " ".join(said).lower()
    words = number_in_words(value) if is_number(value) else None
    return str(value).lower() in text or (words is not None and words in text)


def unequal_in_name(draw: Draw) -> Iterator[Json]:
    """Another operator than equality in a name."""
    return renamed(draw, lambda name: [f"{name}__ne", f"{name}_not", f"exclude_{name}",
                                       f"{name}__gt", f"except_{name}", f"{name}_lt"])  # fmt: skip


def is_unsaid_word(draw: Draw, name: str) -> bool:
    """Whether a value is one word that only this call says; a day may be said in another form."""
    value = draw.sent[name]
    plain = is_plain(value) and " " not in str(value) and not draw.listed(name)
    return plain and fresh.day_of(value) is None and not is_said(draw, value)


def two_for_one(draw: Draw) -> Iterator[Json]:
    """Two other names for one, with two values."""
    for name in draw.shuffled(draw.required):
        new = [each for each in dict.fromkeys([*kinds_damage.synonyms(name), *aliases_of(name)])
               if each not in draw.properties and each not in draw.sent]  # fmt: skip
        values = [each[name] for each in draw.others if name in each]
        others = [each for each in values if each != draw.sent[name] and is_plain(each)]
        if len(new) > 1 and others and is_unsaid_word(draw, name):
            pair = draw.shuffled((draw.sent[name], draw.rng.choice(others)))
            rest = {key: value for key, value in draw.sent.items() if key != name}
            yield {**rest, **dict(zip(new, pair, strict=False))}


def range_for_number(draw: Draw) -> Iterator[Json]:
    """Where a number lies between."""

    def forms(_: str, v: Any) -> list[str]:
        if not is_number(v) or v < 3 or is_said(draw, v):
            return []
        return [f"{v - 1}-{v + 2}", f"{v} or {v + 1}", f"between {v - 2} and {v + 1}", f"< {v + 1}"]

    return with_value(draw, forms)


def vague(draw: Draw) -> Iterator[Json]:
    """An amount in words that are no number."""
    words = ("a few", "several", "enough", "as many as possible", "the usual amount", "about half")
    return with_value(draw, lambda _, v: words if is_number(v) and not is_said(draw, v) else ())


def either_day(draw: Draw) -> Iterator[Made]:
    """A day that may be another one: its month and day look alike, or its year is not there."""

    def forms(day: date) -> list[str]:
        if str(day.year) in draw.call.context or f"{day:%B}" in draw.call.context:
            return []
        whole = [f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}", f"{day:%d.%m.%y}", f"{day:%y-%d-%m}"]
        return [*(whole if day.day < 13 and day.day != day.month else ()), f"{day:%B} {day.day}"]

    return _each_day(draw, forms)


def contrary(draw: Draw) -> Iterator[Made]:
    """Anything but the value."""
    return unknown_key(draw, lambda _, v: (f"not {v}", f"!{v}", f"anything but {v}",
                                             f"all except {v}", f"<> {v}"))  # fmt: skip


def on_condition(draw: Draw) -> Iterator[Made]:
    """A value for one case, and none for the other."""
    return unknown_key(draw, lambda _, v: (
        f"{v} if it still exists, otherwise a new one", f"{v} unless it is locked",
        f"{v}, but only once it is approved", f"whichever is newer: {v} or the one before",
    ))  # fmt: skip


def digests(draw: Draw) -> Iterator[Made]:
    """The hash of a value."""

    def forms(_: str, value: Any) -> list[str]:
        made = hashlib.sha256(str(value).encode()).hexdigest()
        return [made[:32], f"sha256:{made}", f"enc:{made[:24]}=="]

    return unknown_key(draw, forms)


def made_up(draw: Draw) -> Iterator[Made]:
    """An id of the right form that nobody ever stated."""

    def forms(name: str, value: Any) -> list[Any]:
        text = str(value) if names_id(name) else ""
        other = re.sub(r"\d", lambda found: str((7 * int(found[0]) + 3) % 10), text)
        return (
            [int(other) if is_number(value) else other] if len(re.findall(r"\d", text)) > 3 else []
        )

    return unknown_key(draw, forms)


_EXAMPLES = ("12345", "abc123", "foo", "test", "example", "john_doe_1234", "#W0000000",
             "00000000-0000-0000-0000-000000000000")  # fmt: skip
_FAILED = ("Error: 404 Not Found", "No results found.", "Request timed out after 30000ms",
           "<html><body>502 Bad Gateway</body></html>", "Traceback (most recent call last):",
           "undefined is not a function")  # fmt: skip


def counts(draw: Draw) -> Iterator[Json]:
    """How many items a list has, in the place of them."""

    def forms(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) < 2 or all(is_said(draw, v) for v in value):
            return []
        return [len(value), f"{len(value)} items", f"{len(value)} {name}", {"count": len(value)}]

    return with_value(draw, forms)


_READS = frozenset(("get", "list", "search", "find", "view", "show", "read", "ls", "cat", "grep",
                    "calculate", "check", "display", "estimate", "mean", "compare"))  # fmt: skip
_WISHES: Mapping[str, Any] = {
    "as_of": "2019-12-31", "on_behalf_of": "another-account", "only_if": "nobody else changed it",
    "except_for": "the newest one", "environment": "sandbox",
}  # fmt: skip
_OF_WRITES: Mapping[str, Any] = {
    "validate_only": True, "simulate": True, "undo": True, "scheduled_for": "2031-05-01T08:00:00Z",
    "needs_approval_by": "the manager", "expires_after": "10 minutes",
}  # fmt: skip


def wishes(draw: Draw) -> Iterator[Json]:
    """A wish that changes what is meant, which the tool has no place for."""
    is_read = lower_words(draw.call.tool)[0] in _READS or "read" in lower_words(draw.call.tool)
    for name, value in draw.shuffled({**_WISHES, **({} if is_read else _OF_WRITES)}.items()):
        if name not in draw.properties:
            yield {**draw.sent, name: value}


def envelope_of_another(draw: Draw) -> Iterator[Json]:
    """Another tool's call, in its envelope."""
    for other in reversed(draw.earlier):
        if other.tool != draw.call.tool and other.parameters:
            for form in draw.shuffled((("name", "arguments"), ("tool", "input"), ("fn", "args"))):
                if not draw.properties.keys() & {*form}:
                    yield dict(zip(form, (other.tool, other.parameters), strict=True))


def mixed_up(draw: Draw) -> Iterator[Made]:
    """Half of one call, and half of another."""
    required = [name for name in draw.required if is_unsaid_word(draw, name)]
    for other in draw.shuffled(draw.others):
        names = [n for n in draw.shuffled(required) if n in other and other[n] != draw.sent[n]]
        half = names[: len(names) // 2]
        if half:
            sent = {**draw.sent, **{name: other[name] for name in half}}
            said = f"{' and '.join(names)} do not belong together"
            yield fresh.refused_with(draw, sent, said)


NAMES: Mapping[str, Sent] = {
    "initials of a name": initials, "methods of a builder": builders, "headings": headings,
    "equality in the name": equal_in_name, "environment's names": environment,
    "namespaces": namespaces, "questions for names": questions, "name in another script":
    other_script, "scanned name": scanned_names,
}  # fmt: skip
VALUES: Mapping[str, Sent] = {
    "digit by digit": spelt_digits, "numerals of another script": numerals,
    "scanned digits": scanned_digits, "flag of another language": flags_elsewhere,
    "flag by its name": flag_by_its_name, "listed value of another language": listed_elsewhere,
    "start of a listed value": listed_start, "text under its language": by_language,
    "rich text": rich_text, "reference of a store": stored,
}  # fmt: skip
LOOKED_UP: Mapping[str, Sent] = {
    "pictures": emoji, "spoken marks": spoken_marks, "id in groups": id_in_groups,
    "mark as its number": escapes, "over two lines": broken, "text of a list of one": one_as_text,
    "mark of a sentence": formed("{}.", "{},", "{};", "{}:", "{}?"),
    "mathematics": formed("\\boxed{{{}}}", "\\text{{{}}}", "\\({}\\)", "$\\mathrm{{{}}}$"),
    "literal of a program": formed("b'{}'", 'u"{}"', 'Some("{}")', 'Optional("{}")', '@"{}"',
                                   'String::from("{}")'),
    "text of a cell": formed('="{}"', "'{}", '=T("{}")', '=VALUE("{}")'),
}  # fmt: skip
WITH_ERRORS: Mapping[str, Maker] = {
    "day of a sheet": sheet_days, "day of a program": program_days, "day by another count":
    counted_days, "moment of another zone": other_zone,
}  # fmt: skip
BEYOND_BY_SCHEMA: Mapping[str, Sent] = {
    "inequality in the name": unequal_in_name, "two names, two values": two_for_one,
    "range for a number": range_for_number, "vague amount": vague, "count of a list": counts,
    "wish without a place": wishes, "envelope of another tool": envelope_of_another,
}  # fmt: skip
BEYOND: Mapping[str, Maker] = {
    "either day": either_day, "anything but the value": contrary, "on a condition": on_condition,
    "digest": digests, "made-up id": made_up, "example's value":
    partial(unknown_key, texts=lambda *_: _EXAMPLES), "error as a value":
    partial(unknown_key, texts=lambda *_: _FAILED), "two calls mixed up": mixed_up,
}  # fmt: skip
_PLAIN = ("initials of a name", "methods of a builder", "scanned name", "environment's names",
          "name in another script")  # fmt: skip
"""Names that other languages have a place for."""
_OF_VALUES = (*VALUES, *LOOKED_UP)
TOGETHER = {
    "value and name": (_OF_VALUES, NAMES), "name and shape": (_PLAIN, CALLS),
    "value, name and shape": (_OF_VALUES, _PLAIN, CALLS),
}  # fmt: skip

LATE = Batch(
    "late", VOICES, {**NAMES, **VALUES, **LISTS, **CALLS}, LOOKED_UP, WITH_ERRORS, BEYOND,
    BEYOND_BY_SCHEMA, TOGETHER, "What comes by voice, from a scanner, a sheet or a form, names and "
    "values in the notation of other tools and tongues, shapes of other protocols, and fifteen "
    "kinds that hold no right repair: written without knowing what can be mended, and fitted on "
    "only after it was measured at first sight.",
)  # fmt: skip
