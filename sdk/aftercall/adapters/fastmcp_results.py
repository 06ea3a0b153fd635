"""Tool results of MCP: made of outcomes, read as outcomes, and telling a repair or advice.

A tool of a FastMCP server returns `outcome_result(outcome)`. Then type and metadata of an error
cross process borders: they are the structured content, and the text is for people and models.
"""

from typing import Any

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp_types import ContentBlock, TextContent

from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models.base import WireModel
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import (
    STATUS_KEY,
    Outcome,
    error_in_result,
    referral_of,
    status_in_result,
    typed_error_in_text,
)
from aftercall.reflection.results import ReflectedResult, read_exception

META_KEY = "aftercall"
"""Under this key of a result's `_meta` stands what Aftercall did."""

_WRAPPINGS = (ToolError, ValidationError)
_BODY_ERROR = "_ToolBodyError"
"""FastMCP's own, around a validation error of a tool that has run."""
_MAX_MESSAGE_CHARS = 8000
_MAX_FIRST_ERROR_CHARS = 500


class ToolResultReader:
    """Failures are results with `isError` or with a typed error in them, and exceptions."""

    def read_failure(self, result: ToolResult) -> ExecutionError | None:
        """The error in a result: the typed error, or else its text blocks as they are."""
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        typed = error_in_result(result.structured_content, texts, is_error=result.is_error)
        if typed is not None or not result.is_error:
            return typed
        message = bounded_text("\n".join(texts), _MAX_MESSAGE_CHARS)
        return ExecutionError(type="ToolError", message=message)

    def read_status(self, result: ToolResult) -> str | None:
        """The tool's own word for its success."""
        return status_in_result(result.structured_content, result.meta)

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

    def is_outcome(self, result: ToolResult) -> bool:
        """False for a request for input (SEP-2322) and for results of extensions (tasks)."""
        # An extension's interceptor may return what is no ToolResult, whatever the signature says.
        return isinstance(result, ToolResult) and not isinstance(result, InputRequiredToolResult)

    def summarise(self, result: ToolResult) -> JsonValue:
        """The structured content, or else the text; other blocks by their kind only."""
        if result.structured_content is not None:
            return bounded_json(result.structured_content)
        shown = [_summary(block) for block in result.content]
        return bounded_json(shown[0] if len(shown) == 1 else shown)


def outcome_result(outcome: Outcome[Any]) -> ToolResult:
    """An outcome as the result of a tool of a FastMCP server.

    A success is the result that returning its value makes, with its status in `_meta`. A failure
    is an error result; its structured content is `outcome.to_dict()`.
    """
    if outcome.error is not None:
        return ToolResult(
            content=_told(outcome.error), structured_content=outcome.to_dict(), is_error=True
        )
    value = outcome.value
    return ToolResult(
        content=[] if value is None else value,
        structured_content=value if isinstance(value, dict) else {"result": value},
        meta=None if outcome.status is None else {STATUS_KEY: outcome.status},
    )


def with_repair(result: ToolResult, reflected: ReflectedResult[ToolResult]) -> ToolResult:
    """The retried call's result, with the repair told in its meta."""
    followed, first = reflected.followed, reflected.attempts[0].error
    told: JsonObject = {
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
    return _rebuilt(result, result.content, told)


def with_advice(result: ToolResult, reflected: ReflectedResult[ToolResult]) -> ToolResult:
    """The tool's own error, then one text block with the suggestions, which are in the meta too."""
    told: JsonObject = {
        "repaired": False,
        "note": reflected.note,
        "attempts": len(reflected.attempts),
        "suggestions": [_dumped(suggestion) for suggestion in reflected.suggestions],
    }
    advice = TextContent(type="text", text=reflected.advice)
    return _rebuilt(result, [*result.content, advice], told)


def _told(error: ExecutionError) -> str:
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


def _rebuilt(result: ToolResult, content: list[ContentBlock], told: JsonObject) -> ToolResult:
    # Built anew: a copy would keep the upstream's raw result, which is sent in its place.
    return ToolResult(
        content=content,
        structured_content=result.structured_content,
        meta={**(result.meta or {}), META_KEY: told},
        is_error=result.is_error,
    )


def _dumped(model: WireModel) -> JsonValue:
    dumped: JsonObject = model.model_dump(mode="json", by_alias=True)
    return dumped


def _summary(block: ContentBlock) -> JsonValue:
    return block.text if isinstance(block, TextContent) else f"<{block.type}>"
