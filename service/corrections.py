"""Users' corrections: which call each is about, kept before that call if need be."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from aftercall.models import (
    MAX_AXIS_CHARS,
    MAX_CORRECTION,
    Correction,
    CorrectionList,
    KnownCorrection,
    RecordedCorrection,
)
from aftercall.redaction import Redactor
from ingest.intake import EARLIEST, MAX_CLOCK_SKEW
from mongo.contents import (
    Called,
    CorrectionRecord,
    StoredExecution,
    correction_event,
    execution_of,
)
from mongo.protocol import EventLog
from mongo.records import ToolKey, decoded
from retrieval.log import executions

_LOOKED_AT = 500
"""Of the latest corrections, or calls of a session."""


class NothingToCorrectError(LookupError):
    """No such call of the session is recorded; the message says how to name one."""


class InvalidCorrectionError(ValueError):
    """The correction is well-formed but cannot be true, such as one of next year."""


class CorrectionConflictError(ValueError):
    """The correction id is taken by a correction with other content."""


class Corrections:
    """Keeps users' corrections.

    Args:
        log: where they are kept, and the calls that they are about.
        redactor: masks secrets before anything is stored.
        on_stored: called when there is something to learn from.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        redactor: Redactor,
        on_stored: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = log
        self._redactor = redactor
        self._on_stored = on_stored
        self._clock = clock

    async def correct(self, workspace: str, correction: Correction) -> RecordedCorrection:
        """Keep a correction; durable when this returns. The same id twice counts once.

        A session stands for the latest of its calls that are recorded now; the same correction
        sent again stays with the call of the first time. An execution that is named may be recorded
        later.

        Raises:
            NothingToCorrectError: no such call of the session is recorded.
            InvalidCorrectionError: its time cannot be true.
            CorrectionConflictError: its id is taken by a correction with other content.
            StoreError: when it cannot be stored.
        """
        clean = self._masked(correction)
        correction_id = clean.correction_id or str(uuid4())
        known = await self._known(workspace, correction_id)
        if known is None:
            corrected_at = self._checked_time(clean)
            execution_id, call = await self._corrected(workspace, clean)
            record = CorrectionRecord(
                correction_id=correction_id,
                execution_id=execution_id,
                kind=clean.kind,
                text=clean.text,
                corrected_at=corrected_at,
                boundary_axes=tuple(clean.boundary_axes),
                agent=clean.agent,
                called=None if call is None else Called.of(call),
            )
            if await self._log.append(workspace, [correction_event(record)]) == ["accepted"]:
                self._on_stored()
                return _recorded(record, call, duplicate=False)
            # The same id came twice at once, and the other was first.
            known = await self._known(workspace, correction_id) or record
        call = await self._call(workspace, known.execution_id)
        if not _is_same(known, clean, call):
            raise CorrectionConflictError(
                f"correctionId: {correction_id} is already stored with other content; "
                "every correction needs an id of its own"
            )
        return _recorded(known, call, duplicate=True)

    async def latest(
        self, workspace: str, *, limit: int, tool: ToolKey | None = None
    ) -> CorrectionList:
        """The latest corrections, newest first; with a tool's name those that count for it."""
        most = limit if tool is None else _LOOKED_AT
        found = await self._log.latest(workspace, "correction", most)
        records = [decoded(CorrectionRecord, each.data) for each in found]
        untied = [each.execution_id for each in records if each.called is None]
        calls = {
            each.execution.execution_id: each
            for each in await executions(self._log, workspace, untied)
        }
        shown = []
        for record in records:
            call = calls.get(record.execution_id)
            of = record.called.tool if record.called else call.tool_key if call else None
            if tool in (None, of):
                shown.append(_shown(record, of))
        return CorrectionList(corrections=shown[:limit])

    def _masked(self, correction: Correction) -> Correction:
        """Without secrets. A mask may be longer than what it hides, hence the bounds."""
        session_id = correction.session_id
        return correction.model_copy(
            update={
                "text": self._redactor.text(correction.text)[:MAX_CORRECTION],
                "boundary_axes": [
                    self._redactor.text(axis)[:MAX_AXIS_CHARS] for axis in correction.boundary_axes
                ],
                # As the intake does, or the session would not be found.
                "session_id": None if session_id is None else self._redactor.session_id(session_id),
            }
        )

    def _checked_time(self, correction: Correction) -> datetime:
        now = self._clock()
        moment = correction.timestamp or now
        if not EARLIEST <= moment <= now + MAX_CLOCK_SKEW:
            raise InvalidCorrectionError(
                f"timestamp: {moment.isoformat()} is not between {EARLIEST.date()} and tomorrow; "
                "check the clock of the sender, or leave it out"
            )
        return moment

    async def _corrected(
        self, workspace: str, correction: Correction
    ) -> tuple[str, StoredExecution | None]:
        """The id of the execution that is meant, and the execution if it is recorded."""
        if correction.session_id is None:
            # The wire model has seen to it that one of both is named.
            execution_id = correction.execution_id or ""
            return execution_id, await self._call(workspace, execution_id)
        latest = await self._latest_call(workspace, correction)
        if latest is None:
            raise NothingToCorrectError(
                f"no call {_narrowed(correction)}is recorded of session "
                f"{correction.session_id!r}; flush the recorder and send this again, or name the "
                "executionId that was corrected"
            )
        return latest.execution.execution_id, latest

    async def _latest_call(self, workspace: str, correction: Correction) -> StoredExecution | None:
        """The latest call of a session, by its own time and sequence, of those that came last."""
        events = await self._log.latest(
            workspace, "execution", _LOOKED_AT, sessions=[correction.session_id or ""]
        )
        calls = [
            each
            for each in map(execution_of, events)
            if correction.server_name in (None, each.execution.server_name)
            and correction.tool_name in (None, each.execution.tool_name)
        ]
        return max(calls, default=None, key=_moment_of)

    async def _known(self, workspace: str, correction_id: str) -> CorrectionRecord | None:
        found = await self._log.find(workspace, "correction", [correction_id])
        return decoded(CorrectionRecord, found[0].data) if found else None

    async def _call(self, workspace: str, execution_id: str) -> StoredExecution | None:
        found = await executions(self._log, workspace, [execution_id])
        return found[0] if found else None


