"""Another tool for the call: one that the error names, or that succeeds on such calls. Pure.

Candidates are registered tools of the failing tool's namespace (of its server, when it has none),
and those of its server that the error names.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import ExecutionError, Tool
from aftercall.outcomes.typed_errors import referral_in
from retrieval.advice.naming import names_said
from retrieval.advice.quoting import quoted
from retrieval.advice.situation import Advice, Candidate, NoAdvice, Situation
from retrieval.confidence import MIN_CONFIDENCE
from retrieval.confidence.features import lower_bound
from retrieval.parameters import view_of_schema
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal
from retrieval.proposals.option import Trials
from retrieval.reading.reader import ErrorReading
from retrieval.values import nearest
from retrieval.verify import Verifier

_READ = 2_000
_MAX_DETAILS = 100
_MAX_AXES = 5
_MAX_NEAR = 8
"""Candidates whose schemas are held against the call: those that promise most."""

# Pseudo-trials. A tool of the same namespace is by itself more likely wrong than right; the failing
# tool's own word is a claim, as annotations are; sessions in which such calls worked speak most.
_BASE = Trials(1, 2)
_NAMED = Trials(9, 0)
_PER_SESSION = 2.0
_MOST_SESSIONS = 5
_NEAR = 0.5
"""Cosine from which on a success counts as one of such a call; at 1 it counts whole."""
_FITS = Trials(2, 0)
_FITS_NOT = 2.0
_ALL_FAIL = 3.0
_MISSPELT = Trials(12, 2)

_UNKNOWN_TOOL = re.compile(
    r"(?:unknown|no such|unrecogni[sz]ed|undefined|unsupported|invalid) "
    r"(?:tool|function|method|command)(?: name)?(?: is)?[\s:]{0,3}[\"'`]?"
    r"(?P<before>[\w./:-]{1,256})|"
    r"(?:tool|function|method|command)[\s:]{1,3}[\"'`]?(?P<after>[\w./:-]{1,256})[\"'`]?,? "
    r"(?:is |was )?(?:not (?:found|available|listed|registered|known|defined|exist)|"
    r"does(?:n't| not) exist|unknown)|method not found[\s:]{1,3}[\"'`]?(?P<rpc>[\w./:-]{1,256})",
    re.IGNORECASE,
)
_DETAILS = frozenset({"suggestedsplit", "observedtaskshape", "suggestedtool", "suggestedtools",
                      "usetool", "bettertool", "alternative", "alternatives"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ranked:
    candidate: Candidate
    trials: Trials
    is_named: bool
    fits: bool


def is_unknown_tool(error: ExecutionError, tool_name: str) -> bool:
    """Whether the error says that there is no tool of the name that was called."""
    if (error.code or "").strip() == "-32601":
        return True
    for found in _UNKNOWN_TOOL.finditer(error.message[:_READ]):
        said = (found["before"] or found["after"] or found["rpc"]).rstrip(".:")
        if said.lower() == tool_name.lower():
            return True
    return False


def near_name_advice(case: Case, situation: Situation) -> Advice | NoAdvice:
    """For a tool that does not exist: the one on the same server with nearly that name."""
    here = {each.tool.name: each.tool for each in situation.others if _is_here(each, situation)}
    found = nearest(situation.tool_name, list(here))
    if found is None or situation.tool_name in here:
        return NoAdvice(
            "there is no tool of this name on the server, and no registered one has nearly that "
            "name; list the server's tools"
        )
    name, nearness = found
    tool = here[name]
    return Advice(
        "switch_tool",
        Trials(_MISSPELT.right * nearness, _MISSPELT.wrong),
        f"There is no tool {quoted(situation.tool_name)}; the nearest registered one is called "
        f"{quoted(name)}.",
        tool=name,
        parameters=case.parameters if _fits(case, tool.input_schema) else None,
    )


def switch_advice(
    case: Case, error: ExecutionError, situation: Situation, *, parts: Sequence[str] = ()
) -> Advice | NoAdvice:
    """For a tool that refers its caller elsewhere: the one whose job it seems to be.

    Args:
        case: the failed call.
        error: the referral.
        situation: where the call stands.
        parts: tools that are named for a part of the task each, so none of them for the whole.
    """
    named = _named(error, situation) - set(parts)
    pool = [
        each
        for each in situation.others
        if each.tool.name != situation.tool_name
        and (
            _is_of_the_kind(each, situation)
            or (each.tool.name in named and _is_here(each, situation))
        )
    ]
    known = [each for each in pool if each.tool.name in named or _worked_on_such(each)]
    likely = sorted(known, key=lambda each: _promise(each, named), reverse=True)[:_MAX_NEAR]
    ranked = sorted(
        (_rank(case, each, named) for each in likely),
        key=lambda each: (-lower_bound(each.trials), each.candidate.tool.name),
    )
    if not ranked or lower_bound(ranked[0].trials) < MIN_CONFIDENCE:
        where = "its namespace" if situation.namespace else "its server"
        axes = ", ".join(
            quoted(axis) for axis in referral_in(error.details).boundary_axes[:_MAX_AXES]
        )
        mixes = f" (it names {axes})" if axes else ""
        return NoAdvice(
            f"the tool says that this is not its job{mixes}; no change of parameters makes it so, "
            f"and no registered tool of {where} is known to succeed on such calls"
        )
    best = ranked[0]
    tool = best.candidate.tool
    return Advice(
        "switch_tool",
        best.trials,
        _lesson(best, case, situation),
        tool=tool.name,
        parameters=case.parameters if best.fits and tool.input_schema is not None else None,
        successes=best.candidate.successes,
        failures=best.candidate.failures,
        execution_ids=best.candidate.execution_ids,
    )


def _rank(case: Case, candidate: Candidate, named: frozenset[str]) -> _Ranked:
    is_named = candidate.tool.name in named
    fits = _fits(case, candidate.tool.input_schema)
    trials = _BASE.plus(Trials(_PER_SESSION * _such_sessions(candidate), 0))
    if is_named:
        trials = trials.plus(_NAMED)
    if case.parameters_known and candidate.tool.input_schema is not None:
        trials = trials.plus(_FITS if fits else _misfit(case, candidate.tool))
    calls = candidate.successes + candidate.failures
    if calls:
        trials = trials.plus(Trials(0, _ALL_FAIL * candidate.failures / calls))
    return _Ranked(candidate, trials, is_named, fits)


def _lesson(best: _Ranked, case: Case, situation: Situation) -> str:
    tool = best.candidate.tool
    where = ""
    if tool.server_name != situation.server_name:
        where = f" of the server {quoted(tool.server_name)}"
    why = []
    if best.is_named:
        why.append("the error names it")
    if _worked_on_such(best.candidate):
        count = best.candidate.sessions
        why.append(f"such calls worked there in {count} session{'s' * (count != 1)}")
    fits = (
        "The parameters fit it as they are."
        if best.fits and tool.input_schema is not None
        else "Its parameters are others; write the call anew."
        if case.parameters_known
        else "Write the call anew."
    )
    is_weak = case.reading.category == "low_utility"
    what = "Its answer is of little use, the tool says" if is_weak else "This is not the tool's job"
    return f"{what}; use {quoted(tool.name)}{where} instead: {' and '.join(why)}. {fits}"


def _promise(candidate: Candidate, named: frozenset[str]) -> tuple[bool, float, int, str]:
    return (
        candidate.tool.name in named, _such_sessions(candidate), candidate.successes,
        candidate.tool.name,
    )  # fmt: skip


def _worked_on_such(candidate: Candidate) -> bool:
    return _such_sessions(candidate) > 0


def _such_sessions(candidate: Candidate) -> float:
    """Sessions of successes, as far as these are like the failed call."""
    likeness = max(0.0, ((candidate.similarity or 0.0) - _NEAR) / (1 - _NEAR))
    return likeness * min(candidate.sessions, _MOST_SESSIONS)


def _is_here(candidate: Candidate, situation: Situation) -> bool:
    return candidate.tool.server_name == situation.server_name


def _is_of_the_kind(candidate: Candidate, situation: Situation) -> bool:
    if situation.namespace is not None:
        return candidate.tool.namespace == situation.namespace
    return _is_here(candidate, situation)


def _misfit(case: Case, tool: Tool) -> Trials:
    """The less of the call's parameters the other tool has, the more speaks against it."""
    names = view_of_schema(tool.input_schema or {}).parameters
    shared = sum(name in names for name in case.parameters) / max(1, len(case.parameters))
    return Trials(0, _FITS_NOT * (1 - shared))


