"""Splits: the jobs that a tool would take a request apart into, and the tools that do them. Pure.

A referral's own `suggestedSplit` counts; where it has none, those that earlier referrals of the
tool proposed for the same axes. Of these, words are repeated only when several sessions said them,
as one caller's words may be private; the names of registered tools are not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aftercall.models import MAX_SPLIT, ExecutionError, Referral
from aftercall.outcomes.typed_errors import referral_in
from retrieval.advice.naming import names_said
from retrieval.advice.quoting import quoted
from retrieval.advice.situation import Advice, Situation
from retrieval.boundaries.axes import normalised_axes
from retrieval.health.record import Referred
from retrieval.knowledge.parameter import COMMON_SESSIONS
from retrieval.proposals.option import Trials

_READ = 1_000
_MAX_SHOWN = 4
"""Parts that a lesson tells; all are in the suggestion."""

# Pseudo-trials. The failing tool's own word is a claim, as annotations are: it counts as much as
# naming one other tool does (`switching`), and a session that said the same before as much as one
# in which such calls worked. Without evidence a referral may be a way out (seed 000's guardrail).
_BASE = Trials(1, 2)
_OWN_WORD = Trials(9, 0)
_PER_SESSION = 2.0
_MOST_SESSIONS = 5
_NO_EVIDENCE = Trials(0, 1.5)


@dataclass(frozen=True, slots=True)
class Split:
    """A task taken apart.

    Attributes:
        parts: the jobs in the words of whoever proposed it.
        tools: names of registered tools among these, in order, each once.
        is_own: whether the failed call's own referral proposes it.
        sessions: earlier ones that proposed the same, at most a few.
        has_evidence: whether the failed call's own referral says why.
        execution_ids: of earlier referrals that proposed the same.
    """

    parts: tuple[str, ...]
    tools: tuple[str, ...]
    is_own: bool
    sessions: int
    has_evidence: bool
    execution_ids: tuple[str, ...] = ()

    @property
    def names_tools(self) -> bool:
        """Whether tools for it are there: at least two."""
        return len(self.tools) > 1


def split_of(error: ExecutionError, situation: Situation) -> Split | None:
    """How the task of a referred call is to be split; None when nobody says."""
    referral = referral_in(error.details)
    names = _names(situation)
    if referral.suggested_split:
        return _own(referral, situation.referrals, names)
    return _earlier(referral, situation.referrals, names)


def split_advice(split: Split) -> Advice:
    """To use the tools of a split; to hand over the jobs where there are no such tools."""
    trials = _BASE.plus(Trials(_PER_SESSION * min(split.sessions, _MOST_SESSIONS), 0))
    if split.is_own:
        trials = trials.plus(_OWN_WORD)
    if not split.has_evidence:
        trials = trials.plus(_NO_EVIDENCE)
    who = "the tool says" if split.is_own else f"the tool said in {split.sessions} sessions"
    if split.sessions == 1 and not split.is_own:
        who = "the tool said before"
    if split.names_tools:
        return Advice(
            "switch_tool",
            trials,
            f"The task is several jobs, {who}; use one tool for each, in this order: "
            f"{_told(split.tools)}. Write each call anew.",
            tool=split.tools[0],
            split=split.tools,
            execution_ids=split.execution_ids,
        )
    return Advice(
        "escalate",
        trials,
        f"The task is {'two' if len(split.parts) == 2 else 'several'} jobs, {who} (its words, as "
        f"data): {_told(split.parts)}. No registered tools are known for them; do not send this "
        "call again, and do them one by one, or ask.",
        split=split.parts,
        execution_ids=split.execution_ids,
    )


def _own(referral: Referral, earlier: Sequence[Referred], names: Mapping[str, str]) -> Split:
    parts = tuple(referral.suggested_split)
    tools = _tools_in(parts, names)
    same = [
        each
        for each in earlier
        if each.split and (_tools_in(each.split, names) == tools if tools else _same(each, parts))
    ]
    return _split(parts, tools, same, is_own=True, has_evidence=referral.evidence is not None)


def _earlier(
    referral: Referral, earlier: Sequence[Referred], names: Mapping[str, str]
) -> Split | None:
    axes = normalised_axes(referral.boundary_axes).keys()
    by_proposal: dict[tuple[str, ...], list[Referred]] = defaultdict(list)
    for each in earlier:
        if each.split and not axes.isdisjoint(each.axes):
            tools = _tools_in(each.split, names)
            by_proposal[tools if len(tools) > 1 else _folded(each.split)].append(each)
    found = []
    for same in by_proposal.values():
        tools = _tools_in(same[-1].split, names)
        split = _split(
            tuple(same[-1].split), tools, same,
            is_own=False, has_evidence=referral.evidence is not None,
        )  # fmt: skip
        if split.names_tools or split.sessions >= COMMON_SESSIONS:
            found.append((split.names_tools, split.sessions, same[-1].at, split))
    return max(found, key=lambda each: each[:3])[3] if found else None


def _split(
    parts: tuple[str, ...],
    tools: tuple[str, ...],
    same: Sequence[Referred],
    *,
    is_own: bool,
    has_evidence: bool,
) -> Split:
    return Split(
        parts[:MAX_SPLIT],
        tools[:MAX_SPLIT],
        is_own,
        len({each.session for each in same}),
        has_evidence or (not is_own and any(each.evidence for each in same)),
        tuple(dict.fromkeys(each.execution_id for each in same))[-3:],
    )


def _same(earlier: Referred, parts: tuple[str, ...]) -> bool:
    return _folded(earlier.split) == _folded(parts)


def _folded(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(part.casefold().split()) for part in parts)


def _names(situation: Situation) -> dict[str, str]:
    """Names of registered tools, by their names and ids."""
    ids = {each.tool.tool_id: each.tool.name for each in situation.others}
    return ids | {each.tool.name: each.tool.name for each in situation.others}


def _tools_in(parts: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Registered tools that the parts name, in order, each once."""
    found: dict[str, None] = {}
    for part in parts:
        text = part[:_READ]
        said = [text.strip()] if text.strip() in names else names_said(text)
        found.update((names[name], None) for name in said if name in names)
    return tuple(found)


def _told(parts: Sequence[str]) -> str:
    shown = ", then ".join(quoted(part) for part in parts[:_MAX_SHOWN])
    more = len(parts) - _MAX_SHOWN
    return f"{shown}, and {more} more" if more > 0 else shown
