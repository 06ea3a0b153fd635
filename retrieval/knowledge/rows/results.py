"""Answers: what the result of a success states of itself, an error inside it or that it is empty.

A success stays a success, whatever its result states: this counts for loops and for the health of a
tool alone. A record that has a status of its own (a build that failed) is data, and no error.
"""

import re
from collections.abc import Iterator

from aftercall.json_values import JsonValue, bounded_text, json_or_none
from aftercall.models import ExecutionError

ENVELOPE = frozenset({
    "_meta", "code", "count", "cursor", "duration", "duration_ms", "elapsed_ms", "error", "errors",
    "has_more", "hasmore", "is_error", "iserror", "limit", "message", "meta", "metadata", "next",
    "next_cursor", "next_page", "nextcursor", "offset", "ok", "page", "page_size", "pagesize",
    "pagination", "query", "status", "success", "took", "took_ms", "total", "total_count",
    "total_results", "totalcount", "truncated", "type", "warnings",
})  # fmt: skip
"""Members that say how an answer came about, whatever it holds; matched in lower case."""
_OF_ERRORS = frozenset({
    "error_code", "error_message", "errorcode", "errormessage", "exception", "fault", "headers",
    "http_status", "httpstatus", "request_id", "requestid", "status_code", "statuscode", "trace_id",
})  # fmt: skip
_ERRORS = ("error", "errors", "error_message", "errormessage", "exception", "fault")
_STATUSES = ("status", "status_code", "statuscode", "http_status", "httpstatus", "code")
_WORKED = ("success", "ok", "succeeded")
_FAILED = ("is_error", "iserror")
_WORDS = ("message", "msg", "detail", "details", "description", "title", "reason", "error")
_EMPTY_JSON = frozenset({"[]", "{}", '""'})
"""What a tool that answers in text states for an empty answer."""
_MAYBE = re.compile(r"error|exception|fault|status|code|success|succeeded|ok", re.IGNORECASE)
"""One of these stands in each text that is read."""
_MAX_DEPTH = 4
_MAX_TEXT = 4_000
"""Characters of a text that is read as JSON: an error is shorter."""
_MAX_MESSAGE = 1_000


def error_within(result: JsonValue, depth: int = _MAX_DEPTH) -> ExecutionError | None:
    """Return the error that a result holds and nothing else; None where it holds none.

    `{"success": false, "message": ...}`, `{"status": 401, ...}`, `{"error": ...}`, also as JSON
    text, and in the only member of an envelope such as `{"status": 200, "body": {"error": ...}}`.
    """
    if isinstance(result, str):
        is_short = len(result) <= _MAX_TEXT and result.lstrip().startswith("{")
        result = json_or_none(result) if is_short and _MAYBE.search(result) else None
    if not isinstance(result, dict) or depth <= 0:
        return None
    members = {name.casefold(): value for name, value in result.items()}
    held = [
        value
        for name, value in members.items()
        if name not in ENVELOPE and name not in _OF_ERRORS and value not in (None, [], {}, "")
    ]
    if held:
        if len(held) == 1:
            return error_within(held[0], depth - 1)
        return None
    error = next((members[name] for name in _ERRORS if members.get(name)), None)
    statuses = [members.get(name) for name in _STATUSES]
    code = next((each for each in statuses if isinstance(each, int) and 400 <= each < 600), None)
    is_said = any(members.get(name) is False for name in _WORKED) or any(
        members.get(name) is True for name in _FAILED
    )
    if error is None and code is None and not is_said:
        return None
    words = (
        _error_words(error)
        or _error_words(members)
        or ("the call had no success" if is_said else "")
    )
    message = words or f"HTTP {code}"
    return ExecutionError(
        message=bounded_text(message, _MAX_MESSAGE), code=None if code is None else str(code)
    )


def _error_words(error: JsonValue) -> str:
    if isinstance(error, str):
        return error.strip()
    if isinstance(error, list):
        if error:
            return _error_words(error[0])
        return ""
    if isinstance(error, dict):
        found = (_error_words(error.get(name)) for name in _WORDS if name in error)
        return next(filter(None, found), "")
    return ""


def is_empty(value: JsonValue, depth: int = _MAX_DEPTH) -> bool:
    """Return whether there is nothing in an answer, whatever envelope is around it.

    Null is not empty: a call whose result was not recorded has it.
    """
    if isinstance(value, str):
        return not value or value.isspace() or value in _EMPTY_JSON
    if not isinstance(value, dict | list) or not value:
        return isinstance(value, dict | list)
    if isinstance(value, list) or depth <= 0:
        return False
    has_payload = any(True for _ in walk_payload(value))
    return has_payload and all(is_empty(each, depth - 1) for _, each in walk_payload(value))


def walk_payload(value: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Return the members of an answer that are no envelope, with their names."""
    return ((name, each) for name, each in value.items() if name.casefold() not in ENVELOPE)
