"""Structured logs: one line per event on stderr, as JSON or as text.

An event carries names, counts and durations, never what was in a call: no parameters, contexts,
results, messages of tools. Exceptions are written as their types and places without their text,
because the text often quotes a value.
"""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, cast

from service.settings import LogSettings

_FIELDS = "aftercall_fields"
_LEVELS = logging.getLevelNamesMapping()


def configure_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Send every log record of the process through our formatter, once per process."""
    handler = _StderrHandler() if stream is None else logging.StreamHandler(stream)
    is_text = settings.format == "text"
    if settings.format == "auto":
        is_text = handler.stream.isatty()
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    level = _LEVELS[settings.level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    # Below INFO only our own packages speak: libraries log bodies and SQL when asked for debug.
    for package in ("service", "ingest", "retrieval", "embeddings", "mongo", "aftercall"):
        logging.getLogger(package).setLevel(level)
    # Its start and stop lines repeat those of `serve`.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what standard error is now: a notebook may have replaced and closed it."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def log_event(
    logger: logging.Logger,
    event: str,
    *,
    level: Literal["debug", "info", "warning", "error"] = "info",
    error: BaseException | None = None,
    **fields: object,
) -> None:
    """Write one event. `fields` are names, counts and durations, never the content of a call."""
    logger.log(_LEVELS[level.upper()], event, extra={_FIELDS: fields}, exc_info=error)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        time = _read_time(record)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_list_fields(record),
        }
        error = _read_error(record)
        if error is not None:
            line["exception"] = list(describe_exception(error))
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Formats a record for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of text; an exception follows on lines of its own."""
        fields = [f"{name}={value}" for name, value in _list_fields(record).items()]
        here = _read_time(record).astimezone()
        clock = here.strftime("%H:%M:%S")
        level = f"{record.levelname.lower():7}"
        line = " ".join((clock, level, record.getMessage(), *fields)).rstrip()
        error = _read_error(record)
        if error is None:
            return line
        return "\n  ".join((line, *describe_exception(error)))


def describe_exception(error: BaseException) -> Iterator[str]:
    """Return types and places of an exception and its causes, outermost first, without texts."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        yield f"{kind.__module__}.{kind.__qualname__}"
        for frame in traceback.extract_tb(current.__traceback__)[-12:]:
            yield f"at {frame.filename}:{frame.lineno} in {frame.name}"
        current = current.__cause__ or current.__context__


def _read_time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _read_error(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None


def _list_fields(record: logging.LogRecord) -> Mapping[str, object]:
    return cast("Mapping[str, object]", getattr(record, _FIELDS, {}))
