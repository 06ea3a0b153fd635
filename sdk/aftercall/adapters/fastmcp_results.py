"""Tool results of MCP: made of outcomes, read as outcomes, held against deliverables, advised on.

A tool of a FastMCP server returns `outcome_result(outcome)`. Then type and metadata of an error
cross process borders: they are the structured content, and the text is for people and models.
"""

import json
from typing import Any

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp_types import ContentBlock, TextContent

from aftercall.adapters.results import McpResultReader
from aftercall.bounded import bounded_text
from aftercall.contracts import Deliverable, canonical
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models.base import WireModel
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import STATUS_KEY, Outcome, referral_of, typed_error_in_text
from aftercall.reflection import ReflectedResult
from aftercall.reflection.results import read_exception

META_KEY = "aftercall"
"""Under this key of a result's `_meta` stands what Aftercall did."""

_WRAPPINGS = (ToolError, ValidationError)
_BODY_ERROR = "_ToolBodyError"
"""FastMCP's own, around a validation error of a tool that has run."""
_MAX_FIRST_ERROR_CHARS = 500
_MAX_JSON_CHARS = 10_000_000
"""Longer text is not read as JSON: a result of that size is a document."""


class ToolResultReader(McpResultReader):
    """Failures are results with `isError` or with a typed error in them, and exceptions."""

    def read_exception(self, error: Exception) -> ExecutionError:
        """The error behind FastMCP's wrapping: the type and code are those of its cause.

        A text that is the JSON of a typed error is that error.
        Subclasses are no wrappings: they say more than what caused them. The cause's text is used
        only where the caller sees it too, so that what a server masks (`mask_error_details`) does
        not come back in a suggestion.
        """
        if isinstance(error, ToolError) and (typed := typed_error_in_text(str(error))):
            return typed
        cause = error.__cause__
        if type(cause).__name__ == _BODY_ERROR and cause is not None:
            cause = cause.__cause__
        if type(error) in _WRAPPINGS and isinstance(cause, Exception):
            shown, inner = str(error), str(cause)
            return read_exception(cause, message=inner if inner and inner in shown else shown)
        return read_exception(error)

    def is_outcome(self, result: object) -> bool:
        """False for a request for input (SEP-2322) and for results of extensions (tasks)."""
        return isinstance(result, ToolResult) and not isinstance(result, InputRequiredToolResult)


def outcome_result(outcome: Outcome[Any]) -> ToolResult:
    """An outcome as the result of a tool of a FastMCP server.

    A success is the result that returning its value makes, with its status in `_meta`. A failure
    is an error result; its structured content is `outcome.to_dict()`.
    """
    if outcome.error is not None:
        return ToolResult(
            content=_as_text(outcome.error), structured_content=outcome.to_dict(), is_error=True
        )
    value = outcome.value
    return ToolResult(
        content=[] if value is None else value,
        structured_content=value if isinstance(value, dict) else {"result": value},
        meta=None if outcome.status is None else {STATUS_KEY: outcome.status},
    )


def _as_text(error: ExecutionError) -> str:
    """A typed error in words: what it is, and what a referral says beside its message."""
    lines = [f"{error.type}: {error.message}"]
    referral = referral_of(error)
    if referral is not None:
        if referral.boundary_axes:
            lines.append(f"Mixes: {', '.join(referral.boundary_axes)}")
        if referral.observed_task_shape:
            lines.append(f"Task: {referral.observed_task_shape}")
        if referral.suggested_split:
            lines.append(f"Suggested split: {'; '.join(referral.suggested_split)}")
        if referral.evidence:
            lines.append(f"Evidence: {referral.evidence}")
    return "\n".join(lines)


def with_repair(result: ToolResult, reflected: ReflectedResult[ToolResult]) -> ToolResult:
    """The retried call's result, with the repair in its meta."""
    followed, first = reflected.followed, reflected.attempts[0].error
    facts: JsonObject = {
        "repaired": True,
        "note": reflected.note,
        "attempts": len(reflected.attempts),
        "confidence": followed.confidence if followed else None,
        "suggestionId": followed.suggestion_id if followed else None,
        "action": followed.action if followed else None,
        "evidence": _dumped(followed.evidence) if followed else None,
        "lesson": followed.lesson if followed else None,
        "changes": [_dumped(change) for change in reflected.attempts[-1].changes],
        "firstError": bounded_text(first.message, _MAX_FIRST_ERROR_CHARS) if first else None,
        "timeToRepairMs": reflected.time_to_repair_ms,
    }
    return _rebuilt(result, list(result.content), facts, is_error=result.is_error)


