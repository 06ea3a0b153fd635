"""Which kind of error it is: from its type and code, then from its words."""

import re
from dataclasses import dataclass

from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory
from retrieval.reading.words import (
    OF_PARAMETERS,
    RATE_LIMITED,
    RULES,
    plain_words,
    says_nothing,
)

CODES: dict[str, ErrorCategory] = {
    # JSON-RPC 2.0 and MCP
    "-32602": "invalid_parameters", "-32600": "invalid_parameters", "-32601": "not_found",
    "-32001": "timeout", "-32000": "unavailable", "-32603": "execution",
    "-32700": "invalid_parameters",
    # HTTP (RFC 9110, RFC 6585)
    "400": "invalid_parameters", "422": "invalid_parameters", "401": "permission_denied",
    "403": "permission_denied", "404": "not_found", "410": "not_found", "408": "timeout",
    "504": "timeout", "409": "conflict", "412": "conflict", "429": "rate_limited",
    "413": "invalid_parameters", "414": "invalid_parameters", "415": "invalid_parameters",
    "423": "conflict", "524": "timeout", "500": "execution", "502": "unavailable",
    "503": "unavailable",
    # POSIX
    "ENOENT": "not_found", "EACCES": "permission_denied", "EPERM": "permission_denied",
    "EEXIST": "conflict", "ETIMEDOUT": "timeout", "ECONNREFUSED": "unavailable",
    "ECONNRESET": "unavailable", "EHOSTUNREACH": "unavailable", "ENOTFOUND": "unavailable",
    "EAGAIN": "unavailable", "EBUSY": "conflict", "EINVAL": "invalid_parameters",
}  # fmt: skip

# SQLSTATE (ISO/IEC 9075, PostgreSQL appendix A) by its first characters, the longest first; then
# MySQL's own numbers. A deadlock or a failed serialisation is mended by the same call again.
_SQL: tuple[tuple[tuple[str, ...], ErrorCategory], ...] = (
    (("42501",), "permission_denied"),
    (("42P01", "42703", "42883", "42S02", "42S22", "3D000", "3F000"), "not_found"),
    (("40001", "40P01", "1213", "1205", "57P0"), "unavailable"),
    (("57014",), "timeout"),
    (("08", "53", "1040", "2002", "2003", "2006", "2013"), "unavailable"),
    (("28", "1044", "1045", "1142"), "permission_denied"),
    (("23", "55", "1062", "1451", "1452"), "conflict"),
    (("22", "42", "1064"), "invalid_parameters"),
)
_SQL_FORM = re.compile(r"[0-9A-Z]{5}|1\d{3}|20\d\d", re.IGNORECASE)
_SQL_SIGN = re.compile(
    r"sql|psycopg|postgres|asyncpg|maria|sqlstate|database|relation|transaction|deadlock"
    r"|constraint|"
    r"serializ|\btable\b|\bcolumn\b|\block\b|\brole\b",
    re.IGNORECASE,
)
_SQLSTATE_SAID = re.compile(
    r"\bSQL ?STATE\W{0,3}(?P<a>[0-9A-Z]{5})\b|\bERROR \d{4} \((?P<b>[0-9A-Z]{5})\)", re.IGNORECASE
)
_PLACES = ("status", "statusCode", "status_code", "httpStatus", "http_status", "code", "sqlstate")
_WRAPPERS = ("error", "response")


def category_of_code(code: str, words: str) -> ErrorCategory | None:
    """The category that a code stands for, when it is known.

    Args:
        code: as the caller gave it.
        words: the type and the message beside it. Five digits are a SQLSTATE only beside words of
            databases: chat and telephone services number their errors so too.
    """
    if known := CODES.get(code.upper()):
        return known
    if not _SQL_FORM.fullmatch(code) or not (_has_letters(code) or _SQL_SIGN.search(words)):
        return None
    return _of_sql(code.upper())


