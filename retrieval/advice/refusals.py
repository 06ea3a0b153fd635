"""Refusals of the matter: the call was understood and is well-formed, and the answer is no.

No money, no seats, a closed account, a login that is lacking: nothing about a parameter's form is
wrong, so no memory of other calls can mend it. Whoever asked for the call has to decide, or
something has to be done before it. Pure; the patterns are linear and the text is bounded.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

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


_MEANS = r"(?:payment (?:method|means|option|id)|(?:credit|debit|gift|bank) card|card|certificate|voucher|coupon|promo(?:tion)? code|bank account)"  # noqa: E501 - one list
_LOGGED_IN = r"(?:logged|signed) ?in|authenticated"
_DONE = r"(?:started|running|turned on|switched on|open(?:ed)?|closed|locked|unlocked|pressed|released|connected|initiali[sz]ed|activated|enabled|selected|created|loaded|configured|set up|verified|confirmed|registered|activated|mounted|paused|stopped)"  # noqa: E501 - one list
_OVER = r"(?:closed|resolved|cancell?ed|expired|completed|finished|locked|archived|deactivated|disabled|suspended|blocked|frozen|paid|refunded|shipped|delivered|submitted|approved|rejected|redeemed|used|booked|reserved|captured|answered|claimed|running|started|checked (?:in|out)|merged|deleted|sold)"  # noqa: E501 - one list
_STATING = r"(?:specify|set|provide|select|pass|include|choose|give|name|supply|use|add|define|declare|enter|state|call)\b"  # noqa: E501 - one list

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
     r"modified|cancell?ed|refunded|exchanged|transferred|returned|upgraded|downgraded|booked|edited|"
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