def with_advice(
    result: ToolResult,
    reflected: ReflectedResult[ToolResult],
    violation: ExecutionError | None = None,
) -> ToolResult:
    """The tool's own content, then a text block with what it breaks, and one with the suggestions.

    Both are in the meta too.
    """
    texts = [] if violation is None else [f"{violation.type}: {violation.message}"]
    facts: JsonObject = {} if violation is None else {"violation": dict(violation.details)}
    if reflected.advice:
        texts.append(reflected.advice)
        facts |= {
            "repaired": False,
            "note": reflected.note,
            "attempts": len(reflected.attempts),
            "suggestions": [_dumped(suggestion) for suggestion in reflected.suggestions],
        }
    blocks = [TextContent(type="text", text=text) for text in texts]
    is_error = result.is_error or violation is not None
    return _rebuilt(result, [*result.content, *blocks], facts, is_error=is_error)


def _rebuilt(
    result: ToolResult, content: list[ContentBlock], facts: JsonObject, *, is_error: bool
) -> ToolResult:
    # Built anew: a copy would keep the upstream's raw result, which is sent in its place.
    return ToolResult(
        content=content,
        structured_content=result.structured_content,
        meta={**(result.meta or {}), META_KEY: facts},
        is_error=is_error,
    )


def _dumped(model: WireModel) -> JsonValue:
    dumped: JsonObject = model.model_dump(mode="json", by_alias=True)
    return dumped


def delivered(result: ToolResult, wanted: Deliverable) -> object:
    """The value that a result delivers: the structured content, or else the JSON in its text.

    What FastMCP itself put into `{"result": ...}` is taken out. Text that is no JSON, or where a
    string is asked for, is a string. Several text blocks of JSON are an array where one is asked
    for, as servers without structured content give each item a block. None without any text.
    """
    structured = result.structured_content
    if structured is not None:
        return structured["result"] if _is_wrapped(result) else structured
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    if not texts:
        return None
    if wanted.expected_type != "string":
        values = [_json(text) for text in texts]
        if len(values) > 1 and wanted.expected_type == "array":
            lists = [value for value in values if isinstance(value, list)]
            if len(lists) == 1:
                return lists[0]
            if all(isinstance(value, dict | list) for value in values):
                return values
        for value in values:
            is_scalar = value is not None and not isinstance(value, str)
            is_asked = len(texts) == 1 and wanted.expected_type is not None and is_scalar
            if isinstance(value, dict | list) or is_asked:
                return value
    return "\n".join(texts)


def in_canonical_shape(result: ToolResult, wanted: Deliverable) -> ToolResult | None:
    """The result with what it delivers in its canonical shape; None when that changes nothing.

    Structured content stays an object. Text is written anew only where it is the same JSON.
    """
    value = delivered(result, wanted)
    shaped = canonical(value, wanted)
    if shaped is value:
        return None
    if result.structured_content is not None and (
        not isinstance(shaped, dict) or value is not result.structured_content
    ):
        return None
    content = [_rewritten(block, value, shaped) for block in result.content]
    if result.structured_content is None and content == result.content:
        return None
    return ToolResult(
        content=content,
        structured_content=None if result.structured_content is None else shaped,
        meta=result.meta,
        is_error=result.is_error,
    )


def _rewritten(block: ContentBlock, value: object, shaped: object) -> ContentBlock:
    if not isinstance(block, TextContent) or _json(block.text) != value:
        return block
    return block.model_copy(update={"text": json.dumps(shaped, ensure_ascii=False)})


def _is_wrapped(result: ToolResult) -> bool:
    """FastMCP marks what it wrapped, since structured content was an object up to 2025-11-25."""
    mark: Any = (result.meta or {}).get("fastmcp")
    structured: JsonObject = result.structured_content or {}
    return (
        isinstance(mark, dict)
        and mark.get("wrap_result") is True
        and list(structured) == ["result"]
    )


def _json(text: str) -> Any:
    """The JSON value of a text; None when it is none."""
    if len(text) > _MAX_JSON_CHARS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
