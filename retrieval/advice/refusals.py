"""Refusals of the matter, and of permission: the call is well-formed, and the answer is no. Pure.

No money, no seats, a closed account, a login that is lacking: nothing about a parameter's form is
wrong, so no memory of other calls can mend it. The user has to decide, or something has to be done
before it. The patterns are linear and the text is bounded.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from aftercall.models import ExecutionError
from retrieval.proposals.case import quoted

RefusalKind = Literal[
    "precondition",  # something has to be done first
    "funds",  # money or credit does not suffice
    "quota",  # the account's plan or allowance is used up
    "capacity",  # there are not enough of it
    "unavailable",  # not offered then or there
    "payment",  # a means of payment that is not known or not taken
    "rule",  # a rule of the business says no
    "state",  # it is closed, expired, locked, ...
]

_READ = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is refused, and the words of the message that say so."""

    kind: RefusalKind
    words: str


_MEANS = (
    r"(?:payment (?:method|means|option|id)|(?:credit|debit|gift|bank) card|card|certificate"
    r"|voucher|coupon|promo(?:tion)? code|bank account)"
)
_LOGGED_IN = r"(?:logged|signed) ?in|authenticated"
_DONE = (
    r"(?:started|running|turned on|switched on|open(?:ed)?|closed|locked|unlocked|pressed|released"
    r"|connected|initiali[sz]ed|activated|enabled|selected|created|loaded|configured|set up"
    r"|verified|confirmed|registered|activated|mounted|paused|stopped)"
)
_OVER = (
    r"(?:closed|resolved|cancell?ed|expired|completed|finished|locked|archived|deactivated"
    r"|disabled|suspended|blocked|frozen|paid|refunded|shipped|delivered|submitted|approved"
    r"|rejected|redeemed|used|booked|reserved|captured|answered|claimed|running|started|checked "
    r"(?:in|out)|merged|deleted|sold)"
)
_STATING = (
    r"(?:specify|set|provide|select|pass|include|choose|give|name|supply|use|add|define|declare"
    r"|enter|state|call)\b"
)

