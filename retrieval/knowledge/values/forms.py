"""Forms that texts must have, as schemas and errors state them, and the same text in such a form.

A form is a name of JSON Schema (`date`, `email`), letters as people write them (`YYYY-MM-DD`), a
`strftime` form or a regular expression. No rewriting is a guess: what reads two ways stays as it
is, and nothing is added that the text does not say.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache
from itertools import islice
from typing import Any
from unicodedata import combining, normalize

import jsonschema_rs

from retrieval import read_word_table
from retrieval.knowledge.values.measures import amount_of, codes_of, span_forms
from retrieval.knowledge.values.scalars import is_placeholder, plain_value, strip_marks
from retrieval.knowledge.values.texts import MAX_TEXT, Style, respell_text

_ISO = "iso"
"""A day and a time as ISO 8601 writes them, with the zone of the text, if any."""
_NAMED = {
    "date": "%Y-%m-%d", "iso date": "%Y-%m-%d", "time": "%H:%M:%S", "%h:%m": "%H:%M",
    "date-time": _ISO, "datetime": _ISO, "iso 8601": _ISO, "iso8601": _ISO, "iso-8601": _ISO,
    "rfc 3339": _ISO, "rfc3339": _ISO, "%y-%m-%d": "%Y-%m-%d",
}  # fmt: skip
_LETTERS = {"yyyy": "%Y", "dd": "%d", "hh": "%H", "ss": "%S", "t": "T", "z": "Z"}
_TOKEN = re.compile(r"yyyy|mm|dd|hh|ss|t(?=hh)|z\Z|[-/.:, ]", re.IGNORECASE)
_PHP = {"Y": "%Y", "m": "%m", "d": "%d", "H": "%H", "i": "%M", "s": "%S"}
_OF_PHP = re.compile(r"(?:[Ymd][-/.]){2}[Ymd](?:[ T]H:i(?::s)?)?|H:i(?::s)?")
"""PHP's letters, such as `Y-m-d H:i`."""
_DIRECTIVES = re.compile(r"(?:%[YmdHMS]|[-/.:, T]|Z\Z)+")


@lru_cache(maxsize=512)
def _strftime_form(wanted: str) -> str | None:
    """Return what a form is for `strftime`; None for one that is not about dates and times."""
    wanted = wanted.strip().strip("'\"`")
    if named := _NAMED.get(wanted.lower()):
        return named
    if "'T'" in wanted:  # Java's: a zone without a colon
        return "%Y-%m-%dT%H:%M:%S" + (".000" if ".SSS" in wanted else "") + "%z"
    if _DIRECTIVES.fullmatch(wanted):
        if "%" in wanted:
            return wanted
        return None
    if _OF_PHP.fullmatch(wanted):
        return "".join(_PHP.get(sign, sign) for sign in wanted)
    form = ""
    at = 0
    while at < len(wanted):
        token = _TOKEN.match(wanted, at)
        if token is None:
            return None
        letters = token[0].lower()
        at = token.end()
        if letters == "mm":  # after the hour these are minutes
            form += "%M" if "%H" in form else "%m"
        else:
            form += _LETTERS.get(letters, letters)
    if "%" in form:
        return form
    return None


def wants_clock(form: str) -> bool:
    """Return whether a form has both a day and a time of the day."""
    wanted = _strftime_form(form) or ""
    return wanted == _ISO or ("%d" in wanted and "%H" in wanted)


# Only forms that read one way: 03/04/2025 is two different days and is left alone.
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d %B %Y", "%B %d, %Y", "%B %d %Y",
          "%d %b %Y", "%b %d, %Y", "%b %d %Y", "%d. %B %Y", "%d-%b-%Y", "%d-%B-%Y", "%A, %B %d, %Y",
          "%a, %d %b %Y")  # fmt: skip
