"""Noticing that a user's message may correct the last answer. Proposes, never decides.

    proposal = propose_correction("this is a menu, not titles")
    # CorrectionProposal(kind='low_utility', phrase='this is a menu, not titles', confidence=0.6)

Nothing is sent, stored or changed here: the program that holds the conversation knows what the
message was an answer to, and decides whether to record a correction. Only the form of what is said
is looked at, in English. What could as well be a new request, a question or a courtesy is left
alone, as a correction weighs more than a tool's own word. The forms were written by hand: only what
speaks of an answer counts (`that`, `this list`, `not what I asked for`), and what negates without
finding fault (`not bad`) fits none of them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from aftercall.models.health import ReferralKind

# A clause has at most 300 characters, and no unbounded repeat stands within another.

_OUTPUT = (
    r"(?:answers?|outputs?|results?|responses?|lists?|repl(?:y|ies)|summary|translation|"
    r"suggestions?)"
)
"""Words for an answer. Not `page`, `code` or `file`: those are as often what the user works on."""

_THIS = rf"(?:that|this|these|those|they|(?:the|your|this|that|these|those|all) (?:\w+ )?{_OUTPUT})"
_THIS_OR_IT = rf"(?:it|{_THIS})"
_IS = r"(?:'s|'re| is| are| was| were)"
_IS_NOT = (
    r"(?:(?:'s|'re| is| are| was| were) (?:\w+ly |still |just )?not|(?: is| are| was| were)n't)"
)
_VERY = r"(?: (?:just|all|still|completely|totally|simply|really|very|so|plain|clearly|at all))?"
_FAULTY = (
    r"(?:wrong|incorrect|false|useless|garbage|rubbish|nonsense|irrelevant|incomplete|empty|"
    r"unusable|broken|inaccurate|outdated|off[- ]topic|unhelpful|a mess)"
)
_GOOD = (
    r"(?:right|correct|useful|helpful|relevant|accurate|complete|usable|it|true|"
    r"good(?: enough)?)"
)
_NO_FAULT = (
    r"(?:bad|wrong|problems?|issues?|big|hurry|rush|priority|end|first|last time|worst|case)"
)
_THING = rf"(?:an?|the|my|any) (?!(?:\w+ )?{_NO_FAULT}\b)"
_I = r"(?:i|we)"
_ASKED = r"(?:asked|wanted|meant|needed|(?:was|were) (?:looking|asking)|expected|said|requested)"
_WANTED = (
    r"(?:asked?|want(?:ed)?|meant|need(?:ed)?|(?:was|were|am|'m) (?:looking|asking)|expected|said|"
    r"requested)"
)
_TOOL = r"(?:tool|function|api|plugin|endpoint|command)s?"
_LATER = r"(?:later|tomorrow|tonight|soon|next|in|at|on|when|after|once|if|every)"

_WRONG_TOOL = (
    (0.95, rf"(?:{_THIS_OR_IT}{_IS} )?(?:the |a )?wrong {_TOOL}\b"),
    (0.95, rf"you(?:'ve| have)? \w+(?: me)? (?:the |a )?wrong {_TOOL}\b"),
    (0.85, r"you should(?:'ve| have) (?:used|called|picked|chosen)\b"),
    (0.8, rf"(?:don't|do not|never) (?:use|call) (?:\S+ ){{1,5}}?{_TOOL}\b"),
    (0.8, rf"(?:use|call|try) (?:the (?:right|other)|another|a different) {_TOOL}\b"),
    (0.8, rf"(?:use|call|try) the (?:\S+ ){{1,4}}?{_TOOL} instead\b"),
    (0.85, rf"(?:this|that) {_TOOL} (?:can't|cannot|isn't|is not|doesn't|does not)\b"),
)  # fmt: skip
_LOW_UTILITY = (
    # What was asked for, and what came instead.
    (0.9, rf"(?:{_THIS_OR_IT}{_IS} )?not (?:\w+ )?(?:\w+ )?what {_I} {_WANTED}\b"),
    (0.9, rf"{_THIS_OR_IT}{_IS_NOT} (?:\w+ ){{0,2}}?(?:what|how|who|where) {_I}\b"),
    (0.9, rf"{_I} {_ASKED}(?: for)? (?!to\b)[^,]{{1,80}},? (?:and )?not\b"),
    (0.6, rf"(?:this|that|it){_IS} (?:just |only )?(?:an?|the) [^,]{{1,60}}, not (?!{_NO_FAULT})"),
    (0.7, rf"(?:these|those|they){_IS} [^,]{{1,60}}, not (?!{_NO_FAULT})"),
    (0.75, r"i meant (?!to\b|it\b|that\b|well\b|every|what\b)"),
    # What the answer is not.
    (0.9, rf"{_THIS_OR_IT} (?:do|does|did)(?:n't| not) (?:\w+ )?(?:look|seem|sound) (?:like "
        rf"(?:an?|the|my|any)|right|correct)\b"),
    (0.9, rf"{_THIS} (?:do|does|did)(?:n't| not) (?:\w+ )?(?:look|seem|sound) like (?!it\b)\w"),
    (0.85, rf"{_THIS_OR_IT}{_IS_NOT} (?:\w+ )?{_GOOD}\b(?! (?:now|yet|time|away|that|to|for|if|"
        rf"when)\b)"),
    (0.85, rf"(?:that|this|these|those|they){_IS_NOT} {_THING}\w"),
    (0.8, rf"(?:these|those|they){_IS_NOT} (?!{_NO_FAULT})[\w' -]{{1,60}}s$"),
    (0.85, rf"{_THIS_OR_IT} (?:do|does|did)(?:n't| not) (?:\w+ )?(?:help|answer|make (?:any "
        rf")?sense|match|contain|fit)\b"),
    (0.85, rf"{_THIS_OR_IT} makes? no sense\b"),
    (0.85, r"not (?:very |really |at all |that )?(?:useful|helpful|relevant|correct)\b"),
    # What is wrong with it.
    (0.9, rf"{_THIS_OR_IT}{_IS}{_VERY} {_FAULTY}\b"),
    (0.85, rf"{_THIS_OR_IT}{_IS} (?:the|a) wrong \w"),
    (0.85, r"(?:still |completely |totally |all |simply )?(?:wrong|incorrect)$"),
    (0.7, r"wrong \w+(?: \w+)?$"),
    (0.85, r"you(?:'ve| have)? (?:gave|given|sent|showed|shown|returned|used|picked|opened|found|"
        r"took|chose|got|did|listed|made|read)(?: me| us)? (?:the |a |it |that |this )?wrong\b"),
    (0.85, r"you(?:'ve| have)? (?:completely |totally )?(?:misunderstood|misread|misheard|"
        r"ignored|overlooked|mixed up)\b"),
    (0.8, r"you (?:did not|didn't|haven't|have not) (?:answer|understand|listen|read|follow|"
        r"give|include|return|find|do what)"),
    # That it should be done again.
    (0.5, rf"(?:try|do (?:it|this|that)) (?:it |this |that )?(?:again|over)\b(?!,? {_LATER}\b)"),
    (0.5, r"redo (?:it|this|that)\b"),
)  # fmt: skip


_Rule = tuple[re.Pattern[str], ReferralKind, float]


def _compiled(kind: ReferralKind, rules: Iterable[tuple[float, str]]) -> list[_Rule]:
    return [(re.compile(pattern), kind, confidence) for confidence, pattern in rules]


RULES = _compiled("wrong_tool_boundary", _WRONG_TOOL) + _compiled("low_utility", _LOW_UTILITY)
_AFTER_NO = rf"{_I} (?:meant|said|asked|wanted)\b(?! (?:thanks|thank|to (?:thank|stop)))"
AFTER_NO = _compiled("low_utility", [(0.85, _AFTER_NO)])
"""What says too little by itself, and enough after a no."""


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
    clauses = (part for part in _clauses(text[:MAX_READ_CHARS]) if part[0])
    for part, is_question in islice(clauses, _MOST_CLAUSES):
        phrase = part[:MAX_PHRASE_CHARS]
        clause, denies = _without_openings(phrase.translate(_QUOTES).lower())
        denied = denied or denies
        if not clause or is_question:
            continue
        rules = RULES + AFTER_NO if denied else RULES
        for pattern, kind, confidence in rules:
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


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.start()].strip(), "?" in end[0]
        start = end.end()
    yield text[start:].strip(), False


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
