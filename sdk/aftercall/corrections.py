"""Noticing that a user's message may correct the last answer. Proposes, never decides.

    proposal = propose_correction("this is a menu, not titles")
    # CorrectionProposal(kind='low_utility', phrase='this is a menu, not titles', confidence=0.6)

Nothing is sent, stored or changed here: whoever holds the conversation knows what the message was
an answer to, and decides whether to record a correction. Only the form of what is said is looked
at, in English and, more narrowly, in German, French and Spanish. What could as well be a new
request, a question or a courtesy is left alone, as a correction weighs more than a tool's own word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aftercall.correction_rules import AFTER_NO, RULES
from aftercall.models.health import ReferralKind

MAX_READ_CHARS = 600
"""Of a message. A correction stands at its beginning; what comes later is the next request."""

MAX_PHRASE_CHARS = 300
_MOST_CLAUSES = 5


@dataclass(frozen=True, slots=True)
class CorrectionProposal:
    """What may be a correction.

    Attributes:
        kind: `wrong_tool_boundary` when another tool is asked for, else `low_utility`.
        phrase: the user's words that say so, at most 300 characters.
        confidence: 0 to 1, higher is surer: 0.9 says what is wrong with the answer, 0.5 only that
            it should be tried again. Set by hand; it orders proposals and is no probability.
    """

    kind: ReferralKind
    phrase: str
    confidence: float


def propose_correction(text: str) -> CorrectionProposal | None:
    """The surest sign in a message that it corrects the last answer; None when there is none.

    No I/O, and bounded work whatever the text: its first 600 characters are read.
    """
    found: list[CorrectionProposal] = []
    denied = False
    for phrase, is_question in _clauses(text[:MAX_READ_CHARS]):
        clause, denies = _without_openings(phrase.translate(_QUOTES).lower())
        denied = denied or denies
        if not clause or is_question:
            continue
        proposal = _proposal(clause, phrase, denied=denied)
        if proposal is not None:
            found.append(proposal)
        denied = False
    return max(found, key=lambda proposal: proposal.confidence, default=None)


_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u00b4": "'", "`": "'"})

# A colon ends nothing: what stands after it is often quoted ("translate: ...").
_END = re.compile(r"[.!?;\n\u2026]+|,? \b(?:but|aber|mais|pero)\b ")

_OPENING = re.compile(
    r"[\s,\-\u2013\u2014]*(?:(?:h+m+|um|uh|oh|ah|well|wait|hey|sorry|thanks|thank you|ok|okay|"
    r"actually|please|and|but|danke|entschuldigung|bitte|merci|désolé|gracias|perdón)\b|"
    r"(?P<no>(?:no|nope|nah|nein|nee|non)(?=\s*(?:$|[,:\-\u2013\u2014])|"
    r"\s+(?:that|this|these|those|it's|i)\b)))[\s,:\-\u2013\u2014]*"
)


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    """The first parts of a message, and whether each is a question."""
    start = 0
    count = 0
    for end in _END.finditer(text):
        phrase = text[start : end.start()].strip()
        if phrase:
            yield phrase[:MAX_PHRASE_CHARS], "?" in end[0]
            count += 1
        start = end.end()
        if count >= _MOST_CLAUSES:
            return
    if rest := text[start:].strip():
        yield rest[:MAX_PHRASE_CHARS], False


def _without_openings(clause: str) -> tuple[str, bool]:
    """A clause without its first small words, and whether one of them was a no."""
    denies = False
    for _ in range(_MOST_CLAUSES):
        opening = _OPENING.match(clause)
        if opening is None:
            break
        denies = denies or opening["no"] is not None
        clause = clause[opening.end() :]
    return clause.strip(), denies


def _proposal(clause: str, phrase: str, *, denied: bool) -> CorrectionProposal | None:
    for rule in RULES if not denied else RULES + AFTER_NO:
        if rule.pattern.match(clause):
            return CorrectionProposal(rule.kind, phrase, rule.confidence)
    return None