_YEAR = re.compile(r"\d{4}")
_DAY_FIRST = ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y")
_MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y")
_CLOCK = re.compile(
    r"(?P<h>\d{1,2})(?::(?P<m>\d{2}))?(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,6})\d{0,3})?)?\s*"
    r"(?P<half>[ap]\.?m\.?)?(?:\s*h)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_DAY_AND_CLOCK = re.compile(
    r"(?P<day>[^\n]{6,30}?)(?:T|,?\s{1,3}(?:at\s)?)"
    r"(?P<clock>\d{1,2}(?::\d|\s?[ap]\.?m)[^\n]{0,24})",
    re.IGNORECASE,
)
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Moment:
    """The time in a text: a day, a time of the day, its zone; None for what is missing."""

    day: date | None = None
    clock: time | None = None
    zone: timezone | None = None


def moment_of(text: str) -> Moment | None:
    """Return the moment that a text states.

    None where it states none, or where it can be read two ways.
    """
    ways = {_read_moment(text, day_first=day_first) for day_first in (None, True, False)} - {None}
    if len(ways) == 1:
        return ways.pop()
    return None


def _read_moment(text: str, *, day_first: bool | None) -> Moment | None:
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if day := _read_day(text, day_first=day_first):
        return Moment(day)
    if re.fullmatch(r"([01]\d|2[0-3])[0-5]\d", text):
        text = f"{text[:2]}:{text[2:]}"
    if clock := _read_clock(text):
        return clock
    parts = _DAY_AND_CLOCK.fullmatch(text)
    day = _read_day(parts["day"], day_first=day_first) if parts else None
    clock = _read_clock(parts["clock"]) if parts else None
    if day and clock:
        return Moment(day, clock.clock, clock.zone)
    return None


def _read_clock(text: str) -> Moment | None:
    found = _CLOCK.fullmatch(text.strip())
    if not found or not (found["m"] or found["half"]):
        return None
    hour = int(found["h"])
    minute = int(found["m"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    if hour == 24 and minute == 0:
        hour = 0  # ISO 8601-1:2004 writes the end of the day as 24:00
    fraction = int((found["f"] or "").ljust(6, "0"))
    try:
        return Moment(
            clock=time(hour, minute, int(found["s"] or 0), fraction), zone=_read_zone(found["zone"])
        )
    except ValueError:
        return None


def _read_zone(text: str | None) -> timezone | None:
    if text is None or text.upper() in ("Z", "UTC", "GMT"):
        if text:
            return UTC
        return None
    minutes = 60 * int(text[1:3]) + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


MONTHS = {
    month: group.split()[0]
    for group in read_word_table("knowledge/values/words.toml")["groups"]["months"]
    for month in group.split()[1:]
}
_OTHER_DAY = re.compile(r"(\d{4})\u5e74(\d{1,2})\u6708(\d{1,2})\u65e5")
"""Year, month and day as Chinese and Japanese write them."""


def _in_english(text: str) -> str:
    if found := _OTHER_DAY.fullmatch(text):
        return f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}"
    plain = "".join(char for char in normalize("NFKD", text) if not combining(char)).lower()
    months = [word for word in re.findall(r"[a-z]+", plain) if word in MONTHS]
    if len(months) != 1:
        return text
    return re.sub(r"\bde[li]? ", "", plain).replace(months[0], MONTHS[months[0]])


@lru_cache(1_024)
def _read_day(text: str, *, day_first: bool | None) -> date | None:
    if not _YEAR.search(text):
        return None  # before a dozen forms are tried
    text = _in_english(text)
    text = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text.replace("Sept ", "Sep "))
    local = {None: (), True: _DAY_FIRST, False: _MONTH_FIRST}[day_first]
    for form in (*_DATES, *local):
        try:
            return datetime.strptime(text, form).date()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
    return None


