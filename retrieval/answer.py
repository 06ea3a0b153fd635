"""The answer: a case becomes ranked, verified suggestions, or an honest abstention. Pure."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from aftercall import json_patch
from aftercall.wire import (
    Change,
    Evidence,
    EvidenceSource,
    Example,
    ExecutionError,
    Pattern,
    Suggestion,
    SuggestResponse,
    ToolAnnotations,
)
from retrieval.advice import Advice, abstention_reason, advise, retry_advice
from retrieval.confidence import MIN_CONFIDENCE, confidence_of, lower_bound
from retrieval.documents import shape_of
from retrieval.edits import Cast, Edit, Remove, Rename, edit_key
from retrieval.lessons import lesson_of
from retrieval.proposals import Case, Proposal, propose
from retrieval.proposals.experience import rule_trials
from retrieval.verify import Verifier


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, and per suggestion the edits it stands for, so that its outcome can teach."""

    response: SuggestResponse
    edit_keys: dict[str, str]


def answer(
    case: Case,
    error: ExecutionError,
    annotations: ToolAnnotations,
    *,
    limit: int,
    shapes: Mapping[str, int],
) -> Answer:
    """Rank what can be proposed.

    Args:
        case: the failed call with what is known.
        error: what the tool said.
        annotations: claims about the tool that the caller trusts.
        limit: most suggestions.
        shapes: how many successes had which shape of parameters (see `documents.shape_of`).
    """
    advice = advise(case.reading, error)
    ranked = [_advised(case, advice)] if advice else _ranked(case, shapes)
    kept = [(s, key) for s, key in ranked if s.confidence >= MIN_CONFIDENCE][:limit]
    return Answer(
        SuggestResponse(
            pattern=Pattern(
                category=case.reading.category,
                signature=case.reading.signature,
                confidence=case.reading.confidence,
            ),
            suggestions=[suggestion for suggestion, _ in kept],
            retry=retry_advice(case.reading, annotations),
            abstained=not kept,
            reason=None if kept else _why_not(case),
            took_ms=0.0,
        ),
        {suggestion.suggestion_id: key for suggestion, key in kept},
    )


def _why_not(case: Case) -> str:
    """Why nothing is suggested, with the corpus's lesson where it has one."""
    lessons = [seed.lesson for seed in case.seeds[:1]]
    return ". ".join([abstention_reason(case.reading), *lessons])


def _ranked(case: Case, shapes: Mapping[str, int]) -> list[tuple[Suggestion, str]]:
    verifier = Verifier(case)
    scored = [
        (confidence_of(case, proposal), proposal)
        for proposal in propose(case)
        if verifier.accepts(proposal)
    ]
    scored.sort(key=lambda item: (-item[0], len(item[1].options), item[1].key))
    surest: dict[str, tuple[float, Proposal]] = {}
    for confidence, proposal in scored:
        surest.setdefault(proposal.key, (confidence, proposal))
    return [
        (_suggestion(case, proposal, confidence, shapes), edit_key(_edits(proposal)))
        for confidence, proposal in surest.values()
        if confidence >= MIN_CONFIDENCE
    ]


def _edits(proposal: Proposal) -> list[Edit]:
    return [edit for option in proposal.options for edit in option.edits]


def _suggestion(
    case: Case, proposal: Proposal, confidence: float, shapes: Mapping[str, int]
) -> Suggestion:
    options = proposal.options
    edits = _edits(proposal)
    changes = _changes(case, proposal)
    ids = [each for option in options for each in option.execution_ids]
    sources: list[EvidenceSource] = [each for option in options for each in option.sources]
    wanted = shape_of(proposal.parameters)
    # A success of the same shape agrees with names and types, and says nothing of a value.
    of_shape = all(isinstance(edit, Rename | Remove | Cast) for edit in edits)
    shape = shapes.get(wanted, 0) if of_shape else 0
    if shape:
        sources.append("similar")
        ids += [call.execution_id for call in case.similar if shape_of(call.parameters) == wanted]
    lessons = [option.lesson for option in options if option.lesson]
    return Suggestion(
        suggestion_id=str(uuid.uuid4()),
        action="change_parameters",
        changes=changes,
        corrected_parameters=proposal.parameters,
        confidence=round(confidence, 4),
        evidence=Evidence(
            repairs=max(option.repairs for option in options),
            successes=max(shape, *(option.successes for option in options)),
            failures=max(option.failures for option in options),
            execution_ids=list(dict.fromkeys(ids))[:5],
            sources=list(dict.fromkeys(sources)),
        ),
        lesson=" ".join([*lessons, lesson_of(edits)]) if lessons else lesson_of(edits),
        example=Example(
            failed={k: v for k, v in case.parameters.items() if k in proposal.touched},
            successful={k: v for k, v in proposal.parameters.items() if k in proposal.touched},
        ),
    )


def _changes(case: Case, proposal: Proposal) -> list[Change]:
    reasons: dict[str, str] = {}
    for option in proposal.options:
        for edit in option.edits:
            reasons.setdefault(edit.name, option.reason)
            if isinstance(edit, Rename):
                reasons.setdefault(edit.to, option.reason)
    changes = []
    before, after = (
        {name: value for name, value in call.items() if name in proposal.touched}
        for call in (case.parameters, proposal.parameters)
    )
    for operation in json_patch.diff(before, after):
        name = json_patch.parse_pointer(operation.path)[0]
        changes.append(
            Change(
                op=operation.op,
                path=operation.path,
                from_=operation.before,
                value=operation.value,
                reason=reasons.get(name, "part of the same correction"),
            )
        )
    return changes


def _advised(case: Case, advice: Advice) -> tuple[Suggestion, str]:
    """An action that leaves the parameters as they are; its own history counts with the prior."""
    trials = advice.trials
    rule = case.signature.rules.get(edit_key([])) if case.signature else None
    if rule and advice.action == "retry_unchanged":
        trials = trials.plus(rule_trials(rule))
    suggestion = Suggestion(
        suggestion_id=str(uuid.uuid4()),
        action=advice.action,
        corrected_parameters=case.parameters if advice.action == "retry_unchanged" else None,
        retry_after_ms=advice.retry_after_ms,
        confidence=round(lower_bound(trials), 4),
        evidence=Evidence(
            repairs=rule.repairs if rule else 0,
            successes=rule.successes if rule else 0,
            failures=rule.failures if rule else 0,
            execution_ids=rule.execution_ids[-3:] if rule else [],
            sources=["error", "repairs"] if rule else ["error"],
        ),
        lesson=advice.lesson,
    )
    return suggestion, edit_key([])
