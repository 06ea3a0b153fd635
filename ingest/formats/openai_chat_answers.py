"""What the result of a tool call in a transcript says. Pure.

A transcript has no flag for failures, so only what is unmistakable in its structure counts:

- the message says so (`status: "error"`, `is_error`), as some frameworks write it;
- the content is a typed outcome (see `aftercall.outcomes`), an MCP result or anything else with
  `isError: true`, or an object that holds nothing but an error: `{"error": "...", "code": 404}`.

All else succeeded, whatever its text. A person who knows better says how failures begin
(`--error-prefix`); then that is what the text is compared with, and nothing else.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from aftercall.bounded import bounded_json
from aftercall.outcomes import Outcome
from ingest.formats.answers import (
    TOOL_ERROR,
    Answer,
    failure_in_object,
    failure_in_text,
    is_mcp_result,
    mcp_answer,
    texts_of,
)

_MAX_JSON_CHARS = 1_000_000
"""Of a text that may be a JSON object; an error is far shorter, so a longer one is a success."""

_OF_AN_ERROR = frozenset(
    [
        "error",
        "message",
        "errormessage",
        "msg",
        "code",
        "errorcode",
        "status",
        "statuscode",
        "type",
        "errortype",
        "name",
        "kind",
        "detail",
        "details",
        "data",
        "success",
        "ok",
        "iserror",
        "stack",
        "stacktrace",
        "traceback",
        "hint",
        "suggestion",
        "help",
        "requestid",
        "traceid",
        "timestamp",
        "path",
        "retryable",
    ]
)
"""Members, folded, of an object that is an error. One with others is a report that mentions one."""


def transcript_answer(content: object, *, failed: bool, prefixes: Sequence[str]) -> Answer:
    """The answer in the content of a tool's message.

    Args:
        content: a text, a list of parts, or (of some frameworks) any JSON value.
        failed: whether the message itself says that the call failed.
        prefixes: beginnings of texts that a person calls failures.
    """
    text = text_of(content)
    held = content if isinstance(content, Mapping) else _object_in(text)
    if held is not None and (found := _structured(held, failed=failed)) is not None:
        return found
    if failed or (text is not None and text.lstrip().startswith(tuple(prefixes))):
        return failure_in_text(text if text is not None else str(bounded_json(content)))
    status = None if held is None else Outcome.coerce(held).status
    return Answer(result=bounded_json(content if text is None else text), status=status)


def text_of(content: object) -> str | None:
    """The text of a message; None for what is neither text nor parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in content
    ):
        return "\n".join(texts_of(content))
    return None


def _object_in(text: str | None) -> Mapping[str, Any] | None:
    if text is None or len(text) > _MAX_JSON_CHARS or not text.lstrip().startswith("{"):
        return None
    try:
        value = from_json(text)
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None


def _structured(held: Mapping[str, Any], *, failed: bool) -> Answer | None:
    typed = Outcome.coerce(held).error
    if typed is not None:
        return Answer(typed)
    if is_mcp_result(held) and "isError" in held:
        return mcp_answer(held)
    if held.get("isError") is True or failed or _is_an_error(held):
        inner = held.get("error")
        if isinstance(inner, Mapping) and inner:
            return failure_in_object(inner)
        message = inner if isinstance(inner, str) and inner else held.get("message")
        outer = {key: item for key, item in held.items() if key not in {"error", "isError"}}
        kind = held.get("type") or held.get("errorType") or held.get("error_type") or TOOL_ERROR
        return failure_in_object(outer | {"message": message or held, "type": kind})
    return None


def _is_an_error(held: Mapping[str, Any]) -> bool:
    error = held.get("error")
    told = isinstance(error, str | Mapping) and bool(error)
    flagged = error is True and isinstance(held.get("message"), str)
    return (told or flagged) and all(
        re.sub(r"[-_.\s]+", "", key[:100]).lower() in _OF_AN_ERROR for key in held
    )
