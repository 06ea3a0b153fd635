"""The answer: a case becomes ranked, verified suggestions with lessons, or an abstention. Pure."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aftercall import json_patch
from aftercall import models as m
from aftercall.policy import NEVER_RETRIED, decide_repeat
from retrieval.answers.advice.advise import CUT, abstention_reason, advise_on_error, loop_note
from retrieval.answers.judge.model import shipped_model
from retrieval.answers.judge.policy import follow
from retrieval.answers.judge.ranking import RankedProposal, judge
from retrieval.answers.judge.signals import of_sibling
from retrieval.answers.judge.trust import Strangers, principals_for
from retrieval.answers.proposers.case import PLAIN, Advice, CallContext, Case, NoAdvice
from retrieval.answers.proposers.compose import Proposal
from retrieval.knowledge.calls.account import CallAccount
from retrieval.knowledge.confidence import MIN_CONFIDENCE, Estimate, Scaling, lower_bound
from retrieval.knowledge.reading.category import refusal_of
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edits import edit_key
from retrieval.knowledge.rewrites.sentences import _write_sentence, lesson_of
from retrieval.knowledge.rows.documents import shape_of
from retrieval.knowledge.rows.principals import SURE
from retrieval.knowledge.tool.drift import drift_text
from retrieval.knowledge.tool.rules import rule_trials, skeleton_of

_LIKELY = 0.5


@dataclass(frozen=True, slots=True)
class Question:
    """All that an answer is made from: no I/O from here on.

    `annotations` are the claims about the tool that the caller trusts; `call_context` is where the
    call stands, next to the case.
    """

    case: Case
    error: m.ExecutionError
    annotations: m.ToolAnnotations = field(default_factory=m.ToolAnnotations)
    call_context: CallContext = PLAIN
    scaling: Scaling = field(default_factory=Scaling)


@dataclass(frozen=True, slots=True)
class RankedSuggestion:
    """A suggestion, the key of its edits, and its confidence as shipped (None: not calibrated)."""

    suggestion: m.Suggestion
    edit_key: str
    estimate: float | None = None
    alike: bool = False
    """Whether several sessions repaired such a call so."""
    principals: int = 0
    """Whose repairs count for its meaning (`aftercall.policy`)."""
    is_strange: bool = False
    """Whether it rests on what one other principal alone states: it is advice, and not sure."""
    of_sibling: bool = False
    """Whether it was learned on another tool, and has not worked on this one yet."""
    account: CallAccount | None = None
    """What it does with each value; None where it changes none."""
    shape: str | None = None
    """`documents.shape_of` what it sends, where only names and types are changed."""

    def noted(self, note: str | None) -> "RankedSuggestion":
        """Return the same with a note behind its lesson."""
        if note is None:
            return self
        lesson = f"{self.suggestion.lesson} {note}".strip()
        return replace(self, suggestion=self.suggestion.model_copy(update={"lesson": lesson}))


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, and its ranked suggestions by their ids."""

    response: m.SuggestResponse
    ranked: dict[str, RankedSuggestion]
    faults: Mapping[str, FaultKind]
    """What the error states is wrong, by place."""


def answer(question: Question, *, limit: int) -> Answer:
    """Rank what can be proposed, and give the best; at most `limit` suggestions."""
    case = question.case
    advice = advise_on_error(case, question.error, question.call_context)
    ranked = _advised_or_ranked(question, advice)
    kept = [each for each in ranked if each.suggestion.confidence >= MIN_CONFIDENCE][:limit]
    gated = [_gated(question, each) for each in kept]
    kept = [
        replace(each, suggestion=each.suggestion.model_copy(update={"safe": advice.safe})).noted(
            _drift(question, each.suggestion.changes)
        )
        for each, advice in zip(kept, gated, strict=True)
    ]
    reason = None
    if not kept:
        given = advice.reason if isinstance(advice, NoAdvice) else None
        given = given or abstention_reason(case, question.call_context)
        notes = (given, loop_note(question.call_context), _drift(question))
        reason = ". ".join(filter(None, notes))
    return Answer(
        m.SuggestResponse(
            pattern=m.Pattern(
                category=case.reading.category,
                signature=case.reading.signature,
                confidence=case.reading.confidence,
            ),
            suggestions=[each.suggestion for each in kept],
            retry=gated[0] if gated else _repeated(question),
            abstained=not kept,
            reason=reason,
            took_ms=0.0,
        ),
        {each.suggestion.suggestion_id: each for each in kept},
        skeleton_of(case.reading),
    )