# The first that matches decides. `[^\n.;:]{0,60}` bridges a few words of the same clause.
_FORMS: list[tuple[str, RefusalKind]] = [
    # "User must be logged in", "please authenticate before posting", "no user is logged in"
    (rf"(?:must|needs? to|have to|has to) (?:first )?be (?:{_LOGGED_IN})", "precondition"),
    (rf"(?:user|you|session|client)? ?(?:is |are )?(?:not|n't) (?:currently )?(?:{_LOGGED_IN})\b",
     "precondition"),
    (rf"no (?:user|session|account)[^\n.;:]{{0,30}} (?:{_LOGGED_IN})", "precondition"),
    (r"(?:please|must|need to|have to|has to) (?:first )?(?:log ?in|sign in|authenticate|login)\b",
     "precondition"),
    (r"(?:log ?in|sign in|authenticate) (?:first|before)\b", "precondition"),
    # "the engine must be started first", "start the engine before ...", "no file is open"
    (rf"(?:must|needs? to|has to|have to|should) (?:first )?be (?:fully )?{_DONE}\b"
     r"[^\n.;:]{0,60}\b(?:first|before|prior to|when|to)\b", "precondition"),
    (rf"must (?:first )?(?!{_STATING})\w{{2,20}} (?:the|a|an|your) [^\n.;:]{{2,60}}"
     r"\b(?:before|first)\b", "precondition"),
    (rf"(?:^|[.;:] )(?:please )?(?!(?:please|not|no|try|wait|retry|check)\b)(?!{_STATING})"
     r"\w{2,20} (?:the|a|an|your) \w[^\n.;:]{0,40} (?:before|first)\b", "precondition"),
    (rf"(?:^|[.;:] |because )(?:there is )?no \w{{2,30}}(?: \w{{2,20}})? (?:is |are |has been )?"
     rf"(?:was |currently |yet )?{_DONE}\b", "precondition"),
    (r"\b(?:has|have|is|are) not (?:yet )?(?:been )?(?:started|running|initiali[sz]ed|activated|"
     r"verified)\b", "precondition"),
    (rf"(?:can ?not|can't) \w[^\n.;:]{{0,40}}[:;,] [^\n.;:]{{0,40}}\b(?:is|are) not {_DONE}\b",
     "precondition"),
    (r"(?:precondition|prerequisite)s? (?:failed|not (?:met|satisfied)|required)", "precondition"),
    # Money
    (r"insufficient (?:\w+ ){0,2}(?:funds?|balance|credits?|money|fuel|points|margin|buying power)",
     "funds"),
    (r"n(?:o|')t (?:have )?enough (?:\w+ ){0,2}(?:funds?|balance|credits?|money|cash|points)\b",
     "funds"),
    (r"(?:balance|funds?|credits?)[^\n.;:]{0,30} (?:(?:is|are) )?(?:not (?:enough|sufficient)|"
     r"too low|insufficient|exhausted|depleted|does not (?:cover|suffice))", "funds"),
    (r"(?:credit|spending) limit (?:\w+ )?(?:exceeded|reached)|exceeds? (?:\w+ ){0,3}"
     r"(?:balance|credit limit|spending limit|budget)\b", "funds"),
    # The account's allowance; a rate limit passes by itself and is none
    (r"exceeded your current quota|insufficient_quota|(?:account|plan|storage|disk|seat|license|"
     r"licence|monthly|annual|billing)[^\n.;:]{0,20} (?:quota|limit|allowance)[^\n.;:]{0,20} "
     r"(?:exceeded|reached|exhausted|used up)|upgrade (?:your|the|to a) \w*\s?(?:plan|account|"
     r"subscription)|(?:subscription|trial|free tier|licen[cs]e) (?:has |is )?(?:expired|ended|"
     r"over|inactive|required)|payment required", "quota"),
    # There are not enough of it
    (r"not enough (?:\w+ ){0,2}(?:seats?|rooms?|stock|inventory|tickets?|places?|slots?|space|"
     r"capacity|items?|units?|quantity)\b(?! tokens)", "capacity"),
    (r"sold[- ]out|out[- ]of[- ]stock|fully booked|booked out|no (?:more )?(?:seats?|rooms?|"
     r"tickets?|slots?|availability|vacanc(?:y|ies)|stock|inventory|places?)"
     r"(?: (?:\w+ )?(?:left|available|remaining)|\b(?=\s*(?:$|[.,;!]|on\b|for\b)))|"
     r"(?:no longer|not) in stock|over(?:booked|sold)", "capacity"),
    (r"\b(?:seat|room|slot|table|place|appointment)s?\b[^\n.;:]{0,30} already taken", "capacity"),
    (r"insufficient (?:\w+ )?(?:seats?|rooms?|stock|inventory|capacity|quantity)", "capacity"),
    # Not offered then or there
    (r"(?:is |are )?(?:not|n't|no longer|un) ?available (?:on|for|at|in|between|from|until|to) "
     r"(?:date |\d|(?:(?:the|this|these|that|your|requested|selected|given) ){1,3}"
     r"(?:dates?|times?|days?|nights?|period|region|country|area|location|store)\b)",
     "unavailable"),
    (r"no (?:flights?|trains?|buses|appointments?|deliver(?:y|ies)|cars?|hotels?|courts?|tables?)"
     r"[^\n.;:]{0,30} available\b", "unavailable"),
    (r"does(?:n't| not) operate on|not (?:offered|served|sold) (?:on|in|at)\b", "unavailable"),
    # Means of payment
    (rf"\b{_MEANS}\b[^\n.;:]{{0,40}} (?:(?:was|is|has been) )?(?:not found|declined|not accepted|"
     r"not (?:recogni[sz]ed|supported)|does(?:n't| not) exist|not (?:on file|linked|registered))",
     "payment"),
    (r"payment (?:was |has been )?(?:declined|refused|rejected|failed)|card (?:was )?declined",
     "payment"),
    # A rule of the business
    (r"\b(?:can ?not|can't|can no longer|may not|must not) be (?:used|applied|redeemed|changed|"
     r"modified|cancell?ed|refunded|exchanged|transferred|returned|upgraded|downgraded|booked"
     r"|edited|"
     r"updated|reopened|undone|shipped|withdrawn)\b(?! (?:with|together|both|in combination|as)\b)",
     "rule"),
    (r"(?:is |are )?(?:not eligible|ineligible|non-?refundable|not refundable|not transferable|"
     r"not cancell?able|against (?:the |our )?polic(?:y|ies))|violates? (?:the |our )?\w* ?policy|"
     r"(?:exceeds?|over) the (?:maximum|limit) (?:number )?(?:of \w+ )?(?:per|for (?:this|your)) "
     r"(?:user|customer|account|order|person|reservation)", "rule"),
    # It is over
    (rf"\b(?:is|are|was|were|has|have) already (?:been )?{_OVER}\b", "state"),
    (rf"\balready (?:been )?{_OVER}\b(?! by (?:another|the) process)", "state"),
    (r"\b(?:is|has been|account|order|ticket|reservation|offer|session|auction|poll|issue|market|"
     r"store|registration|booking|link|code)\b (?:is |has |was |been |currently |now ){0,3}"
     r"(?:closed|expired|locked|archived|suspended|frozen|deactivated|blocked|ended)\b", "state"),
    (r"\b(?:order|ticket|reservation|booking|subscription|flight|event|meeting) "
     r"(?:is |has |was |been ){1,2}cancell?ed\b", "state"),
    (r"\b(?:coupon|voucher|code|credits?)\b[^\n.;:]{0,30} used up|"
     r"has just been (?:sold|taken|booked)", "state"),
    (r"(?:\btank|battery) is empty|no longer (?:active|valid|open|accepting)", "state"),
]  # fmt: skip
_REFUSALS = [(re.compile(form, re.IGNORECASE), kind) for form, kind in _FORMS]