def rewrite_form(text: str, wanted: str, *, day_first: bool | None = None) -> str | None:
    """`text` in the form `wanted` (`HH:MM`, `YYYY-MM-DD`, ...); None when that would be a guess.

    A day alone is no date and time. `day_first` states how 03/04/2026 is read; None where no one
    knows.
    """
    form = _strftime_form(wanted)
    moment = _read_moment(text, day_first=day_first) if form else None
    if moment and form:
        return _write_moment(moment, form)
    return None


def _write_moment(moment: Moment, form: str) -> str | None:
    clock = moment.clock
    zone = moment.zone
    if (clock is None and re.search("%[HMS]|iso", form)) or (
        moment.day is None and re.search("%[Ymd]|iso", form)
    ):
        return None
    whole = datetime.combine(moment.day or date.min, clock or time(), tzinfo=zone)
    if form == _ISO:
        return whole.isoformat().replace("+00:00", "Z")
    if form.endswith("%z") and zone is None:
        return None
    if form.endswith("Z"):
        if moment.day is None:
            return None
        # Where a tool takes only one zone, a time without any is most likely of that.
        whole = whole.astimezone(UTC) if zone else whole
    return whole.strftime(form)


def seconds_at(text: str, *, in_millis: bool) -> int | None:
    """Seconds, or milliseconds, since 1970 at the moment that a text states with its zone."""
    moment = moment_of(text)
    if moment is None or moment.day is None or moment.clock is None or moment.zone is None:
        return None
    at = datetime.combine(moment.day, moment.clock, moment.zone).timestamp()
    if in_millis:
        return round(at * 1000)
    return round(at)


def same_moment(before: str, after: str, *, by_day: bool = True) -> bool:
    """Return whether a text states the same day and time as one that can be read in one way only.

    Without `by_day` only the hour and minute count.
    """
    said = moment_of(before)
    ways = (_read_moment(after, day_first=day_first) for day_first in (None, True, False))
    return said is not None and any(_is_same(said, way, by_day=by_day) for way in ways if way)


def _is_same(one: Moment, two: Moment, *, by_day: bool) -> bool:
    if not by_day:
        clocks = [each.clock and (each.clock.hour, each.clock.minute) for each in (one, two)]
        return clocks[0] is not None and clocks[0] == clocks[1]
    if one.day and two.day and one.clock and two.clock and one.zone and two.zone:
        return datetime.combine(one.day, one.clock, one.zone) == datetime.combine(
            two.day, two.clock, two.zone
        )
    return (one.day, _time_of(one), one.zone) == (two.day, _time_of(two), two.zone)


def _time_of(moment: Moment) -> time | None:
    """Midnight states no more than the day."""
    if moment.day and moment.clock == time():
        return None
    return moment.clock


# ------------------------------------------------------------------ forms of any text
_FORMATS = frozenset(
    ("date", "email", "idn-email", "hostname", "ipv4", "ipv6", "uri", "uuid", "duration",
     "json-pointer", "regex")
)  # fmt: skip
_IS_PATTERN = re.compile(r"[\\^$\[(|]")
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=100_000)
_MAX_PATTERN = 500


def meets_form(text: str, form: str) -> bool | None:
    """Return whether a text has a form; None where that cannot be shown.

    A date-time or time may be without a zone: most tools take it so.
    """
    if len(text) > MAX_TEXT or len(form) > _MAX_PATTERN:
        return None
    if form == "email" and _DISPLAY.search(text):
        return False  # RFC 5322 has a name before an address, and most tools take none
    if form == MOMENT:
        return _as_moment(text) in (text, None)
    if form in _OWN_FORMS:
        return _OWN_FORMS[form].fullmatch(text) is not None
    wanted = None if form in _FORMATS else _strftime_form(form)
    if wanted == _ISO:
        moment = moment_of(text)
        said = moment is not None and moment.day is not None and moment.clock is not None
        return said and bool(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text))
    if wanted is not None:
        text = re.sub(r"(?:Z|[+-]\d\d:?\d\d)\Z", "", text) if form == "time" else text
        both = "%d" in wanted and "%m" in wanted
        day_first = wanted.index("%d") < wanted.index("%m") if both else None
        return rewrite_form(text, form, day_first=day_first) == text
    validator = _compile_validator(form)
    if validator is None:
        return None
    return bool(validator.is_valid(text))


