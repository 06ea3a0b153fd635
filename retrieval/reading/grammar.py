"""What a grammar of text is made of: patterns with cues, and the faults that a match tells of.

A pattern's groups have fixed names: `name` of the parameter, `at` the place above it, `value` as it
was sent, `types`, `low`, `high`, `above`, `below`, `length`, `values`, `format`, `near`, `stated`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from retrieval.parameters import Path
from retrieval.reading.faults import Fault, json_type, number, quoted, scalar, value_list

Q = r"""['"`]"""
# Bounded and anchored at a word's start, so that no text makes the search quadratic.
NAME = r"(?<![\w$.-])[A-Za-z_$][\w$-]{0,63}(?:[./\[][\w$\]-]{1,64}){0,6}"
NUMBER = r"(?<![\d,])-?\d[\d,]{0,20}(?:\.\d{1,20})?"
# A quoted value as Python and JSON write it; each kind ends at its own mark, so that a text of
# nothing but marks is read once.
VALUE = r"(?:'(?:[^'\\\n]|\\.){0,200}+'|\"(?:[^\"\\\n]|\\.){0,200}+\"|`[^`\n]{0,200}+`)"
LITERAL = (
    rf"(?:{VALUE}|{NUMBER}|True|False|None|true|false|null"
    rf"|\[[^\n]{{0,200}}?\]|\{{[^\n]{{0,200}}?\}})"
)
# Whom a phrase is about: `limit`, `limit: Number`, `"name" length`, `limit: Too big: number`.
SUBJECT = (
    rf"(?:(?P<name>{Q}?/?{NAME}{Q}?)\s{{0,3}}:?\s{{1,3}}"
    r"(?:(?:(?:the|a|number|string|array|value|values|input|field|parameter|argument|length|size"
    r"|set)|"
    r"(?:too (?:big|small|short|long)|(?:invalid|bad) \w{1,20}):) ){0,3})?"
)
# Words that stand where a parameter's name may stand, and are none.
_NOT_NAMES = frozenset(
    (
        "it", "this", "that", "value", "values", "input", "argument", "arguments", "parameter",
        "parameters", "field", "property", "data", "which", "and", "is", "was", "be", "the", "a",
        "an", "of", "or", "not", "item", "items", "option", "body", "request", "you", "there",
        "must", "should", "string", "number", "integer", "error", "invalid", "expected", "required",
        "array", "arg", "indices", "args", "length", "attribute", "list", "object", "one",
        "valueerror", "typeerror",
        "inputs", "both", "all", "they", "element", "elements", "column", "key", "type", "error:",
        "please", "what",
    )
)  # fmt: skip
_ROOTS = frozenset(
    {"data", "body", "args", "arguments", "params", "instance", "query", "input", "request"}
)

Faults = Callable[[re.Match[str]], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and what its matches tell; it is tried only where one of the cues stands.

    Cues are lower-case substrings, one of which every match holds; far cheaper than the pattern.
    """

    pattern: re.Pattern[str]
    faults: Faults
    cues: tuple[str, ...]


def rule(pattern: str, faults: Faults, *cues: str) -> Rule:
    """A rule; letters match in either case, and `^` and `$` at every line."""
    return Rule(re.compile(pattern, re.IGNORECASE | re.MULTILINE), faults, cues)


def apply_rules(rules: tuple[Rule, ...], text: str) -> Iterator[Fault]:
    """The faults that the rules find, in the order of the rules."""
    low = text.lower()
    for each in rules:
        for cue in each.cues:
            if cue in low:
                for match in each.pattern.finditer(text):
                    yield from each.faults(match)
                break


def path_of(name: str | None, above: str | None = None) -> Path:
    """`/flights/0/date`, `flights.0.date` and `flights[0].date` all lead to the same place."""
    if not name:
        return ()
    parts = [part for part in re.split(r"[./\[\]]+", name.strip("/.'\"` ")) if part]
    if parts and len(parts) > 1 and parts[0] in _ROOTS:
        parts = parts[1:]
    in_quotes = name.strip() != name.strip().strip("'\"`")
    if not parts or (parts[0].lower() in _NOT_NAMES and not in_quotes):
        return ()
    if above:
        upper = [part for part in re.split(r"[./\[\]]+", above.strip("/.'\"` :")) if part]
        parts = [*(upper[1:] if upper and upper[0] in _ROOTS else upper), *parts]
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _path(match: re.Match[str]) -> Path:
    groups = match.groupdict()
    return path_of(groups.get("name"), groups.get("at"))


def missing(match: re.Match[str]) -> Iterator[Fault]:
    """The parameter `name` is missing."""
    if path := _path(match):
        yield Fault("missing", path)


def missing_each(match: re.Match[str]) -> Iterator[Fault]:
    """Each of `names` is missing."""
    for name in _names(match["names"]):
        if path := path_of(name, match.groupdict().get("at")):
            yield Fault("missing", path)


def unexpected(match: re.Match[str]) -> Iterator[Fault]:
    """The tool has no parameter `name`; perhaps `near` was meant."""
    if path := _path(match):
        yield Fault("unexpected", path, suggested=match.groupdict().get("near"))


def unexpected_each(match: re.Match[str]) -> Iterator[Fault]:
    """The tool has none of `names`."""
    for name in _names(match["names"]):
        if path := path_of(name, match.groupdict().get("at")):
            yield Fault("unexpected", path)


def _names(text: str) -> list[str]:
    """Names in quotation marks (kept, so that `'a'` is no article), else the bare words."""
    return [f"'{name}'" for name in quoted(text)] or re.findall(NAME, text)


def wrong_type(match: re.Match[str]) -> Iterator[Fault]:
    """The value is not of `types`; where it was `given` as undefined, it is missing."""
    groups = match.groupdict()
    path = _path(match)
    if (groups.get("given") or "").lower() in ("undefined", "missing"):
        if path:
            yield Fault("missing", path)
        return
    names = re.split(r"\s*(?:,|\||\bor\b)\s*", groups["types"])
    types = tuple(dict.fromkeys(kind for name in names if (kind := json_type(name))))
    if types:
        yield Fault("wrong_type", path, expected_types=types, value_text=groups.get("value"))


def not_allowed(match: re.Match[str]) -> Iterator[Fault]:
    """The value is none of `values`."""
    groups = match.groupdict()
    if allowed := value_list(groups["values"]):
        yield Fault(
            "not_allowed",
            _path(match),
            allowed=allowed,
            value_text=groups.get("value"),
            suggested=groups.get("near"),
        )


def stated(match: re.Match[str]) -> Iterator[Fault]:
    """The one right value is `stated`, and `value` was sent."""
    groups = match.groupdict()
    text = groups["stated"]
    in_marks = quoted(text)
    right = in_marks[0] if in_marks else scalar(text.replace(",", ""))
    if in_marks or not isinstance(right, str):
        yield Fault(
            "not_allowed",
            _path(match),
            allowed=(right,),
            stated=right,
            value_text=groups.get("value"),
        )


def bound(match: re.Match[str]) -> Iterator[Fault]:
    """The number, or with `length` the length, lies beyond `low` or `high`."""
    groups = match.groupdict()
    low, high = groups.get("low"), groups.get("high")
    minimum = number(low) if low else None
    maximum = number(high) if high else None
    exclusive = False
    if groups.get("above") is not None and minimum is not None:
        minimum, exclusive = minimum + 1, True
    if groups.get("below") is not None and maximum is not None:
        maximum, exclusive = maximum - 1, True
    yield Fault(
        "out_of_range",
        _path(match),
        minimum=minimum,
        maximum=maximum,
        of_length=bool(groups.get("length")),
        value_text=groups.get("value"),
        exclusive=exclusive,
    )


def not_empty(match: re.Match[str]) -> Iterator[Fault]:
    """The text or list is empty, and must not be."""
    value = match.groupdict().get("value")
    yield Fault("out_of_range", _path(match), minimum=1, of_length=True, value_text=value)


def sign(match: re.Match[str]) -> Iterator[Fault]:
    """The number must be `sign`: positive or non-negative."""
    positive = match["sign"].lower() == "positive"
    yield Fault("out_of_range", _path(match), minimum=float(positive), exclusive=positive)


def multiple(match: re.Match[str]) -> Iterator[Fault]:
    """The number must be a multiple of `step`."""
    value = match.groupdict().get("value")
    yield Fault("invalid", _path(match), multiple_of=number(match["step"]), value_text=value)


def bad_format(match: re.Match[str]) -> Iterator[Fault]:
    """The text is not of the form `format`: its name, a pattern or an example."""
    groups = match.groupdict()
    form = groups.get("format")
    yield Fault(
        "bad_format",
        _path(match),
        expected_format=FORMATS.get(form.lower(), form) if form else None,
        value_text=groups.get("value"),
    )


FORMATS = {
    "url": "uri", "uri": "uri", "datetime": "date-time", "iso datetime": "date-time",
    "date-time": "date-time",
    "e-mail address": "email", "email address": "email", "e-mail": "email",
    "date and time": "date-time",
    "iso date": "date", "iso time": "time", "phone number": "phone", "ip address": "ip",
    "guid": "uuid",
    "timestamp": "date-time",
}  # fmt: skip
"""Other names of JSON Schema's formats."""


def not_found(match: re.Match[str]) -> Iterator[Fault]:
    """What `value` names does not exist; `near` does."""
    groups = match.groupdict()
    value = groups["value"].rstrip(".:;,")
    yield Fault("not_found", _path(match), value_text=value, suggested=groups.get("near"))


def invalid(match: re.Match[str]) -> Iterator[Fault]:
    """The value was refused, and the reason could not be read."""
    groups = match.groupdict()
    words = (groups.get("name") or "").strip().split()
    name = "_".join(words) if words else None
    yield Fault("invalid", path_of(name, groups.get("at")), value_text=groups.get("value"))


def suggested(match: re.Match[str]) -> Iterator[Fault]:
    """Another word was meant perhaps."""
    yield Fault("invalid", suggested=match["near"])