# Locks and files in use pass by themselves or are the machine's; words of validators, of waits and
# of access are no refusals of the matter, and neither is a token that expired.
_NOT_OF_THE_MATTER = re.compile(
    r"database is locked|lock (?:is )?held|index\.lock|(?:resource|file|device|table) (?:is )?"
    r"(?:busy|locked)|temporarily|try again (?:in|later)|retry[ -]?after|"
    r"come back (?:in|at|after|later)|reconnect|"
    r"(?:token|certificate|credentials?|api key|jwt|signature|ssl|tls)\b[^\n.;:]{0,30} "
    r"(?:has |have |is |was )?(?:expired|revoked|not trusted|verif)|"
    r"expired (?:token|credentials?|certificate)|connection (?:is |was |has been )?(?:already )?"
    r"closed|(?:socket|stream|pool|transport|channel|cursor|file|window|page|browser|target|"
    r"client) (?:is |was |has been )?"
    r"(?:already )?closed|closed (?:connection|socket|stream|file)|not connected to|"
    r"\b(?:parameter|argument|field|property|column|keyword|query|syntax|option|variable)s?\b|"
    r"server (?:is )?not running|is required\b|"
    r"must be (?:one of|an? |at least|at most|between|greater|less|<|>|in )",
    re.IGNORECASE,
)


def refusal_of(message: str) -> Refusal | None:
    """The refusal that a message states; None for any other error.

    It looks at the words alone: a stated right value, or a fault of a parameter's form, outweighs
    it, which is for the caller to see.
    """
    return _refusal_of(" ".join(message[:_READ].split()))


@lru_cache(maxsize=1024)
def _refusal_of(text: str) -> Refusal | None:
    if _NOT_OF_THE_MATTER.search(text):
        return None
    for form, kind in _REFUSALS:
        if found := form.search(text):
            return Refusal(kind, found[0].strip(" .;:"))
    return None


_TAIL = " Another try, or other parameters, will not help."
# Names of scopes, roles and actions: `repo`, `channels:read`, `s3:GetObject`, `roles/editor`.
_NAMES = r"[\"'`]?(?P<what>[\w][\w.:/*-]{1,60}(?:[\"'`]?, [\"'`]?[\w][\w.:/*-]{1,60}){0,3})[\"'`]?"
_LACKS = [
    (re.compile(form, re.IGNORECASE), noun)
    for form, noun in [
        (rf"(?:missing|lacks?|requires?|needs?|insufficient|without)[^\n.;:]{{0,30}}"
         rf"\b(?:scopes?)\b[\s:=]{{1,3}}(?:one of )?(?:\[)?{_NAMES}", "scope"),
        (rf"(?:missing|lacks?|requires?|needs?|without)[^\n.;:]{{0,30}}\broles?\b[\s:=]{{1,3}}"
         rf"(?:one of )?{_NAMES}", "role"),
        (rf"(?:missing|lacks?|requires?|needs?|without)[^\n.;:]{{0,30}}\b(?:permissions?"
         rf"|privileges?)\b"
         rf"[\s:=]{{1,3}}(?:one of )?{_NAMES}", "permission"),
        (r"(?:requires?|needs?|missing|lacks?) (?:the |an? )?[\"'`](?P<what>[\w.:/*-]{1,60})[\"'`] "
         r"(?:oauth )?(?:scope|role|permission|privilege)", "permission"),
        (r"(?:requires?|needs?|missing|lacks?) (?:the |an? )?(?P<what>\w[\w.:/*-]{1,60}) "
         r"(?:scope|role|permission|privilege|access)", "permission"),
        (r"not authori[sz]ed to perform:? [\"'`]?(?P<what>[\w.:/*-]{2,60})", "permission"),
    ]
]  # fmt: skip
_NO_NAMES = re.compile(
    r"an?|the|to|for|is|are|or|and|of|on|not|in|required|denied|error|this|that|missing|your|any|"
    r"was|were|has|have",
    re.IGNORECASE,
)
_DETAILS = ("needed", "requiredScope", "requiredScopes", "required_scope", "required_scopes",
            "requiredRole", "required_role", "requiredPermission", "required_permission",
            "missingScope", "missing_scope", "missingPermissions",
            "missing_permissions")  # fmt: skip

