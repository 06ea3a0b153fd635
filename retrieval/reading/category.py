"""Which kind of error it is: from its type and code, then from its words."""

import re
from dataclasses import dataclass

from aftercall.models import ErrorCategory
from retrieval.reading.category_words import (
    OF_PARAMETERS,
    RATE_LIMITED,
    RULES,
    plain_words,
    says_nothing,
)
from retrieval.reading.codes import CODES, category_of_code, stated_sqlstate

UNREAD = 0.5
"""Confidence of `unknown` where no grammar knows the words: a classifier may."""
SURE_OF_NOTHING = 0.9
"""The same where there are no words that could be known."""
_FAULT_NAMED = 0.85
"""The same of words about parameters beside a fault that a grammar found."""
_STATUS_WITHIN = 400

_TYPED: dict[str, ErrorCategory] = {
    "wrong_tool_boundary": "wrong_tool_boundary",
    "low_utility": "low_utility",
    "contract_violation": "contract_violation",
    "user_rejected": "user_rejected",
}
"""What a tool says of itself in `error.type`; never overruled (seeds 000 and 003)."""

_TYPE_WORDS: list[tuple[str, ErrorCategory]] = [
        (r"timeout|timedout|deadlineexceeded", "timeout"),
        (r"rate_?limit|toomanyrequests|throttl|quotaexceeded", "rate_limited"),
        (r"permission|forbidden|unauthorized|unauthenticated|accessdenied|autherror", "permission_denied"),
        (r"notfound|nosuch|filenotfound|doesnotexist|zoneinfonotfound", "not_found"),
        (r"conflict|alreadyexists|fileexists|integrityerror|duplicate", "conflict"),
        (r"overload|\bserver_error\b|connection|unavailable|brokenpipe|networkerror|gaierror|econnrefused", "unavailable"),
        (r"validation|invalid_?(?:param|arg|request|input)|badrequest|jsonschema|zoderror",
         "invalid_parameters"),
]  # fmt: skip
_TYPES = [(re.compile(words, re.IGNORECASE), category) for words, category in _TYPE_WORDS]

_STATED_STATUS = re.compile(
    r"(?:^|\bHTTP(?:/[\d.]+)?[ :]|\bstatus(?:[ _]?code)?[\"']?\]?[ :=]{1,3}|\bcode[\"']?[ :=]{1,3}\"?|\bhttp status |"
    r"\berror:? |: )\(?(?P<code>-32[0-9]{3}|[45][0-9]{2})\b(?![.,\d]| \d\.\d)",
    re.IGNORECASE,
)
"""A JSON-RPC code or an HTTP status where messages and bodies state one."""
_CLEAR_STATUS = frozenset(
    {"-32601", "-32001", "401", "403", "404", "408", "409", "410", "412", "423", "429", "502", "503", "504",
     "524"}
)  # fmt: skip
"""Codes that say more than the words beside them; 400 and 500 stand for all there is."""

# What a validator of arguments says, in its own words; surer than any code around it.
_VALIDATED = re.compile(
    r"validation errors? for|is a required property|missing \d+ required (?:positional|keyword)|"
    r"unexpected keyword argument|additional properties are not allowed|is not of type|"
    r"must NOT have additional properties|must have required property|invalid_type|"
    r"unrecognized_keys|input validation error|invalid (?:params|arguments) for tool",
    re.IGNORECASE,
)
# The same words about what the tool gave back: nothing is wrong with the call.
_GIVEN_BACK = (
    r"(?:outputs?|response|responses|result|results|answer|payload|structured content|deliverable|delivered|"
    r"return(?:ed)? (?:value|type|payload|object|data)|structured output|completion|generated object)"
)
_HELD_AGAINST = r"(?:validat|schema|conform|contract|promise|declared|coerce|grammar|not json|not among|mismatch|pars(?:e|ing) )"
_RESULT_CHECK = re.compile(
    rf" {_GIVEN_BACK} (?:\w+ ){{0,5}}?{_HELD_AGAINST}|"
    rf" (?:validat\w+|conform\w*|pars(?:e|ing)|against|promised|parser) (?:\w+ ){{0,2}}?(?:the )?{_GIVEN_BACK} |"
    r" contract (?:violat|breach|broken)|post ?condition |output (?:parser|schema|type) |"
    r" (?:return|response|output) (?:\w+ )?(?:type|schema|declared)|response (?:body|status|headers?|content) |"
    r" validation errors? for \w+ (?:response|result|output|reply) |cannot return null for non nullable"
)


@dataclass(frozen=True, slots=True)
class CategoryReading:
    """A category, and how sure it is (0 to 1, higher is surer)."""

    category: ErrorCategory
    confidence: float


def categorise(
    error_type: str, code: str, message: str, *, has_faults: bool, blames_value: bool
) -> CategoryReading:
    """Read the kind of an error from its type, its code and its words, in this order.

    Args:
        error_type: the type the caller gave.
        code: the code the caller gave: JSON-RPC, HTTP, POSIX or the tool's own; or empty.
        message: what the tool said, bounded in length.
        has_faults: whether a grammar found a fault of a parameter in the message.
        blames_value: whether it says of a parameter that was sent how it should be. Such words are
            surer than any other: `timeout must be an integer` is no time-out.
    """
    if typed := _TYPED.get(error_type):
        return CategoryReading(typed, 1.0)
    plain = plain_words(message)
    if not blames_value and _RESULT_CHECK.search(plain):
        return CategoryReading("contract_violation", 0.9)
    if code == "-32602" or _VALIDATED.search(message):
        return CategoryReading("invalid_parameters", 0.97)
    beside = f"{error_type} {message[:_STATUS_WITHIN]}" if code else ""
    if by_code := category_of_code(code, beside):
        return _unless_too_fast(CategoryReading(by_code, 0.95), plain)
    named = f"{error_type} {code}"
    by_type = next((each for words, each in _TYPES if words.search(named)), None)
    if by_type:
        return CategoryReading(by_type, 0.95)
    return _by_words(message, plain, has_faults=has_faults, blames_value=blames_value)


def _by_words(message: str, plain: str, *, has_faults: bool, blames_value: bool) -> CategoryReading:
    if blames_value:
        return CategoryReading("invalid_parameters", 0.9)
    if says_nothing(plain):
        return CategoryReading("unknown", SURE_OF_NOTHING)
    stated = _STATED_STATUS.search(message[:_STATUS_WITHIN])
    by_status = CODES.get(stated["code"]) if stated else None
    if stated and by_status and stated["code"] in _CLEAR_STATUS:
        return _unless_too_fast(CategoryReading(by_status, 0.92), plain)
    if by_state := stated_sqlstate(message[:_STATUS_WITHIN]):
        return CategoryReading(by_state, 0.92)
    for words in RULES:
        if words.are_in(plain):
            return CategoryReading(words.category, words.confidence)
    if OF_PARAMETERS.are_in(plain):
        sure = _FAULT_NAMED if has_faults else OF_PARAMETERS.confidence
        return CategoryReading("invalid_parameters", sure)
    if by_status:
        return CategoryReading(by_status, 0.85)
    return CategoryReading(*(("invalid_parameters", 0.7) if has_faults else ("unknown", UNREAD)))


def _unless_too_fast(reading: CategoryReading, plain: str) -> CategoryReading:
    """GitHub and Google tell with 403, too, that a caller is too fast."""
    if reading.category == "permission_denied" and RATE_LIMITED.are_in(plain):
        return CategoryReading("rate_limited", RATE_LIMITED.confidence)
    return reading
