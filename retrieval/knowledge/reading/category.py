"""Which kind of error it is: from its type and code, then from its words; and what it refuses.

Words are looked for in a message that was made plain: capitals within a word begin a new one, and
all that is no letter or digit is a space. So `ResourceNotFoundException`, `NOT_FOUND` and
`not-found` all hold `not found`. All words are data (`categories.toml`, `refusals.toml`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory, ExecutionError
from aftercall.secret_names import lower_text
from retrieval import compiled, read_word_table

_READ = 1_200
"""Characters that are searched: what follows is context, and holds the words of other errors."""
_TRACEBACK = "Traceback (most recent call last)"
_FRAMES = re.compile(
    r"^[ \t]+(?:at |File \"|\^+|\.\.\. \d+ more)[^\n]*$|^goroutine [^\n]*$", re.MULTILINE
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_WORD = re.compile(r"[\W_]+")


def plain_words(message: str) -> str:
    """Return the message as lower-case words with single spaces between and around them."""
    if _TRACEBACK in message:
        # Python puts what went wrong last, after the lines that led to it.
        message = message.strip().rsplit("\n", 1)[-1]
    head = _FRAMES.sub("", message)[:_READ]
    return f" {_NO_WORD.sub(' ', _HUMP.sub(' ', head)).lower().strip()} "


@dataclass(frozen=True, slots=True)
class CategoryReading:
    """A category, and how sure it is (0 to 1, higher is surer)."""

    category: ErrorCategory
    confidence: float


@dataclass(frozen=True, slots=True)
class _Words:
    """Phrases and, for words with others between them, a pattern that show a category."""

    reading: CategoryReading
    phrases: Sequence[str]
    pattern: str | None

    def are_in(self, plain: str) -> bool:
        return any(phrase in plain for phrase in self.phrases) or (
            self.pattern is not None and compiled(self.pattern).search(plain) is not None
        )


def _one_of(patterns: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(patterns), flags)


def _read_words(row: dict[str, Any]) -> _Words:
    phrases = [part.strip().replace("_", " ") for part in row["phrases"].split(";")]
    pattern = "|".join(row["patterns"]) if "patterns" in row else None
    reading = CategoryReading(row["category"], row["confidence"])
    return _Words(reading, [phrase for phrase in phrases if phrase], pattern)


_TABLE = read_word_table("knowledge/reading/categories.toml")
_PATTERNS: dict[str, list[str]] = _TABLE["patterns"]
_CLEAR = frozenset(_TABLE["codes"].pop("clear"))
CODES: dict[str, ErrorCategory] = {
    code: category for category, codes in _TABLE["codes"].items() for code in codes
}
*_RULES, _OF_PARAMETERS = map(_read_words, _TABLE["rules"])
_USER_REJECTED = next(words for words in _RULES if words.reading.category == "user_rejected")
_RATE_LIMITED = next(words for words in _RULES if words.reading.category == "rate_limited")
_TYPES: list[tuple[str, ErrorCategory]] = [
    ("|".join(row["patterns"]), row["category"]) for row in _TABLE["types"]
]
_OF_ITSELF: frozenset[ErrorCategory] = frozenset(
    {"wrong_tool_boundary", "low_utility", "contract_violation", "user_rejected"}
)
"""What a tool states of itself in `error.type`; never overruled (seeds 000 and 003)."""
_STATUS = _one_of(_PATTERNS["status"], re.IGNORECASE)
_VALIDATED = _one_of(_PATTERNS["validated"], re.IGNORECASE)
_POLICY = _one_of(_PATTERNS["policy"])
_GIVEN_BACK = _one_of(_PATTERNS["given_back"])
_EMPTY_WORDS = frozenset(_TABLE["empty"]["words"])
_CODE_WORD = re.compile(r"(?=[^a-z]*\d)[a-z]{0,2}[\da-f]+|\d+")
_PLACES = ("status", "statusCode", "status_code", "httpStatus", "http_status", "code")
_WRAPPERS = ("error", "response")
_STATUS_WITHIN = 400
UNREAD = 0.5
"""Confidence of `unknown` where no grammar knows the words: a classifier may."""
_SURE_OF_NOTHING = 0.9
"""The same where there are no words that could be known."""
_FAULT_NAMED = 0.85
"""The same of words about parameters next to a fault that a grammar found."""


def categorise_error(
    error_type: str,
    code: str,
    message: str,
    *,
    has_faults: bool,
    blames_value: bool,
    blames_form: bool,
) -> CategoryReading:
    """Read the kind of an error from its type, its code and its words, in this order.

    The code is of JSON-RPC, HTTP, POSIX or the tool's own, or empty; the message is bounded in
    length. Words that say how a value that was sent should be (`blames_value`) are surer than any
    other: `timeout must be an integer` is no time-out. A policy states no to values too, but not
    for their form (`blames_form`).
    """
    if error_type in _OF_ITSELF:
        return CategoryReading(error_type, 1.0)
    plain = plain_words(message)
    if not blames_value and _GIVEN_BACK.search(plain):
        return CategoryReading("contract_violation", 0.9)
    if not blames_form and _POLICY.search(plain) and not _USER_REJECTED.are_in(plain):
        return _unless_too_fast(CategoryReading("permission_denied", 0.92), plain)
    if code == "-32602" or _VALIDATED.search(message):
        return CategoryReading("invalid_parameters", 0.97)
    if by_code := CODES.get(code.upper()):
        return _unless_too_fast(CategoryReading(by_code, 0.95), plain)
    named = f"{error_type} {code}"
    types = ((compiled(words, re.IGNORECASE), each) for words, each in _TYPES)
    by_type = next((each for words, each in types if words.search(named)), None)
    if by_type:
        return CategoryReading(by_type, 0.95)
    if blames_value:
        return CategoryReading("invalid_parameters", 0.9)
    return _by_words(message[:_STATUS_WITHIN], plain, has_faults=has_faults)


def _by_words(start: str, plain: str, *, has_faults: bool) -> CategoryReading:
    if all(word in _EMPTY_WORDS or _CODE_WORD.fullmatch(word) for word in plain.split()):
        return CategoryReading("unknown", _SURE_OF_NOTHING)
    stated = _STATUS.search(start)
    by_status = CODES.get(stated["code"]) if stated else None
    if stated and by_status and stated["code"] in _CLEAR:
        return _unless_too_fast(CategoryReading(by_status, 0.92), plain)
    for words in _RULES:
        if words.are_in(plain):
            return words.reading
    if _OF_PARAMETERS.are_in(plain):
        sure = _FAULT_NAMED if has_faults else _OF_PARAMETERS.reading.confidence
        return CategoryReading("invalid_parameters", sure)
    if by_status:
        return CategoryReading(by_status, 0.85)
    return CategoryReading(*(("invalid_parameters", 0.7) if has_faults else ("unknown", UNREAD)))


def _unless_too_fast(reading: CategoryReading, plain: str) -> CategoryReading:
    """GitHub and Google show with 403, too, that a caller is too fast."""
    is_too_fast = reading.category == "permission_denied" and _RATE_LIMITED.are_in(plain)
    if is_too_fast:
        return _RATE_LIMITED.reading
    return reading


def code_within(details: JsonValue) -> str:
    """Return the known code or status that an error's details hold, or an empty text."""
    if not isinstance(details, dict):
        return ""
    holders = (details, *(details.get(key) for key in _WRAPPERS))
    values = (each.get(key) for each in holders if isinstance(each, dict) for key in _PLACES)
    texts = (str(value)[:20] for value in values if isinstance(value, int | str))
    return next((text for text in texts if text.upper() in CODES), "")