# What kind of wall it is, and who can open it; the first that matches.
_WALLS = [
    (re.compile(form, re.IGNORECASE), lesson)
    for form, lesson in [
        (r"(?:token|session|credentials?|api[ _-]?key|jwt|login)\b[^\n.;:]{0,40}\b(?:expired|"
         r"revoked|invalid(?:ated)?|no longer valid)|"
         r"(?:expired|revoked|invalid|bad|incorrect|wrong)\b[^\n.;:]{0,20}\b"
         r"(?:token|credentials?|api[ _-]?key|jwt|password)|"
         r"token_(?:expired|revoked)|invalid_auth|not_authed",
         "The credentials are expired or not valid; whoever manages them for this tool has to "
         "renew them, or the user has to log in again."),
        (r"outside (?:of )?(?:the )?(?:allowed|permitted|workspace|sandbox|root)|path traversal|"
         r"not (?:in|within|under) (?:the |an? )?(?:allowed|permitted)",
         "The call reaches outside of what the tool's operator allows; whoever runs the server has "
         "to allow it."),
        (r"not accessible by (?:integration|personal access token)|(?:integration|app|bot) (?:is )?"
         r"(?:not installed|lacks|does not have|not in (?:the )?channel)|not_in_channel",
         "The integration has no access to this; whoever owns the resource has to grant it to the "
         "integration."),
        (r"read[- ]?only (?:mode|database|transaction|file ?system|user)|only select (?:queries|"
         r"statements)|readonly",
         "Only reading is allowed here; whoever runs the server decides on writing."),
        (r"operation not permitted|EPERM|EACCES|permission denied: ?['\"/]|"
         r"\[Errno 13\]",
         "The operating system refuses it to the tool; whoever runs the server has to grant the "
         "rights."),
        (r"require[sd]? authentication|authentication (?:is )?required|must be (?:logged|signed) "
         r"in|not logged in|not authenticated|unauthenticated",
         "The tool does not know who is calling; the user has to log in, or whoever runs the tool "
         "has to give it credentials."),
    ]
]  # fmt: skip
_OTHER = "The caller lacks a permission; ask whoever grants access to this tool."


def permission_lesson(error: ExecutionError) -> str:
    """To whom to turn, and what to ask for; words of the tool are quoted as data."""
    message = " ".join(error.message[:_READ].split())
    if found := _lacking(error, message):
        noun, what = found
        wall = (
            f"The caller lacks the {noun} {quoted(what)}; ask whoever grants access to this tool."
        )
        return wall + _TAIL
    wall = next((lesson for form, lesson in _WALLS if form.search(message)), _OTHER)
    return wall + _TAIL


def _lacking(error: ExecutionError, message: str) -> tuple[str, str] | None:
    for name in _DETAILS:
        value = error.details.get(name)
        values = value[:4] if isinstance(value, list) else [value]
        texts = [each for each in values if isinstance(each, str) and each]
        if texts:
            noun = next((n for n in ("scope", "role") if n in name.lower()), "permission")
            return noun, ", ".join(texts)
    for form, noun in _LACKS:
        for found in form.finditer(message):
            if not _NO_NAMES.fullmatch(found["what"]):
                return noun, found["what"].rstrip(".:,")
    return None
