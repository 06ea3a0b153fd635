"""Another tool for the call, or several for the parts of its task. Pure.

Candidates are registered tools of the failing tool's namespace (of its server, when it has none),
and those of its server that the error names. Of a split, a referral's own `suggestedSplit` counts;
where it has none, those that earlier referrals of the tool proposed for the same axes. Words of
these are repeated only when several sessions stated them, as one caller's words may be private; the
names of registered tools are not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from aftercall.json_values import JsonObject
from aftercall.models import MAX_SPLIT, ExecutionError
from aftercall.outcomes import referral_in
from aftercall.tables import gather_values
from retrieval.answers.judge.acceptance import accepts, check_of
from retrieval.answers.proposers.case import (
    Advice,
    CallContext,
    Candidate,
    Case,
    NoAdvice,
    quote_json,
)
from retrieval.answers.proposers.compose import Proposal
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.confidence import MIN_CONFIDENCE, lower_bound
from retrieval.knowledge.patterns.clusters import normalised_axes
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rows.health import Referred
from retrieval.knowledge.tool.profile import COMMON_SESSIONS
from retrieval.knowledge.values.likeness import nearest_value, words_of
from retrieval.knowledge.values.parameters import leaves_like, view_of_schema

_WORD = re.compile(r"[\"'`]?[\w][\w.:/-]{0,255}[\"'`]?")
_NAMING = re.compile(
    r"(?:use|try|call|prefer|invoke|see)(?: the)?(?: tools?| function)? [\"'`]?"
    r"(?P<name>\w[\w.:/-]{0,255})|"
    r"(?:tool|function)s?:? [\"'`]?(?P<tool>\w[\w.:/-]{0,255})",
    re.IGNORECASE,
)


def names_said(text: str) -> list[str]:
    """Words that may name a tool, in order; a plain one only in quotes or as what to use."""
    said = [
        (found.start(), found[0])
        for found in _WORD.finditer(text)
        if found[0][0] in "\"'`" or len(words_of(found[0])) > 1
    ]
    for use in _NAMING.finditer(text):
        kind = "name" if use["name"] else "tool"
        said.append((use.start(kind), use[kind]))
    return [word.strip("\"'`").rstrip(".:") for _, word in sorted(said)]


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
_MISSPELT, _HALF_WRITTEN = Trials(12, 2), Trials(7, 2)
_DETAILS = frozenset({"suggestedsplit", "observedtaskshape", "suggestedtool", "suggestedtools",
                      "usetool", "bettertool", "alternative", "alternatives"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ranked:
    candidate: Candidate
    trials: Trials
    is_named: bool
    fits: bool


def near_name_advice(case: Case, call_context: CallContext) -> Advice | NoAdvice:
    """Advise the tool of nearly that name, where the named tool does not exist."""
    here = {each.tool.name: each for each in call_context.others if _is_here(each, call_context)}
    found = nearest_value(call_context.tool_name, list(here))
    if found is None or call_context.tool_name in here:
        return NoAdvice(
            "there is no tool of this name on the server, and no registered one has nearly that "
            "name; list the server's tools"
        )
    name, how = found
    tool = here[name].tool
    return Advice(
        "switch_tool",
        _HALF_WRITTEN if how in ("start", "cut") else _MISSPELT,
        f"There is no tool {quote_json(call_context.tool_name)}; the nearest registered one is "
        f"called {quote_json(name)}.",
        tool=name,
        parameters=case.parameters if _fits_schema(case, tool.input_schema) else None,
        is_strange=case.is_distrusted(here[name].principals),
    )


def switch_advice(
    case: Case, error: ExecutionError, call_context: CallContext, *, parts: Sequence[str] = ()
) -> Advice | NoAdvice:
    """Advise the tool whose job it seems to be, where a tool refers its caller elsewhere.

    `parts` are tools that are named for a part of the task each, so none of them for the whole.
    """
    named = _named_tools(error, call_context) - set(parts)
    namespace = call_context.namespace
    promises = [
        (each.tool.name in named, _such_sessions(each), each.successes, each.tool.name, each)
        for each in call_context.others
        if each.tool.name != call_context.tool_name
        and (
            (_is_here(each, call_context) and (namespace is None or each.tool.name in named))
            or (namespace is not None and each.tool.namespace == namespace)
        )
    ]
    likely = sorted((one for one in promises if one[0] or one[1]), key=lambda one: one[:4])
    ranked = sorted(
        (_rank_candidate(case, one[4], named) for one in reversed(likely[-_MAX_NEAR:])),
        key=lambda each: (-lower_bound(each.trials), each.candidate.tool.name),
    )
    if not ranked or lower_bound(ranked[0].trials) < MIN_CONFIDENCE:
        where = "its namespace" if call_context.namespace else "its server"
        axes = ", ".join(
            quote_json(axis) for axis in referral_in(error.details).boundary_axes[:_MAX_AXES]
        )
        mixes = f" (it names {axes})" if axes else ""
        return NoAdvice(
            f"the tool says that this is not its job{mixes}; other parameters do not help, "
            f"and no registered tool of {where} is known to succeed on such calls"
        )
    best = ranked[0]
    tool = best.candidate.tool
    return Advice(
        "switch_tool",
        best.trials,
        _write_lesson(best, case, call_context),
        tool=tool.name,
        parameters=case.parameters if best.fits and tool.input_schema is not None else None,
        successes=best.candidate.successes,
        failures=best.candidate.failures,
        execution_ids=best.candidate.execution_ids,
        is_strange=case.is_distrusted(best.candidate.principals) and not best.is_named,
    )


def _rank_candidate(case: Case, candidate: Candidate, named: frozenset[str]) -> _Ranked:
    is_named = candidate.tool.name in named
    fits = _fits_schema(case, candidate.tool.input_schema)
    trials = _BASE.add_trials(Trials(_PER_SESSION * _such_sessions(candidate), 0))
    if is_named:
        trials = trials.add_trials(_NAMED)
    if case.parameters_known and candidate.tool.input_schema is not None:
        # The less of the call's parameters the other tool has, the more speaks against it.
        names = view_of_schema(candidate.tool.input_schema).parameters
        shared = sum(name in names for name in case.parameters) / max(1, len(case.parameters))
        trials = trials.add_trials(_FITS if fits else Trials(0, _FITS_NOT * (1 - shared)))
    calls = candidate.successes + candidate.failures
    if calls:
        trials = trials.add_trials(Trials(0, _ALL_FAIL * candidate.failures / calls))
    return _Ranked(candidate, trials, is_named, fits)


def _write_lesson(best: _Ranked, case: Case, call_context: CallContext) -> str:
    tool = best.candidate.tool
    is_elsewhere = tool.server_name != call_context.server_name
    where = f" of the server {quote_json(tool.server_name)}" if is_elsewhere else ""
    why = []
    if best.is_named:
        why.append("the error names it")
    if _such_sessions(best.candidate):
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
    return f"{what}; use {quote_json(tool.name)}{where} instead: {' and '.join(why)}. {fits}"


def _such_sessions(candidate: Candidate) -> float:
    likeness = max(0.0, ((candidate.similarity or 0.0) - _NEAR) / (1 - _NEAR))
    return likeness * min(candidate.sessions, _MOST_SESSIONS)


def _is_here(candidate: Candidate, call_context: CallContext) -> bool:
    return candidate.tool.server_name == call_context.server_name


_AS_IT_IS = ErrorReading("wrong_tool_boundary", 1.0, "", (), rejected_before_run=False)


def _fits_schema(failed: Case, schema: JsonObject | None) -> bool:
    """Return whether a call fits a schema as it is.

    Its own names only, all that is required, valid.
    """
    if not failed.parameters_known:
        return False
    parameters = failed.parameters
    if schema is None:
        return True
    view = view_of_schema(schema)
    if view.missing_parameters(parameters) or view.unknown_parameters(parameters):
        return False
    case = Case(parameters=parameters, reading=_AS_IT_IS, schema=schema)
    return accepts(case, Proposal(parameters, (), frozenset(), ""), check_of(schema))


def _named_tools(error: ExecutionError, call_context: CallContext) -> frozenset[str]:
    known = {each.tool.name for each in call_context.others}
    texts = [error.message]
    for name, value in islice(error.details.items(), _MAX_DETAILS):
        if re.sub(r"[-_ ]", "", name[:64]).lower() in _DETAILS:
            leaves = leaves_like({"": value}, ())
            texts += [each for _, each in leaves if isinstance(each, str)]
    del texts[_MAX_DETAILS + 1 :]
    return frozenset(
        known & {word for text in texts for word in (text.strip(), *names_said(text[:_READ]))}
    )


_MAX_SHOWN = 4
"""Parts that a lesson shows; all are in the suggestion."""

# Pseudo-trials. The failing tool's own word is a claim, as annotations are: it counts as much as
# naming one other tool does (`switching`), and a session that stated the same before as much as one
# in which such calls worked. Without evidence a referral may be a way out (seed 000's guardrail).
_OWN_WORD = Trials(9, 0)
_NO_EVIDENCE = Trials(0, 1.5)


@dataclass(frozen=True, slots=True)
class TaskSplit:
    """A task taken apart: in the words of a referral, and by the registered tools among these.

    `is_own`: the failed call's own referral proposes it; `sessions` are earlier ones that proposed
    the same, at most a few; `has_evidence`: the own referral states why.
    """

    parts: tuple[str, ...]
    tools: tuple[str, ...]
    is_own: bool
    sessions: int
    has_evidence: bool
    execution_ids: tuple[str, ...] = ()

    @property
    def names_tools(self) -> bool:
        """Return whether tools for it are there: at least two."""
        return len(self.tools) > 1


def find_split(error: ExecutionError, call_context: CallContext) -> TaskSplit | None:
    """Return how the task of a referred call is to be split; None when no one states."""
    referral, earlier = referral_in(error.details), call_context.referrals
    names = {each.tool.tool_id: each.tool.name for each in call_context.others}
    names |= {each.tool.name: each.tool.name for each in call_context.others}
    has_evidence = referral.evidence is not None

    def make_split(parts: Sequence[str], same: Sequence[Referred], *, is_own: bool) -> TaskSplit:
        return TaskSplit(
            tuple(parts[:MAX_SPLIT]),
            _tools_in(parts, names)[:MAX_SPLIT],
            is_own,
            len({each.session for each in same}),
            has_evidence or (not is_own and any(each.evidence for each in same)),
            tuple(dict.fromkeys(each.execution_id for each in same))[-3:],
        )

    if parts := tuple(referral.suggested_split):
        key = _job_key(parts, names)
        same = [each for each in earlier if each.split and _job_key(each.split, names) == key]
        return make_split(parts, same, is_own=True)
    axes = normalised_axes(referral.boundary_axes).keys()
    by_proposal = gather_values(
        (_job_key(each.split, names, least=2), each)
        for each in earlier
        if each.split and not axes.isdisjoint(each.axes)
    )
    found = []
    for same in by_proposal.values():
        split = make_split(same[-1].split, same, is_own=False)
        if split.names_tools or split.sessions >= COMMON_SESSIONS:
            found.append((split.names_tools, split.sessions, same[-1].at, split))
    return max(found, key=lambda each: each[:3])[3] if found else None


def split_advice(split: TaskSplit) -> Advice:
    """To use the tools of a split; to hand over the jobs where there are no such tools."""
    trials = _BASE.add_trials(Trials(_PER_SESSION * min(split.sessions, _MOST_SESSIONS), 0))
    if split.is_own:
        trials = trials.add_trials(_OWN_WORD)
    if not split.has_evidence:
        trials = trials.add_trials(_NO_EVIDENCE)
    who = "the tool says" if split.is_own else f"the tool said in {split.sessions} sessions"
    if split.sessions == 1 and not split.is_own:
        who = "the tool said before"
    if split.names_tools:
        return Advice(
            "switch_tool",
            trials,
            f"The task is several jobs, {who}; use one tool for each, in this order: "
            f"{_list_parts(split.tools)}. Write each call anew.",
            tool=split.tools[0],
            split=split.tools,
            execution_ids=split.execution_ids,
        )
    return Advice(
        "escalate",
        trials,
        f"The task is {'two' if len(split.parts) == 2 else 'several'} jobs, {who} (its words, as "
        f"data): {_list_parts(split.parts)}. No registered tools are known for them; do not send "
        "this call again, and do them one by one, or ask.",
        split=split.parts,
        execution_ids=split.execution_ids,
    )


def _job_key(parts: Sequence[str], names: Mapping[str, str], least: int = 1) -> tuple[str, ...]:
    """Equal for proposals of the same tools; of fewer than the `least` for the same words."""
    tools = _tools_in(parts, names)
    folded = (" ".join(part.casefold().split()) for part in parts)
    return tools if len(tools) >= least else tuple(folded)


def _tools_in(parts: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for part in parts:
        text = part[:_READ]
        said = [text.strip()] if text.strip() in names else names_said(text)
        found.update((names[name], None) for name in said if name in names)
    return tuple(found)


def _list_parts(parts: Sequence[str]) -> str:
    shown = ", then ".join(quote_json(part) for part in parts[:_MAX_SHOWN])
    more = len(parts) - _MAX_SHOWN
    return f"{shown}, and {more} more" if more > 0 else shown
