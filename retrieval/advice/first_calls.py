"""A call that has to come first, before the same call works. Pure.

Learned, where sessions made another call between a failure and the same call's success; else read
from what the error says, where the name of one tool of the server says the same.
"""

import re
from collections.abc import Iterable

from aftercall.json_values import JsonObject
from retrieval.knowledge.repairs import MIN_SESSIONS, FirstCall
from retrieval.principals import principal_of
from retrieval.proposals.case import Advice, Case, StatedFirst, Trials, quoted
from retrieval.values import words_of

_PER_SESSION = 3.0
"""Pseudo-trials of a session: many calls lie between two others, and only some of them matter."""
_COMMON = 0.6
"""Share of the sessions in which the same call worked later that had the call in between."""
_STATED = Trials(9, 2)
_READ = 500
_MAX_TOOLS = 2_000


def learned_first_call(case: Case) -> Advice | None:
    """What sessions called before the same call worked; None where they have no such call."""
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
    sessions, of = len(first.sessions), len(known.passed)
    return Advice(
        "call_first",
        Trials(1 + _PER_SESSION * sessions, 1 + _PER_SESSION * (of - sessions)),
        f"Call {quoted(first.tool_name)} first, then the same call again: {sessions} of {of} "
        "sessions in which it then worked did so.",
        tool=first.tool_name,
        parameters=_parameters(first, case.parameters) if case.parameters_known else None,
        successes=sessions,
        execution_ids=tuple(first.execution_ids),
        yields=True,
        is_strange=case.distrusts(set(map(principal_of, first.sessions))),
    )


def stated_first_call(case: Case, first: StatedFirst, said: str) -> Advice:
    """To call the tool that the error asks for, which says so in one quoted phrase."""
    name, wanted = first
    has = case.parameters_known and wanted and wanted <= case.parameters.keys()
    return Advice(
        "call_first",
        _STATED,
        f"{said}: no parameter is wrong, something has to be done first. If the user wants it, "
        f"call {quoted(name)}, and then the same call again.",
        tool=name,
        parameters={each: case.parameters[each] for each in sorted(wanted)} if has else None,
    )


def _parameters(first: FirstCall, failed: JsonObject) -> JsonObject | None:
    """What it is to be given, where all of it stands in the failed call."""
    if not first.is_whole or any(each not in failed for each in first.parameters.values()):
        return None
    return {name: failed[other] for name, other in first.parameters.items()}


# Ways to say that somebody has to log in, as tools are named for it.
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


def first_tool(message: str, failed: str, names: Iterable[str]) -> str | None:
    """The one tool of the server whose name says what the message asks for; None without just one.

    `startEngine` is named by "the engine must be started", `user_login` by "must be logged in". The
    tool that failed is not called first.
    """
    text = message[:_READ]
    first = {
        _stem(word.lower()) for found in _FIRST.finditer(text) for word in found.groups() if word
    }
    said = {_stem(word) for word in words_of(text)}
    wants_login = _LOGIN.search(text) is not None
    found = []
    for name, _ in zip(names, range(_MAX_TOOLS), strict=False):
        words = [_stem(word) for word in words_of(name)]
        is_login = wants_login and _LOGIN_NAMES.search("_".join(words_of(name))) is not None
        is_said = said.issuperset(words) if len(words) >= 2 else first.issuperset(words)
        if name != failed and (is_login or is_said):
            found.append(name)
    return found[0] if len(found) == 1 else None


def _stem(word: str) -> str:
    """A word without its usual endings: `started`, `starting` and `starts` are `start`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word.removesuffix(ending)
            return word[:-1] if word[-2:] in ("tt", "pp", "nn", "gg", "mm") else word
    return word
