"""Checking a call before it is made: by its schema, what is known of the tool, and learned rules.

No text is embedded and nothing is searched. `repair` is stated of a lossless change alone, and only
where it is proven: the caller's own schema refuses the call and takes the repaired one, or several
repaired such a call so, none of whose failures came again, while no success ever looked like the
call as it is. Whatever is less sure is a warning, and a call that fits passes.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from aftercall.background import call_aside
from aftercall.change_classes import reads_only
from aftercall.json_values import JsonObject, content_hash
from aftercall.models import Call, CheckRequest, CheckResponse, Evidence
from aftercall.outcomes import TRANSIENT
from aftercall.redaction import Redactor, is_redacted
from mongo.contents import as_named
from mongo.records import OWNER, ToolKey
from retrieval.answers.answer import changes_of
from retrieval.answers.judge.acceptance import check_of, fits_schema
from retrieval.answers.judge.ranking import RankedProposal, judge
from retrieval.answers.judge.trust import trusted_hints
from retrieval.answers.proposers.case import Case, profile_for
from retrieval.answers.suggest import case_of, schema_for
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rewrites.edits import names_of
from retrieval.knowledge.rewrites.sentences import lesson_of, speak_path
from retrieval.knowledge.rows.principals import OF_A_STRANGER, agent_mark, principal_of
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.rules import SignatureKnowledge, ToolKnowledge
from retrieval.knowledge.tool.runs import EMPTY, loops_of, session_mark
from retrieval.knowledge.values.notations import with_arguments
from retrieval.knowledge.values.parameters import considered_part, is_large
from retrieval.knowledge.values.scalars import type_of

PROVEN = 0.95
"""Confidence above which a lossless change is made before the call, when no error names a fault: of
kinds of mistakes that were left out of the fit seven of 1,111 were wrong above it, 15 above .80."""
LOOP = 5
"""Failures of a session with one error after which the like call is not made again."""
_SEVERAL = 2
_MAX_SIGNATURES = 20
_MAX_NAMES = 1_000
_MAX_REASONS = 5
_MAYBE_OPEN = ("patternProperties", "allOf", "anyOf", "oneOf", "$ref", "unevaluatedProperties")
_REFUSED = ErrorReading("invalid_parameters", 1.0, "", (), rejected_before_run=True)


async def answer_check(
    workspace: str,
    request: CheckRequest,
    *,
    memory: Memory,
    redactor: Redactor,
    quorum: int,
    principal: str = OWNER,
    loop: int = LOOP,
) -> CheckResponse:
    """Return what there is to say of a call that is about to be made; nothing is remembered of it.

    `quorum` is of principals whose repairs prove a change to those of others; `loop` are failures
    of the session with one error that end in `block`, where 0 never does.

    Raises:
        StoreError: what is known cannot be read.
    """
    started = time.perf_counter()
    asked = considered_part(request.call)
    if asked.parameters_known != request.call.parameters_known:
        return CheckResponse(verdict="pass")  # too large to be looked at
    asked = with_arguments(asked)
    name, server = redactor.identifier(asked.tool_name), asked.server_name
    tool = ToolKey(workspace, server and redactor.identifier(server), name)
    knowledge, registered = (
        await memory.read_knowledge(tool),
        await memory.find_tool(tool, principal),
    )
    binds = quorum == 1 or (registered is not None and registered.is_registered_by(principal))
    hints = trusted_hints(request.annotations, registered, binds=binds)
    writes = not reads_only(asked.tool_name, hints)
    schema = schema_for(asked, knowledge, registered, binds=binds, writes=writes, quorum=quorum)
    if asked.session_id is not None:
        asked = asked.model_copy(update={"session_id": redactor.session_id(asked.session_id)})
    is_fit = _fits_schema(schema, asked.parameters)
    if is_fit and _is_clear(as_named(asked, principal), schema, knowledge):
        return CheckResponse(verdict="pass", took_ms=_milliseconds_since(started))
    call = as_named(await call_aside(redactor.call, asked, when=is_large(asked)), principal)
    if not is_fit and call.parameters != asked.parameters:
        is_fit = _fits_schema(
            schema, call.parameters
        )  # nothing is stated of a value that was masked
    case = case_of(call, _REFUSED, knowledge, registered, hints, (), binds=binds, quorum=quorum)
    session = session_mark(call.session_id, call.agent)
    scaling = await memory.read_scaling(workspace)
    loops = list(_find_loops(case, knowledge, session, loop)) if loop and call.session_id else []
    checked = (
        _block_loop(loops, is_fit=is_fit)
        or (None if is_fit else _by_schema(case, scaling))
        or _by_rules(case, knowledge, scaling)
        or _warn_of_call(case, loops)
        or CheckResponse(verdict="pass")
    )
    return checked.model_copy(update={"took_ms": _milliseconds_since(started)})


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _is_clear(call: Call, schema: JsonObject | None, knowledge: ToolKnowledge | None) -> bool:
    """Return whether nothing can be stated of a call, seen at a glance: most calls are right."""
    if schema is not None:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not call.parameters.keys() <= properties.keys():
            return False
    if knowledge is None:
        return True
    session = session_mark(call.session_id, call.agent)
    if call.session_id is not None and any(loops_of(knowledge.runs, call.parameters, session)):
        return False
    profiles = knowledge.profiles.values()
    if any(each.failed_calls and each.is_known_to_fail(call.parameters) for each in profiles):
        return False
    if not any(each.rules or each.examples for each in knowledge.signatures.values()):
        return True
    hashed = None if schema is None else content_hash(schema)
    return not _never_worked(call.parameters, profile_for(knowledge, hashed, call.agent)[0])


def _make_warning(reasons: Sequence[str], ignored: Sequence[str] = ()) -> CheckResponse:
    ignored, reasons = list(ignored[:_MAX_REASONS]), list(reasons[:_MAX_REASONS])
    return CheckResponse(verdict="warn", reasons=reasons, ignored=ignored)


def _fits_schema(schema: JsonObject | None, parameters: JsonObject) -> bool:
    known = None if schema is None else check_of(schema)
    return known is None or fits_schema(known, parameters)


class _Loop(NamedTuple):
    """What the calls of a session came to again and again, in sentences."""

    failures: int
    is_same: bool
    is_error: bool
    reasons: list[str]


def _find_loops(
    case: Case, knowledge: ToolKnowledge | None, session: str, limit: int
) -> Iterator[_Loop]:
    """Yield the errors that `limit` calls of the session or more ended with, and empty answers.

    Errors of the moment are none: a server that is away may be back.
    """
    for loop in loops_of(knowledge.runs, case.parameters, session) if knowledge else ():
        times = loop.failures
        if times < limit:
            continue
        if loop.signature_id == EMPTY:
            said = f"the last {times} calls of this tool in this session found nothing"
            yield _Loop(times, loop.is_same, is_error=False, reasons=[said])
            continue
        known = knowledge.signatures.get(loop.signature_id) if knowledge else None
        category, words = (known.category, known.signature) if known else (loop.category, loop.said)
        if category in TRANSIENT or not words:
            continue
        rules = [rule for rule, _ in known.told_rules() if rule.repairs] if known else []
        best = max(rules, key=lambda rule: rule.repairs, default=None)
        more = "" if loop.is_same else ", with other parameters too"
        reasons = [
            f"this failed {times} times in this session with the same error{more} "
            f"({category}): {words}",
            f"what mended it elsewhere: {lesson_of(best.edits)}"
            if best
            else "nothing is known to mend it: ask, or take another tool",
        ]
        yield _Loop(times, loop.is_same, is_error=True, reasons=reasons)


def _block_loop(loops: Sequence[_Loop], *, is_fit: bool) -> CheckResponse | None:
    """Block a call that is one of such a loop, or that its schema refuses still."""
    for loop in loops:
        if loop.is_error and (loop.is_same or not is_fit):
            return CheckResponse(
                verdict="block",
                reasons=loop.reasons,
                evidence=Evidence(failures=loop.failures, sources=["session"]),
            )
    return None


def _by_schema(case: Case, scaling: Scaling) -> CheckResponse:
    best = next(iter(judge(case, scaling)), None)
    if best is not None and not case.is_foreign_schema and _is_proven(case, best):
        return _answer_repair(case, best)
    said = [_describe_fault(fault) for fault in case.faults] or ["the tool's schema refuses it"]
    return _make_warning(said, list(_find_swallowed(case)))


def _by_rules(
    case: Case, knowledge: ToolKnowledge | None, scaling: Scaling
) -> CheckResponse | None:
    odd = _never_worked(case.parameters, case.profile)
    if knowledge is None or not odd:
        return None
    anywhere = _repairs_names(knowledge.other_repairs(""), odd)
    for known in islice(reversed(knowledge.signatures.values()), _MAX_SIGNATURES):
        if not (known.rules or known.examples) or not (anywhere or _repairs_names(known, odd)):
            continue
        faults = tuple(
            Fault(kind, (place,))
            for place, kind in known.faults.items()
            if (place in case.parameters) != (kind == "missing")
        )
        reading = replace(
            _REFUSED, category=known.category, signature=known.signature, faults=faults
        )
        about = replace(case, reading=reading, signature=known)
        for best in judge(about, scaling)[:1]:
            if best.proposal.touched & odd and _is_proven(about, best) and _is_known(about, best):
                return _answer_repair(about, best)
    return None


def _repairs_names(known: SignatureKnowledge, odd: set[str]) -> bool:
    several = (rule.edits for rule in known.rules.values() if rule.repairs >= _SEVERAL)
    edits = chain(*several, (change.edit for change in known.find_common_changes()))
    return any(not odd.isdisjoint(names_of(edit)) for edit in edits)


def _never_worked(parameters: JsonObject, profile: ToolProfile | None) -> set[str]:
    if profile is None or profile.successes < _SEVERAL:
        return set()
    return {
        name
        for name, value in islice(parameters.items(), _MAX_NAMES)
        if not is_redacted(value)
        and ((seen := profile.parameters.get(name)) is None or type_of(value) not in seen.types)
    }


def _is_proven(case: Case, best: RankedProposal) -> bool:
    if best.estimate.probability <= PROVEN or best.account.change_class != "lossless":
        return False
    for option in best.proposal.options:
        if option.failures or option.failed > OF_A_STRANGER:
            return False
    # What is still unknown to the tool may be what was meant to change it.
    return case.view is None or not case.view.unknown_parameters(best.proposal.parameters)


def _is_known(case: Case, best: RankedProposal) -> bool:
    """Return whether the asker's own agents repaired it so more than once, or enough others."""
    own = principal_of(agent_mark(case.agent))
    return all(
        "repairs" in option.sources
        and option.repairs >= _SEVERAL
        and (own in option.menders or len(option.menders) >= case.quorum)
        for option in best.proposal.options
    )