def _is_same(known: CorrectionRecord, correction: Correction, call: StoredExecution | None) -> bool:
    """Whether what was sent is what is stored; `call` is the one that it was stored for."""
    if correction.session_id is None:
        is_of_call = known.execution_id == correction.execution_id
    else:
        is_of_call = (
            call is not None
            and call.execution.session_id == correction.session_id
            and correction.server_name in (None, call.execution.server_name)
            and correction.tool_name in (None, call.execution.tool_name)
        )
    return (
        is_of_call
        and known.kind == correction.kind
        and known.text == correction.text
        and known.boundary_axes == tuple(correction.boundary_axes)
        and known.agent == correction.agent
        and correction.timestamp in (None, known.corrected_at)
    )


def _moment_of(stored: StoredExecution) -> tuple[datetime, int, int]:
    execution = stored.execution
    return (execution.timestamp, execution.sequence or 0, stored.position)


def _narrowed(correction: Correction) -> str:
    names = (("tool", correction.tool_name), ("server", correction.server_name))
    return "".join(f"of {what} {name!r} " for what, name in names if name is not None)


def _recorded(
    record: CorrectionRecord, call: StoredExecution | None, *, duplicate: bool
) -> RecordedCorrection:
    return RecordedCorrection(
        correction_id=record.correction_id,
        execution_id=record.execution_id,
        server_name=call.execution.server_name if call else None,
        tool_name=call.execution.tool_name if call else None,
        tied=call is not None,
        duplicate=duplicate,
    )


def _shown(record: CorrectionRecord, tool: ToolKey | None) -> KnownCorrection:
    return KnownCorrection(
        correction_id=record.correction_id,
        execution_id=record.execution_id,
        server_name=tool.server_name if tool else None,
        tool_name=tool.tool_name if tool else None,
        at=record.corrected_at,
        kind=record.kind,
        text=record.text,
        boundary_axes=list(record.boundary_axes),
        agent=record.agent,
    )