@lru_cache(maxsize=512)
def _compile_validator(form: str) -> Any:
    if form not in _FORMATS and not _IS_PATTERN.search(form):
        return None
    schema = {"format": form} if form in _FORMATS else {"pattern": form}
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, pattern_options=_PATTERNS)
    except ValueError:
        return None


_OWN_FORMS = {
    "go-duration": re.compile(r"[+-]?(?:\d+(?:\.\d+)?(?:ns|us|\u00b5s|ms|s|m|h))+|0"),
    "base64": re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "base64url": re.compile(r"[A-Za-z0-9_-]*"),
}
"""Forms that no schema names: durations of Go, and both alphabets of base64 (RFC 4648)."""


def _in_own_form(text: str, wanted: str) -> str | None:
    if wanted == "base64url":
        written = text.translate(_TO_URL).rstrip("=")
    elif wanted == "base64":
        plain = text.translate(_FROM_URL).rstrip("=")
        written = plain + "=" * (-len(plain) % 4)
    else:
        seconds = amount_of(text, "time")
        if seconds is None or seconds <= 0:
            return None
        written = _write_duration(seconds, iso=wanted == "duration")
    if written != text and meets_form(written, wanted):
        return written
    return None


_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")


def _write_duration(seconds: float, *, iso: bool) -> str:
    """Return a duration as ISO 8601 (`PT1H30M`) or Go (`1h30m`) writes it."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [(f"{hours}", "H"), (f"{minutes}", "M"), (f"{rest:g}", "S")]
    written = "".join(f"{number}{unit}" for number, unit in parts if number != "0")
    if iso:
        return f"PT{written}"
    return written.lower()


MOMENT = "moment"
"""A day, a time of the day or both, in ISO 8601: whichever a text states."""


def _as_moment(text: str) -> str | None:
    """Return what a text states of a time in ISO 8601; None where it states none."""
    said = moment_of(text)
    if said is None:
        return None
    form = "%H:%M:%S" if said.day is None else _ISO if said.clock is not None else "%Y-%m-%d"
    return _write_moment(said, form)


_DISPLAY = re.compile(r"[<>\s]|\Amailto:", re.IGNORECASE)
_WRITTEN: tuple[Style, ...] = ("upper", "lower", "snake", "kebab")
_MADE = ("%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y",
         "%Y%m%d", "%H:%M", "%H:%M:%S", _ISO, "%Y-%m-%dT%H:%M:%SZ")  # fmt: skip
_HEX = re.compile(
    r"([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})", re.IGNORECASE
)
_GROUPED = re.compile(r"\+?[\d\s().-]{3,40}")
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")


def id_within(text: str) -> str | None:
    """Return the id in an address or behind its kind's name (`spotify:track:4iV5`)."""
    if not re.match(r"https?://|[a-z]+:[a-z]+:", text) or len(text) > MAX_TEXT or " " in text:
        return None
    path = re.split(r"[?#]", text, maxsplit=1)[0]
    if tail := re.search(r"-([0-9a-f]{32})\Z", path):
        return tail[1]
    found = [part for part in re.split(r"[/:]", path)[1:] if _ID.fullmatch(part)]
    if len(found) == 1:
        return found[0]
    return None


_ID = re.compile(r"(?=[^\d]*\d)(?:[\w-]{12,64}|[A-Z][A-Z0-9]{1,9}-\d{1,9}|\d{4,15})")


