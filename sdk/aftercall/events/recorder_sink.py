"""Whole calls as executions, for a recorder."""

import logging
from uuid import uuid4

from pydantic import ValidationError

from aftercall.bounded import bounded_json
from aftercall.events.sink import FinishedCall
from aftercall.json_values import clean_text
from aftercall.models.calls import Execution, ExecutionError
from aftercall.reflection.calling import ExecutionSink

_LOGGER = logging.getLogger("aftercall")


class RecorderSink:
    """Hands every finished call to a recorder, which masks its secrets.

    The request is the execution's session, `seq` its order in it. A call whose payload could not
    be read is not recorded, although its tool may be known: nothing was asked of the tool, and
    without its arguments it would teach that calling with none fails, that adding all of them is
    the repair, and that the tool is less reliable than it is. Events and metrics tell of it. A call
    that was refused before it was made is not recorded for the same reason, and one that was given
    up is not, since nobody knows how it ended.

    `call_with_reflection` records by itself: this is for calls that it does not make.

    Args:
        recorder: a `Recorder`, or whatever takes executions.
    """

    def __init__(self, recorder: ExecutionSink) -> None:
        self._recorder = recorder

    def finished(self, call: FinishedCall) -> None:
        """Record it."""
        try:
            execution = _execution(call)
        except ValidationError as error:
            # Fields are named, values are not.
            fields = ", ".join(str(e["loc"]) for e in error.errors(include_input=False))
            _LOGGER.warning("a call could not be recorded: %s", fields)
            return
        self._recorder.record(execution)


def _execution(call: FinishedCall) -> Execution:
    error = None
    if call.status == "error":
        message = clean_text(call.message or "")
        error = ExecutionError(type=call.error_type or "Error", message=message)
    return Execution(
        # Not made of request and seq: another process may have a request of the same name.
        execution_id=str(uuid4()),
        timestamp=call.started_at,
        agent=call.agent,
        server_name=call.server_name,
        tool_name=call.tool,
        parameters=call.arguments,
        outcome="success" if error is None else "failure",
        duration_ms=call.latency_ms or 0.0,
        error=error,
        result=None if call.result is None else bounded_json(call.result),
        session_id=call.request_id,
        sequence=call.seq,
    )
