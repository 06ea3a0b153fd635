"""Faults in plain text: jsonschema, ajv's text, Python's TypeError, and common phrases.

Each rule is a pattern and what it means. A parameter is named either in the pattern or, when the
message only shows the value, found later by that value (see `reader`).
"""

import re
from collections.abc import Callable, Iterator

from retrieval.reading.faults import Fault, Path
from retrieval.reading.literals import json_type, number, quoted, value_list

_Q = r"""['"`]"""
# Bounded and anchored at a word's start, so that no text makes the search quadratic.
_NAME = r"(?<![\w$.-])[A-Za-z_$][\w$-]{0,63}(?:[.\[][\w$\]-]{1,64}){0,6}"
# Words that stand where a parameter's name may stand, and are none.
_NOT_NAMES = frozenset(
    (
        "it", "this", "that", "value", "values", "input", "argument", "arguments", "parameter",
        "parameters", "field", "property", "data", "which", "and", "is", "was", "be", "the", "a",
        "an", "of", "or", "not", "item", "items", "option", "body", "request", "you", "there",
        "must", "should", "string", "number", "integer", "error", "invalid", "expected", "required",
    )
)  # fmt: skip

_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], Iterator[Fault]]]


def read_text(message: str) -> Iterator[Fault]:
    """The faults that the phrases of a message name, in the order of the rules."""
    for pattern, faults in _RULES:
        for match in pattern.finditer(message):
            yield from faults(match)


def _path(name: str | None) -> Path:
    """`/flights/0/date`, `flights.0.date` and `flights[0].date` all lead to the same place."""
    if not name:
        return ()
    parts = [part for part in re.split(r"[./\[\]]+", name.strip("/.'\"` ")) if part]
    if (
        parts
        and parts[0] in ("data", "body", "args", "arguments", "params", "instance")
        and (len(parts) > 1)
    ):
        parts = parts[1:]
    in_quotes = name.strip() != name.strip().strip("'\"`")
    if not parts or (parts[0].lower() in _NOT_NAMES and not in_quotes):
        return ()
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _missing_each(match: re.Match[str]) -> Iterator[Fault]:
    for name in _names(match["names"]):
        if path := _path(name):
            yield Fault("missing", path)


def _missing(match: re.Match[str]) -> Iterator[Fault]:
    if path := _path(match["name"]):
        yield Fault("missing", path)


def _unexpected_each(match: re.Match[str]) -> Iterator[Fault]:
    for name in _names(match["names"]):
        if path := _path(name):
            yield Fault("unexpected", path)


def _names(text: str) -> list[str]:
    """Names in quotation marks (kept, so that `'a'` is no article), else the bare words."""
    return [f"'{name}'" for name in quoted(text)] or re.findall(_NAME, text)


def _unexpected(match: re.Match[str]) -> Iterator[Fault]:
    if path := _path(match["name"]):
        yield Fault("unexpected", path, suggested=match.groupdict().get("near"))


def _wrong_type(match: re.Match[str]) -> Iterator[Fault]:
    groups = match.groupdict()
    names = re.split(r"\s*(?:,|\||\bor\b)\s*", groups["types"])
    types = tuple(kind for name in names if (kind := json_type(name)))
    if types:
        yield Fault(
            "wrong_type",
            _path(groups.get("name")),
            expected_types=types,
            value_text=groups.get("value"),
        )


def _not_allowed(match: re.Match[str]) -> Iterator[Fault]:
    groups = match.groupdict()
    allowed = value_list(groups["values"])
    if allowed:
        yield Fault(
            "not_allowed",
            _path(groups.get("name")),
            allowed=allowed,
            value_text=groups.get("value"),
        )


def _bound(match: re.Match[str]) -> Iterator[Fault]:
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
        _path(groups.get("name")),
        minimum=minimum,
        maximum=maximum,
        of_length=bool(groups.get("length")),
        value_text=groups.get("value"),
        exclusive=exclusive,
    )


def _sign(match: re.Match[str]) -> Iterator[Fault]:
    positive = match["sign"].lower() == "positive"
    yield Fault("out_of_range", _path(match["name"]), minimum=float(positive), exclusive=positive)