def _answer_repair(case: Case, best: RankedProposal) -> CheckResponse:
    options = best.proposal.options
    edits = [edit for option in options for edit in option.edits]
    return CheckResponse(
        verdict="repair",
        changes=changes_of(case, best.proposal, best.account),
        corrected_parameters=best.proposal.parameters,
        confidence=round(best.estimate.probability, 4),
        change_class="lossless",
        account=best.account.to_model(),
        reasons=[lesson_of(edits)],
        evidence=Evidence(
            repairs=sum(option.repairs for option in options),
            successes=sum(option.successes for option in options),
            execution_ids=list(dict.fromkeys(e for o in options for e in o.execution_ids))[:5],
            sources=list(dict.fromkeys(each for o in options for each in o.sources)),
        ),
    )


def _warn_of_call(case: Case, loops: Sequence[_Loop]) -> CheckResponse | None:
    ignored = list(_find_swallowed(case))
    reasons = [
        f"{speak_path((name,))} is no parameter of this tool, which may pass over it in silence"
        for name in ignored
    ]
    known = case.profile if case.profile_is_current else None
    if known is not None and known.is_known_to_fail(case.parameters):
        reasons.append("exactly this call failed before, and has not worked since")
    reasons += [reason for loop in loops for reason in loop.reasons]
    return _make_warning(reasons, ignored) if reasons else None


def _find_swallowed(case: Case) -> Iterator[str]:
    schema, view = case.schema, case.view
    if schema is None or view is None or view.source != "schema" or not view.parameters:
        return
    if schema.get("additionalProperties") is None and not any(e in schema for e in _MAYBE_OPEN):
        yield from view.unknown_parameters(case.parameters)


_SAID = {
    "missing": "is missing",
    "unexpected": "is no parameter of this tool",
    "not_allowed": "is none of the allowed values",
    "bad_format": "has not the form that the schema states",
    "out_of_range": "is out of the range that the schema states",
}


def _describe_fault(fault: Fault) -> str:
    place = speak_path(fault.path) if fault.path else "the call"
    if fault.kind == "wrong_type" and fault.expected_types:
        return f"{place} must be of type {' or '.join(fault.expected_types)}"
    return f"{place} {_SAID.get(fault.kind, 'does not fit the schema')}"
