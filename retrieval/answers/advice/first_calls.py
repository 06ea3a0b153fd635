"""What has to be called before the same call works: by experience, or in the error's own words.

Sentences that name a tool are rows of `first_calls.toml`. A name counts where the server is known
to have such a tool, or where it looks like a tool's name and is not one of the call's own words.
"""

import re
from collections.abc import Collection, Iterable
from itertools import islice

from retrieval import compiled, read_word_table
from retrieval.answers.proposers.case import Advice, Case, quote_json
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.rows.principals import principal_of
from retrieval.knowledge.tool.repairs import MIN_SESSIONS
from retrieval.knowledge.values.likeness import words_of

_PER_SESSION = 3.0
"""Pseudo-trials of a session: many calls lie between two others, and only some of them matter."""
_COMMON = 0.6
"""Share of the sessions in which the same call worked later that had the call in between."""
_READ = 1_000
_READ_WORDS = 500
MAX_TOOLS = 2_000


def learned_first_call(case: Case) -> Advice | None:
    """Return what sessions called before the same call worked; None where nothing is common."""
    known = case.signature
    if known is None or len(known.passed) < MIN_SESSIONS:
        return None
    common = [
        each
        for each in known.first_calls.values()
        if len(each.sessions) >= max(MIN_SESSIONS, _COMMON * len(known.passed))
    ]
    if not common:
        return None
    # One that is about what the failed call is about, before one that only lies between.
    first = max(common, key=lambda each: (bool(each.parameters), len(each.sessions)))
    sessions = len(first.sessions)
    of = len(known.passed)
    sent = case.parameters
    knows = case.parameters_known and first.is_whole and sent.keys() >= {*first.parameters.values()}
    return Advice(
        "call_first",
        Trials(1 + _PER_SESSION * sessions, 1 + _PER_SESSION * (of - sessions)),
        f"Call {quote_json(first.tool_name)} first, then the same call again: {sessions} of {of} "
        "sessions in which it then worked did so.",
        tool=first.tool_name,
        parameters={name: sent[of] for name, of in first.parameters.items()} if knows else None,
        successes=sessions,
        execution_ids=tuple(first.execution_ids),
        yields=True,
        is_strange=case.is_distrusted(set(map(principal_of, first.sessions))),
    )


# ------------------------------------------------------------------ tools that a text names
_TABLE = read_word_table("answers/advice/first_calls.toml")
_SENTENCES = [(row["pattern"], bool(row.get("plain"))) for row in _TABLE["sentences"]]
_CUE = re.compile(
    r"\bcall|invok|\bus(?:e|ing)\b|\brun|execut|obtain|retrieved|returned|gotten", re.IGNORECASE
)
_INSTEAD = re.compile(r"[^.;\n]{0,60}\binstead\b", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|n't|never|avoid|without)\W+(?:\w+\W+)?\Z", re.IGNORECASE)
_IS_NAME = re.compile(r"[a-z]\w*[_-]\w|[a-z]+[A-Z]|\w+\.[a-z]|\w+__\w")
_NO_NAMES = frozenset(_TABLE["no_names"])


def may_name_tool(text: str) -> bool:
    """Return whether a sentence of a text names a tool; asked before a server's are listed."""
    if _CUE.search(text) is None:
        return False
    text = text[:_READ]
    return any(compiled(pattern, re.IGNORECASE).search(text) for pattern, _ in _SENTENCES)


def find_named_tool(
    text: str, failed: str, names: Collection[str], others: Collection[str] = ()
) -> str | None:
    """Return the tool that a text states to call first, as the server spells it; else None.

    Args:
        text: an error's message, or a parameter's description.
        failed: the tool that failed, which is never the answer.
        names: tools of the server, as far as they are known.
        others: names that are no tools: the call's parameters and their short values.
    """
    text = text[:_READ]
    by_letters = {_only_letters(name): name for name in islice(names, MAX_TOOLS)}
    own = {_only_letters(failed), *map(_only_letters, others)}
    for pattern, is_plain in _SENTENCES:
        for found in compiled(pattern, re.IGNORECASE).finditer(text):
            name = found["tool"].rstrip(".:-/")
            letters = _only_letters(name)
            if letters in own or name.lower() in _NO_NAMES or _is_refused(text, found):
                continue
            if known := _known_by(letters, by_letters):
                if known == failed:
                    return None
                return known
            looks = found["noun"] or found["called"] or _IS_NAME.search(name)
            if looks or (is_plain and not found["open"]):
                return name
    return None


def _is_refused(text: str, found: re.Match[str]) -> bool:
    """Return whether the sentence forbids the call, or names what to use instead."""
    before = text[: found.start()]
    after = text[found.end() :]
    is_instead = _INSTEAD.match(after) or "instead" in found[0].lower()
    return bool(is_instead or _NOT.search(before))


def _known_by(letters: str, by_letters: dict[str, str]) -> str | None:
    """Return the known tool of these letters, or the only one that a longer name ends with."""
    if letters in by_letters:
        return by_letters[letters]
    ends = [
        name for known, name in by_letters.items() if len(known) > 3 and letters.endswith(known)
    ]
    if len(ends) == 1:
        return ends[0]
    return None


def _only_letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


# ------------------------------------------------------------------ tools whose names say it
# Ways to say that someone has to log in, as tools are named for it.
_LOGIN = re.compile(r"log(?:ged)? ?in|sign(?:ed)? ?in|authenticat", re.IGNORECASE)
_LOGIN_NAMES = re.compile(r"log_?in|sign_?in|authenticate|^auth$|_auth$", re.IGNORECASE)
_FIRST = re.compile(
    r"\b(\w+) (?:it|them|this|that|the \w+)(?: \w+)? (?:first|before)\b|"
    r"\bfirst,? (\w+)\b|\b(?:call|run|use|invoke) [\"'`]?(\w+)[\"'`]?(?: \w+)? (?:first|before)\b|"
    r"\bnot been (\w+) yet\b",
    re.IGNORECASE,
)
"""A word for what has to be done first: `Read it first`, `has not been read yet`."""
_ENDINGS = ("ing", "ed", "es", "s", "e")
_MIN_STEM = 3


def implied_tool(message: str, failed: str, names: Iterable[str]) -> str | None:
    """Return the one tool of a server whose name states what a message asks for; else None.

    `startEngine` is named by "the engine must be started", `user_login` by "must be logged in". The
    tool that failed is not called first.
    """
    text = message[:_READ_WORDS]
    first = {
        stem_word(word.lower())
        for found in _FIRST.finditer(text)
        for word in found.groups()
        if word
    }
    said = {stem_word(word) for word in words_of(text)}
    wants_login = _LOGIN.search(text) is not None
    found = []
    for name in islice(names, MAX_TOOLS):
        words = [stem_word(word) for word in words_of(name)]
        is_login = wants_login and _LOGIN_NAMES.search("_".join(words_of(name))) is not None
        is_said = said.issuperset(words) if len(words) >= 2 else first.issuperset(words)
        if name != failed and (is_login or is_said):
            found.append(name)
    if len(found) == 1:
        return found[0]
    return None


def stem_word(word: str) -> str:
    """Return a word without its usual endings: `started`, `starting` and `starts` are `start`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word.removesuffix(ending)
            if word[-2:] in ("tt", "pp", "nn", "gg", "mm"):
                return word[:-1]
            return word
    return word