def _bad_format(match: re.Match[str]) -> Iterator[Fault]:
    groups = match.groupdict()
    yield Fault(
        "bad_format",
        _path(groups.get("name")),
        expected_format=groups.get("format"),
        value_text=groups.get("value"),
    )


def _not_found(match: re.Match[str]) -> Iterator[Fault]:
    groups = match.groupdict()
    yield Fault("not_found", value_text=groups["value"], suggested=groups.get("near"))


def _invalid(match: re.Match[str]) -> Iterator[Fault]:
    groups = match.groupdict()
    words = (groups.get("name") or "").strip().split()
    name = "_".join(words) if words else None
    yield Fault("invalid", _path(name), value_text=groups.get("value"))


def _suggested(match: re.Match[str]) -> Iterator[Fault]:
    yield Fault("invalid", suggested=match["near"])


def _rule(pattern: str, faults: Callable[[re.Match[str]], Iterator[Fault]]) -> _Rule:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE), faults


_NUMBER = r"(?<![\d,])-?\d[\d,]{0,20}(?:\.\d{1,20})?"
# A quoted value as Python and JSON write it; each kind ends at its own mark, so that a text of
# nothing but marks is read once.
_VALUE = r"(?:'(?:[^'\\\n]|\\.){0,200}+'|\"(?:[^\"\\\n]|\\.){0,200}+\"|`[^`\n]{0,200}+`)"
_SUBJECT = rf"(?:(?P<name>{_Q}?/?{_NAME}{_Q}?)\s*:?\s+)?"