def in_form(text: str, wanted: str) -> str | None:
    """Return the same text in a form that it does not have.

    None where none, or several, have it.
    """
    if len(text) > MAX_TEXT or meets_form(text, wanted):
        return None
    bare = plain_value(strip_marks(text)).strip("{}")
    if wanted == MOMENT:
        return _as_moment(bare)
    if wanted in _OWN_FORMS or wanted == "duration":
        return _in_own_form(text.strip(), wanted)
    form, moment = _strftime_form(wanted), moment_of(bare)
    at = moment or _since_1970(text, with_clock=form is not None and "%d" not in form)
    if form and at and (written := _write_moment(at, form)) is not None:
        return written if written != text else None
    if re.fullmatch(r"\^\[.\]", wanted):
        is_one = _ONE_WORD.fullmatch(bare) and not is_placeholder(text)
        return f"{wanted[2]}{bare}" if is_one else None
    emails, parts = _EMAIL.findall(bare), _SEPARATED.fullmatch(bare)
    for ways in (
        [bare, *(emails if len(emails) == 1 else ()), _AT.sub("@", bare)],
        (_write_moment(moment, each) for each in _MADE if moment),
        islice((each for each in span_forms(bare) if meets_form(each, wanted)), 1),
        codes_of(bare),
        _regroup_digits(bare),
        (respell_text(bare, style) for style in _WRITTEN),
        *((each,) for each in _join_words(bare)),
        (bare.strip("-_:/. @#"), bare.lstrip("vV")),
        (re.sub(r"[-_. ]+", "", bare),),
        (f"{start[1]}{bare}",) if (start := _START.match(wanted)) else (),
        (bare.replace(parts[1], mark) for mark in ":-_/." if parts),
        (f"https://{bare}",) if _WITHOUT_SCHEME.fullmatch(bare) else (),
        (bare.zfill(len(bare) + more) for more in (1, 2) if bare.isdecimal()),
        _month_forms(bare),
        (id_within(text),) if form is None else (),
        _PARTS.split(text) if form is None else (),
        (
            each
            for part in (*_PARTS.split(text), id_within(text) or "")
            for each in _regroup_digits(part)
            if "-" in each
        ),
        _ADDRESS.findall(text),
    ):
        found = {each for each in ways if each and each != text and meets_form(each, wanted)}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


_SHOWN = re.compile(
    r"(?<![\w/:.])(?P<before>(?!https?:)[A-Za-z][\w.+/:-]{0,60}[/:_-])(?:(?P<any><\w{1,20}>)"
    r"|(?P<tail>\w{2,40}))(?![\w/:<-])"
)


def told_example(text: str, description: str) -> str | None:
    """Return an id behind the prefix that the only example of ids has.

    `123` or `https://shop.example/Product/123` as `gid://shop/Product/123`.
    """
    bare = id_within(text) or text
    shown = {
        each["before"]
        for each in _SHOWN.finditer(description[:MAX_TEXT])
        if each["any"] or (each["tail"].isdecimal() and bare.isdecimal())
    }
    if len(shown) != 1 or not re.fullmatch(r"[\w-]{2,64}", bare):
        return None
    return f"{shown.pop()}{bare}"


def _join_words(bare: str) -> Iterator[str]:
    """Yield the words of a text joined by another mark, in each letter case."""
    for mark in ("_", "-", ""):
        joined = bare.replace(" ", mark)
        yield from (joined, joined.upper(), joined.lower())


_AT = re.compile(r"\s?[(\[]at[)\]]\s?|\sat\s")
_START = re.compile(r"\^([\w#@:/-]{1,12})(?=[\\\[(])")
"""What a pattern states that all texts begin with."""
_SEPARATED = re.compile(r"(?=\D*\d)[^\W_]+([-_:/.])[^\W_]+(?:\1[^\W_]+)*")
_WITHOUT_SCHEME = re.compile(r"(?:[a-z][a-z0-9-]*\.)+[a-z]{2,12}(?:/\S*)?")
_ONE_WORD = re.compile(r"[\w.+-]+")
_ADDRESS = re.compile(r"https?://[^\s)\]>\"']{3,}")
_PARTS = re.compile(r"\Ahttps?:/+(?:www\.)?|[\s()\[\]<>/?&#=,;:|]+")
"""What stands between an id and what is around it, in an address or a remark."""
_SECONDS = re.compile(r"1\d{9}(?:\d{3})?")


