"""Phrases that one validator, language, engine or platform writes in exactly this form."""

import re
from collections.abc import Iterator
from dataclasses import replace

from retrieval.reading import rules as r
from retrieval.reading.faults import Fault, JsonType
from retrieval.reading.literals import json_type
from retrieval.reading.rules import LITERAL, NAME, NUMBER, VALUE, Q, rule

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
    path, tag = r.path_of(match["name"]), match["tag"]
    if tag.startswith("required"):
        yield Fault("missing", path)
    elif tag in _GO_FORMATS:
        yield Fault("bad_format", path, expected_format=r.FORMATS.get(tag, tag))
    elif tag in ("gt", "gte", "lt", "lte", "min", "max", "len"):
        yield Fault("out_of_range", path)
    else:
        yield Fault("invalid", path)


def _too_small(match: re.Match[str]) -> Iterator[Fault]:
    for fault in r.bound(match):
        yield replace(fault, minimum=fault.minimum or 1, of_length=True)


def _exclusive(match: re.Match[str]) -> Iterator[Fault]:
    step = 1 if match.groupdict().get("low") else -1
    for fault in r.bound(match):
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
    yield from r.stated(match)


def _format_name(match: re.Match[str]) -> Iterator[Fault]:
    kind = {"localdate": "date", "localdatetime": "date-time", "instant": "date-time", "datetime": "date-time",
            "uuid": "uuid", "url": "uri", "uri": "uri"}.get(match["types"].lower())  # fmt: skip
    if kind:
        yield Fault("bad_format", expected_format=kind, value_text=match["value"])
    else:
        yield from r.wrong_type(match)


_STRCONV: dict[str, JsonType] = {
    "atoi": "integer", "int": "integer", "uint": "integer", "float": "number", "bool": "boolean",
}  # fmt: skip


def _sql_type(match: re.Match[str]) -> Iterator[Fault]:
    kind = match["types"].lower()
    if kind in ("date", "time", "uuid", "json", "timestamp", "datetime", "interval"):
        form = r.FORMATS.get(kind, kind)
        yield Fault("bad_format", _sql_name(match), expected_format=form, value_text=match["value"])
    elif types := json_type({"bigint": "int", "smallint": "int"}.get(kind, kind)):
        yield Fault(
            "wrong_type", _sql_name(match), expected_types=(types,), value_text=match["value"]
        )


def _sql_name(match: re.Match[str]) -> tuple[str | int, ...]:
    return r.path_of(match.groupdict().get("name"))


def _k8s(match: re.Match[str]) -> Iterator[Fault]:
    if match["low"]:
        yield from r.bound(match)
    else:
        yield from r.invalid(match)


def _aws_type(match: re.Match[str]) -> Iterator[Fault]:
    names = re.findall(r"'(\w+)'", match["types"])
    types = tuple(dict.fromkeys(kind for name in names if (kind := json_type(name))))
    yield Fault("wrong_type", r.path_of(match["name"]), expected_types=types)


def _choice(match: re.Match[str]) -> Iterator[Fault]:
    for fault in r.not_allowed(match):
        yield replace(fault, path=r.path_of(match["name"] or match["option"]))