_AS_IT_IS = ErrorReading("wrong_tool_boundary", 1.0, "", (), rejected_before_run=False)


def _fits(failed: Case, schema: JsonObject | None) -> bool:
    """Whether a call fits a schema as it is: its own names only, all that is required, valid."""
    if not failed.parameters_known:
        return False
    parameters = failed.parameters
    if schema is None:
        return True
    view = view_of_schema(schema)
    if view.missing(parameters) or view.unknown(parameters):
        return False
    case = Case(parameters=parameters, reading=_AS_IT_IS, schema=schema)
    return Verifier(case).accepts(Proposal(parameters, (), frozenset(), ""))


def _named(error: ExecutionError, situation: Situation) -> frozenset[str]:
    """Registered tools that the error names, as a value of its details or in its words."""
    known = {each.tool.name for each in situation.others}
    said: set[str] = set()
    texts = [error.message[:_READ]]
    for text in islice(_texts(error.details), _MAX_DETAILS):
        texts.append(text[:_READ])
        said.add(text.strip())
    for text in texts:
        said.update(names_said(text))
    return frozenset(known & said)


def _texts(details: JsonObject) -> Iterator[str]:
    for name, value in islice(details.items(), _MAX_DETAILS):
        if re.sub(r"[-_ ]", "", name[:64]).lower() in _DETAILS:
            yield from _strings(value, 3)


def _strings(value: JsonValue, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, list | dict):
        inner: Sequence[JsonValue] = value if isinstance(value, list) else list(value.values())
        for each in inner[:_MAX_DETAILS]:
            yield from _strings(each, depth - 1)
