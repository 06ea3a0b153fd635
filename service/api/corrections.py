"""Corrections: the words of users about the answers that calls gave."""

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query
from pydantic import Field

from aftercall import models as m
from ingest.intake import check_time
from mongo import contents
from mongo.records import decode_json
from retrieval.knowledge.rows.log import read_executions
from service.context import Space
from service.errors import CorrectionConflictError, NotRecordedError
from service.requests import NO_QUERY, JsonRoute, Read, Record, ToolFilter

router = APIRouter(tags=["boundaries"], route_class=JsonRoute)
_LOOKED_AT = 500
"""Latest corrections, or calls of a session, that are looked at."""


class CorrectionsQuery(ToolFilter):
    """A tool whose corrections are wanted, and how many."""

    limit: int = Field(default=20, ge=1, le=100)


@router.post(
    "/corrections",
    summary="Tell what a user said of an answer",
    status_code=202,
    name="correct",
    dependencies=[NO_QUERY],
)
async def record_correction(space: Record, correction: m.Correction) -> m.RecordedCorrection:
    """Record a correction: it is durable now, and weighs more than the tool's own word.

    It is about one execution, which may be recorded later (`tied` is false until then), or about
    the latest recorded call of a session. The same `correctionId` twice counts once.

    Raises:
        NotRecordedError: no such call of the session is recorded.
        InvalidExecutionError: its time cannot be true.
        CorrectionConflictError: its id is taken by a correction with other content.
    """
    context, workspace = space
    mask, session_id = context.redactor.text, correction.session_id
    clean = correction.model_copy(
        update={  # bounded, for a mask may be longer than what it hides
            "text": mask(correction.text)[: m.MAX_CORRECTION],
            "boundary_axes": [mask(axis)[: m.MAX_AXIS_CHARS] for axis in correction.boundary_axes],
            # Masked as the intake masks it, or the session would not be found.
            "session_id": session_id and context.redactor.session_id(session_id),
        }
    )
    correction_id = clean.correction_id or str(uuid4())
    if (known := await _find_correction(space, correction_id)) is None:
        now = context.clock()
        check_time(corrected_at := clean.timestamp or now, now)
        execution_id, call = await _find_corrected(space, clean)
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
            return _make_receipt(record, call, duplicate=False)
        # The same id came twice at the same time, and the other one was first.
        known = await _find_correction(space, correction_id) or record
    call = await _find_call(space, known.execution_id)
    if not _is_same(known, clean, call):
        raise CorrectionConflictError(
            f"correctionId: {correction_id} is already stored with other content; "
            "every correction needs an id of its own"
        )
    return _make_receipt(known, call, duplicate=True)


@router.get("/corrections", summary="What users said of answers")
async def list_corrections(
    space: Read, query: Annotated[CorrectionsQuery, Query()]
) -> m.CorrectionList:
    """Return the latest corrections, newest first.

    A correction counts for its tool, and is listed under it, soon after both are recorded.
    """
    context, workspace = space
    log, tool = context.store.events, query.find_tool(workspace)
    most = query.limit if tool is None else _LOOKED_AT
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
    return m.CorrectionList(corrections=shown[: query.limit])


async def _find_corrected(
    space: Space, correction: m.Correction
) -> tuple[str, contents.StoredExecution | None]:
    """Return the id of the corrected execution, and the execution if it is recorded."""
    context, workspace = space
    if correction.session_id is None:
        # The wire model requires one of both.
        execution_id = correction.execution_id or ""
        return execution_id, await _find_call(space, execution_id)
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


async def _find_correction(space: Space, correction_id: str) -> contents.CorrectionRecord | None:
    context, workspace = space
    found = await context.store.events.find_events(workspace, "correction", [correction_id])
    return decode_json(contents.CorrectionRecord, found[0].data) if found else None


async def _find_call(space: Space, execution_id: str) -> contents.StoredExecution | None:
    context, workspace = space
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


def _make_receipt(
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
