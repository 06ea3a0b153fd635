"""Which kind of error it is: from its type and code, then from its words."""

import re
from dataclasses import dataclass

from aftercall.wire import ErrorCategory

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
        (r"connection|unavailable|brokenpipe|networkerror|gaierror|econnrefused", "unavailable"),
        (r"validation|invalid_?(?:param|arg|request|input)|badrequest|jsonschema|zoderror",
         "invalid_parameters"),
]  # fmt: skip
_TYPES = [(re.compile(words, re.IGNORECASE), category) for words, category in _TYPE_WORDS]

_CODES: dict[str, ErrorCategory] = {
    # JSON-RPC 2.0 and MCP
    "-32602": "invalid_parameters", "-32600": "invalid_parameters", "-32601": "not_found",
    "-32001": "timeout", "-32000": "unavailable",
    # HTTP (RFC 9110, RFC 6585)
    "400": "invalid_parameters", "422": "invalid_parameters", "401": "permission_denied",
    "403": "permission_denied", "404": "not_found", "410": "not_found", "408": "timeout",
    "504": "timeout", "409": "conflict", "412": "conflict", "429": "rate_limited",
    "500": "execution", "502": "unavailable", "503": "unavailable",
    # POSIX
    "ENOENT": "not_found", "EACCES": "permission_denied", "EPERM": "permission_denied",
    "EEXIST": "conflict", "ETIMEDOUT": "timeout", "ECONNREFUSED": "unavailable",
    "ECONNRESET": "unavailable", "EHOSTUNREACH": "unavailable", "ENOTFOUND": "unavailable",
    "EAGAIN": "unavailable", "EBUSY": "conflict", "EINVAL": "invalid_parameters",
}  # fmt: skip

# The first that matches decides, so what is specific stands before what is general.
_MESSAGE_WORDS: list[tuple[str, ErrorCategory, float]] = [
        (r"user (?:rejected|declined|denied|cancell?ed|refused)|(?:rejected|declined) by (?:the )?user",
         "user_rejected", 0.95),
        (r"rate.?limit|too many requests|(?:^|http[ /]?|status:? ?|code:? ?)429\b|quota (?:exceeded|exhausted)|throttl|retry after \d",
         "rate_limited", 0.93),
        (r"timed? ?out|timeout|deadline exceeded|took too long", "timeout", 0.92),
        (r"permission denied|access (?:is )?denied|forbidden|unauthori[sz]ed|not authori[sz]ed|"
         r"authentication (?:failed|required)|invalid (?:credentials|api key|access token)|"
         r"insufficient (?:permission|privilege|scope)|operation not permitted|readonly database|read-only transaction|only select (?:queries|statements)|not accessible by|outside (?:the )?allowed|"
         r"not allowed to|requires authentication|bad credentials|must be logged in|\b(?:invalid|not)_auth(?:ed)?\b|token_(?:expired|revoked)",
         "permission_denied", 0.92),
        (r"connection (?:refused|reset|aborted|closed|error)|service unavailable|"
         r"temporarily unavailable|server (?:is )?(?:busy|overloaded|unavailable|down)|bad gateway|"
         r"could not connect|failed to connect|econnrefused|econnreset|network (?:error|is unreachable)|name resolution|database is locked|"
         r"try again later", "unavailable", 0.9),
        (r"already exists|duplicate (?:key|entry)|unique constraint|has already been|conflict\b|is not unique|found \d+ matches",
         "conflict", 0.88),
        (r"validation error|is a required property|invalid (?:parameter|argument|input|type|value|"
         r"request|option|choice)|missing \d+ required|required (?:parameter|argument|field|property)|"
         r"field required|unexpected keyword argument|must be (?:one of|an? |at least|at most|between|"
         r"greater|less|<|>|in the (?:form|format))|is not of type|is not one of|expected .{1,30} got|"
         r"additional properties|cannot unmarshal|invalid literal for|"
         r"\binvalid \w+(?: \w+)? format|does not match",
         "invalid_parameters", 0.9),
        (r"not[ _]found|no such|does(?:n't| not) exist|could not find|unknown (?:time ?zone|tool|user|id|"
         r"revision|branch|table|column)|did not (?:resolve|match any)|no \w+(?: \w+)? found|404",
         "not_found", 0.88),
        (r"\binvalid\b|\bmalformed\b|\bmust\b|\bis required\b|cannot start with|not a valid|"
         r"unsupported|syntax error|error in your sql|is a directory|operation on a directory|failed on the '\w+' tag|"
         r"unknown variant|should be non-empty|too short\b|too long\b|maximum context length|"
     r"outside the|valid url", "invalid_parameters", 0.75),
]  # fmt: skip
_WORDS = [
    (re.compile(words, re.IGNORECASE), category, confidence)
    for words, category, confidence in _MESSAGE_WORDS
]

# What a validator of arguments says, in its own words; surer than any code around it.
_VALIDATED = re.compile(
    r"validation errors? for|is a required property|missing \d+ required (?:positional|keyword)|"
    r"unexpected keyword argument|additional properties are not allowed|is not of type|"
    r"must NOT have additional properties|must have required property|invalid_type|"
    r"unrecognized_keys|input validation error|invalid (?:params|arguments) for tool",
    re.IGNORECASE,
)
# The same words about what the tool gave back (MCP's SDKs, FastAPI): nothing is wrong with the call.
_RESULT_CHECK = re.compile(
    r"output validation error|has an output schema|invalid structured content|"
    r"response validation error|ResponseValidationError",
    re.IGNORECASE,
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
    if _RESULT_CHECK.search(message):
        return CategoryReading("contract_violation", 0.95)
    if code == "-32602" or _VALIDATED.search(message):
        return CategoryReading("invalid_parameters", 0.97)
    if by_code := _CODES.get(code.upper()):
        return CategoryReading(by_code, 0.95)
    by_type = next((each for words, each in _TYPES if words.search(error_type)), None)
    if by_type:
        return CategoryReading(by_type, 0.95)
    return _by_words(message, has_faults=has_faults, blames_value=blames_value)


def _by_words(message: str, *, has_faults: bool, blames_value: bool) -> CategoryReading:
    if blames_value:
        return CategoryReading("invalid_parameters", 0.9)
    for pattern, category, confidence in _WORDS:
        if pattern.search(message):
            return CategoryReading(category, confidence)
    if has_faults:
        return CategoryReading("invalid_parameters", 0.7)
    return CategoryReading("unknown", 0.5)