def stated_sqlstate(message: str) -> ErrorCategory | None:
    """The category of the SQLSTATE that a message names as one."""
    if "STATE" not in (upper := message.upper()) and "ERROR " not in upper:
        return None  # most messages: cheaper than the search
    said = _SQLSTATE_SAID.search(message)
    return _of_sql((said["a"] or said["b"]).upper()) if said else None


def code_within(details: JsonValue) -> str:
    """The known code or status that an error's details hold, or an empty text."""
    if not isinstance(details, dict):
        return ""
    holders = (details, *(details.get(key) for key in _WRAPPERS))
    said = (_known(each.get(key)) for each in holders if isinstance(each, dict) for key in _PLACES)
    return next(filter(None, said), "")


def _known(value: JsonValue) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value)[:20]
    return text if text.upper() in CODES or (_SQL_FORM.fullmatch(text) and _of_sql(text)) else ""


def _has_letters(code: str) -> bool:
    return len(code) == 5 and not code.isdigit() and code[:2].isdigit()


def _of_sql(code: str) -> ErrorCategory | None:
    if len(code) == 4:
        return next((category for codes, category in _SQL if code in codes), None)
    return next((c for starts, c in _SQL for each in starts if _begins(code, each)), None)


def _begins(code: str, start: str) -> bool:
    # MySQL's four digits are whole numbers, never the beginning of a state.
    return code.startswith(start) and (len(start) != 4 or not start.isdigit())


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
        (r"permission|forbidden|unauthorized|unauthenticated|accessdenied|autherror", "permission_"
         "denied"),
        (r"notfound|nosuch|filenotfound|doesnotexist|zoneinfonotfound", "not_found"),
        (r"conflict|alreadyexists|fileexists|integrityerror|duplicate", "conflict"),
        (r"overload|\bserver_error\b|connection|unavailable|brokenpipe|networkerror|gaierror"
         r"|econnrefused", "unavailable"),
        (r"validation|invalid_?(?:param|arg|request|input)|badrequest|jsonschema|zoderror",
         "invalid_parameters"),
]  # fmt: skip
_TYPES = [(re.compile(words, re.IGNORECASE), category) for words, category in _TYPE_WORDS]

_STATED_STATUS = re.compile(
    r"(?:^|\bHTTP(?:/[\d.]+)?[ :]|\bstatus(?:[ _]?code)?[\"']?\]?[ :=]{1,3}"
    r"|\bcode[\"']?[ :=]{1,3}\"?|\bhttp status |"
    r"\berror:? |: )\(?(?P<code>-32[0-9]{3}|[45][0-9]{2})\b(?![.,\d]| \d\.\d)",
    re.IGNORECASE,
)
"""A JSON-RPC code or an HTTP status where messages and bodies state one."""
_CLEAR_STATUS = frozenset(
    {"-32601", "-32001", "401", "403", "404", "408", "409", "410", "412", "423", "429", "502",
    "503", "504",
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
    r"(?:outputs?|response|responses|result|results|answer|payload|structured content|deliverable"
    r"|delivered|"
    r"return(?:ed)? (?:value|type|payload|object|data)|structured output|completion"
    r"|generated object)"
)
_HELD_AGAINST = (
    r"(?:validat|schema|conform|contract|promise|declared|coerce|grammar|not json|not among"
    r"|mismatch|pars(?:e|ing) )"
)
_RESULT_CHECK = re.compile(
    rf" {_GIVEN_BACK} (?:\w+ ){{0,5}}?{_HELD_AGAINST}|"
    rf" (?:validat\w+|conform\w*|pars(?:e|ing)|against|promised|parser) (?:\w+ ){{0,2}}?"
    rf"(?:the )?{_GIVEN_BACK} |"
    r" contract (?:violat|breach|broken)|post ?condition |output (?:parser|schema|type) |"
    r" (?:return|response|output) (?:\w+ )?(?:type|schema|declared)|response (?:body|status"
    r"|headers?|content) |"
    r" validation errors? for \w+ (?:response|result|output|reply) "
    r"|cannot return null for non nullable"
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