def _since_1970(text: str, *, with_clock: bool) -> Moment | None:
    """Return the moment of seconds or milliseconds since 1970, from 2001 to 2033."""
    if not _SECONDS.fullmatch(text):
        return None
    moment = datetime.fromtimestamp(int(text[:10]), UTC)
    whole_day = moment.time() == time() and not with_clock
    return Moment(moment.date(), None if whole_day else moment.time(), None if whole_day else UTC)


def _month_forms(bare: str) -> Iterator[str]:
    """Yield a month of a year, as `March 2026` states it."""
    for form in ("%B %Y", "%b %Y", "%m/%Y", "%m.%Y", "%Y/%m", "%Y-%m"):
        with suppress(ValueError):
            month = datetime.strptime(bare, form)  # noqa: DTZ007 - a month has no zone
            yield from (month.strftime(made) for made in ("%Y-%m", "%m/%Y", "%Y%m", "%B %Y"))


def _regroup_digits(bare: str) -> Iterator[str]:
    """Digits without what groups them, a uuid with its dashes, a colour with its mark."""
    if _GROUPED.fullmatch(bare):
        yield (digits := re.sub(r"[\s().-]", "", bare))
        yield digits.removeprefix("+")
    if _HEX.fullmatch(bare):
        yield _HEX.sub(r"\1-\2-\3-\4-\5", bare)
    if bare.startswith("#"):
        yield bare.removeprefix("#")
    elif not re.search(r"[#\s/]", bare):  # one word, that does not have the mark elsewhere
        yield f"#{bare}"


_TOLD = re.compile(
    r"(?P<java>yyyy-MM-dd'T'HH:mm:ss(?:\.SSS)?Z\b)"
    r"|\b(?P<letters>yyyy[-/.]?mm[-/.]?dd(?:[T ]hh:mm(?::ss)?Z?)?|(?:dd|mm)[-/.](?:mm|dd)[-/.]yyyy"
    r"|hh:mm(?::ss)?)\b|(?P<directives>%[YmdHMS](?:[-/.: T]?%[YmdHMS]){1,5})"
    r"|\b(?P<iso>iso[ -]?8601|rfc ?3339)\b(?! duration)"
    r"(?P<date>,? (?:format )?dates?\b(?! ?-?time))?"
    r"|(?:e\.g\.|example|such as|like)[\s:,('\"`]{1,4}"
    r"(?P<shown>\d{4}-\d\d-\d\d(?![T\d]| \d)|\d\d:\d\d(?!:))",
    re.IGNORECASE,
)


_LEADING = re.compile(
    r"\b(?:including|includes|leading|(?:start|begin)(?:s|ing)? with|prefixed (?:with|by)) "
    r"(?:an? |the )?(?:leading )?['\"`]?([#@$/+~])(?![\w/])",
    re.IGNORECASE,
)
"""The mark that a text has to start with."""


@lru_cache(maxsize=1024)
def told_forms(words: str) -> tuple[str, ...]:
    """Return the forms of dates or times that a description or a message shows.

    Any of them will do.
    """
    found = []
    for each in _TOLD.finditer(words):
        if each["shown"]:
            found.append("YYYY-MM-DD" if "-" in each["shown"] else "HH:MM")
        elif each["iso"]:
            found.append("YYYY-MM-DD" if each["date"] else "date-time")
        else:
            found.append(each["java"] or each["letters"] or each["directives"])
    found += [f"^[{mark}]" for mark in _LEADING.findall(words)]
    exact = [form for form in found if form != "date-time"]
    return tuple(dict.fromkeys(exact or found))  # `ISO 8601 (YYYY-MM-DD)` states one
