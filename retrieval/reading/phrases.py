"""Faults in plain text: phrases that tools of all kinds share, and those of single validators.

Each rule is a pattern and what it means. A pattern's groups have fixed names: `name` of the
parameter, `at` the place above it, `value` as it was sent, `types`, `low`, `high`, `above`,
`below`, `length`, `values`, `format`, `near`, `stated`. Where a message only shows the value, the
parameter is found later by that value (see `reader`).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from retrieval.paths import Path
from retrieval.reading.faults import Fault, JsonType, json_type, number, quoted, scalar, value_list

Q = r"""['"`]"""
# Bounded and anchored at a word's start, so that no text makes the search quadratic.
NAME = r"(?<![\w$.-])[A-Za-z_$][\w$-]{0,63}(?:[./\[][\w$\]-]{1,64}){0,6}"
NUMBER = r"(?<![\d,])-?\d[\d,]{0,20}(?:\.\d{1,20})?"
# A quoted value as Python and JSON write it; each kind ends at its own mark, so that a text of
# nothing but marks is read once.
VALUE = r"(?:'(?:[^'\\\n]|\\.){0,200}+'|\"(?:[^\"\\\n]|\\.){0,200}+\"|`[^`\n]{0,200}+`)"
LITERAL = rf"(?:{VALUE}|{NUMBER}|True|False|None|true|false|null|\[[^\n]{{0,200}}?\]|\{{[^\n]{{0,200}}?\}})"
# Whom a phrase is about: `limit`, `limit: Number`, `"name" length`, `limit: Too big: expected number to`.
SUBJECT = (
    rf"(?:(?P<name>{Q}?/?{NAME}{Q}?)\s{{0,3}}:?\s{{1,3}}"
    r"(?:(?:(?:the|a|number|string|array|value|values|input|field|parameter|argument|length|size|set)|"
    r"(?:too (?:big|small|short|long)|(?:invalid|bad) \w{1,20}):) ){0,3})?"
)
# Words that stand where a parameter's name may stand, and are none.
_NOT_NAMES = frozenset(
    (
        "it", "this", "that", "value", "values", "input", "argument", "arguments", "parameter",
        "parameters", "field", "property", "data", "which", "and", "is", "was", "be", "the", "a",
        "an", "of", "or", "not", "item", "items", "option", "body", "request", "you", "there",
        "must", "should", "string", "number", "integer", "error", "invalid", "expected", "required",
        "array", "arg", "indices", "args", "length", "attribute", "list", "object", "one", "valueerror", "typeerror",
        "inputs", "both", "all", "they", "element", "elements", "column", "key", "type", "error:", "please", "what",
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
    "url": "uri", "uri": "uri", "datetime": "date-time", "iso datetime": "date-time", "date-time": "date-time",
    "e-mail address": "email", "email address": "email", "e-mail": "email", "date and time": "date-time",
    "iso date": "date", "iso time": "time", "phone number": "phone", "ip address": "ip", "guid": "uuid",
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


# What a value must be so that a method or an operation of Python works on it.
_STRING_METHODS = frozenset(
    ("split", "strip", "lower", "upper", "startswith", "endswith", "replace", "encode", "find", "join",
     "title", "lstrip", "rstrip", "splitlines", "isdigit", "format", "casefold", "removeprefix")
)  # fmt: skip
_LIST_METHODS = frozenset(("append", "extend", "insert", "sort", "reverse"))
_DICT_METHODS = frozenset(("get", "items", "keys", "values", "update", "setdefault"))


def _given(
    expected: tuple[JsonType, ...], given: str, value_text: str | None = None
) -> Iterator[Fault]:
    if kind := json_type(given):
        yield Fault(
            "wrong_type", expected_types=expected, given_types=(kind,), value_text=value_text
        )


def _no_attribute(match: re.Match[str]) -> Iterator[Fault]:
    name = match["attribute"]
    expected: tuple[JsonType, ...] = ()
    if name in _STRING_METHODS:
        expected = ("string",)
    elif name in _LIST_METHODS:
        expected = ("array",)
    elif name in _DICT_METHODS:
        expected = ("object",)
    if expected:
        yield from _given(expected, match["given"])


def _not_number(match: re.Match[str]) -> Iterator[Fault]:
    kind: JsonType = "integer" if match.groupdict().get("whole") else "number"
    yield from _given((kind,), match["given"])


def _mixed(match: re.Match[str]) -> Iterator[Fault]:
    """A text or a list among numbers; it is what a caller of a tool got wrong."""
    kinds = {match["left"], match["right"]}
    if kinds & {"int", "float"} and kinds & {"str", "list"}:
        yield from _given(("number",), (kinds - {"int", "float"}).pop())
    elif "list" in kinds and len(kinds) == 2:
        yield from _given(("array",), (kinds - {"list"}).pop())


def _joined(match: re.Match[str]) -> Iterator[Fault]:
    """What is to be joined to a text or a list must be one as well; a number in a text a number."""
    if match["right"] in ("int", "float") and match["left"] == "str":
        yield from _given(("number",), "str")
        return
    yield from _given(("string" if match["left"] == "str" else "array",), match["right"])


def _multiplied(_: re.Match[str]) -> Iterator[Fault]:
    yield Fault("wrong_type", expected_types=("number",), given_types=("string", "array"))


def _key_error(match: re.Match[str]) -> Iterator[Fault]:
    """A message that is nothing but a key, as `str(KeyError(...))` gives it."""
    yield Fault("missing", (match["name"],), value_text=match["name"])


def _not_iterable(match: re.Match[str]) -> Iterator[Fault]:
    yield from _given(("array",), match["given"])


def _wants_text(match: re.Match[str]) -> Iterator[Fault]:
    yield from _given(("string",), match["given"])


_GO_FORMATS = frozenset(
    ("email", "url", "uri", "uuid", "uuid4", "datetime", "ip", "ipv4", "ipv6", "e164", "hostname", "base64", "json")
)  # fmt: skip


def _go_tag(match: re.Match[str]) -> Iterator[Fault]:
    path, tag = path_of(match["name"]), match["tag"]
    if tag.startswith("required"):
        yield Fault("missing", path)
    elif tag in _GO_FORMATS:
        yield Fault("bad_format", path, expected_format=FORMATS.get(tag, tag))
    elif tag in ("gt", "gte", "lt", "lte", "min", "max", "len"):
        yield Fault("out_of_range", path)
    else:
        yield Fault("invalid", path)


def _too_small(match: re.Match[str]) -> Iterator[Fault]:
    for fault in bound(match):
        yield replace(fault, minimum=fault.minimum or 1, of_length=True)


def _exclusive(match: re.Match[str]) -> Iterator[Fault]:
    step = 1 if match.groupdict().get("low") else -1
    for fault in bound(match):
        low, high = fault.minimum, fault.maximum
        yield replace(
            fault,
            minimum=None if low is None else low + step,
            maximum=None if high is None else high + step,
            exclusive=True,
        )


def _length(match: re.Match[str]) -> Iterator[Fault]:
    yield Fault("out_of_range", of_length=True, value_text=match["value"])


def _constant(match: re.Match[str]) -> Iterator[Fault]:
    yield from stated(match)


def _format_name(match: re.Match[str]) -> Iterator[Fault]:
    kind = {"localdate": "date", "localdatetime": "date-time", "instant": "date-time", "datetime": "date-time",
            "uuid": "uuid", "url": "uri", "uri": "uri"}.get(match["types"].lower())  # fmt: skip
    if kind:
        yield Fault("bad_format", expected_format=kind, value_text=match["value"])
    else:
        yield from wrong_type(match)


_STRCONV: dict[str, JsonType] = {
    "atoi": "integer", "int": "integer", "uint": "integer", "float": "number", "bool": "boolean",
}  # fmt: skip


def _sql_type(match: re.Match[str]) -> Iterator[Fault]:
    kind = match["types"].lower()
    if kind in ("date", "time", "uuid", "json", "timestamp", "datetime", "interval"):
        form = FORMATS.get(kind, kind)
        yield Fault("bad_format", _sql_name(match), expected_format=form, value_text=match["value"])
    elif types := json_type({"bigint": "int", "smallint": "int"}.get(kind, kind)):
        yield Fault(
            "wrong_type", _sql_name(match), expected_types=(types,), value_text=match["value"]
        )


def _sql_name(match: re.Match[str]) -> tuple[str | int, ...]:
    return path_of(match.groupdict().get("name"))


def _k8s(match: re.Match[str]) -> Iterator[Fault]:
    if match["low"]:
        yield from bound(match)
    else:
        yield from invalid(match)


def _aws_type(match: re.Match[str]) -> Iterator[Fault]:
    names = re.findall(r"'(\w+)'", match["types"])
    types = tuple(dict.fromkeys(kind for name in names if (kind := json_type(name))))
    yield Fault("wrong_type", path_of(match["name"]), expected_types=types)


def _choice(match: re.Match[str]) -> Iterator[Fault]:
    for fault in not_allowed(match):
        yield replace(fault, path=path_of(match["name"] or match["option"]))


DIALECTS = (
    # Python's own TypeError for arguments
    rule(r"missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>[^\n]+)",
         missing_each, "missing"),
    rule(rf"(?:got an )?unexpected (?:keyword )?argument:? {Q}-{{0,2}}(?P<name>[^'\"`\n]+){Q}"
         rf"(?:(?:\. Did you mean|[^\n]{{0,20}}\n[^\n]{{0,60}}a similar argument exists:) {Q}-{{0,2}}(?P<near>[^'\"`\n]+){Q})?", unexpected, "unexpected"),
    rule(r"the following arguments are required: (?P<names>[^\n]+)", missing_each, "arguments are required"),  # argparse
    # Python at work: only types are told, so that one value of the call must be of that type
    rule(r"'(?P<given>\w+)' object has no attribute '(?P<attribute>\w+)'", _no_attribute, "has no attribute"),
    rule(r"must be real number, not '?(?P<given>\w+)|a (?:real )?number is required, not (?P<other>\w+)", lambda m: _given(("number",), m["given"] or m["other"]), "number"),
    rule(r"'(?P<given>\w+)' object cannot be interpreted as an (?P<whole>integer)", _not_number, "cannot be interpreted"),
    rule(r"can(?:not| only) concatenate (?P<left>str|list) \(not \"(?P<right>\w+)\"\)", _joined, "concatenate"),
    rule(r"can't multiply sequence by non-int", _multiplied, "multiply sequence"),
    rule(r"unhashable type: '(?P<given>\w+)'", lambda m: _given((), m["given"]), "unhashable"),
    rule(r"requires string as left operand, not (?P<given>\w+)", _wants_text, "left operand"),
    rule(r"unsupported operand type\(s\) for [^\n:]{1,12}: '(?P<left>\w+)' and '(?P<right>\w+)'", _mixed, "unsupported operand"),
    rule(r"'[<>]=?' not supported between instances of '(?P<left>\w+)' and '(?P<right>\w+)'", _mixed, "between instances"),
    rule(r"bad operand type for (?:unary [+~-]|abs\(\)): '(?P<given>\w+)'", _not_number, "bad operand"),
    rule(r"type (?P<given>\w+) doesn't define __(?:round|trunc|ceil|floor)__", _not_number, "doesn't define __"),
    rule(r"(?:argument of type '(?P<given>\w+)' is not (?:iterable|a container)|'(?P<other>\w+)' object is not (?:iterable|subscriptable))", lambda m: _given(("array",), m["given"] or m["other"]), "is not "),
    rule(r"object of type '(?P<given>\w+)' has no len\(\)", _not_iterable, "has no len"),
    rule(r"(?:expected (?:a )?(?:str|string)(?:, bytes or os\.PathLike| or bytes-like)?(?: object| instance)?|must be (?:a )?str(?:ing)?(?: or a tuple of str)?), (?:not|got) '?(?P<given>\w+)", _wants_text, "str"),
    rule(r"sequence item (?P<index>\d{1,6}): expected (?P<types>str) instance", wrong_type, "sequence item"),
    rule(rf"could not convert string to (?P<types>float|int)(?: \w+)?: (?P<value>{VALUE})", wrong_type, "could not convert"),
    rule(rf"invalid literal for (?P<types>int|float)\(\)[^\n]{{0,100}}?: (?P<value>{VALUE})", wrong_type, "invalid literal"),
    rule(rf"invalid isoformat string: (?P<value>{VALUE})(?P<format>)", lambda m: iter((Fault("bad_format", value_text=m["value"]),)), "isoformat"),
    rule(r"\A'(?P<name>[A-Za-z_][\w -]{0,63})'\Z", _key_error, "'"),
    # jsonschema
    rule(rf"{Q}(?P<name>[^'\"`\n]+){Q} is a (?:dependency of|required property)", missing, "is a "),
    rule(r"additional properties are not allowed \((?P<names>[^)\n]+) (?:was|were) unexpected\)",
         unexpected_each, "additional properties"),
    rule(r"(?P<names>'[^\n]{1,500}) (?:does|do) not match any of the regexes", unexpected_each, "of the regexes"),
    rule(rf"(?P<value>{LITERAL}) is not of type (?P<types>[^\n]+)", wrong_type, "is not of type"),
    rule(rf"(?P<value>{NUMBER}) is (?:greater than|more than) the maximum(?: of)? (?P<high>{NUMBER})", bound, "the maximum"),
    rule(rf"(?P<value>{NUMBER}) is less than the minimum(?: of)? (?P<low>{NUMBER})", bound, "the minimum"),
    rule(rf"(?P<value>{NUMBER}) is greater than or equal to the maximum(?: of)? (?P<high>{NUMBER})", _exclusive, "the maximum"),
    rule(rf"(?P<value>{NUMBER}) is less than or equal to the minimum(?: of)? (?P<low>{NUMBER})", _exclusive, "the minimum"),
    rule(rf"(?P<value>{NUMBER}) is not a multiple of (?P<step>{NUMBER})", multiple, "multiple of"),
    rule(rf"(?P<value>{VALUE}|{NUMBER}) is not one of (?P<values>\[[^\]\n]*\]|'[^\n]{{1,2000}})", not_allowed, "is not one of"),
    rule(rf"(?P<value>{VALUE}) does not match {Q}(?P<format>[^\n]+?){Q}$", bad_format, "does not match"),
    rule(rf"(?P<value>{VALUE}) does not match format {Q}(?P<format>[^'\n]+){Q}", bad_format, "does not match format"),
    rule(rf"(?P<value>{VALUE}) is not a {Q}(?P<format>[\w-]+){Q}", bad_format, "is not a "),
    rule(rf"(?P<value>{LITERAL}) (?:should be non-empty|does not have enough properties)", not_empty, "non-empty", "enough properties"),
    rule(rf"(?P<value>{LITERAL}) is too (?:short|long)$", _length, "is too "),
    rule(rf"(?P<value>{LITERAL}) (?:has non-unique elements|is not valid under any of the given schemas|is valid under each of|has too many properties)", invalid, "non-unique", "given schemas", "valid under", "too many properties"),
    rule(rf"^(?P<stated>{VALUE}|{NUMBER}) was expected", _constant, "was expected"),
    # ajv
    rule(rf"(?:(?P<at>(?:data|body|args|params|request)?[/.][\w/.\[\]-]{{1,200}}|[\w.]{{1,100}}) )?(?:must|should) have required propert(?:y|ies) {Q}?(?P<name>[\w$.-]+)", missing, "required propert"),
    rule(rf"(?:must|should) NOT have (?:additional|unevaluated) properties:? {Q}?(?P<name>(?!data\b)[\w$.-]+)", unexpected, "properties"),
    rule(rf"(?P<name>{NAME}) (?:must|should) NOT have (?:fewer|less) than (?P<low>{NUMBER}) (?P<length>characters|items|properties)", bound, "not have"),
    rule(rf"(?P<name>{NAME}) (?:must|should) NOT (?:have more than|be longer than) (?P<high>{NUMBER}) (?P<length>characters|items|properties)", bound, "not "),
    rule(rf"(?P<name>{NAME}) (?:must|should) NOT be shorter than (?P<low>{NUMBER}) (?P<length>characters)", bound, "not be shorter"),
    rule(rf"(?P<name>{NAME}) (?:must|should) (?:be equal to constant|NOT have duplicate items|match (?:exactly one|a) schema in|be valid)", invalid, "constant", "duplicate items", "schema in"),
    # zod
    rule(rf"(?:(?P<name>{NAME}): )?too big: expected (?:\w+ )?to (?:be|have) (?P<below><(?!=))?(?:<=)?(?P<high>{NUMBER})(?: ?(?P<length>characters?|items?|elements?))?", bound, "too big"),
    rule(rf"(?:(?P<name>{NAME}): )?too small: expected (?:\w+ )?to (?:be|have) (?P<above>>(?!=))?(?:>=)?(?P<low>{NUMBER})(?: ?(?P<length>characters?|items?|elements?))?", bound, "too small"),
    rule(rf"(?:(?P<name>{NAME}): )?invalid enum value\. expected (?P<values>[^\n]{{1,2000}}?), received (?P<value>{VALUE})", not_allowed, "enum value"),
    rule(rf"(?:(?P<name>{NAME}): )?invalid (?:literal value, |input: )expected (?P<stated>{VALUE}|{NUMBER})(?=$|[;,\n])", _constant, "expected "),
    rule(rf"(?:^|[;\n] ?)(?P<name>{NAME}): invalid(?: input)?(?=$|;)", invalid, ": invalid"),
    rule(rf"(?:(?P<at>{NAME}): |(?<!\w): )?unrecognized keys?(?:\(s\) in object)?: (?P<names>['\"][^\n;]+)", unexpected_each, "unrecognized key"),
    # joi, yup
    rule(rf"(?P<name>{Q}{NAME}{Q}) with value {VALUE} fails to match the (?:required|[\w ]{{1,40}}) pattern: /?(?P<format>[^\n]+?)/?(?=$|\. )", bad_format, "fails to match"),
    rule(rf"(?P<name>{Q}{NAME}{Q}) (?P<length>length|must contain) (?:must be )?(?:less than or equal to|at most) (?P<high>{NUMBER})", bound, "less than or equal", "at most"),
    rule(rf"(?P<name>{Q}{NAME}{Q}) (?P<length>length) must be (?:at least|greater than or equal to) (?P<low>{NUMBER})", bound, "length must"),
    rule(rf"(?P<name>{NAME}) must be a `(?P<types>\w+)` type, but the final value was", wrong_type, "the final value"),
    # Node
    rule(r"the \"(?P<name>[\w.]{1,64})\" (?:argument|property) must be (?:of type|an instance of|one of type) (?P<types>[\w ,|]{1,60}?)\.? (?:Received|$)", wrong_type, "must be "),
    rule(rf"the value of \"(?P<name>[\w.]{{1,64}})\" is out of range\. It must be >= ?(?P<low>{NUMBER}) (?:&&|and) <= ?(?P<high>{NUMBER})", bound, "out of range"),
    # Go
    rule(r"cannot unmarshal (?P<value>\w+) into Go (?:struct field|value) (?:\w+\.)?"
         r"(?P<name>[\w.]+) of type \*?(?P<types>[\w\[\]]+)", wrong_type, "cannot unmarshal"),
    rule(r"field validation for '(?P<name>\w+)' failed on the '(?P<tag>\w+)' tag", _go_tag, "field validation for"),
    rule(rf"strconv\.(?:Parse)?(?P<types>Atoi|Int|Uint|Float|Bool): parsing (?P<value>{VALUE})",
         lambda m: iter((Fault("wrong_type", expected_types=(_STRCONV[m["types"].lower()],), value_text=m["value"]),)), "strconv."),
    rule(rf"parsing time (?P<value>{VALUE}) as (?P<format>{VALUE})", bad_format, "parsing time"),
    rule(r"json: unknown field \"(?P<name>[\w.-]+)\"|flag provided but not defined: -{1,2}(?P<flag>[\w-]+)", lambda m: iter((Fault("unexpected", (m["name"] or m["flag"],)),)), "unknown field", "flag provided"),
    # Rust's serde and clap
    rule(rf"invalid type: \w+(?: \w+)? (?P<value>{VALUE}|`[^`\n]{{1,100}}`|{NUMBER}), expected (?:an? |a sequence|)?(?P<types>\w+)", wrong_type, "invalid type"),
    rule(rf"unknown variant (?P<value>{VALUE}), expected (?:one of )?(?P<values>[^\n]{{1,2000}}?)(?= at line|$)", not_allowed, "unknown variant"),
    rule(r"missing field `(?P<name>[^`\n]{1,64})`", missing, "missing field"),
    rule(rf"invalid value (?P<value>{VALUE}) for '-{{0,2}}(?P<name>[\w-]+)[^'\n]{{0,40}}'", invalid, "invalid value"),
    # Java: Jackson, Spring, the JDK
    rule(r"value of type `(?:[\w.]{0,100}\.)?(?P<types>\w+)(?:<[^`\n]{0,100}>)?` from \w+ (?:value )?\(?"
         rf"(?P<value>{VALUE})", _format_name, "value of type `"),
    rule(rf"NumberFormatException: for input string: (?P<value>{VALUE})", lambda m: iter((Fault("wrong_type", expected_types=("number",), value_text=m["value"]),)), "for input string"),
    rule(rf"required type '(?:[\w.]{{0,100}}\.)?(?P<types>\w+)'[^\n]{{0,60}}for input string: (?P<value>{VALUE})", wrong_type, "required type"),
    rule(r"no enum constant (?:[\w$]{1,64}\.){1,12}(?P<value>\w{1,64})", invalid, "no enum constant"),
    rule(rf"(?:text |string )?(?P<value>{VALUE}) (?:could not be parsed|was not recognized as a valid DateTime)", lambda m: iter((Fault("bad_format", value_text=m["value"]),)), "could not be parsed", "not recognized"),
    # .NET
    rule(r"(?:value cannot be null|specified argument was out of the range of valid values)\.? \(Parameter '(?P<name>\w{1,64})'\)",
         lambda m: iter((Fault("missing" if "null" in m[0].lower() else "out_of_range", (m["name"],)),)), "(parameter '"),
    rule(r"could not be converted to System\.(?:Nullable`1\[System\.)?(?P<types>\w+)\]?\. Path: \$\.?(?P<name>[\w.\[\]]{1,200})", wrong_type, "could not be converted"),
    rule(rf"the input string (?P<value>{VALUE}) was not in a correct format", lambda m: iter((Fault("wrong_type", expected_types=("number",), value_text=m["value"]),)), "correct format"),
    # Ruby, PHP
    rule(rf"invalid value for (?P<types>Integer|Float)\(\): (?P<value>{VALUE})", wrong_type, "invalid value for"),
    rule(r"param is missing or the value is empty: (?P<name>[\w.]+)", missing, "param is missing"),
    rule(r"argument #\d+ \(\$(?P<name>\w+)\) must be of type \??(?P<types>\w+), (?P<given>\w+) given", wrong_type, "must be of type"),
    # SQL engines
    rule(rf"invalid input syntax for (?:type )?(?P<types>\w+): (?P<value>{VALUE})", _sql_type, "invalid input syntax"),
    rule(rf"incorrect (?P<types>integer|decimal|double|date|datetime) value: (?P<value>{VALUE}) for column (?P<name>{VALUE})", _sql_type, "incorrect "),
    rule(r"null value in column \"(?P<name>[^\"\n]{1,64})\"|not null constraint failed: (?:\w+\.)?(?P<sqlite>\w{1,64})|column '(?P<mysql>\w{1,64})' cannot be null|field '(?P<absent>\w{1,64})' doesn't have a default",
         lambda m: iter((Fault("missing", (m["name"] or m["sqlite"] or m["mysql"] or m["absent"],)),)), "null", "default"),
    rule(r"(?:no such (?:column|table|function)|unknown column): ?(?P<value>[\w.]{1,100})", not_found, "no such", "unknown column"),
    rule(rf"unknown (?:column|database|table) (?P<value>{VALUE})", not_found, "unknown "),
    rule(r"column (?P<value>[\w.]{1,100}) does not exist(?:[^\n]{0,80}\n[^\n]{0,80}perhaps you meant to reference the column \"(?:\w+\.)?(?P<near>\w+)\")?", not_found, "does not exist"),
    rule(r"too long for type \w+(?: \w+)?\((?P<high>\d{1,9})(?P<length>)\)", lambda m: iter((Fault("out_of_range", maximum=float(m["high"]), of_length=True),)), "too long for type"),
    rule(r"data too long for column '(?P<name>\w{1,64})'", lambda m: iter((Fault("out_of_range", (m["name"],), of_length=True),)), "data too long"),
    rule(rf"date/time field value out of range: (?P<value>{VALUE})", lambda m: iter((Fault("bad_format", expected_format="date", value_text=m["value"]),)), "date/time field"),
    rule(r"out of range value for column '(?P<name>\w{1,64})'", lambda m: iter((Fault("out_of_range", (m["name"],)),)), "out of range value"),
    # Kubernetes
    rule(rf"(?:(?<![\w.\]])(?:\w{{1,64}}(?:\[\d{{1,4}}\])?\.){{0,8}}(?P<name>\w{{1,64}}): )?unsupported value: (?P<value>{VALUE}): supported values: (?P<values>[^\n]{{1,2000}})", not_allowed, "unsupported value"),
    rule(r"(?<![\w.\]])(?:\w{1,64}(?:\[\d{1,4}\])?\.){0,8}(?P<name>\w{1,64}): required value", missing, "required value"),
    rule(rf"(?<![\w.\]])(?:\w{{1,64}}(?:\[\d{{1,4}}\])?\.){{0,8}}(?P<name>\w{{1,64}}): invalid value: (?P<value>{VALUE}|{NUMBER})(?:: must be (?:between (?P<low>{NUMBER}) and (?P<high>{NUMBER})))?", _k8s, "invalid value: "),
    # AWS, Terraform, Stripe, argparse and click
    rule(r"missing required parameter in input: \"(?P<name>\w+)\"", missing, "parameter in input"),
    rule(r"unknown parameter in input: \"(?P<name>\w+)\", must be one of", unexpected, "parameter in input"),
    rule(r"invalid type for parameter (?P<name>[\w.\[\]]{1,200}), value: [^\n]{0,200}?valid types: (?P<types><class '\w+'>(?:, <class '\w+'>){0,5})", _aws_type, "invalid type for parameter"),
    rule(rf"value (?P<value>{VALUE}) at '(?P<name>[\w.]{{1,200}})' failed to satisfy constraint: member must have length greater than or equal to (?P<low>\d+)(?P<length>)", lambda m: iter((Fault("out_of_range", path_of(m["name"]), minimum=float(m["low"]), of_length=True),)), "greater than or equal"),
    rule(rf"value (?P<value>{VALUE}) at '(?P<name>[\w.]{{1,200}})' failed to satisfy constraint: member must have length less than or equal to (?P<high>\d+)", lambda m: iter((Fault("out_of_range", path_of(m["name"]), maximum=float(m["high"]), of_length=True),)), "less than or equal"),
    rule(rf"value (?P<value>{VALUE}) at '(?P<name>[\w.]{{1,200}})' failed to satisfy constraint: member must satisfy enum value set: (?P<values>\[[^\]\n]{{1,2000}}\])", not_allowed, "enum value set"),
    rule(r"an argument named \"(?P<name>[\w-]+)\" is not expected here(?:\. Did you mean \"(?P<near>[\w-]+)\")?", unexpected, "not expected here"),
    rule(r"the argument \"(?P<name>[\w-]+)\" is required", missing, "is required"),
    rule(r"expected (?P<name>[\w.]+) to be one of (?P<values>\[[^\]\n]{1,2000}\]), got (?P<value>[^\s,]{1,100})", not_allowed, "to be one of"),
    rule(r"(?:received )?(?:unknown|unrecognized) (?:request )?(?:parameter|argument)s?(?: supplied)?: (?P<name>[\w\[\]-]{1,64}(?:\.[\w\[\]-]{1,64}){0,6})(?:[.?] Did you mean (?P<near>[\w.\[\]-]{1,64})\?)?", unexpected, "parameter", "argument"),
    rule(r"missing required param: (?P<name>[\w.\[\]-]{1,64}?)\.?$", missing, "required param"),
    rule(rf"(?:argument -{{0,2}}(?P<name>[\w-]{{1,64}})[^\n:]{{0,20}}: )?invalid (?:choice|value for {Q}-{{0,2}}(?P<option>[\w-]{{1,64}}){Q}):? (?P<value>{VALUE})"
         r" \(choose from (?P<values>[^)\n]+)\)", _choice, "choose from"),
    rule(r"invalid (?:fields?|parameters?|keys?|options?|arguments?)(?: for \w{1,30})?: (?P<names>\w{1,64}(?:, \w{1,64}){0,20})(?=$|[.;])", unexpected_each, "invalid "),
    # GraphQL
    rule(r"cannot query field \"(?P<name>\w+)\" on type \"\w+\"(?:\. Did you mean (?:to use [^\n]{0,60})?\"(?P<near>\w+)\")?", unexpected, "cannot query field"),
    rule(r"unknown argument \"(?P<name>\w+)\" on field \"[\w.]+\"(?:\. Did you mean \"(?P<near>\w+)\")?", unexpected, "unknown argument"),
    rule(r"(?:variable \"\$(?P<name>\w+)\" of required type|argument \"(?P<other>\w+)\" of type \"[^\"\n]{1,60}\" is required)", lambda m: iter((Fault("missing", (m["name"] or m["other"],)),)), "required"),
    rule(rf"variable \"\$(?P<name>\w+)\" got invalid value (?P<value>{VALUE}|{NUMBER}); (?P<types>Int|Float|String|Boolean) cannot represent", wrong_type, "got invalid value"),
    rule(r"value \"(?P<value>\w{1,64})\" does not exist in \"\w+\" enum(?:\. Did you mean the enum value \"(?P<near>\w+)\")?", lambda m: iter((Fault("invalid", value_text=m["value"], suggested=m["near"]),)), "does not exist in"),
    # git
    rule(rf"pathspec (?P<value>{VALUE}) did not match", not_found, "pathspec"),
)  # fmt: skip


def read_text(message: str) -> Iterator[Fault]:
    """The faults that the phrases of a message name, in the order of the rules."""
    if "→ at " in message:
        message = _ZOD_PLACE.sub(r"\g<place>: \g<said>", message)
    found = apply_rules(_RULES, message)
    place = _place_in_instance(message) if "On instance[" in message else ()
    return (_at(place, fault) for fault in found) if place else found


# zod 4's prettified form tells the place after what is wrong there.
_ZOD_PLACE = re.compile(
    r"^[ \t]*✖ (?P<said>[^\n]{1,500})\n\s{0,20}→ at (?P<place>[^\n]{1,200})$", re.MULTILINE
)
_INSTANCE = re.compile(
    r"^On instance(?P<place>(?:\[(?:\d{1,6}|'[^'\n\]]{1,64}')\]){1,8}):", re.MULTILINE
)


def _place_in_instance(message: str) -> Path:
    """Where in the call jsonschema's full text says that the fault lies."""
    match = _INSTANCE.search(message)
    parts = re.findall(r"\[(\d+|'[^']+')\]", match["place"]) if match else []
    return tuple(int(part) if part.isdecimal() else part.strip("'") for part in parts)


def _at(place: Path, fault: Fault) -> Fault:
    above = fault.path if fault.kind in ("missing", "unexpected") else ()
    return replace(fault, path=(*place, *above))


_TYPES = (
    r"(?:str(?:ing)?|text|int(?:eger)?s?|whole numbers?|numbers?|numeric|float|double|decimal|bool(?:ean)?|list|array|dict|"
    r"dictionary|object|mapping|null)"
)
_MUST = r"(?:must|should|shall|has to|have to|needs to|need to|ought to)"
_UNIT = r"(?P<length>\s?(?:UTF-8 )?(?:characters?|chars?|letters|items?|elements?|entries|bytes|digits|symbols|values))(?:\(s\))?"

_COMMON = (
    # missing and unknown, in words
    rule(r"missing (?:the |an? )?(?:following )?(?:required |mandatory )?(?:query |path |body |input |request )?(?:parameter|argument|field|propert|param|input|key|option|attribute|element|value for)"
         r"(?:s|y|ies)?(?:\(s\))?(?: in (?:input|request|body))?:? (?P<names>[^\n.;]+)", missing_each, "missing"),
    rule(rf"(?:required )?(?:request |query |path |body )?(?:parameter|argument|field|property|param|key|attribute) (?P<name>{Q}?{NAME}{Q}?)(?: for [^\n]{{1,60}}? type \w+)? "
         r"(?:is|was) (?:required|missing|not (?:present|provided|supplied|specified|set|given)|mandatory)", missing, "required", "missing", "is not ", "was not", "mandatory"),
    rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?)(?: field)? ?(?::\s+(?:a value is )?required|(?:is|are) (?:a )?(?:required|mandatory)|(?:is|are|was) missing|"
         r"must be (?:provided|specified|given|set|supplied|present)|field required|cannot be (?:null|none|undefined)|is undefined|should be defined|"
         r"must not be (?:null|none)|may not be null|must be present)", missing,
         "required", "missing", "must be ", "cannot be", "mandatory", "undefined", "not be null", "should be defined"),
    rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?)(?: field)? ?:?\s(?:must not be (?:blank|empty)|cannot be (?:empty|blank)|can't be (?:blank|empty)|may not be (?:blank|empty)|"
         r"must be non-?empty|should not be empty|is not allowed to be empty|must have a value|this field may not be blank)",
         not_empty, "blank", "empty", "have a value"),
    rule(rf"(?:you )?must (?:specify|provide|supply|pass|set|include|give) (?:an? |the |at least )?(?:value for )?(?P<name>{Q}{NAME}{Q})", missing, "must "),
    rule(r"(?:unknown|unrecogni[sz]ed|unexpected|unsupported|invalid|extra|undefined|unpermitted|unallowed|illegal) (?:request |query |input )?(?:parameter|argument|field|propert|option|key|param|keyword|input|attribute)"
         rf"(?:s|y|ies)?(?:\(s\))?(?: in (?:object|input|request|body))?(?: name)?(?: supplied| provided| found)?:? {Q}?:?(?!syntax|for\b|value)(?P<name>{NAME}){Q}?(?=$|[\s.,;?)\]])"
         r"(?!\s*(?:must|should|is|has|cannot|=|:))"
         rf"(?:[^\n]{{0,40}}did you mean:? {Q}?(?P<near>[\w.$-]+))?", unexpected,
         "unknown", "unrecogni", "unexpected", "unsupported", "invalid", "extra", "undefined", "unpermitted", "unallowed", "illegal"),
    rule(rf"(?:parameter|argument|field|property|key|option) (?P<name>{Q}{NAME}{Q}) (?:is|was) (?:not (?:allowed|permitted|expected|supported|recogni[sz]ed|known)|unexpected|unknown|unrecogni[sz]ed|undefined)",
         unexpected, "not ", "unexpected", "unknown", "unrecogni", "undefined"),
    rule(rf"(?:^|[\s:,;.])(?P<name>{Q}{NAME}{Q}) is not (?:allowed|permitted|expected here)(?=$|[\s.,;])(?! to)", unexpected, "is not "),  # joi
    # types
    rule(rf"{SUBJECT}{_MUST} be (?:an? |of |type |a valid |the |valid |`)*{Q}?"
         rf"(?P<types>{_TYPES}(?:(?:, | or |\|| or an? ){_TYPES}){{0,4}})\b{Q}?(?! (?:between|greater|less|in the|of (?:at|length)|than|with|at|from|to be|must))", wrong_type, "must ", "should ", "has to", "have to", "need"),
    rule(rf"{SUBJECT}expected (?:an? |type |value of type )?{Q}?(?P<types>[a-z0-9]+){Q}?(?: instance| value)?,? "
         rf"(?:but )?(?:got|received|found|not) (?:an? |type |value of type )?{Q}?(?P<given>\w+)?", wrong_type, "expected "),
    rule(rf"{SUBJECT}a valid (?P<types>{_TYPES}) is required", wrong_type, "is required"),
    rule(rf"{SUBJECT}(?:is )?not an? (?:valid )?{Q}?(?P<types>{_TYPES}){Q}?(?=$|[\s.,;:)])", wrong_type, "not a"),
    rule(rf"invalid (?P<types>integer|number|boolean|int|float|array|object): (?P<value>{VALUE}|{NUMBER})(?=$|[\s,;.])", wrong_type, "invalid "),
    # ranges
    rule(rf"{SUBJECT}(?:is )?{_MUST} (?:be|lie|range|have)?,? ?(?:a |an )?(?:number |integer |value |length )?(?:of |in )?"
         rf"(?:in the range |in range |between |from |within |in )(?:of )?\[?\(?(?P<low>{NUMBER})°?(?: and | ?- ?|\s*\.\.+\s*|, ?| to | \u2026 |\u2013)"
         rf"(?P<high>{NUMBER})(?: ?{_UNIT})?", bound, "must ", "should ", "has to", "have to", "need"),
    rule(rf"{SUBJECT}(?:is )?(?:out of (?:the )?(?:allowed )?range|outside (?:of )?(?:the )?(?:allowed |valid |range )?(?:range)?|not (?:in|within)(?: the)? range):? ?(?:of )?[\[(]?(?P<low>{NUMBER})(?: and | ?- ?|\s*\.\.+\s*|, ?| to |\u2013)"
         rf"(?P<high>{NUMBER})", bound, "range", "outside"),
    rule(rf"{SUBJECT}(?:{_MUST}|may|can) (?:be |have |contain |to have |to be )?(?:<=|≤|at most|no more than|not more than|"
         r"no greater than|less than or equal to|up to|not exceed|not be (?:more|greater|larger|longer) than|not have more than|a maximum of|no longer than|max(?:imum)?) ?"
         rf"(?P<high>{NUMBER})(?: ?{_UNIT}| or fewer in (?P<fewer>length))?", bound, "must ", "should ", "has to", "have to", "need", "may ", "can "),
    rule(rf"{SUBJECT}(?:{_MUST}) (?:be |have |contain )?(?P<high>{NUMBER}) (?P<length>characters? |items? |elements? |)or (?:fewer|less)(?: (?:characters|items|in length))?", bound, " or fewer", " or less"),
    rule(rf"{SUBJECT}{_MUST} be (?P<below><|less than|below|under|smaller than) ?"
         rf"(?P<high>{NUMBER})", bound, "must ", "should ", "has to"),
    rule(rf"{SUBJECT}{_MUST} (?:be |have |contain |NOT have fewer than |not be (?:less|fewer|smaller|shorter) than )?(?:>=|≥|at least|"
         rf"no less than|greater than or equal to|a minimum of|a length of at least|not less than|minimum of|(?<=han )) ?(?P<low>{NUMBER})(?: ?{_UNIT})?",
         bound, "must ", "should ", "has to", "have to", "need"),
    rule(rf"{SUBJECT}{_MUST} be (?P<above>>|greater than|above|over|more than|larger than|bigger than) ?"
         rf"(?P<low>{NUMBER})", bound, "must ", "should ", "has to"),
    rule(rf"{SUBJECT}(?:cannot exceed|can't exceed|may not exceed|must not exceed|exceeds? (?:the )?(?:maximum|"
         rf"limit|max)(?: allowed)?(?: value| length| size)?(?: of| is|:)?) ?\(?(?P<high>{NUMBER})(?: ?{_UNIT})?", bound, "exceed"),
    rule(rf"{SUBJECT}(?P<value>{NUMBER}) (?:exceeds|is (?:above|over|larger than|greater than|more than|too (?:large|big|high)[,;:]? ?(?:the )?(?:maximum|max|limit)(?: is)?)) ?(?:the )?(?:(?:maximum|limit|max)(?: of| is)? )?(?P<high>{NUMBER})", bound, "exceeds", "is above", "is over", "is larger", "is more", "is too"),
    rule(rf"{SUBJECT}(?:is )?too (?:large|big|high|long)[^\n\d]{{0,60}}?(?:(?P<below>less than|fewer than)|max(?:imum)?|limit|at most|up to)(?: allowed)?(?: length| size| value)?(?: is| of|:)? ?(?P<high>{NUMBER})(?: ?{_UNIT})?", bound, "too "),
    rule(rf"{SUBJECT}(?:is )?too (?:small|low|short)[^\n\d]{{0,40}}?(?:min(?:imum)?|at least)(?: allowed)?(?: length| size| value)?(?: is| of|:)? ?(?P<low>{NUMBER})(?: ?{_UNIT})?", bound, "too "),
    rule(rf"maximum (?:allowed )?(?:value )?(?:for (?P<name>{NAME}) )?(?:is|of) "
         rf"(?P<high>{NUMBER})", bound, "maximum"),
    rule(rf"minimum (?:allowed )?(?:value )?(?:for (?P<name>{NAME}) )?(?:is|of) "
         rf"(?P<low>{NUMBER})", bound, "minimum"),
    rule(rf"{SUBJECT}{_MUST} be (?:a )?(?P<sign>non-negative|positive)", sign, "positive", "non-negative"),
    rule(rf"{SUBJECT}(?:cannot|can't|must not|may not|should not) be (?P<sign>negative)", sign, "negative"),
    rule(rf"{SUBJECT}{_MUST} be (?:a )?(?:multiple of|divisible by) (?:the \w+ \w+ )?(?P<step>{NUMBER})", multiple, "multiple of", "divisible by"),
    # closed lists
    rule(rf"{SUBJECT}(?:{_MUST}) be (?:equal to )?(?:one|any|either) of(?! the allowed values(?:$|\W{{0,2}}$))(?: the following| the allowed"
         r" values)?(?: values| options)?:? (?P<values>[^\n]{1,2000}?)(?:$|\.\s|, got|, not|; got|\(got)",
         not_allowed, " of"),
    rule(rf"{SUBJECT}must be equal to one of the allowed values(?P<values>)", invalid, "one of the allowed values"),
    rule(rf"{SUBJECT}(?<!indices )(?:must|can|may|should) (?:only )?be (?:either )?(?P<values>['\"`]?[\w-]{{1,40}}['\"`]?(?:, ['\"`]?[\w-]{{1,40}}['\"`]?){{0,8}},? or ['\"`]?[\w-]{{1,40}}['\"`]?)(?=$|[.,;]?\s?(?:$|\(|not|got|,|\.))", not_allowed, " or "),
    rule(r"(?<![a-z])(?:valid|allowed|permitted|supported|available|accepted|acceptable|possible|known|existing|use one of|try one of|did you mean one of the following)(?: \w{1,30})?? ?(?:values?|options?|"
         r"choices|types?|modes?|formats?|names?|units?|currencies|languages?|fields|columns|keys|tools|commands|ones)?(?: (?:for (?P<name>[\w.-]+) )?(?:are|include|is one of)|\?|:) ?(?:these |one of )?:? ?"
         r"(?P<values>[\[({'\"`\w][^\n]{1,2000}?)(?:$|\.\s|; )", not_allowed,
         "valid ", "allowed", "permitted", "supported", "available", "accept", "possible", "known ", "existing", "one of"),
    rule(rf"(?:value )?(?P<value>{VALUE}) (?:is not|isn't) (?:one of|among|in)(?: the)?(?: allowed| valid| supported| permitted| known)?(?: values| options| choices)?:? (?P<values>[\[({{'\"`][^\n]{{1,2000}}?)(?:$|\.\s)", not_allowed, "is not", "isn't"),
    rule(rf"{SUBJECT}(?:invalid (?:option|enum value|input)[:.] )?expected one of:? (?P<values>[^\n]{{1,2000}}?)(?:$|\.\s|, got|, found|, received|, but)", not_allowed, "expected one of"),
    # one right value
    rule(rf"\b(?:total|sum|price|amount|balance|cost|value|count|length|size|version|number|fee|fare)(?: \w{{1,20}}){{0,3}}? (?:is|was|should be|must be|=|of) ?:?[$€£]? ?(?P<stated>{NUMBER}),? "
         rf"(?:but|and not|not|while|whereas|yet|and) (?:(?:you|we|the|it|only|was|were|is|are|got|has|had|have|sent|paid|given|received|provided|payment|amount|sum|total|value|call|found|request|actual|entered|charged|offered|says?|said) ){{0,5}}[$€£]?(?P<value>{NUMBER})", stated, "but", "not", "while", "whereas", "yet", " and "),
    rule(rf"{SUBJECT}expected (?:value |version |to be |a (?:value|total|sum) of )?:?(?P<stated>{VALUE}|{NUMBER}),? (?:but )?(?:got|received|found|was|not|is|actual(?:ly)?)(?: was| is)?:? (?:value |version )?(?P<value>{VALUE}|{NUMBER})(?![\w,])", stated, "expected "),
    rule(rf"(?P<value>{VALUE}|{NUMBER}) (?:was )?(?:given|provided|sent|received|supplied|passed),? (?:but|where|when|instead of|expected) (?:the )?(?:\w+ ){{0,3}}?(?:is |was |expected |should be |must be )?(?P<stated>{VALUE}|{NUMBER})(?![\w,])", stated, "given", "provided", "sent", "received", "supplied", "passed"),
    rule(rf"current version \[?(?P<stated>{NUMBER})\]? is different than the one provided \[?(?P<value>{NUMBER})", stated, "current version"),
    # formats
    rule(r"invalid (?P<name>[\w ]{1,40}?) format\b[^\n]{0,200}?(?:expected|use|must be|should be):? (?:format )?"
         r"(?P<format>[^\s\[(,;]+)", bad_format, "format"),
    rule(rf"{SUBJECT}{_MUST} be (?:in|of) (?:the |a )?(?:form|format|pattern)(?: of)?:? "
         rf"{Q}?(?P<format>[^\s'\"`,;)]+)", bad_format, "form", "pattern"),
    rule(rf"{SUBJECT}(?:format )?(?:{_MUST} be|is|is not|isn't|must look like|enter) (?:in |an? )?(?:an? )?(?:valid )?(?:ISO[ -]?8601 |ISO |RFC ?3339 )?(?P<format>date-time|datetime|timestamp|date|url|uri|e-?mail address|e-?mail|uuid|guid|ipv4|ipv6|ip address|phone number|hostname|YYYY-MM-DD(?:[T ]HH:MM(?::SS)?)?|HH:MM(?::SS)?|MM/DD/YYYY|DD/MM/YYYY)(?: (?:format|string|value))?(?=$|[\s.,;:)])", bad_format,
         "date", "time", "url", "uri", "mail", "uuid", "guid", "ip", "phone", "hostname", "yyyy", "hh:mm"),
    rule(rf"{SUBJECT}(?:invalid|malformed|bad) (?P<format>ISO datetime|ISO date|ISO time|datetime|date|url|uri|e-?mail address|e-?mail|uuid|guid|ip address|phone number)(?=$|[\s.,;:)])(?:[: ]+(?P<value>{VALUE}))?", bad_format, "invalid", "malformed", "bad "),
    rule(rf"{SUBJECT}{_MUST} match (?:the )?(?:required )?(?:format|pattern|regular expression|regex):? {Q}?/?(?P<format>[^\n]+?)/?{Q}?(?=$|, data|\s\(|\s*$)", bad_format, " match "),
    # names of things that do not exist
    rule(rf"no (?:time ?zone|\w+) (?:found )?(?:with|for|named|matching|called)(?: the)? (?:key |id |name )?"
         rf"{Q}?(?P<value>[^'\"`\n]{{1,200}}?){Q}?(?: (?:was|could be|is) found)?(?:$|[.;,])", not_found, "no "),
    rule(rf"(?:ref|reference|revision|pathspec|branch|tag|object|file|folder|directory|path|user|repository|resource|relation|database|collection|index|model|function|"
         rf"table|column|key|entity|device|ticket|order|channel|city|location|symbol|project|account|message|contact|product|item|page|issue|record|document|customer)(?: named| with (?:id|name|key|ID|username))? {Q}(?P<value>[^'\"`\n]+){Q} (?:did not (?:resolve|match)|"
         r"does not exist|doesn't exist|was not found|not found|is unknown|could not be found|cannot be found|not recognized)", not_found, "not ", "n't exist", "is unknown"),
    rule(r"(?<![\w'\"])(?:(?P<thing>[\w ]{1,40}?) )?(?<![.@#/:-])(?=[A-Za-z:]{0,60}[\d_@#/.-])(?P<value>[\w.@#/:-]{1,120}+) (?:was )?(?:not found|does not exist|doesn't exist|could not be found|is not available)(?![\w])", not_found, "not ", "doesn't exist"),
    rule(r"(?<![\w'\"])(?:user|ticket|message|file|folder|city|channel|project|contact|account|repository|branch|device|station|airport|order|product|location|symbol|tool|resource|path|directory)(?: with (?:id|name|username|key))? (?P<value>[\w.@#/-]{1,100}) (?:was )?(?:not found|does not exist|doesn't exist|could not be found)", not_found, "not ", "doesn't exist"),
    rule(rf"no such file or directory, \w+ (?P<value>{VALUE})", not_found, "no such file"),  # Node
    rule(rf"no such (?:file(?: or directory)?|table|column|file|user|branch|key|object|container|customer|price|charge|function|index|collection|device|model|image|volume|network)(?:[^\n:]{{0,20}}: | (?!or |[^\n]{{0,60}}:))"
         rf"{Q}?(?P<value>[^'\"`\n]{{1,200}}?){Q}?(?:$|[;,])", not_found, "no such"),
    rule(r"^(?:[\w-]{1,20}: ){0,2}(?:(?:cannot|failed to) \w+(?: \w+)? )?['\u2018]?(?P<value>[^\s:'\u2018\u2019\n]{1,200})['\u2019]?: no such (?:file|directory)", not_found, "no such"),  # shells
    rule(r"^(?:[\w-]{1,20}: ){1,2}(?:(?:cannot|failed to) \w+(?: \w+)? (?:['\u2018][^'\u2019\n]{1,200}['\u2019] to )?)?['\u2018]?(?P<value>[^\s:'\u2018\u2019\n]{1,200})['\u2019]?: (?:invalid character|(?:is )?(?:not )?a (?:file or )?directory|file exists|directory not empty)", invalid, "invalid character", "a directory", "or directory", "file exists", "not empty"),
    rule(rf"unknown (?:time ?zone|revision|branch|user|city|currency|unit|location|column|table|database|channel|tool|mailbox|topic|symbol|station|airport|target|id|device|model|language):? "
         rf"{Q}?(?P<value>[^'\"`\n,;]{{1,200}}?){Q}?(?:$|[.,;]| in )", not_found, "unknown"),
    rule(rf"(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate|resolve)(?: the| an?)? (?:\w+ ){{0,3}}?(?:with |named |for )?(?:the )?(?:name |id |key |'id'=)?(?P<value>{VALUE}|\d{{1,18}}(?=$|[\s.,;]))", not_found, "find", "locate", "resolve"),
    rule(rf"(?P<value>{VALUE}) (?:was |could |is )?(?:not (?:be )?found|not exist|does not exist|doesn't exist|not a known)(?! in schema)", not_found, "not ", "n't exist"),
    # refused
    rule(rf"invalid (?P<name>[a-z_]+(?: [a-z_]+){{0,2}}): "
         rf"{Q}?(?P<value>[^'\"`\n]{{1,100}}?){Q}?(?:$|\. )", invalid, "invalid "),
    rule(rf"invalid (?:value )?(?P<value>{VALUE}) for (?:option |parameter |argument |field |key |attribute |variable )?{Q}?-{{0,2}}(?P<name>{NAME}){Q}?", invalid, "invalid "),
    rule(rf"(?:invalid|bad|illegal|incorrect|wrong) (?:value|\w+ value|input|argument|data|type) (?:for|of|in|at|to) (?:the )?(?:option |parameter |argument |field |key |attribute |column |property |query parameter )?{Q}?-{{0,2}}(?P<name>{NAME}){Q}?(?:: ?(?P<value>{VALUE}))?", invalid, "invalid ", "bad ", "illegal ", "incorrect ", "wrong "),
    rule(rf"(?P<value>{Q}[^'\"`\n]{{1,100}}{Q}) is not (?:an? )?(?:valid|recogni[sz]ed|supported|known|acceptable|legal)"
         r" ?(?P<name>[\w ]{0,30})", invalid, "is not"),
    rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?):? (?:is|was|has|does not have|appears to be) (?:an? )?(?:invalid|malformed|not valid|unsupported|not supported|valid value|invalid value)(?=$|[\s.,;)])", invalid, "invalid", "malformed", "not valid", "support", "valid value"),
    rule(rf"invalid (?P<name>[a-z_]{{2,30}}(?: [a-z_]{{2,30}}){{0,2}}) (?P<value>{VALUE})(?=$|[.,;])", invalid, "invalid "),
    rule(r"^invalid (?P<name>[a-z_]{2,30}(?: [a-z_]{2,30}){0,2})[.!]?$", invalid, "invalid "),
    rule(rf"did you mean(?: to \w+)?(?: the \w+ \w+)?:? {Q}(?P<near>[^'\"`\n?]+){Q}", suggested, "did you mean"),
    rule(rf"(?:perhaps|maybe) (?:you meant|try)(?: to \w+ the \w+)? {Q}(?P<near>[^'\"`\n?]+){Q}", suggested, "perhaps", "maybe"),
    rule(rf"a similar (?:argument|name|subcommand|value|option|field) exists: {Q}-{{0,2}}(?P<near>[^'\"`\n?]+){Q}", suggested, "a similar"),
)  # fmt: skip

_RULES = (*DIALECTS, *_COMMON)