_UNKNOWN_TOOL = re.compile(
    r"(?:unknown|no such|unrecogni[sz]ed|undefined|unsupported|invalid) "
    r"(?:tool|function|method|command)(?: name)?(?: is)?[\s:]{0,3}[\"'`]?"
    r"(?P<before>[\w./:-]{1,256})|"
    r"(?:tool|function|method|command)[\s:]{1,3}[\"'`]?(?P<after>[\w./:-]{1,256})[\"'`]?,? "
    r"(?:is |was )?(?:not (?:found|available|listed|registered|known|defined|exist)|"
    r"does(?:n't| not) exist|unknown)|method not found[\s:]{1,3}[\"'`]?(?P<rpc>[\w./:-]{1,256})",
    re.IGNORECASE,
)
_TOOL_READ = 2_000


def is_unknown_tool(error: ExecutionError, tool_name: str) -> bool:
    """Return whether the error states that there is no tool of the name that was called."""
    found = _UNKNOWN_TOOL.finditer(error.message[:_TOOL_READ])
    said = ((each["before"] or each["after"] or each["rpc"]).rstrip(".:") for each in found)
    return (error.code or "").strip() == "-32601" or tool_name.lower() in map(str.lower, said)


# ------------------------------------------------------------------ refusals
_REFUSALS = read_word_table("knowledge/reading/refusals.toml")
_FORMS = [
    (pattern, str(row["kind"])) for row in _REFUSALS["refusals"] for pattern in row["patterns"]
]
_NOT_OF_THE_MATTER = _one_of(_REFUSALS["others"]["patterns"])
_REFUSAL_READ = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is refused (a `kind` of `refusals.toml`), and the words of the message that say so."""

    kind: str
    words: str


def refusal_of(message: str) -> Refusal | None:
    """Return the refusal that a message's words state; None for any other error.

    Some errors refuse what is asked for, and not how: no memory of other calls can repair them. A
    stated right value, or a fault of a parameter's form, outweighs it, which is for callers to see.
    """
    return _refusal_of(" ".join(message[:_REFUSAL_READ].split()))


@lru_cache(maxsize=1024)
def _refusal_of(text: str) -> Refusal | None:
    low = lower_text(text)  # a search without regard to case takes three times as long
    if _NOT_OF_THE_MATTER.search(low):
        return None
    found = ((compiled(form).search(low), kind) for form, kind in _FORMS)
    said = ((text[slice(*match.span())], kind) for match, kind in found if match)
    return next((Refusal(kind, words.strip(" .;:")) for words, kind in said), None)
