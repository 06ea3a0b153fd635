"""`split` and `recompose`: a tool is asked to do several jobs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aftercall.models import AxisShare, Recommendation
from retrieval.health.record import Corrected, Referred, Tally, decay
from retrieval.recommendations.other_tools import ToolNames
from retrieval.recommendations.rules import RecommendationRules
from retrieval.recommendations.subject import (
    Part,
    Subject,
    latest_first,
    recommendation,
    tally_of,
    times,
)
from retrieval.recommendations.words import MAX_OTHER_TOOLS, MAX_PARTS, MAX_SPLITS


@dataclass(frozen=True, slots=True)
class Mixed:
    """A tool with a cohesion warning, as other tools with one need to know of it.

    Args:
        name: its id, or its name where it is not registered.
        namespaces: that it serves; none where it is not registered.
        clusters: ids of the clusters that make the warning.
    """

    name: str
    namespaces: frozenset[str]
    clusters: frozenset[str]


def mixed_of(subject: Subject, names: ToolNames, rules: RecommendationRules) -> Mixed | None:
    """The warning of a tool; None without one."""
    if not subject.cohesion.warning:
        return None
    registered = names.registered(subject.tool)
    namespaces = {registered.tool.tool_id, registered.tool.namespace} if registered else set()
    return Mixed(
        name=subject.tool_id or subject.tool.tool_name,
        namespaces=frozenset(each for each in namespaces if each is not None),
        clusters=frozenset(each.cluster_id for each in _main_axes(subject, rules)),
    )


def split_of(
    subject: Subject, names: ToolNames, mixed: Iterable[Mixed], rules: RecommendationRules
) -> Recommendation | None:
    """To split the tool, or to recompose where other tools do one of the jobs already.

    Other tools do, when a proposed split names them, or when they serve the same namespace and are
    warned of over the same two clusters.

    Args:
        subject: the tool.
        names: all registered tools.
        mixed: tools of the workspace with a warning; the tool itself may be among them.
        rules: say whose share counts, and what a correction weighs.
    """
    mine = mixed_of(subject, names, rules)
    if mine is None:
        return None
    referrals = [each for each in subject.known.referrals if each.kind == "wrong_tool_boundary"]
    corrections = [
        each for each in subject.known.recent_corrections if each.kind == "wrong_tool_boundary"
    ]
    said: list[Corrected | Referred] = [*referrals, *corrections]
    splits = _splits(subject, referrals)
    named = names.named_in((part for split in splits for part in split), besides=subject.tool)
    rivals = sorted({each.name for each in mixed if _overlaps(each, mine)} - set(named))
    others = [*named, *rivals][:MAX_OTHER_TOOLS]
    axes = _main_axes(subject, rules)
    found = recommendation(
        subject,
        "recompose" if others else "split",
        _message(subject, axes, splits, named, rivals),
        parts=[
            Part("boundary failure", subject.known.categories.get("wrong_tool_boundary", Tally())),
            Part("user correction", tally_of(each.at for each in corrections), rules.correction),
        ],
        confidence=subject.cohesion.confidence,
        events=[(each.at, each.execution_id) for each in said],
        quotes=_quotes(referrals, corrections),
    )
    evidence = found.evidence.model_copy(
        update={
            "axes": list(subject.cohesion.axes),
            "suggested_splits": splits,
            "other_tools": others,
        }
    )
    return found.model_copy(update={"evidence": evidence})


def _overlaps(other: Mixed, mine: Mixed) -> bool:
    return (
        other.name != mine.name
        and bool(other.namespaces & mine.namespaces)
        and len(other.clusters & mine.clusters) > 1
    )


def _main_axes(subject: Subject, rules: RecommendationRules) -> list[AxisShare]:
    """The clusters with the share that makes a warning, largest first."""
    return [each for each in subject.cohesion.axes if each.share >= rules.cohesion.min_share]


def _splits(subject: Subject, referrals: Sequence[Referred]) -> list[list[str]]:
    """What the tool proposed, the weightiest proposal first; case and spacing make no odds."""
    weights: dict[tuple[str, ...], float] = defaultdict(float)
    spelled: dict[tuple[str, ...], list[str]] = {}
    for each in referrals:
        parts = [part for part in each.split if part.strip()][:MAX_PARTS]
        if parts:
            key = tuple(" ".join(part.casefold().split()) for part in parts)
            weights[key] += decay(subject.now, each.at)
            spelled[key] = [subject.words.bounded(part) for part in parts]
    ranked = sorted(weights, key=lambda key: (-weights[key], key))
    return [spelled[key] for key in ranked[:MAX_SPLITS]]


def _message(
    subject: Subject,
    axes: Sequence[AxisShare],
    splits: Sequence[Sequence[str]],
    named: Sequence[str],
    rivals: Sequence[str],
) -> str:
    quoted = subject.words.quoted
    jobs = " and ".join(f"{quoted(each.name)} ({each.share:.0%})" for each in axes[:2])
    failures = times(subject.cohesion.failures, "boundary failure")
    words = [f"is asked to do several jobs: its {failures} name {jobs}"]
    if splits:
        words.append(f"it proposes {' + '.join(quoted(part) for part in splits[0])}")
    if named:
        words.append(f"{_listed(subject, named)} can do one of them already")
    if rivals:
        words.append(
            f"{_listed(subject, rivals)} of its namespace is asked for the same two; "
            "let each tool do one of them"
        )
    verb = "recompose" if named or rivals else "split"
    return f"{verb} {subject.name}, which {'; '.join(words)}"


def _listed(subject: Subject, names: Sequence[str]) -> str:
    return " and ".join(subject.words.quoted(each) for each in names[:2])


def _quotes(referrals: Sequence[Referred], corrections: Sequence[Corrected]) -> list[str]:
    """What users said, then why the tool referred; each latest first."""
    reasons = [each.evidence or each.message for each in latest_first(referrals)]
    return [*(each.text for each in latest_first(corrections)), *reasons]