def _drift(question: Question, changes: Sequence[m.Change] = ()) -> str | None:
    known, now = question.call_context.contract_changes, question.call_context.now
    if not known or now is None:
        return None
    about = {str(fault.path[0]) for fault in question.case.faults if fault.path}
    about |= {json_patch.parse_pointer(each.path)[0] for each in changes if each.path}
    return drift_text(known, now, frozenset(about))


def _gated(question: Question, ranked: RankedSuggestion) -> m.RetryAdvice:
    case, about, suggestion = question.case, question.annotations, ranked.suggestion
    if suggestion.action not in ("change_parameters", "retry_unchanged"):
        reason = "somebody has to decide before it is tried again"
        return m.RetryAdvice(safe=False, reason=reason)
    if suggestion.change_class is None or case.reading.category in NEVER_RETRIED:
        return _repeated(question)
    if ranked.account is None:
        return _repeated(question)
    return follow(
        case,
        ranked.account,
        suggestion.corrected_parameters or {},
        question.call_context.tool_name,
        about,
        ranked.principals,
        is_strange=ranked.is_strange,
        of_sibling=ranked.of_sibling,
    )


def _repeated(question: Question) -> m.RetryAdvice:
    case, tool_name = question.case, question.call_context.tool_name
    return decide_repeat(
        case.reading.category,
        tool_name,
        question.annotations,
        case.parameters,
        rejected=case.reading.rejected_before_run,
    )


def _advised_or_ranked(
    question: Question, advice: Advice | NoAdvice | None
) -> list[RankedSuggestion]:
    """Return the advice where there is one.

    Next to it a repair that was learned for this very error.
    """
    if advice is CUT:
        return []  # whatever repaired such an error, it was not in the call
    note = loop_note(question.call_context)
    ranked = []
    known = question.case.signature
    is_lookup = isinstance(advice, Advice) and advice.is_lookup
    yields = advice is None or advice.yields or (known is not None and bool(known.examples))
    yields = yields or is_lookup
    if question.case.parameters_known and yields:
        ranked = [each.noted(note) for each in _ranked(question)]
    if advice is None:
        return ranked
    learned = ranked
    if not is_lookup:
        learned = [each for each in ranked if "repairs" in each.suggestion.evidence.sources]
    if isinstance(advice, NoAdvice):
        return learned
    told = _advised(question.case, advice)
    advised = told if advice.action == "retry_unchanged" else told.noted(note)
    if advice.action == "escalate" and refusal_of(question.error.message) is not None:
        return [advised, *learned]  # the user decides, whatever others decided
    return sorted([advised, *learned], key=_order)


def _order(ranked: RankedSuggestion) -> tuple[int, float]:
    """Put first what several repaired alike, where it is likely.

    What rests on one other caller is last.
    """
    confidence = ranked.suggestion.confidence
    is_likely = confidence >= _LIKELY and not ranked.is_strange
    return (0 if ranked.alike else 1) if is_likely else 2, -confidence


def _ranked(question: Question) -> list[RankedSuggestion]:
    case, ranked = question.case, []
    strangers = Strangers(case, question.error.message, question.scaling)
    for judged in judge(case, question.scaling):
        proposal, account, estimate = judged.proposal, judged.account, judged.estimate
        is_strange = strangers.taught(proposal)
        if is_strange and estimate.probability > SURE:
            estimate = estimate.scale_down(SURE / estimate.probability)
        if estimate.probability >= MIN_CONFIDENCE:
            edits = [edit for option in proposal.options for edit in option.edits]
            of_shape = all(isinstance(edit, ed.Rename | ed.Remove | ed.Cast) for edit in edits)
            made = RankedSuggestion(
                _suggestion(case, judged, estimate),
                edit_key(edits),
                estimate.shipped,
                any(option.share for option in proposal.options),
                principals_for(case, proposal),
                is_strange and strangers.alone(proposal),
                any(of_sibling(option) for option in proposal.options),
                account,
                shape_of(proposal.parameters) if of_shape else None,
            )
            ranked.append(made)
    return sorted(ranked, key=_order)


