"""Feedback: what became of suggestions, and users' corrections of calls."""

from uuid import uuid4

from aftercall import models as m
from ingest.intake import check_time
from mongo import contents
from mongo.records import ToolKey, decode_json
from retrieval.knowledge.rows.log import read_executions, read_suggestion
from service.context import Context

_LOOKED_AT = 500
"""Of the latest corrections, or calls of a session."""


class NotRecordedError(LookupError):
    """No such suggestion was made, or no such call of the session is recorded, in the workspace."""


class CorrectionConflictError(ValueError):
    """The correction id is taken by a correction with other content."""


async def record_outcome(
    context: Context, workspace: str, suggestion_id: str, report: m.OutcomeReport
) -> bool:
    """Keep an outcome with its suggestion; False when that has one for the execution already."""
    log = context.store.events
    known = context.suggester.issued(workspace, suggestion_id) or await read_suggestion(
        log, workspace, suggestion_id
    )
    if known is None:
        raise NotRecordedError(
            f"no suggestion {suggestion_id} was made here; send the suggestionId that /suggest gave"
        )
    followed = await _call(context, workspace, report.execution_id)
    outcome = contents.SuggestionOutcome(
        suggestion_id=suggestion_id,
        execution_id=report.execution_id,
        outcome=report.outcome,
        issued=known,
        agent=followed.execution.agent if followed else None,
    )
    verdicts = await log.append(
        workspace, [contents.outcome_event(outcome, context.caller.principal)]
    )
    context.indexer.wake_learner()
    return verdicts == ["accepted"]


async def correct(
    context: Context, workspace: str, correction: m.Correction
) -> m.RecordedCorrection:
    """Keep a correction; durable when this returns. The same id twice counts once.

    A session stands for the latest of its calls that are recorded now; the same correction sent
    again stays with the call of the first time. An execution that is named may be recorded later. A
    `NotRecordedError` where no such call of the session is recorded, an `InvalidExecutionError`
    where its time cannot be true, a `CorrectionConflictError` where its id is taken by another one.
    """
    mask, session_id = context.redactor.text, correction.session_id
    clean = correction.model_copy(
        update={  # a mask may be longer than what it hides, hence the bounds
            "text": mask(correction.text)[: m.MAX_CORRECTION],
            "boundary_axes": [mask(axis)[: m.MAX_AXIS_CHARS] for axis in correction.boundary_axes],
            # As the intake does, or the session would not be found.
            "session_id": session_id and context.redactor.session_id(session_id),
        }
    )
    correction_id = clean.correction_id or str(uuid4())
    if (known := await _known(context, workspace, correction_id)) is None:
        now = context.clock()
        check_time(corrected_at := clean.timestamp or now, now)
        execution_id, call = await _corrected(context, workspace, clean)
        record = contents.CorrectionRecord(
            correction_id=correction_id,
            execution_id=execution_id,
            kind=clean.kind,
            text=clean.text,
            corrected_at=corrected_at,
            boundary_axes=tuple(clean.boundary_axes),
            agent=clean.agent,
            called=None if call is None else contents.Called.from_execution(call),
        )
        event = contents.correction_event(record, context.caller.principal)
        if await context.store.events.append(workspace, [event]) == ["accepted"]:
            context.indexer.wake_learner()
            return _recorded(record, call, duplicate=False)
        # The same id came twice at once, and the other was first.
        known = await _known(context, workspace, correction_id) or record
    call = await _call(context, workspace, known.execution_id)
    if not _is_same(known, clean, call):
        raise CorrectionConflictError(
            f"correctionId: {correction_id} is already stored with other content; "
            "every correction needs an id of its own"
        )
    return _recorded(known, call, duplicate=True)


