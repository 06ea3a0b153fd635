"""Faults in plain text: the phrases that tools of all kinds share.

Each rule is a pattern and what it means. A parameter is named either in the pattern or, when the
message only shows the value, found later by that value (see `reader`).
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from retrieval.paths import Path
from retrieval.reading import rules as r
from retrieval.reading.dialects import DIALECTS
from retrieval.reading.faults import Fault
from retrieval.reading.rules import NAME, NUMBER, SUBJECT, VALUE, Q, rule


def read_text(message: str) -> Iterator[Fault]:
    """The faults that the phrases of a message name, in the order of the rules."""
    if "→ at " in message:
        message = _ZOD_PLACE.sub(r"\g<place>: \g<said>", message)
    found = r.apply_rules(_RULES, message)
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
         r"(?:s|y|ies)?(?:\(s\))?(?: in (?:input|request|body))?:? (?P<names>[^\n.;]+)", r.missing_each, "missing"),
    rule(rf"(?:required )?(?:request |query |path |body )?(?:parameter|argument|field|property|param|key|attribute) (?P<name>{Q}?{NAME}{Q}?)(?: for [^\n]{{1,60}}? type \w+)? "
         r"(?:is|was) (?:required|missing|not (?:present|provided|supplied|specified|set|given)|mandatory)", r.missing, "required", "missing", "is not ", "was not", "mandatory"),
    rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?)(?: field)? ?(?::\s+(?:a value is )?required|(?:is|are) (?:a )?(?:required|mandatory)|(?:is|are|was) missing|"
         r"must be (?:provided|specified|given|set|supplied|present)|field required|cannot be (?:null|none|undefined)|is undefined|should be defined|"
         r"must not be (?:null|none)|may not be null|must be present)", r.missing,
         "required", "missing", "must be ", "cannot be", "mandatory", "undefined", "not be null", "should be defined"),
    rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?)(?: field)? ?:?\s(?:must not be (?:blank|empty)|cannot be (?:empty|blank)|can't be (?:blank|empty)|may not be (?:blank|empty)|"
         r"must be non-?empty|should not be empty|is not allowed to be empty|must have a value|this field may not be blank)",
         r.not_empty, "blank", "empty", "have a value"),
    rule(rf"(?:you )?must (?:specify|provide|supply|pass|set|include|give) (?:an? |the |at least )?(?:value for )?(?P<name>{Q}{NAME}{Q})", r.missing, "must "),
    rule(r"(?:unknown|unrecogni[sz]ed|unexpected|unsupported|invalid|extra|undefined|unpermitted|unallowed|illegal) (?:request |query |input )?(?:parameter|argument|field|propert|option|key|param|keyword|input|attribute)"
         rf"(?:s|y|ies)?(?:\(s\))?(?: in (?:object|input|request|body))?(?: name)?(?: supplied| provided| found)?:? {Q}?:?(?!syntax|for\b|value)(?P<name>{NAME}){Q}?(?=$|[\s.,;?)\]])"
         r"(?!\s*(?:must|should|is|has|cannot|=|:))"
         rf"(?:[^\n]{{0,40}}did you mean:? {Q}?(?P<near>[\w.$-]+))?", r.unexpected,
         "unknown", "unrecogni", "unexpected", "unsupported", "invalid", "extra", "undefined", "unpermitted", "unallowed", "illegal"),
    rule(rf"(?:parameter|argument|field|property|key|option) (?P<name>{Q}{NAME}{Q}) (?:is|was) (?:not (?:allowed|permitted|expected|supported|recogni[sz]ed|known)|unexpected|unknown|unrecogni[sz]ed|undefined)",
         r.unexpected, "not ", "unexpected", "unknown", "unrecogni", "undefined"),
    rule(rf"(?:^|[\s:,;.])(?P<name>{Q}{NAME}{Q}) is not (?:allowed|permitted|expected here)(?=$|[\s.,;])(?! to)", r.unexpected, "is not "),  # joi
    # types
    rule(rf"{SUBJECT}{_MUST} be (?:an? |of |type |a valid |the |valid |`)*{Q}?"
         rf"(?P<types>{_TYPES}(?:(?:, | or |\|| or an? ){_TYPES}){{0,4}})\b{Q}?(?! (?:between|greater|less|in the|of (?:at|length)|than|with|at|from|to be|must))", r.wrong_type, "must ", "should ", "has to", "have to", "need"),
    rule(rf"{SUBJECT}expected (?:an? |type |value of type )?{Q}?(?P<types>[a-z0-9]+){Q}?(?: instance| value)?,? "
         rf"(?:but )?(?:got|received|found|not) (?:an? |type |value of type )?{Q}?(?P<given>\w+)?", r.wrong_type, "expected "),
    rule(rf"{SUBJECT}a valid (?P<types>{_TYPES}) is required", r.wrong_type, "is required"),
    rule(rf"{SUBJECT}(?:is )?not an? (?:valid )?{Q}?(?P<types>{_TYPES}){Q}?(?=$|[\s.,;:)])", r.wrong_type, "not a"),
    rule(rf"invalid (?P<types>integer|number|boolean|int|float|array|object): (?P<value>{VALUE}|{NUMBER})(?=$|[\s,;.])", r.wrong_type, "invalid "),
    # ranges
    rule(rf"{SUBJECT}(?:is )?{_MUST} (?:be|lie|range|have)?,? ?(?:a |an )?(?:number |integer |value |length )?(?:of |in )?"
         rf"(?:in the range |in range |between |from |within |in )(?:of )?\[?\(?(?P<low>{NUMBER})°?(?: and | ?- ?|\s*\.\.+\s*|, ?| to | \u2026 |\u2013)"
         rf"(?P<high>{NUMBER})(?: ?{_UNIT})?", r.bound, "must ", "should ", "has to", "have to", "need"),
    rule(rf"{SUBJECT}(?:is )?(?:out of (?:the )?(?:allowed )?range|outside (?:of )?(?:the )?(?:allowed |valid |range )?(?:range)?|not (?:in|within)(?: the)? range):? ?(?:of )?[\[(]?(?P<low>{NUMBER})(?: and | ?- ?|\s*\.\.+\s*|, ?| to |\u2013)"
         rf"(?P<high>{NUMBER})", r.bound, "range", "outside"),
    rule(rf"{SUBJECT}(?:{_MUST}|may|can) (?:be |have |contain |to have |to be )?(?:<=|≤|at most|no more than|not more than|"
         r"no greater than|less than or equal to|up to|not exceed|not be (?:more|greater|larger|longer) than|not have more than|a maximum of|no longer than|max(?:imum)?) ?"
         rf"(?P<high>{NUMBER})(?: ?{_UNIT}| or fewer in (?P<fewer>length))?", r.bound, "must ", "should ", "has to", "have to", "need", "may ", "can "),
    rule(rf"{SUBJECT}(?:{_MUST}) (?:be |have |contain )?(?P<high>{NUMBER}) (?P<length>characters? |items? |elements? |)or (?:fewer|less)(?: (?:characters|items|in length))?", r.bound, " or fewer", " or less"),
    rule(rf"{SUBJECT}{_MUST} be (?P<below><|less than|below|under|smaller than) ?"
         rf"(?P<high>{NUMBER})", r.bound, "must ", "should ", "has to"),
    rule(rf"{SUBJECT}{_MUST} (?:be |have |contain |NOT have fewer than |not be (?:less|fewer|smaller|shorter) than )?(?:>=|≥|at least|"
         rf"no less than|greater than or equal to|a minimum of|a length of at least|not less than|minimum of|(?<=han )) ?(?P<low>{NUMBER})(?: ?{_UNIT})?",
         r.bound, "must ", "should ", "has to", "have to", "need"),
    rule(rf"{SUBJECT}{_MUST} be (?P<above>>|greater than|above|over|more than|larger than|bigger than) ?"
         rf"(?P<low>{NUMBER})", r.bound, "must ", "should ", "has to"),
    rule(rf"{SUBJECT}(?:cannot exceed|can't exceed|may not exceed|must not exceed|exceeds? (?:the )?(?:maximum|"
         rf"limit|max)(?: allowed)?(?: value| length| size)?(?: of| is|:)?) ?\(?(?P<high>{NUMBER})(?: ?{_UNIT})?", r.bound, "exceed"),
    rule(rf"{SUBJECT}(?P<value>{NUMBER}) (?:exceeds|is (?:above|over|larger than|greater than|more than|too (?:large|big|high)[,;:]? ?(?:the )?(?:maximum|max|limit)(?: is)?)) ?(?:the )?(?:(?:maximum|limit|max)(?: of| is)? )?(?P<high>{NUMBER})", r.bound, "exceeds", "is above", "is over", "is larger", "is more", "is too"),
    rule(rf"{SUBJECT}(?:is )?too (?:large|big|high|long)[^\n\d]{{0,60}}?(?:(?P<below>less than|fewer than)|max(?:imum)?|limit|at most|up to)(?: allowed)?(?: length| size| value)?(?: is| of|:)? ?(?P<high>{NUMBER})(?: ?{_UNIT})?", r.bound, "too "),
    rule(rf"{SUBJECT}(?:is )?too (?:small|low|short)[^\n\d]{{0,40}}?(?:min(?:imum)?|at least)(?: allowed)?(?: length| size| value)?(?: is| of|:)? ?(?P<low>{NUMBER})(?: ?{_UNIT})?", r.bound, "too "),
    rule(rf"maximum (?:allowed )?(?:value )?(?:for (?P<name>{NAME}) )?(?:is|of) "
         rf"(?P<high>{NUMBER})", r.bound, "maximum"),
    rule(rf"minimum (?:allowed )?(?:value )?(?:for (?P<name>{NAME}) )?(?:is|of) "
         rf"(?P<low>{NUMBER})", r.bound, "minimum"),
    rule(rf"{SUBJECT}{_MUST} be (?:a )?(?P<sign>non-negative|positive)", r.sign, "positive", "non-negative"),
    rule(rf"{SUBJECT}(?:cannot|can't|must not|may not|should not) be (?P<sign>negative)", r.sign, "negative"),
    rule(rf"{SUBJECT}{_MUST} be (?:a )?(?:multiple of|divisible by) (?:the \w+ \w+ )?(?P<step>{NUMBER})", r.multiple, "multiple of", "divisible by"),
    # closed lists
    rule(rf"{SUBJECT}(?:{_MUST}) be (?:equal to )?(?:one|any|either) of(?! the allowed values(?:$|\W{{0,2}}$))(?: the following| the allowed"
         r" values)?(?: values| options)?:? (?P<values>[^\n]{1,2000}?)(?:$|\.\s|, got|, not|; got|\(got)",
         r.not_allowed, " of"),
    rule(rf"{SUBJECT}must be equal to one of the allowed values(?P<values>)", r.invalid, "one of the allowed values"),
    rule(rf"{SUBJECT}(?<!indices )(?:must|can|may|should) (?:only )?be (?:either )?(?P<values>['\"`]?[\w-]{{1,40}}['\"`]?(?:, ['\"`]?[\w-]{{1,40}}['\"`]?){{0,8}},? or ['\"`]?[\w-]{{1,40}}['\"`]?)(?=$|[.,;]?\s?(?:$|\(|not|got|,|\.))", r.not_allowed, " or "),
    rule(r"(?<![a-z])(?:valid|allowed|permitted|supported|available|accepted|acceptable|possible|known|existing|use one of|try one of|did you mean one of the following)(?: \w{1,30})?? ?(?:values?|options?|"
         r"choices|types?|modes?|formats?|names?|units?|currencies|languages?|fields|columns|keys|tools|commands|ones)?(?: (?:for (?P<name>[\w.-]+) )?(?:are|include|is one of)|\?|:) ?(?:these |one of )?:? ?"
         r"(?P<values>[\[({'\"`\w][^\n]{1,2000}?)(?:$|\.\s|; )", r.not_allowed,
         "valid ", "allowed", "permitted", "supported", "available", "accept", "possible", "known ", "existing", "one of"),
    rule(rf"(?:value )?(?P<value>{VALUE}) (?:is not|isn't) (?:one of|among|in)(?: the)?(?: allowed| valid| supported| permitted| known)?(?: values| options| choices)?:? (?P<values>[\[({{'\"`][^\n]{{1,2000}}?)(?:$|\.\s)", r.not_allowed, "is not", "isn't"),
    rule(rf"{SUBJECT}(?:invalid (?:option|enum value|input)[:.] )?expected one of:? (?P<values>[^\n]{{1,2000}}?)(?:$|\.\s|, got|, found|, received|, but)", r.not_allowed, "expected one of"),
    # one right value
    rule(rf"\b(?:total|sum|price|amount|balance|cost|value|count|length|size|version|number|fee|fare)(?: \w{{1,20}}){{0,3}}? (?:is|was|should be|must be|=|of) ?:?[$€£]? ?(?P<stated>{NUMBER}),? "
         rf"(?:but|and not|not|while|whereas|yet|and) (?:(?:you|we|the|it|only|was|were|is|are|got|has|had|have|sent|paid|given|received|provided|payment|amount|sum|total|value|call|found|request|actual|entered|charged|offered|says?|said) ){{0,5}}[$€£]?(?P<value>{NUMBER})", r.stated, "but", "not", "while", "whereas", "yet", " and "),
    rule(rf"{SUBJECT}expected (?:value |version |to be |a (?:value|total|sum) of )?:?(?P<stated>{VALUE}|{NUMBER}),? (?:but )?(?:got|received|found|was|not|is|actual(?:ly)?)(?: was| is)?:? (?:value |version )?(?P<value>{VALUE}|{NUMBER})(?![\w,])", r.stated, "expected "),
    rule(rf"(?P<value>{VALUE}|{NUMBER}) (?:was )?(?:given|provided|sent|received|supplied|passed),? (?:but|where|when|instead of|expected) (?:the )?(?:\w+ ){{0,3}}?(?:is |was |expected |should be |must be )?(?P<stated>{VALUE}|{NUMBER})(?![\w,])", r.stated, "given", "provided", "sent", "received", "supplied", "passed"),
    rule(rf"current version \[?(?P<stated>{NUMBER})\]? is different than the one provided \[?(?P<value>{NUMBER})", r.stated, "current version"),
    # formats
    rule(r"invalid (?P<name>[\w ]{1,40}?) format\b[^\n]{0,200}?(?:expected|use|must be|should be):? (?:format )?"
         r"(?P<format>[^\s\[(,;]+)", r.bad_format, "format"),
    rule(rf"{SUBJECT}{_MUST} be (?:in|of) (?:the |a )?(?:form|format|pattern)(?: of)?:? "
         rf"{Q}?(?P<format>[^\s'\"`,;)]+)", r.bad_format, "form", "pattern"),
    rule(rf"{SUBJECT}(?:format )?(?:{_MUST} be|is|is not|isn't|must look like|enter) (?:in |an? )?(?:an? )?(?:valid )?(?:ISO[ -]?8601 |ISO |RFC ?3339 )?(?P<format>date-time|datetime|timestamp|date|url|uri|e-?mail address|e-?mail|uuid|guid|ipv4|ipv6|ip address|phone number|hostname|YYYY-MM-DD(?:[T ]HH:MM(?::SS)?)?|HH:MM(?::SS)?|MM/DD/YYYY|DD/MM/YYYY)(?: (?:format|string|value))?(?=$|[\s.,;:)])", r.bad_format,
         "date", "time", "url", "uri", "mail", "uuid", "guid", "ip", "phone", "hostname", "yyyy", "hh:mm"),
    rule(rf"{SUBJECT}(?:invalid|malformed|bad) (?P<format>ISO datetime|ISO date|ISO time|datetime|date|url|uri|e-?mail address|e-?mail|uuid|guid|ip address|phone number)(?=$|[\s.,;:)])(?:[: ]+(?P<value>{VALUE}))?", r.bad_format, "invalid", "malformed", "bad "),
    rule(rf"{SUBJECT}{_MUST} match (?:the )?(?:required )?(?:format|pattern|regular expression|regex):? {Q}?/?(?P<format>[^\n]+?)/?{Q}?(?=$|, data|\s\(|\s*$)", r.bad_format, " match "),
    # names of things that do not exist
    rule(rf"no (?:time ?zone|\w+) (?:found )?(?:with|for|named|matching|called)(?: the)? (?:key |id |name )?"
         rf"{Q}?(?P<value>[^'\"`\n]{{1,200}}?){Q}?(?: (?:was|could be|is) found)?(?:$|[.;,])", r.not_found, "no "),
    rule(rf"(?:ref|reference|revision|pathspec|branch|tag|object|file|folder|directory|path|user|repository|resource|relation|database|collection|index|model|function|"
         rf"table|column|key|entity|device|ticket|order|channel|city|location|symbol|project|account|message|contact|product|item|page|issue|record|document|customer)(?: named| with (?:id|name|key|ID|username))? {Q}(?P<value>[^'\"`\n]+){Q} (?:did not (?:resolve|match)|"
         r"does not exist|doesn't exist|was not found|not found|is unknown|could not be found|cannot be found|not recognized)", r.not_found, "not ", "n't exist", "is unknown"),
    rule(r"(?<![\w'\"])(?:(?P<thing>[\w ]{1,40}?) )?(?<![.@#/:-])(?=[A-Za-z:]{0,60}[\d_@#/.-])(?P<value>[\w.@#/:-]{1,120}+) (?:was )?(?:not found|does not exist|doesn't exist|could not be found|is not available)(?![\w])", r.not_found, "not ", "doesn't exist"),
    rule(r"(?<![\w'\"])(?:user|ticket|message|file|folder|city|channel|project|contact|account|repository|branch|device|station|airport|order|product|location|symbol|tool|resource|path|directory)(?: with (?:id|name|username|key))? (?P<value>[\w.@#/-]{1,100}) (?:was )?(?:not found|does not exist|doesn't exist|could not be found)", r.not_found, "not ", "doesn't exist"),
    rule(rf"no such file or directory, \w+ (?P<value>{VALUE})", r.not_found, "no such file"),  # Node
    rule(rf"no such (?:file(?: or directory)?|table|column|file|user|branch|key|object|container|customer|price|charge|function|index|collection|device|model|image|volume|network)(?:[^\n:]{{0,20}}: | (?!or |[^\n]{{0,60}}:))"
         rf"{Q}?(?P<value>[^'\"`\n]{{1,200}}?){Q}?(?:$|[;,])", r.not_found, "no such"),
    rule(r"^(?:[\w-]{1,20}: ){0,2}(?:(?:cannot|failed to) \w+(?: \w+)? )?['\u2018]?(?P<value>[^\s:'\u2018\u2019\n]{1,200})['\u2019]?: no such (?:file|directory)", r.not_found, "no such"),  # shells
    rule(r"^(?:[\w-]{1,20}: ){1,2}(?:(?:cannot|failed to) \w+(?: \w+)? (?:['\u2018][^'\u2019\n]{1,200}['\u2019] to )?)?['\u2018]?(?P<value>[^\s:'\u2018\u2019\n]{1,200})['\u2019]?: (?:invalid character|(?:is )?(?:not )?a (?:file or )?directory|file exists|directory not empty)", r.invalid, "invalid character", "a directory", "or directory", "file exists", "not empty"),
    rule(rf"unknown (?:time ?zone|revision|branch|user|city|currency|unit|location|column|table|database|channel|tool|mailbox|topic|symbol|station|airport|target|id|device|model|language):? "
         rf"{Q}?(?P<value>[^'\"`\n,;]{{1,200}}?){Q}?(?:$|[.,;]| in )", r.not_found, "unknown"),
    rule(rf"(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate|resolve)(?: the| an?)? (?:\w+ ){{0,3}}?(?:with |named |for )?(?:the )?(?:name |id |key |'id'=)?(?P<value>{VALUE}|\d{{1,18}}(?=$|[\s.,;]))", r.not_found, "find", "locate", "resolve"),
    rule(rf"(?P<value>{VALUE}) (?:was |could |is )?(?:not (?:be )?found|not exist|does not exist|doesn't exist|not a known)(?! in schema)", r.not_found, "not ", "n't exist"),
    # refused
    rule(rf"invalid (?P<name>[a-z_]+(?: [a-z_]+){{0,2}}): "
         rf"{Q}?(?P<value>[^'\"`\n]{{1,100}}?){Q}?(?:$|\. )", r.invalid, "invalid "),
    rule(rf"invalid (?:value )?(?P<value>{VALUE}) for (?:option |parameter |argument |field |key |attribute |variable )?{Q}?-{{0,2}}(?P<name>{NAME}){Q}?", r.invalid, "invalid "),
    rule(rf"(?:invalid|bad|illegal|incorrect|wrong) (?:value|\w+ value|input|argument|data|type) (?:for|of|in|at|to) (?:the )?(?:option |parameter |argument |field |key |attribute |column |property |query parameter )?{Q}?-{{0,2}}(?P<name>{NAME}){Q}?(?:: ?(?P<value>{VALUE}))?", r.invalid, "invalid ", "bad ", "illegal ", "incorrect ", "wrong "),
    rule(rf"(?P<value>{Q}[^'\"`\n]{{1,100}}{Q}) is not (?:an? )?(?:valid|recogni[sz]ed|supported|known|acceptable|legal)"
         r" ?(?P<name>[\w ]{0,30})", r.invalid, "is not"),
    rule(rf"(?:^|[\s:,;(])(?P<name>{Q}?{NAME}{Q}?):? (?:is|was|has|does not have|appears to be) (?:an? )?(?:invalid|malformed|not valid|unsupported|not supported|valid value|invalid value)(?=$|[\s.,;)])", r.invalid, "invalid", "malformed", "not valid", "support", "valid value"),
    rule(rf"invalid (?P<name>[a-z_]{{2,30}}(?: [a-z_]{{2,30}}){{0,2}}) (?P<value>{VALUE})(?=$|[.,;])", r.invalid, "invalid "),
    rule(r"^invalid (?P<name>[a-z_]{2,30}(?: [a-z_]{2,30}){0,2})[.!]?$", r.invalid, "invalid "),
    rule(rf"did you mean(?: to \w+)?(?: the \w+ \w+)?:? {Q}(?P<near>[^'\"`\n?]+){Q}", r.suggested, "did you mean"),
    rule(rf"(?:perhaps|maybe) (?:you meant|try)(?: to \w+ the \w+)? {Q}(?P<near>[^'\"`\n?]+){Q}", r.suggested, "perhaps", "maybe"),
    rule(rf"a similar (?:argument|name|subcommand|value|option|field) exists: {Q}-{{0,2}}(?P<near>[^'\"`\n?]+){Q}", r.suggested, "a similar"),
)  # fmt: skip

_RULES = (*DIALECTS, *_COMMON)
