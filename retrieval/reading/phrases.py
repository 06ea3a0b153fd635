"""Faults in plain text: phrases that tools of all kinds share, and those of single validators.

Where a message only shows the value, the parameter is found later by that value (see `reader`).
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from retrieval.parameters import JsonType, Path
from retrieval.reading.faults import Fault, json_type
from retrieval.reading.grammar import (
    LITERAL,
    NAME,
    NUMBER,
    SUBJECT,
    VALUE,
    Q,
    Rule,
    apply_rules,
    bad_format,
    bound,
    invalid,
    missing,
    missing_each,
    multiple,
    not_allowed,
    not_empty,
    not_found,
    rule,
    sign,
    stated,
    suggested,
    unexpected,
    unexpected_each,
    wrong_type,
)

# What a value must be so that a method or an operation of Python works on it.
_STRING_METHODS = frozenset(
    ("split", "strip", "lower", "upper", "startswith", "endswith", "replace", "encode", "find", "j"
     "oin",
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


def read_text(message: str) -> Iterator[Fault]:
    """The faults that the phrases of a message name, in the order of the rules."""
    found = apply_rules(_RULES, message)
    place = _place_in_instance(message) if "On instance[" in message else ()
    return (_at(place, fault) for fault in found) if place else found


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
    r"(?:str(?:ing)?|text|int(?:eger)?s?|whole numbers?|numbers?|numeric|float|double|decimal|bool"
    r"(?:ean)?|list|array|dict|"
    r"dictionary|object|mapping|null)"
)
_MUST = r"(?:must|should|shall|has to|have to|needs to|need to|ought to)"
_UNIT = (
    r"(?P<length>\s?(?:UTF-8 )?(?:characters?|chars?|letters|items?|elements?|entries|bytes|digits"
    r"|symbols|values))(?:\(s\))?"
)

PHRASES: dict[str, tuple[Rule, ...]] = {
    "Python's arguments": (
        rule(r"missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>[^\n]+)",
             missing_each, "missing"),
        rule(rf"(?:got an )?unexpected (?:keyword )?argument:? {Q}-{{0,2}}(?P<name>[^'\"`\n]+){Q}"
             rf"(?:(?:\. Did you mean|[^\n]{{0,20}}\n[^\n]{{0,60}}a similar argument "
             rf"exists:) {Q}-{{0,2}}(?P<near>[^'\"`\n]+){Q})?", unexpected, "unexpected"),
        rule(r"the following arguments are required: (?P<names>[^\n]+)", missing_each,
             "arguments are required"),  # argparse
    ),
    "Python's types": (
        rule(r"'(?P<given>\w+)' object has no attribute '(?P<attribute>\w+)'", _no_attribute,
             "has no attribute"),
        rule(r"must be real number, not '?(?P<given>\w+)|a (?:real )?number is required, not "
             r"(?P<other>\w+)", lambda m: _given(("number",), m["given"] or m["other"]), "number"),
        rule(r"'(?P<given>\w+)' object cannot be interpreted as an (?P<whole>integer)", _not_number,
             "cannot be interpreted"),
        rule(r"can(?:not| only) concatenate (?P<left>str|list) \(not \"(?P<right>\w+)\"\)", _joined,
             "concatenate"),
        rule(r"can't multiply sequence by non-int", _multiplied, "multiply sequence"),
        rule(r"unhashable type: '(?P<given>\w+)'", lambda m: _given((), m["given"]), "unhashable"),
        rule(r"requires string as left operand, not (?P<given>\w+)", _wants_text, "left operand"),
        rule(r"unsupported operand type\(s\) for [^\n:]{1,12}: '(?P<left>\w+)' and '"
             r"(?P<right>\w+)'", _mixed, "unsupported operand"),
        rule(r"'[<>]=?' not supported between instances of '(?P<left>\w+)' and '(?P<right>\w+)'",
             _mixed, "between instances"),
        rule(r"bad operand type for (?:unary [+~-]|abs\(\)): '(?P<given>\w+)'", _not_number,
             "bad operand"),
        rule(r"type (?P<given>\w+) doesn't define __(?:round|trunc|ceil|floor)__", _not_number,
             "doesn't define __"),
        rule(r"(?:argument of type '(?P<given>\w+)' is not (?:iterable|a container)|'"
             r"(?P<other>\w+)' object is not (?:iterable|subscriptable))",
             lambda m: _given(("array",), m["given"] or m["other"]), "is not "),
        rule(r"object of type '(?P<given>\w+)' has no len\(\)", _not_iterable, "has no len"),
        rule(r"(?:expected (?:a )?(?:str|string)(?:, bytes or os\.PathLike| or bytes-like)?"
             r"(?: object| instance)?|must be (?:a )?str(?:ing)?(?: or a tuple of str)?), (?:not"
             r"|got) '?(?P<given>\w+)", _wants_text, "str"),
        rule(r"sequence item (?P<index>\d{1,6}): expected (?P<types>str) instance", wrong_type,
             "sequence item"),
        rule(rf"could not convert string to (?P<types>float|int)(?: \w+)?: (?P<value>{VALUE})",
             wrong_type, "could not convert"),
        rule(rf"invalid literal for (?P<types>int|float)\(\)[^\n]{{0,100}}?: (?P<value>{VALUE})",
             wrong_type, "invalid literal"),
        rule(rf"invalid isoformat string: (?P<value>{VALUE})(?P<format>)",
             lambda m: iter((Fault("bad_format", value_text=m["value"]),)), "isoformat"),
        rule(r"\A'(?P<name>[A-Za-z_][\w -]{0,63})'\Z", _key_error, "'"),
    ),
    "jsonschema": (
        rule(rf"{Q}(?P<name>[^'\"`\n]+){Q} is a (?:dependency of|required property)", missing,
             "is a "),
        rule(r"additional properties are not allowed \((?P<names>[^)\n]+) (?:was"
             r"|were) unexpected\)",
             unexpected_each, "additional properties"),
        rule(r"(?P<names>'[^\n]{1,500}) (?:does|do) not match any of the regexes", unexpected_each,
             "of the regexes"),
        rule(rf"(?P<value>{LITERAL}) is not of type (?P<types>[^\n]+)", wrong_type,
             "is not of type"),
        rule(rf"(?P<value>{NUMBER}) is (?:greater than|more than) the maximum(?: of)? "
             rf"(?P<high>{NUMBER})", bound, "the maximum"),
        rule(rf"(?P<value>{NUMBER}) is less than the minimum(?: of)? (?P<low>{NUMBER})", bound,
             "the minimum"),
        rule(rf"(?P<value>{NUMBER}) is greater than or equal to the maximum(?: of)? "
             rf"(?P<high>{NUMBER})", _exclusive, "the maximum"),
        rule(rf"(?P<value>{NUMBER}) is less than or equal to the minimum(?: of)? (?P<low>{NUMBER})",
             _exclusive, "the minimum"),
        rule(rf"(?P<value>{NUMBER}) is not a multiple of (?P<step>{NUMBER})", multiple,
             "multiple of"),
        rule(rf"(?P<value>{VALUE}|{NUMBER}) is not one of (?P<values>\[[^\]\n]*\]|'[^\n]{{1,2000"
             rf"}})", not_allowed, "is not one of"),
        rule(rf"(?P<value>{VALUE}) does not match {Q}(?P<format>[^\n]+?){Q}$", bad_format,
             "does not match"),
        rule(rf"(?P<value>{VALUE}) does not match format {Q}(?P<format>[^'\n]+){Q}", bad_format,
             "does not match format"),
        rule(rf"(?P<value>{VALUE}) is not a {Q}(?P<format>[\w-]+){Q}", bad_format, "is not a "),
        rule(rf"(?P<value>{LITERAL}) (?:should be non-empty|does not have enough properties)",
             not_empty, "non-empty", "enough properties"),
        rule(rf"(?P<value>{LITERAL}) is too (?:short|long)$", _length, "is too "),
        rule(rf"(?P<value>{LITERAL}) (?:has non-unique elements|is not valid under any of the "
             rf"given schemas|is valid under each of|has too many properties)", invalid,
             "non-unique", "given schemas", "valid under", "too many properties"),
        rule(rf"^(?P<stated>{VALUE}|{NUMBER}) was expected", stated, "was expected"),
    ),
    "ajv": (
        rule(rf"(?:(?P<at>(?:data|body|args|params|request)?[/.][\w/.\[\]-]{{1,200}}|[\w.]{{1,100"
             rf"}}) )?(?:must|should) have required propert(?:y|ies) {Q}?(?P<name>[\w$.-]+)",
             missing, "required propert"),
        rule(rf"(?:must|should) NOT have (?:additional|unevaluated) properties:? {Q}?(?P<name>"
             rf"(?!data\b)[\w$.-]+)", unexpected, "properties"),
        rule(rf"(?P<name>{NAME}) (?:must|should) NOT have (?:fewer|less) than (?P<low>{NUMBER}) "
             rf"(?P<length>characters|items|properties)", bound, "not have"),
        rule(rf"(?P<name>{NAME}) (?:must|should) NOT (?:have more than|be longer than) "
             rf"(?P<high>{NUMBER}) (?P<length>characters|items|properties)", bound, "not "),
        rule(rf"(?P<name>{NAME}) (?:must|should) NOT be shorter than (?P<low>{NUMBER}) "
             rf"(?P<length>characters)", bound, "not be shorter"),
        rule(rf"(?P<name>{NAME}) (?:must|should) (?:be equal to constant|NOT have duplicate items"
             rf"|match (?:exactly one|a) schema in|be valid)", invalid, "constant",
             "duplicate items", "schema in"),
    ),
    "missing and unknown": (
        rule(r"missing (?:the |an? )?(?:following )?(?:required |mandatory )?(?:query |path |body "
             r"|input |request )?(?:parameter|argument|field|propert|param|input|key|option"
             r"|attribute|element|value for)"
             r"(?:s|y|ies)?(?:\(s\))?(?: in (?:input|request|body))?:? (?P<names>[^\n.;]+)",
             missing_each, "missing"),
        rule(rf"(?:required )?(?:request |query |path |body )?(?:parameter|argument|field|property"
             rf"|param|key|attribute) (?P<name>{Q}?{NAME}{Q}?)(?: for [^\n]{{1,60}}? type \w+)? "
             r"(?:is|was) (?:required|missing|not (?:present|provided|supplied|specified|set"
             r"|given)|mandatory)", missing, "required", "missing", "is not ", "was not",
             "mandatory"),
        rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?)(?: field)? ?(?::\s+(?:a value is )?required"
             rf"|(?:is|are) (?:a )?(?:required|mandatory)|(?:is|are|was) missing|"
             r"must be (?:provided|specified|given|set|supplied|present)|field required|cannot be "
             r"(?:null|none|undefined)|is undefined|should be defined|"
             r"must not be (?:null|none)|may not be null|must be present)", missing,
             "required", "missing", "must be ", "cannot be", "mandatory", "undefined",
             "not be null", "should be defined"),
        rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?)(?: field)? ?:?\s(?:must not be (?:blank"
             rf"|empty)|cannot be (?:empty|blank)|can't be (?:blank|empty)|may not be (?:blank"
             rf"|empty)|"
             r"must be non-?empty|should not be empty|is not allowed to be empty|must have a value"
             r"|this field may not be blank)",
             not_empty, "blank", "empty", "have a value"),
        rule(rf"(?:you )?must (?:specify|provide|supply|pass|set|include|give) (?:an? |the "
             rf"|at least )?(?:value for )?(?P<name>{Q}{NAME}{Q})", missing, "must "),
        rule(r"(?:unknown|unrecogni[sz]ed|unexpected|unsupported|invalid|extra|undefined"
             r"|unpermitted|unallowed|illegal) (?:request |query |input )?(?:parameter|argument"
             r"|field|propert|option|key|param|keyword|input|attribute)"
             rf"(?:s|y|ies)?(?:\(s\))?(?: in (?:object|input|request|body))?(?: name)?(?: supplied"
             rf"| provided| found)?:? {Q}?:?(?!syntax|for\b|value)(?P<name>{NAME}){Q}?(?=$"
             rf"|[\s.,;?)\]])"
             r"(?!\s*(?:must|should|is|has|cannot|=|:))"
             rf"(?:[^\n]{{0,40}}did you mean:? {Q}?(?P<near>[\w.$-]+))?", unexpected,
             "unknown", "unrecogni", "unexpected", "unsupported", "invalid", "extra", "undefined",
             "unpermitted", "unallowed", "illegal"),
        rule(rf"(?:parameter|argument|field|property|key|option) (?P<name>{Q}{NAME}{Q}) (?:is"
             rf"|was) (?:not (?:allowed|permitted|expected|supported|recogni[sz]ed|known)"
             rf"|unexpected|unknown|unrecogni[sz]ed|undefined)",
             unexpected, "not ", "unexpected", "unknown", "unrecogni", "undefined"),
        rule(rf"(?:^|[\s:,;.])(?P<name>{Q}{NAME}{Q}) is not (?:allowed|permitted|expected here)"
             rf"(?=$|[\s.,;])(?! to)", unexpected, "is not "),  # joi
    ),
    "types": (
        rule(rf"{SUBJECT}{_MUST} be (?:an? |of |type |a valid |the |valid |`)*{Q}?"
             rf"(?P<types>{_TYPES}(?:(?:, | or |\|| or an? ){_TYPES}){{0,4}})\b{Q}?(?! (?:between"
             rf"|greater|less|in the|of (?:at|length)|than|with|at|from|to be|must))", wrong_type,
             "must ", "should ", "has to", "have to", "need"),
        rule(rf"{SUBJECT}expected (?:an? |type |value of type )?{Q}?(?P<types>[a-z0-9]+){Q}?"
             rf"(?: instance| value)?,? "
             rf"(?:but )?(?:got|received|found|not) (?:an? |type |value of type )?{Q}?"
             rf"(?P<given>\w+)?", wrong_type, "expected "),
        rule(rf"{SUBJECT}a valid (?P<types>{_TYPES}) is required", wrong_type, "is required"),
        rule(rf"{SUBJECT}(?:is )?not an? (?:valid )?{Q}?(?P<types>{_TYPES}){Q}?(?=$|[\s.,;:)])",
             wrong_type, "not a"),
        rule(rf"invalid (?P<types>integer|number|boolean|int|float|array|object): "
             rf"(?P<value>{VALUE}|{NUMBER})(?=$|[\s,;.])", wrong_type, "invalid "),
    ),
    "ranges": (
        rule(rf"{SUBJECT}(?:is )?{_MUST} (?:be|lie|range|have)?,? ?(?:a |an )?(?:number |integer "
             rf"|value |length )?(?:of |in )?"
             rf"(?:in the range |in range |between |from |within |in )"
             rf"(?:of )?"
             rf"\[?\(?(?P<low>{NUMBER})°?(?: and | ?- ?|\s*\.\.+\s*|, ?| to | \u2026 |\u2013)"
             rf"(?P<high>{NUMBER})(?: ?{_UNIT})?", bound, "must ", "should ", "has to", "have to",
             "need"),
        rule(rf"{SUBJECT}(?:is )?(?:out of (?:the )?(?:allowed )?range|outside (?:of )?(?:the )?"
             rf"(?:allowed |valid |range )?(?:range)?|not (?:in|within)(?: the)? range):? ?"
             rf"(?:of )?[\[(]?(?P<low>{NUMBER})(?: and | ?- ?|\s*\.\.+\s*|, ?| to |\u2013)"
             rf"(?P<high>{NUMBER})", bound, "range", "outside"),
        rule(rf"{SUBJECT}(?:{_MUST}|may|can) (?:be |have |contain |to have |to be )?(?:<=|≤"
             rf"|at most|no more than|not more than|"
             r"no greater than|less than or equal to|up to|not exceed|not be (?:more|greater"
             r"|larger|longer) than|not have more than|a maximum of|no longer than|max(?:imum)?) ?"
             rf"(?P<high>{NUMBER})(?: ?{_UNIT}| or fewer in (?P<fewer>length))?", bound, "must ",
             "should ", "has to", "have to", "need", "may ", "can "),
        rule(rf"{SUBJECT}(?:{_MUST}) (?:be |have |contain )?(?P<high>{NUMBER}) "
             rf"(?P<length>characters? |items? |elements? |)or (?:fewer|less)(?: (?:characters"
             rf"|items|in length))?", bound, " or fewer", " or less"),
        rule(rf"{SUBJECT}{_MUST} be (?P<below><|less than|below|under|smaller than) ?"
             rf"(?P<high>{NUMBER})", bound, "must ", "should ", "has to"),
        rule(rf"{SUBJECT}{_MUST} (?:be |have |contain |NOT have fewer than |not be (?:less|fewer"
             rf"|smaller|shorter) than )?(?:>=|≥|at least|"
             rf"no less than|greater than or equal to|a minimum of|a length of at least"
             rf"|not less than|minimum of|(?<=han )) ?(?P<low>{NUMBER})(?: ?{_UNIT})?",
             bound, "must ", "should ", "has to", "have to", "need"),
        rule(rf"{SUBJECT}{_MUST} be (?P<above>>|greater than|above|over|more than|larger than"
             rf"|bigger than) ?"
             rf"(?P<low>{NUMBER})", bound, "must ", "should ", "has to"),
        rule(rf"{SUBJECT}(?:cannot exceed|can't exceed|may not exceed|must not exceed|exceeds? "
             rf"(?:the )?(?:maximum|"
             rf"limit|max)(?: allowed)?(?: value| length| size)?(?: of| is|:)?) ?\(?"
             rf"(?P<high>{NUMBER})(?: ?{_UNIT})?", bound, "exceed"),
        rule(rf"{SUBJECT}(?P<value>{NUMBER}) (?:exceeds|is (?:above|over|larger than|greater than"
             rf"|more than|too (?:large|big|high)[,;:]? ?(?:the )?(?:maximum|max|limit)"
             rf"(?: is)?)) ?(?:the )?(?:(?:maximum|limit|max)(?: of| is)? )?(?P<high>{NUMBER})",
             bound, "exceeds", "is above", "is over", "is larger", "is more", "is too"),
        rule(rf"{SUBJECT}(?:is )?too (?:large|big|high|long)[^\n\d]{{0,60}}?(?:(?P<below>less than"
             rf"|fewer than)|max(?:imum)?|limit|at most|up to)(?: allowed)?(?: length| size"
             rf"| value)?(?: is| of|:)? ?(?P<high>{NUMBER})(?: ?{_UNIT})?", bound, "too "),
        rule(rf"{SUBJECT}(?:is )?too (?:small|low|short)[^\n\d]{{0,40}}?(?:min(?:imum)?|at least)"
             rf"(?: allowed)?(?: length| size| value)?(?: is| of|:)? ?(?P<low>{NUMBER})"
             rf"(?: ?{_UNIT})?", bound, "too "),
        rule(rf"maximum (?:allowed )?(?:value )?(?:for (?P<name>{NAME}) )?(?:is|of) "
             rf"(?P<high>{NUMBER})", bound, "maximum"),
        rule(rf"minimum (?:allowed )?(?:value )?(?:for (?P<name>{NAME}) )?(?:is|of) "
             rf"(?P<low>{NUMBER})", bound, "minimum"),
        rule(rf"{SUBJECT}{_MUST} be (?:a )?(?P<sign>non-negative|positive)", sign, "positive",
             "non-negative"),
        rule(rf"{SUBJECT}(?:cannot|can't|must not|may not|should not) be (?P<sign>negative)", sign,
             "negative"),
        rule(rf"{SUBJECT}{_MUST} be (?:a )?(?:multiple of|divisible by) (?:the \w+ \w+ )?"
             rf"(?P<step>{NUMBER})", multiple, "multiple of", "divisible by"),
    ),
    "closed lists": (
        rule(rf"{SUBJECT}(?:{_MUST}) be (?:equal to )?(?:one|any|either) of(?! the allowed values"
             rf"(?:$|\W{{0,2}}$))(?: the following| the allowed"
             r" values)?(?: values| options)?:? (?P<values>[^\n]{1,2000}?)(?:$|\.\s|, got|, not"
             r"|; got|\(got)",
             not_allowed, " of"),
        rule(rf"{SUBJECT}must be equal to one of the allowed values(?P<values>)", invalid,
             "one of the allowed values"),
        rule(rf"{SUBJECT}(?<!indices )(?:must|can|may|should) (?:only )?be (?:either )?"
             rf"(?P<values>['\"`]?[\w-]{{1,40}}['\"`]?(?:, ['\"`]?[\w-]{{1,40}}['\"`]?){{0,8}},? "
             rf"or ['\"`]?[\w-]{{1,40}}['\"`]?)(?=$|[.,;]?\s?(?:$|\(|not|got|,|\.))", not_allowed,
             " or "),
        rule(r"(?<![a-z])(?:valid|allowed|permitted|supported|available|accepted|acceptable"
             r"|possible|known|existing|use one of|try one of|did you mean one of the following)"
             r"(?: \w{1,30})?? ?(?:values?|options?|"
             r"choices|types?|modes?|formats?|names?|units?|currencies|languages?|fields|columns"
             r"|keys|tools|commands|ones)?(?: (?:for (?P<name>[\w.-]+) )?(?:are|include|is one of)"
             r"|\?|:) ?(?:these |one of )?:? ?"
             r"(?P<values>[\[({'\"`\w][^\n]{1,2000}?)(?:$|\.\s|; )", not_allowed,
             "valid ", "allowed", "permitted", "supported", "available", "accept", "possible",
             "known ", "existing", "one of"),
        rule(rf"(?:value )?(?P<value>{VALUE}) (?:is not|isn't) (?:one of|among|in)(?: the)?"
             rf"(?: allowed| valid| supported| permitted| known)?(?: values| options| choices)?:? "
             rf"(?P<values>[\[({{'\"`][^\n]{{1,2000}}?)(?:$|\.\s)", not_allowed, "is not", "isn't"),
        rule(rf"{SUBJECT}(?:invalid (?:option|enum value|input)[:.] )?expected one of:? "
             rf"(?P<values>[^\n]{{1,2000}}?)(?:$|\.\s|, got|, found|, received|, but)", not_allowed,
             "expected one of"),
    ),
    "one right value": (
        rule(rf"\b(?:total|sum|price|amount|balance|cost|value|count|length|size|version|number"
             rf"|fee|fare)(?: \w{{1,20}}){{0,3}}? (?:is|was|should be|must be|=|of) ?:?[$€£]? ?"
             rf"(?P<stated>{NUMBER}),? "
             rf"(?:but|and not|not|while|whereas|yet|and) (?:(?:you|we|the|it|only|was|were|is|are"
             rf"|got|has|had|have|sent|paid|given|received|provided|payment|amount|sum|total|value"
             rf"|call|found|request|actual|entered|charged|offered|says?|said) ){{0,5}}[$€£]?"
             rf"(?P<value>{NUMBER})", stated, "but", "not", "while", "whereas", "yet", " and "),
        rule(rf"{SUBJECT}expected (?:value |version |to be |a (?:value|total|sum) of )?:?"
             rf"(?P<stated>{VALUE}|{NUMBER}),? (?:but )?(?:got|received|found|was|not|is|actual"
             rf"(?:ly)?)(?: was| is)?:? (?:value |version )?(?P<value>{VALUE}|{NUMBER})(?![\w,])",
             stated, "expected "),
        rule(rf"(?P<value>{VALUE}|{NUMBER}) (?:was )?(?:given|provided|sent|received|supplied"
             rf"|passed),? (?:but|where|when|instead of|expected) (?:the )?(?:\w+ ){{0,3}}?(?:is "
             rf"|was |expected |should be |must be )?(?P<stated>{VALUE}|{NUMBER})(?![\w,])", stated,
             "given", "provided", "sent", "received", "supplied", "passed"),
        rule(rf"current version \[?(?P<stated>{NUMBER})\]? is different than the one provided "
             rf"\[?(?P<value>{NUMBER})", stated, "current version"),
    ),
    "formats": (
        rule(r"invalid (?P<name>[\w ]{1,40}?) format\b[^\n]{0,200}?(?:expected|use|must be"
             r"|should be):? (?:format )?"
             r"(?P<format>[^\s\[(,;]+)", bad_format, "format"),
        rule(rf"{SUBJECT}{_MUST} be (?:in|of) (?:the |a )?(?:form|format|pattern)(?: of)?:? "
             rf"{Q}?(?P<format>[^\s'\"`,;)]+)", bad_format, "form", "pattern"),
        rule(rf"{SUBJECT}(?:format )?(?:{_MUST} be|is|is not|isn't|must look like|enter) (?:in "
             rf"|an? )?(?:an? )?(?:valid )?(?:ISO[ -]?8601 |ISO |RFC ?3339 )?(?P<format>date-time"
             rf"|datetime|timestamp|date|url|uri|e-?mail address|e-?mail|uuid|guid|ipv4|ipv6"
             rf"|ip address|phone number|hostname|YYYY-MM-DD(?:[T ]HH:MM(?::SS)?)?|HH:MM(?::SS)?"
             rf"|MM/DD/YYYY|DD/MM/YYYY)(?: (?:format|string|value))?(?=$|[\s.,;:)])", bad_format,
             "date", "time", "url", "uri", "mail", "uuid", "guid", "ip", "phone", "hostname",
             "yyyy", "hh:mm"),
        rule(rf"{SUBJECT}(?:invalid|malformed|bad) (?P<format>ISO datetime|ISO date|ISO time"
             rf"|datetime|date|url|uri|e-?mail address|e-?mail|uuid|guid|ip address|phone number)"
             rf"(?=$|[\s.,;:)])(?:[: ]+(?P<value>{VALUE}))?", bad_format, "invalid", "malformed",
             "bad "),
        rule(rf"{SUBJECT}{_MUST} match (?:the )?(?:required )?(?:format|pattern|regular expression"
             rf"|regex):? {Q}?/?(?P<format>[^\n]+?)/?{Q}?(?=$|, data|\s\(|\s*$)", bad_format,
             " match "),
    ),
    "names of things that do not exist": (
        rule(rf"no (?:time ?zone|\w+) (?:found )?(?:with|for|named|matching|called)(?: the)? "
             rf"(?:key |id |name )?"
             rf"{Q}?(?P<value>[^'\"`\n]{{1,200}}?){Q}?(?: (?:was|could be|is) found)?(?:$|[.;,])",
             not_found, "no "),
        rule(rf"(?:ref|reference|revision|pathspec|branch|tag|object|file|folder|directory|path"
             rf"|user|repository|resource|relation|database|collection|index|model|function|"
             rf"table|column|key|entity|device|ticket|order|channel|city|location|symbol|project"
             rf"|account|message|contact|product|item|page|issue|record|document|customer)"
             rf"(?: named| with (?:id|name|key|ID|username))? {Q}(?P<value>[^'\"`\n]+){Q} "
             rf"(?:did not (?:resolve|match)|"
             r"does not exist|doesn't exist|was not found|not found|is unknown|could not be found"
             r"|cannot be found|not recognized)", not_found, "not ", "n't exist", "is unknown"),
        rule(r"(?<![\w'\"])(?:(?P<thing>[\w ]{1,40}?) )?(?<![.@#/:-])(?=[A-Za-z:]{0,60}[\d_@#/.-])"
             r"(?P<value>[\w.@#/:-]{1,120}+) (?:was )?(?:not found|does not exist|doesn't exist"
             r"|could not be found|is not available)(?![\w])", not_found, "not ", "doesn't exist"),
        rule(r"(?<![\w'\"])(?:user|ticket|message|file|folder|city|channel|project|contact|account"
             r"|repository|branch|device|station|airport|order|product|location|symbol|tool"
             r"|resource|path|directory)(?: with (?:id|name|username|key))? "
             r"(?P<value>[\w.@#/-]{1,100}) (?:was )?(?:not found|does not exist|doesn't exist"
             r"|could not be found)", not_found, "not ", "doesn't exist"),
        rule(rf"no such file or directory, \w+ (?P<value>{VALUE})", not_found, "no such file"),
              # Node
        rule(rf"no such (?:file(?: or directory)?|table|column|file|user|branch|key|object"
             rf"|container|customer|price|charge|function|index|collection|device|model|image"
             rf"|volume|network)(?:[^\n:]{{0,20}}: | (?!or |[^\n]{{0,60}}:))"
             rf"{Q}?(?P<value>[^'\"`\n]{{1,200}}?){Q}?(?:$|[;,])", not_found, "no such"),
        rule(r"^(?:[\w-]{1,20}: ){0,2}(?:(?:cannot|failed to) \w+(?: \w+)? )?['\u2018]?"
             r"(?P<value>[^\s:'\u2018\u2019\n]{1,200})['\u2019]?: no such (?:file|directory)",
             not_found, "no such"),  # shells
        rule(r"^(?:[\w-]{1,20}: ){1,2}(?:(?:cannot|failed to) \w+(?: \w+)? "
             r"(?:['\u2018][^'\u2019\n]{1,200}['\u2019] to )?)?['\u2018]?"
             r"(?P<value>[^\s:'\u2018\u2019\n]{1,200})['\u2019]?: (?:invalid character|(?:is )?"
             r"(?:not )?a (?:file or )?directory|file exists|directory not empty)", invalid,
             "invalid character", "a directory", "or directory", "file exists", "not empty"),
        rule(rf"unknown (?:time ?zone|revision|branch|user|city|currency|unit|location|column"
             rf"|table|database|channel|tool|mailbox|topic|symbol|station|airport|target|id|device"
             rf"|model|language):? "
             rf"{Q}?(?P<value>[^'\"`\n,;]{{1,200}}?){Q}?(?:$|[.,;]| in )", not_found, "unknown"),
        rule(rf"(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate|resolve)"
             rf"(?: the| an?)? (?:\w+ ){{0,3}}?(?:with |named |for )?(?:the )?(?:name |id |key "
             rf"|'id'=)?(?P<value>{VALUE}|\d{{1,18}}(?=$|[\s.,;]))", not_found, "find", "locate",
             "resolve"),
        rule(rf"(?P<value>{VALUE}) (?:was |could |is )?(?:not (?:be )?found|not exist"
             rf"|does not exist|doesn't exist|not a known)(?! in schema)", not_found, "not ",
             "n't exist"),
    ),
    "refused": (
        rule(rf"invalid (?P<name>[a-z_]+(?: [a-z_]+){{0,2}}): "
             rf"{Q}?(?P<value>[^'\"`\n]{{1,100}}?){Q}?(?:$|\. )", invalid, "invalid "),
        rule(rf"invalid (?:value )?(?P<value>{VALUE}) for (?:option |parameter |argument |field "
             rf"|key |attribute |variable )?{Q}?-{{0,2}}(?P<name>{NAME}){Q}?", invalid, "invalid "),
        rule(rf"(?:invalid|bad|illegal|incorrect|wrong) (?:value|\w+ value|input|argument|data"
             rf"|type) (?:for|of|in|at|to) (?:the )?(?:option |parameter |argument |field |key "
             rf"|attribute |column |property |query parameter )?{Q}?-{{0,2}}(?P<name>{NAME}){Q}?"
             rf"(?:: ?(?P<value>{VALUE}))?", invalid, "invalid ", "bad ", "illegal ", "incorrect ",
             "wrong "),
        rule(rf"(?P<value>{Q}[^'\"`\n]{{1,100}}{Q}) is not (?:an? )?(?:valid|recogni[sz]ed"
             rf"|supported|known|acceptable|legal)"
             r" ?(?P<name>[\w ]{0,30})", invalid, "is not"),
        rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?):? (?:is|was|has|does not have"
             rf"|appears to be) (?:an? )?(?:invalid|malformed|not valid|unsupported|not supported"
             rf"|valid value|invalid value)(?=$|[\s.,;)])", invalid, "invalid", "malformed",
             "not valid", "support", "valid value"),
        rule(rf"invalid (?P<name>[a-z_]{{2,30}}(?: [a-z_]{{2,30}}){{0,2}}) (?P<value>{VALUE})(?=$"
             rf"|[.,;])", invalid, "invalid "),
        rule(r"^invalid (?P<name>[a-z_]{2,30}(?: [a-z_]{2,30}){0,2})[.!]?$", invalid, "invalid "),
        rule(rf"did you mean(?: to \w+)?(?: the \w+ \w+)?:? {Q}(?P<near>[^'\"`\n?]+){Q}", suggested,
             "did you mean"),
        rule(rf"(?:perhaps|maybe) (?:you meant|try)(?: to \w+ the \w+)? {Q}"
             rf"(?P<near>[^'\"`\n?]+){Q}", suggested, "perhaps", "maybe"),
        rule(rf"a similar (?:argument|name|subcommand|value|option"
             rf"|field) exists: {Q}-{{0,2}}(?P<near>[^'\"`\n?]+){Q}", suggested, "a similar"),
    ),
}  # fmt: skip
"""Rules by family, in the order in which they are tried."""

_RULES = tuple(chain.from_iterable(PHRASES.values()))