def _suggestion(case: Case, judged: RankedProposal, estimate: Estimate) -> m.Suggestion:
    proposal, account = judged.proposal, judged.account
    options = proposal.options
    learned = [lesson_of(each.edits, each.share) for each in options if each.share]
    edits = [edit for option in options if not option.share for edit in option.edits]
    said = [each.lesson for each in options if each.lesson]
    ids = [each for option in options for each in option.execution_ids]
    sources: list[m.EvidenceSource] = [each for option in options for each in option.sources]
    return m.Suggestion(
        suggestion_id=str(uuid.uuid4()),
        action="change_parameters",
        changes=changes_of(case, proposal, account),
        corrected_parameters=proposal.parameters,
        confidence=round(estimate.probability, 4),
        confidence_interval=(round(estimate.low, 4), round(estimate.high, 4)),
        change_class=account.change_class,
        account=account.to_model(),
        reasons=shipped_model().reasons(judged.signals),
        evidence=m.Evidence(
            repairs=max(option.repairs for option in options),
            successes=max(option.successes for option in options),
            failures=max(option.failures for option in options),
            execution_ids=list(dict.fromkeys(ids))[:5],
            sources=list(dict.fromkeys(sources)),
        ),
        lesson=" ".join(dict.fromkeys([*said, *learned, *map(_write_sentence, edits)])),
        example=m.Example(
            failed={k: v for k, v in case.parameters.items() if k in proposal.touched},
            successful={k: v for k, v in proposal.parameters.items() if k in proposal.touched},
        ),
    )


def changes_of(case: Case, proposal: Proposal, account: CallAccount) -> list[m.Change]:
    """Return what a proposal changes, each with its reason.

    Its proposer's, or that of the account.
    """
    reasons: dict[str, str] = {}
    for option in proposal.options:
        for edit in option.edits:
            reasons.setdefault(edit.name, option.reason)
            if isinstance(edit, ed.Rename):
                reasons.setdefault(edit.to, option.reason)
    why = {json_patch.make_pointer(each.path): each.why for each in account.dropped}
    why |= {json_patch.make_pointer(each.path): each.why for each in account.values}
    before, after = (
        {name: value for name, value in call.items() if name in proposal.touched}
        for call in (case.parameters, proposal.parameters)
    )
    return [
        m.Change(
            op=operation.op,
            path=operation.path,
            from_=operation.before,
            value=operation.value,
            reason=reasons.get(
                json_patch.parse_pointer(operation.path)[0],
                why.get(operation.path, "part of the same correction"),
            ),
        )
        for operation in json_patch.diff(before, after)
    ]


def _advised(case: Case, advice: Advice) -> RankedSuggestion:
    """Return an action that leaves the parameters as they are.

    Its own history counts with the prior.
    """
    trials = advice.trials
    rule = case.signature.rules.get(edit_key([])) if case.signature else None
    rule = rule if advice.action == "retry_unchanged" else None
    if rule is not None:
        trials = trials.add_trials(rule_trials(rule))
    ids = rule.execution_ids[-3:] if rule else list(advice.execution_ids)
    sources: list[m.EvidenceSource] = ["error"]
    if rule is not None:
        sources.append("repairs")
    elif advice.execution_ids:
        sources.append("similar")
    confidence = lower_bound(trials)
    if not ids:  # what rests on the error alone is no surer than its reading
        confidence = min(confidence, case.reading.confidence)
    confidence = min(confidence, SURE) if advice.is_strange else confidence
    is_retry, is_first = advice.action == "retry_unchanged", advice.action == "call_first"
    unchanged = case.parameters if case.parameters_known else None
    suggestion = m.Suggestion(
        suggestion_id=str(uuid.uuid4()),
        action=advice.action,
        corrected_parameters=unchanged if is_retry else None if is_first else advice.parameters,
        parameters=advice.parameters if is_first else None,
        tool=advice.tool,
        split=list(advice.split),
        retry_after_ms=advice.retry_after_ms,
        confidence=round(confidence, 4),
        evidence=m.Evidence(
            repairs=rule.repairs if rule else 0,
            successes=rule.successes if rule else advice.successes,
            failures=rule.failures if rule else advice.failures,
            execution_ids=ids,
            sources=sources,
        ),
        lesson=advice.lesson,
    )
    return RankedSuggestion(suggestion, edit_key([]))
