"""Events as records of Python's logging."""

import json
import logging

from aftercall.events.model import ToolCallEvent, ToolCallPlanned

LOGGER_NAME = "aftercall.events"


class LoggingSink:
    """Writes one record per event.

    The line holds names, counts and durations; what the tool said is left to the record's
    `tool_call`, a dict of all the event's fields, for handlers that keep structure. A name is a
    tool's or a model's text, so it stands in the line as a JSON string, and cannot begin another
    line or colour a terminal.

    Args:
        logger: takes the records; `aftercall.events` when None.
        level: of all of them.
    """

    def __init__(self, logger: logging.Logger | None = None, level: int = logging.INFO) -> None:
        self._logger = logger or logging.getLogger(LOGGER_NAME)
        self._level = level

    def emit(self, event: ToolCallEvent) -> None:
        """Log it."""
        if self._logger.isEnabledFor(self._level):
            # Not `extra=fields`: a record has a `message` of its own.
            fields = {"tool_call": event.model_dump(mode="json")}
            self._logger.log(self._level, "%s", _line(event), extra=fields)


def _line(event: ToolCallEvent) -> str:
    call = (
        f"{event.event} {_quoted(event.tool)} request={_quoted(event.request_id)} seq={event.seq}"
    )
    if isinstance(event, ToolCallPlanned):
        return f"{call} args={event.args_preview_hash[:12]}"
    latency = "" if event.latency_ms is None else f" latency_ms={event.latency_ms:.1f}"
    kind = "" if event.error_type is None else f" error_type={_quoted(event.error_type)}"
    return f"{call} status={event.status}{kind}{latency}"


def _quoted(text: str) -> str:
    # ASCII only, so that also what turns the direction of a line around is written out.
    return json.dumps(text)