async def corrections(
    context: Context, workspace: str, *, limit: int, tool: ToolKey | None = None
) -> m.CorrectionList:
    """Return the latest corrections, newest first; with a tool's name those that count for it."""
    log, most = context.store.events, limit if tool is None else _LOOKED_AT
    found = await log.latest_events(workspace, "correction", most)
    records = [decode_json(contents.CorrectionRecord, each.data) for each in found]
    untied = [each.execution_id for each in records if each.called is None]
    calls = await read_executions(log, workspace, untied)
    tools = {each.execution.execution_id: each.tool_key for each in calls}
    about = [
        (each, each.called.tool if each.called else tools.get(each.execution_id))
        for each in records
    ]
    shown = [
        m.KnownCorrection(
            correction_id=record.correction_id,
            execution_id=record.execution_id,
            server_name=of.server_name if of else None,
            tool_name=of.tool_name if of else None,
            at=record.corrected_at,
            kind=record.kind,
            text=record.text,
            boundary_axes=list(record.boundary_axes),
            agent=record.agent,
        )
        for record, of in about
        if tool in (None, of)
    ]
    return m.CorrectionList(corrections=shown[:limit])


async def _corrected(
    context: Context, workspace: str, correction: m.Correction
) -> tuple[str, contents.StoredExecution | None]:
    """The id of the execution meant, of a session its latest, and the execution if recorded."""
    if correction.session_id is None:
        # The wire model has seen to it that one of both is named.
        execution_id = correction.execution_id or ""
        return execution_id, await _call(context, workspace, execution_id)
    session = contents.name_for_principal(context.caller.principal, correction.session_id)
    events = await context.store.events.latest_events(
        workspace, "execution", _LOOKED_AT, sessions=[session]
    )
    calls = [
        each for each in map(contents.execution_of, events) if _is_of_its_tool(each, correction)
    ]
    if not calls:
        names = (("tool", correction.tool_name), ("server", correction.server_name))
        narrowed = "".join(f"of {what} {name!r} " for what, name in names if name is not None)
        raise NotRecordedError(
            f"no call {narrowed}is recorded of session {correction.session_id!r}; flush the "
            "recorder and send this again, or name the executionId that was corrected"
        )
    latest = max(
        calls,
        key=lambda each: (each.execution.timestamp, each.execution.sequence or 0, each.position),
    )
    return latest.execution.execution_id, latest


def _is_of_its_tool(call: contents.StoredExecution, correction: m.Correction) -> bool:
    is_server = correction.server_name in (None, call.execution.server_name)
    return is_server and correction.tool_name in (None, call.execution.tool_name)


async def _known(
    context: Context, workspace: str, correction_id: str
) -> contents.CorrectionRecord | None:
    found = await context.store.events.find_events(workspace, "correction", [correction_id])
    return decode_json(contents.CorrectionRecord, found[0].data) if found else None


async def _call(
    context: Context, workspace: str, execution_id: str
) -> contents.StoredExecution | None:
    found = await read_executions(context.store.events, workspace, [execution_id])
    return found[0] if found else None


def _is_same(
    known: contents.CorrectionRecord,
    correction: m.Correction,
    call: contents.StoredExecution | None,
) -> bool:
    of_session = (
        call is not None
        and call.execution.session_id == correction.session_id
        and _is_of_its_tool(call, correction)
    )
    of_call = known.execution_id == correction.execution_id
    return (
        (of_call if correction.session_id is None else of_session)
        and known.kind == correction.kind
        and known.text == correction.text
        and known.boundary_axes == tuple(correction.boundary_axes)
        and known.agent == correction.agent
        and correction.timestamp in (None, known.corrected_at)
    )


def _recorded(
    record: contents.CorrectionRecord, call: contents.StoredExecution | None, *, duplicate: bool
) -> m.RecordedCorrection:
    return m.RecordedCorrection(
        correction_id=record.correction_id,
        execution_id=record.execution_id,
        server_name=call.execution.server_name if call else None,
        tool_name=call.execution.tool_name if call else None,
        tied=call is not None,
        duplicate=duplicate,
    )
