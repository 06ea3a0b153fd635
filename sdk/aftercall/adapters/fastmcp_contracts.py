"""Deliverables and the results of MCP tools: what one delivers, and how a violation is told."""

import json
from typing import Any

from fastmcp.tools.base import ToolResult
from mcp_types import ContentBlock, TextContent

from aftercall.adapters.fastmcp_results import META_KEY
from aftercall.contracts import Deliverable, canonical
from aftercall.json_values import JsonObject
from aftercall.models.calls import ExecutionError

_MAX_JSON_CHARS = 10_000_000
"""Longer text is not read as JSON: a result of that size is a document."""


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
            if isinstance(value, dict | list) or (len(texts) == 1 and _is_asked(value, wanted)):
                return value
    return "\n".join(texts)


def with_violation(result: ToolResult, error: ExecutionError) -> ToolResult:
    """A failed result: the tool's own content first, then one text block with what it breaks."""
    told = TextContent(type="text", text=f"{error.type}: {error.message}")
    return ToolResult(
        content=[*result.content, told],
        structured_content=result.structured_content,
        meta={**(result.meta or {}), META_KEY: {"violation": dict(error.details)}},
        is_error=True,
    )


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


def _is_asked(value: object, wanted: Deliverable) -> bool:
    kind = wanted.expected_type
    return kind is not None and value is not None and not isinstance(value, str)


def _json(text: str) -> Any:
    """The JSON value of a text; None when it is none."""
    if len(text) > _MAX_JSON_CHARS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