DIALECTS = (
    # Python's own TypeError for arguments
    rule(r"missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>[^\n]+)",
         r.missing_each, "missing"),
    rule(rf"(?:got an )?unexpected (?:keyword )?argument:? {Q}-{{0,2}}(?P<name>[^'\"`\n]+){Q}"
         rf"(?:(?:\. Did you mean|[^\n]{{0,20}}\n[^\n]{{0,60}}a similar argument exists:) {Q}-{{0,2}}(?P<near>[^'\"`\n]+){Q})?", r.unexpected, "unexpected"),
    rule(r"the following arguments are required: (?P<names>[^\n]+)", r.missing_each, "arguments are required"),  # argparse
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
    rule(r"sequence item (?P<index>\d{1,6}): expected (?P<types>str) instance", r.wrong_type, "sequence item"),
    rule(rf"could not convert string to (?P<types>float|int)(?: \w+)?: (?P<value>{VALUE})", r.wrong_type, "could not convert"),
    rule(rf"invalid literal for (?P<types>int|float)\(\)[^\n]{{0,100}}?: (?P<value>{VALUE})", r.wrong_type, "invalid literal"),
    rule(rf"invalid isoformat string: (?P<value>{VALUE})(?P<format>)", lambda m: iter((Fault("bad_format", value_text=m["value"]),)), "isoformat"),
    rule(r"\A'(?P<name>[A-Za-z_][\w -]{0,63})'\Z", _key_error, "'"),
    # jsonschema
    rule(rf"{Q}(?P<name>[^'\"`\n]+){Q} is a (?:dependency of|required property)", r.missing, "is a "),
    rule(r"additional properties are not allowed \((?P<names>[^)\n]+) (?:was|were) unexpected\)",
         r.unexpected_each, "additional properties"),
    rule(r"(?P<names>'[^\n]{1,500}) (?:does|do) not match any of the regexes", r.unexpected_each, "of the regexes"),
    rule(rf"(?P<value>{LITERAL}) is not of type (?P<types>[^\n]+)", r.wrong_type, "is not of type"),
    rule(rf"(?P<value>{NUMBER}) is (?:greater than|more than) the maximum(?: of)? (?P<high>{NUMBER})", r.bound, "the maximum"),
    rule(rf"(?P<value>{NUMBER}) is less than the minimum(?: of)? (?P<low>{NUMBER})", r.bound, "the minimum"),
    rule(rf"(?P<value>{NUMBER}) is greater than or equal to the maximum(?: of)? (?P<high>{NUMBER})", _exclusive, "the maximum"),
    rule(rf"(?P<value>{NUMBER}) is less than or equal to the minimum(?: of)? (?P<low>{NUMBER})", _exclusive, "the minimum"),
    rule(rf"(?P<value>{NUMBER}) is not a multiple of (?P<step>{NUMBER})", r.multiple, "multiple of"),
    rule(rf"(?P<value>{VALUE}|{NUMBER}) is not one of (?P<values>\[[^\]\n]*\]|'[^\n]{{1,2000}})", r.not_allowed, "is not one of"),
    rule(rf"(?P<value>{VALUE}) does not match {Q}(?P<format>[^\n]+?){Q}$", r.bad_format, "does not match"),
    rule(rf"(?P<value>{VALUE}) does not match format {Q}(?P<format>[^'\n]+){Q}", r.bad_format, "does not match format"),
    rule(rf"(?P<value>{VALUE}) is not a {Q}(?P<format>[\w-]+){Q}", r.bad_format, "is not a "),
    rule(rf"(?P<value>{LITERAL}) (?:should be non-empty|does not have enough properties)", r.not_empty, "non-empty", "enough properties"),
    rule(rf"(?P<value>{LITERAL}) is too (?:short|long)$", _length, "is too "),
    rule(rf"(?P<value>{LITERAL}) (?:has non-unique elements|is not valid under any of the given schemas|is valid under each of|has too many properties)", r.invalid, "non-unique", "given schemas", "valid under", "too many properties"),
    rule(rf"^(?P<stated>{VALUE}|{NUMBER}) was expected", _constant, "was expected"),
    # ajv
    rule(rf"(?:(?P<at>(?:data|body|args|params|request)?[/.][\w/.\[\]-]{{1,200}}|[\w.]{{1,100}}) )?(?:must|should) have required propert(?:y|ies) {Q}?(?P<name>[\w$.-]+)", r.missing, "required propert"),
    rule(rf"(?:must|should) NOT have (?:additional|unevaluated) properties:? {Q}?(?P<name>(?!data\b)[\w$.-]+)", r.unexpected, "properties"),
    rule(rf"(?P<name>{NAME}) (?:must|should) NOT have (?:fewer|less) than (?P<low>{NUMBER}) (?P<length>characters|items|properties)", r.bound, "not have"),
    rule(rf"(?P<name>{NAME}) (?:must|should) NOT (?:have more than|be longer than) (?P<high>{NUMBER}) (?P<length>characters|items|properties)", r.bound, "not "),
    rule(rf"(?P<name>{NAME}) (?:must|should) NOT be shorter than (?P<low>{NUMBER}) (?P<length>characters)", r.bound, "not be shorter"),
    rule(rf"(?P<name>{NAME}) (?:must|should) (?:be equal to constant|NOT have duplicate items|match (?:exactly one|a) schema in|be valid)", r.invalid, "constant", "duplicate items", "schema in"),
    # zod
    rule(rf"(?:(?P<name>{NAME}): )?too big: expected (?:\w+ )?to (?:be|have) (?P<below><(?!=))?(?:<=)?(?P<high>{NUMBER})(?: ?(?P<length>characters?|items?|elements?))?", r.bound, "too big"),
    rule(rf"(?:(?P<name>{NAME}): )?too small: expected (?:\w+ )?to (?:be|have) (?P<above>>(?!=))?(?:>=)?(?P<low>{NUMBER})(?: ?(?P<length>characters?|items?|elements?))?", r.bound, "too small"),
    rule(rf"(?:(?P<name>{NAME}): )?invalid enum value\. expected (?P<values>[^\n]{{1,2000}}?), received (?P<value>{VALUE})", r.not_allowed, "enum value"),
    rule(rf"(?:(?P<name>{NAME}): )?invalid (?:literal value, |input: )expected (?P<stated>{VALUE}|{NUMBER})(?=$|[;,\n])", _constant, "expected "),
    rule(rf"(?:^|[;\n] ?)(?P<name>{NAME}): invalid(?: input)?(?=$|;)", r.invalid, ": invalid"),
    rule(rf"(?:(?P<at>{NAME}): |(?<!\w): )?unrecognized keys?(?:\(s\) in object)?: (?P<names>['\"][^\n;]+)", r.unexpected_each, "unrecognized key"),
    # joi, yup
    rule(rf"(?P<name>{Q}{NAME}{Q}) with value {VALUE} fails to match the (?:required|[\w ]{{1,40}}) pattern: /?(?P<format>[^\n]+?)/?(?=$|\. )", r.bad_format, "fails to match"),
    rule(rf"(?P<name>{Q}{NAME}{Q}) (?P<length>length|must contain) (?:must be )?(?:less than or equal to|at most) (?P<high>{NUMBER})", r.bound, "less than or equal", "at most"),
    rule(rf"(?P<name>{Q}{NAME}{Q}) (?P<length>length) must be (?:at least|greater than or equal to) (?P<low>{NUMBER})", r.bound, "length must"),
    rule(rf"(?P<name>{NAME}) must be a `(?P<types>\w+)` type, but the final value was", r.wrong_type, "the final value"),
    # Node
    rule(r"the \"(?P<name>[\w.]{1,64})\" (?:argument|property) must be (?:of type|an instance of|one of type) (?P<types>[\w ,|]{1,60}?)\.? (?:Received|$)", r.wrong_type, "must be "),
    rule(rf"the value of \"(?P<name>[\w.]{{1,64}})\" is out of range\. It must be >= ?(?P<low>{NUMBER}) (?:&&|and) <= ?(?P<high>{NUMBER})", r.bound, "out of range"),
    # Go
    rule(r"cannot unmarshal (?P<value>\w+) into Go (?:struct field|value) (?:\w+\.)?"
         r"(?P<name>[\w.]+) of type \*?(?P<types>[\w\[\]]+)", r.wrong_type, "cannot unmarshal"),
    rule(r"field validation for '(?P<name>\w+)' failed on the '(?P<tag>\w+)' tag", _go_tag, "field validation for"),
    rule(rf"strconv\.(?:Parse)?(?P<types>Atoi|Int|Uint|Float|Bool): parsing (?P<value>{VALUE})",
         lambda m: iter((Fault("wrong_type", expected_types=(_STRCONV[m["types"].lower()],), value_text=m["value"]),)), "strconv."),
    rule(rf"parsing time (?P<value>{VALUE}) as (?P<format>{VALUE})", r.bad_format, "parsing time"),
    rule(r"json: unknown field \"(?P<name>[\w.-]+)\"|flag provided but not defined: -{1,2}(?P<flag>[\w-]+)", lambda m: iter((Fault("unexpected", (m["name"] or m["flag"],)),)), "unknown field", "flag provided"),
    # Rust's serde and clap
    rule(rf"invalid type: \w+(?: \w+)? (?P<value>{VALUE}|`[^`\n]{{1,100}}`|{NUMBER}), expected (?:an? |a sequence|)?(?P<types>\w+)", r.wrong_type, "invalid type"),
    rule(rf"unknown variant (?P<value>{VALUE}), expected (?:one of )?(?P<values>[^\n]{{1,2000}}?)(?= at line|$)", r.not_allowed, "unknown variant"),
    rule(r"missing field `(?P<name>[^`\n]{1,64})`", r.missing, "missing field"),
    rule(rf"invalid value (?P<value>{VALUE}) for '-{{0,2}}(?P<name>[\w-]+)[^'\n]{{0,40}}'", r.invalid, "invalid value"),
    # Java: Jackson, Spring, the JDK
    rule(r"value of type `(?:[\w.]{0,100}\.)?(?P<types>\w+)(?:<[^`\n]{0,100}>)?` from \w+ (?:value )?\(?"
         rf"(?P<value>{VALUE})", _format_name, "value of type `"),
    rule(rf"NumberFormatException: for input string: (?P<value>{VALUE})", lambda m: iter((Fault("wrong_type", expected_types=("number",), value_text=m["value"]),)), "for input string"),
    rule(rf"required type '(?:[\w.]{{0,100}}\.)?(?P<types>\w+)'[^\n]{{0,60}}for input string: (?P<value>{VALUE})", r.wrong_type, "required type"),
    rule(r"no enum constant (?:[\w$]{1,64}\.){1,12}(?P<value>\w{1,64})", r.invalid, "no enum constant"),
    rule(rf"(?:text |string )?(?P<value>{VALUE}) (?:could not be parsed|was not recognized as a valid DateTime)", lambda m: iter((Fault("bad_format", value_text=m["value"]),)), "could not be parsed", "not recognized"),
    # .NET
    rule(r"(?:value cannot be null|specified argument was out of the range of valid values)\.? \(Parameter '(?P<name>\w{1,64})'\)",
         lambda m: iter((Fault("missing" if "null" in m[0].lower() else "out_of_range", (m["name"],)),)), "(parameter '"),
    rule(r"could not be converted to System\.(?:Nullable`1\[System\.)?(?P<types>\w+)\]?\. Path: \$\.?(?P<name>[\w.\[\]]{1,200})", r.wrong_type, "could not be converted"),
    rule(rf"the input string (?P<value>{VALUE}) was not in a correct format", lambda m: iter((Fault("wrong_type", expected_types=("number",), value_text=m["value"]),)), "correct format"),
    # Ruby, PHP
    rule(rf"invalid value for (?P<types>Integer|Float)\(\): (?P<value>{VALUE})", r.wrong_type, "invalid value for"),
    rule(r"param is missing or the value is empty: (?P<name>[\w.]+)", r.missing, "param is missing"),
    rule(r"argument #\d+ \(\$(?P<name>\w+)\) must be of type \??(?P<types>\w+), (?P<given>\w+) given", r.wrong_type, "must be of type"),
    # SQL engines
    rule(rf"invalid input syntax for (?:type )?(?P<types>\w+): (?P<value>{VALUE})", _sql_type, "invalid input syntax"),
    rule(rf"incorrect (?P<types>integer|decimal|double|date|datetime) value: (?P<value>{VALUE}) for column (?P<name>{VALUE})", _sql_type, "incorrect "),
    rule(r"null value in column \"(?P<name>[^\"\n]{1,64})\"|not null constraint failed: (?:\w+\.)?(?P<sqlite>\w{1,64})|column '(?P<mysql>\w{1,64})' cannot be null|field '(?P<absent>\w{1,64})' doesn't have a default",
         lambda m: iter((Fault("missing", (m["name"] or m["sqlite"] or m["mysql"] or m["absent"],)),)), "null", "default"),
    rule(r"(?:no such (?:column|table|function)|unknown column): ?(?P<value>[\w.]{1,100})", r.not_found, "no such", "unknown column"),
    rule(rf"unknown (?:column|database|table) (?P<value>{VALUE})", r.not_found, "unknown "),
    rule(r"column (?P<value>[\w.]{1,100}) does not exist(?:[^\n]{0,80}\n[^\n]{0,80}perhaps you meant to reference the column \"(?:\w+\.)?(?P<near>\w+)\")?", r.not_found, "does not exist"),
    rule(r"too long for type \w+(?: \w+)?\((?P<high>\d{1,9})(?P<length>)\)", lambda m: iter((Fault("out_of_range", maximum=float(m["high"]), of_length=True),)), "too long for type"),
    rule(r"data too long for column '(?P<name>\w{1,64})'", lambda m: iter((Fault("out_of_range", (m["name"],), of_length=True),)), "data too long"),
    rule(rf"date/time field value out of range: (?P<value>{VALUE})", lambda m: iter((Fault("bad_format", expected_format="date", value_text=m["value"]),)), "date/time field"),
    rule(r"out of range value for column '(?P<name>\w{1,64})'", lambda m: iter((Fault("out_of_range", (m["name"],)),)), "out of range value"),
    # Kubernetes
    rule(rf"(?:(?<![\w.\]])(?:\w{{1,64}}(?:\[\d{{1,4}}\])?\.){{0,8}}(?P<name>\w{{1,64}}): )?unsupported value: (?P<value>{VALUE}): supported values: (?P<values>[^\n]{{1,2000}})", r.not_allowed, "unsupported value"),
    rule(r"(?<![\w.\]])(?:\w{1,64}(?:\[\d{1,4}\])?\.){0,8}(?P<name>\w{1,64}): required value", r.missing, "required value"),
    rule(rf"(?<![\w.\]])(?:\w{{1,64}}(?:\[\d{{1,4}}\])?\.){{0,8}}(?P<name>\w{{1,64}}): invalid value: (?P<value>{VALUE}|{NUMBER})(?:: must be (?:between (?P<low>{NUMBER}) and (?P<high>{NUMBER})))?", _k8s, "invalid value: "),
    # AWS, Terraform, Stripe, argparse and click
    rule(r"missing required parameter in input: \"(?P<name>\w+)\"", r.missing, "parameter in input"),
    rule(r"unknown parameter in input: \"(?P<name>\w+)\", must be one of", r.unexpected, "parameter in input"),
    rule(r"invalid type for parameter (?P<name>[\w.\[\]]{1,200}), value: [^\n]{0,200}?valid types: (?P<types><class '\w+'>(?:, <class '\w+'>){0,5})", _aws_type, "invalid type for parameter"),
    rule(rf"value (?P<value>{VALUE}) at '(?P<name>[\w.]{{1,200}})' failed to satisfy constraint: member must have length greater than or equal to (?P<low>\d+)(?P<length>)", lambda m: iter((Fault("out_of_range", r.path_of(m["name"]), minimum=float(m["low"]), of_length=True),)), "greater than or equal"),
    rule(rf"value (?P<value>{VALUE}) at '(?P<name>[\w.]{{1,200}})' failed to satisfy constraint: member must have length less than or equal to (?P<high>\d+)", lambda m: iter((Fault("out_of_range", r.path_of(m["name"]), maximum=float(m["high"]), of_length=True),)), "less than or equal"),
    rule(rf"value (?P<value>{VALUE}) at '(?P<name>[\w.]{{1,200}})' failed to satisfy constraint: member must satisfy enum value set: (?P<values>\[[^\]\n]{{1,2000}}\])", r.not_allowed, "enum value set"),
    rule(r"an argument named \"(?P<name>[\w-]+)\" is not expected here(?:\. Did you mean \"(?P<near>[\w-]+)\")?", r.unexpected, "not expected here"),
    rule(r"the argument \"(?P<name>[\w-]+)\" is required", r.missing, "is required"),
    rule(r"expected (?P<name>[\w.]+) to be one of (?P<values>\[[^\]\n]{1,2000}\]), got (?P<value>[^\s,]{1,100})", r.not_allowed, "to be one of"),
    rule(r"(?:received )?(?:unknown|unrecognized) (?:request )?(?:parameter|argument)s?(?: supplied)?: (?P<name>[\w\[\]-]{1,64}(?:\.[\w\[\]-]{1,64}){0,6})(?:[.?] Did you mean (?P<near>[\w.\[\]-]{1,64})\?)?", r.unexpected, "parameter", "argument"),
    rule(r"missing required param: (?P<name>[\w.\[\]-]{1,64}?)\.?$", r.missing, "required param"),
    rule(rf"(?:argument -{{0,2}}(?P<name>[\w-]{{1,64}})[^\n:]{{0,20}}: )?invalid (?:choice|value for {Q}-{{0,2}}(?P<option>[\w-]{{1,64}}){Q}):? (?P<value>{VALUE})"
         r" \(choose from (?P<values>[^)\n]+)\)", _choice, "choose from"),
    rule(r"invalid (?:fields?|parameters?|keys?|options?|arguments?)(?: for \w{1,30})?: (?P<names>\w{1,64}(?:, \w{1,64}){0,20})(?=$|[.;])", r.unexpected_each, "invalid "),
    # GraphQL
    rule(r"cannot query field \"(?P<name>\w+)\" on type \"\w+\"(?:\. Did you mean (?:to use [^\n]{0,60})?\"(?P<near>\w+)\")?", r.unexpected, "cannot query field"),
    rule(r"unknown argument \"(?P<name>\w+)\" on field \"[\w.]+\"(?:\. Did you mean \"(?P<near>\w+)\")?", r.unexpected, "unknown argument"),
    rule(r"(?:variable \"\$(?P<name>\w+)\" of required type|argument \"(?P<other>\w+)\" of type \"[^\"\n]{1,60}\" is required)", lambda m: iter((Fault("missing", (m["name"] or m["other"],)),)), "required"),
    rule(rf"variable \"\$(?P<name>\w+)\" got invalid value (?P<value>{VALUE}|{NUMBER}); (?P<types>Int|Float|String|Boolean) cannot represent", r.wrong_type, "got invalid value"),
    rule(r"value \"(?P<value>\w{1,64})\" does not exist in \"\w+\" enum(?:\. Did you mean the enum value \"(?P<near>\w+)\")?", lambda m: iter((Fault("invalid", value_text=m["value"], suggested=m["near"]),)), "does not exist in"),
    # git
    rule(rf"pathspec (?P<value>{VALUE}) did not match", r.not_found, "pathspec"),
)  # fmt: skip
