"""Noticing that a user's message may correct the last answer. Proposes, never decides.

    proposal = propose_correction("this is a menu, not titles")
    # CorrectionProposal(kind='low_utility', phrase='this is a menu, not titles', confidence=0.6)

Nothing is sent, stored or changed here: the program that holds the conversation knows what the
message was an answer to, and decides whether to record a correction. Only the form of what is
stated is looked at, in English. Anything that could as well be a new request, a question or a
courtesy is left alone, as a correction weighs more than a tool's own word. The forms were written
by hand (`corrections.toml`): only what speaks of an answer counts (`that`, `this list`, `not what I
asked for`), and what negates without finding fault (`not bad`) fits none of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice

from aftercall.files import read_table
from aftercall.models.health import ReferralKind


@cache
def _read_rules() -> dict[str, list[tuple[re.Pattern[str], ReferralKind, float]]]:
    table = read_table("corrections.toml")
    parts: dict[str, str] = {}

    def fill_parts(text: str) -> str:
        return re.sub(r"\{([A-Z_]+)\}", lambda found: parts[found[1]], text)

    for name, text in table["parts"].items():
        parts[name] = fill_parts(text)
    kinds: dict[str, ReferralKind] = {"wrong_tool_boundary": "wrong_tool_boundary"}
    return {
        name: [
            (re.compile(fill_parts(each["pattern"])), kinds.get(name, "low_utility"), each["sure"])
            for each in rules
        ]
        for name, rules in table["rules"].items()
    }


MAX_READ_CHARS = 600
"""Of a message. A correction stands at its beginning; what comes later is the next request."""
MAX_PHRASE_CHARS = 300
_MOST_CLAUSES = 5


@dataclass(frozen=True, slots=True)
class CorrectionProposal:
    """What may be a correction.

    It is a `wrong_tool_boundary` when another tool is asked for, else `low_utility`; `phrase` are
    the user's words that say so, at most 300 characters. `confidence`, 0 to 1: 0.9 states what is
    wrong with the answer, 0.5 only that it should be tried again. Set by hand; it orders proposals
    and is no probability.
    """

    kind: ReferralKind
    phrase: str
    confidence: float


def propose_correction(text: str) -> CorrectionProposal | None:
    """Return the surest sign in a message that it corrects the last answer.

    None without one.

    No I/O, and bounded work whatever the text: its first 600 characters are read.
    """
    found: list[CorrectionProposal] = []
    denied = False
    clauses = (part for part in _split_clauses(text[:MAX_READ_CHARS]) if part[0])
    for part, is_question in islice(clauses, _MOST_CLAUSES):
        phrase = part[:MAX_PHRASE_CHARS]
        clause, denies = _without_openings(phrase.translate(_QUOTES).lower())
        denied = denied or denies
        if not clause or is_question:
            continue
        # The last say too little by themselves, and enough after a no.
        names = ("wrong_tool_boundary", "low_utility", "after_no")[: 3 if denied else 2]
        for pattern, kind, confidence in chain.from_iterable(_read_rules()[name] for name in names):
            if pattern.match(clause):
                found.append(CorrectionProposal(kind, phrase, confidence))
                break
        denied = False
    return max(found, key=lambda proposal: proposal.confidence, default=None)


_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u00b4": "'", "`": "'"})

# A colon ends nothing: what stands after it is often quoted ("translate: ...").
_END = re.compile(r"[.!?;\n\u2026]+|,? \bbut\b ")
_OPENING = re.compile(
    r"[\s,\-\u2013\u2014]*(?:(?:h+m+|um|uh|oh|ah|well|wait|hey|sorry|thanks|thank you|ok|okay|"
    r"actually|please|and|but)\b|"
    r"(?P<no>(?:no|nope|nah)(?=\s*(?:$|[,:\-\u2013\u2014])|"
    r"\s+(?:that|this|these|those|it's|i)\b)))[\s,:\-\u2013\u2014]*"
)


def _split_clauses(text: str) -> Iterator[tuple[str, bool]]:
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.start()].strip(), "?" in end[0]
        start = end.end()
    yield text[start:].strip(), False


def _without_openings(clause: str) -> tuple[str, bool]:
    """Return a clause without its first small words, and whether one of them was a no."""
    denies = False
    for _ in range(_MOST_CLAUSES):
        if (opening := _OPENING.match(clause)) is None:
            break
        denies = denies or opening["no"] is not None
        clause = clause[opening.end() :]
    return clause.strip(), denies