_RULES: list[_Rule] = [
    # Python's own TypeError for arguments
    _rule(r"missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>[^\n]+)",
          _missing_each),
    _rule(rf"(?:got an )?unexpected (?:keyword )?argument:? {_Q}(?P<name>[^'\"`\n]+){_Q}"
          rf"(?:\. Did you mean {_Q}(?P<near>[^'\"`\n]+){_Q})?", _unexpected),
    # jsonschema and ajv
    _rule(rf"{_Q}(?P<name>[^'\"`\n]+){_Q} is a (?:dependency of|required property)", _missing),
    _rule(rf"must have required propert(?:y|ies) {_Q}?(?P<name>[\w$.-]+)", _missing),
    _rule(r"additional properties are not allowed \((?P<names>[^)\n]+) (?:was|were) unexpected\)",
          _unexpected_each),
    _rule(rf"must NOT have additional properties:? {_Q}?(?P<name>[\w$.-]+)", _unexpected),
    _rule(rf"(?P<value>{_VALUE}|{_NUMBER}|True|False|None|\[[^\n]{{0,200}}?\]|\{{[^\n]{{0,200}}?\}})"
          r" is not of type (?P<types>[^\n]+)", _wrong_type),
    _rule(rf"(?P<value>{_NUMBER}) is (?:greater than|greater than or equal to) the maximum"
          rf"(?: of)? (?P<high>{_NUMBER})", _bound),
    _rule(rf"(?P<value>{_NUMBER}) is (?:less than|less than or equal to) the minimum"
          rf"(?: of)? (?P<low>{_NUMBER})", _bound),
    _rule(rf"(?P<value>{_VALUE}|{_NUMBER}) is not one of (?P<values>\[[^\]\n]*\]|'[^\n]{{1,2000}})",
          _not_allowed),
    _rule(rf"(?P<value>{_VALUE}) does not match {_Q}(?P<format>[^\n]+?){_Q}",
          _bad_format),
    _rule(rf"(?P<value>{_VALUE}) is not a {_Q}(?P<format>[\w-]+){_Q}", _bad_format),
    _rule(r"field validation for '(?P<name>\w+)' failed on the 'required' tag", _missing),  # Go
    # missing and unknown, in words
    _rule(r"missing (?:the )?(?:required )?(?:parameter|argument|field|propert|param|input|key)"
          r"(?:s|y|ies)?(?:\(s\))?:? (?P<names>[^\n.;]+)", _missing_each),
    _rule(rf"(?:parameter|argument|field|property|param|key) (?P<name>{_Q}?{_NAME}{_Q}?) "
          r"(?:is|was) (?:required|missing)", _missing),
    _rule(rf"(?:^|[\s:,;(])(?P<name>{_Q}?{_NAME}{_Q}?) (?:is (?:a )?required|is missing|"
          r"must be (?:provided|specified|given|set)|field required|cannot be (?:empty|blank|null))",
          _missing),
    _rule(r"(?:unknown|unrecogni[sz]ed|unexpected|unsupported|invalid|extra|undefined) (?:parameter|argument|field|propert|option|key|param|keyword|input)"
          rf"(?:s|y|ies)?(?: name)?:? {_Q}?(?P<name>{_NAME}){_Q}?(?=$|[\s.,;)\]])"
          r"(?!\s*(?:must|should|is|has|cannot|=|:))"
          rf"(?:[^\n]{{0,40}}did you mean:? {_Q}?(?P<near>[\w.$-]+))?", _unexpected),
    # types
    _rule(rf"{_SUBJECT}(?:must|should) be (?:an? |of type |a valid |type )*{_Q}?"
          r"(?P<types>str(?:ing)?|int(?:eger)?|number|float|double|bool(?:ean)?|list|array|dict|"
          rf"dictionary|object|null)\b{_Q}?", _wrong_type),
    _rule(rf"{_SUBJECT}expected (?:an? |type )?{_Q}?(?P<types>[a-z0-9]+){_Q}?,? "
          r"(?:but )?(?:got|received|found|not) ", _wrong_type),
    _rule(r"cannot unmarshal (?P<value>\w+) into Go (?:struct field|value) (?:\w+\.)?"
          r"(?P<name>[\w.]+) of type \*?(?P<types>[\w\[\]]+)", _wrong_type),
    _rule(rf"invalid literal for (?P<types>int|float)\(\)[^\n]{{0,100}}?: (?P<value>{_VALUE})",
          _wrong_type),
    _rule(rf"invalid type: \w+ (?P<value>{_VALUE}|{_NUMBER}), expected (?:an? )?(?P<types>\w+)",
          _wrong_type),  # Rust's serde
    _rule(r"value of type `(?:[\w.]{0,100}\.)?(?P<types>\w+)(?:<[^`\n]{0,100}>)?` from \w+ (?:value )?\(?"
          rf"(?P<value>{_VALUE})", _wrong_type),  # Jackson
    _rule(rf"expected (?P<types>\w+), received \w+\n\s*→ at (?P<name>{_NAME})", _wrong_type),  # zod 4
    # ranges
    _rule(rf"{_SUBJECT}(?:length )?(?:must|should|has to|needs to) be (?:a number )?"
          rf"(?:in the range |in range |between )\[?(?P<low>{_NUMBER})(?: and |-|\s*\.\.+\s*|, ?| to )"
          rf"(?P<high>{_NUMBER})", _bound),
    _rule(rf"{_SUBJECT}(?:must|should|has to|needs to|may|can) (?:be )?(?:<=|≤|at most|no more than|"
          r"no greater than|less than or equal to|up to|not exceed|not be (?:more|greater|larger|"
          rf"longer) than|a maximum of) ?(?P<high>{_NUMBER})(?: (?P<length>characters?|items?|"
          r"elements?))?", _bound),
    _rule(rf"{_SUBJECT}(?:must|should|has to) be (?P<below><|less than|below|under) "
          rf"(?P<high>{_NUMBER})", _bound),
    _rule(rf"{_SUBJECT}(?:must|should|has to|needs to) (?:be|have|contain) ?(?:>=|≥|at least|"
          rf"no less than|greater than or equal to|a minimum of) ?(?P<low>{_NUMBER})"
          r"(?: (?P<length>characters?|items?|elements?))?", _bound),
    _rule(rf"{_SUBJECT}(?:must|should|has to) be (?P<above>>|greater than|above|over|more than) "
          rf"(?P<low>{_NUMBER})", _bound),
    _rule(rf"{_SUBJECT}(?:cannot exceed|can't exceed|may not exceed|exceeds? (?:the )?(?:maximum|"
          rf"limit|max)(?: allowed)?(?: value)?(?: of| is|:)?) ?\(?(?P<high>{_NUMBER})", _bound),
    _rule(rf"maximum (?:allowed )?(?:value )?(?:for (?P<name>{_NAME}) )?(?:is|of) "
          rf"(?P<high>{_NUMBER})", _bound),
    _rule(rf"{_SUBJECT}(?:must|should|has to) be (?:a )?(?P<sign>non-negative|positive)", _sign),
    # closed lists
    _rule(rf"{_SUBJECT}(?:must|should) be (?:equal to )?(?:one|any) of(?: the following| the allowed"
          r" values)?(?: values)?:? (?P<values>[^\n]{1,2000}?)(?:$|\.\s|, got|, not|; got|\(got)",
          _not_allowed),
    _rule(r"(?<![a-z])(?:valid|allowed|permitted|supported|available|accepted|possible) (?:values?|options?|"
          r"choices|types?)(?: (?:for (?P<name>[\w.-]+) )?(?:are|is|include)|:) ?:?"
          r"(?P<values>[^\n]{1,2000}?)(?:$|\.\s)", _not_allowed),
    _rule(rf"invalid (?:choice|value for {_Q}(?P<name>[\w-]{{1,64}}){_Q}):? (?P<value>{_VALUE})"
          r" \(choose from (?P<values>[^)\n]+)\)", _not_allowed),
    _rule(rf"unknown variant (?P<value>{_VALUE}), expected (?:one of )?(?P<values>[^\n]{{1,2000}})",
          _not_allowed),  # Rust's serde
    _rule(rf"unsupported value: (?P<value>{_VALUE}): supported values: (?P<values>[^\n]{{1,2000}})",
          _not_allowed),  # Kubernetes
    _rule(rf"invalid enum value\. expected (?P<values>[^\n]{{1,2000}}?), received (?P<value>{_VALUE})",
          _not_allowed),  # zod 3
    _rule(r"expected one of:? (?P<values>[^\n]{1,2000}?)(?:$|\.\s|, got|, found)", _not_allowed),
    # formats
    _rule(r"invalid (?P<name>[\w ]{1,40}?) format\b[^\n]{0,200}?expected:? (?:format )?"
          r"(?P<format>[^\s\[(,;]+)", _bad_format),
    _rule(rf"(?P<value>{_VALUE}) does not match format {_Q}(?P<format>[^'\n]+){_Q}",
          _bad_format),
    _rule(rf"{_SUBJECT}(?:must|should) be (?:in|of) (?:the )?(?:form|format|pattern):? "
          rf"{_Q}?(?P<format>[^\s'\"`,;)]+)", _bad_format),
    _rule(rf"invalid isoformat string: (?P<value>{_VALUE})", _bad_format),
    # names of things that do not exist
    _rule(rf"no (?:time ?zone|\w+) found (?:with|for|named|matching) (?:key |id |name )?"
          rf"{_Q}?(?P<value>[^'\"`\n]{{1,200}}?){_Q}?(?:$|[.;,])", _not_found),
    _rule(rf"(?:ref|reference|revision|pathspec|branch|tag|object|file|user|repository|resource|"
          rf"table|column|key|entity) {_Q}(?P<value>[^'\"`\n]+){_Q} (?:did not (?:resolve|match)|"
          r"does not exist|doesn't exist|was not found|not found|is unknown)", _not_found),
    _rule(rf"no such file or directory, \w+ (?P<value>{_VALUE})", _not_found),  # Node
    _rule(rf"no such (?:file or directory|table|column|file|user|branch|key|object)[^\n:]{{0,20}}: "
          rf"{_Q}?(?P<value>[^'\"`\n]{{1,200}}?){_Q}?(?:$|[;,])", _not_found),
    _rule(rf"unknown (?:time ?zone|revision|branch|user|city|currency|unit|location):? "
          rf"{_Q}?(?P<value>[^'\"`\n,;]{{1,200}}?){_Q}?(?:$|[.,;])", _not_found),
    # refused
    _rule(r"invalid (?P<name>[a-z_]+(?: [a-z_]+){0,2}): "
          rf"{_Q}?(?P<value>[^'\"`\n]{{1,100}}?){_Q}?$", _invalid),
    _rule(rf"(?P<value>{_Q}[^'\"`\n]{{1,100}}{_Q}) is not (?:a )?(?:valid|recognized|supported)"
          r" ?(?P<name>[\w ]{0,30})", _invalid),
    _rule(rf"did you mean:? {_Q}(?P<near>[^'\"`\n?]+){_Q}", _suggested),
]  # fmt: skip
