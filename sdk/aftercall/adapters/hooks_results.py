"""Results as a gateway's hooks see them: MCP's, as mappings or as models of any library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aftercall.bounded import bounded_json, bounded_text
from aftercall.json_values import JsonValue
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import error_in_result, status_in_result
from aftercall.reflection.results import OutcomeReader

_MAX_MESSAGE_CHARS = 8000


class HookResultReader(OutcomeReader):
    """Failures are results of MCP tools with `isError`, typed outcomes, and exceptions."""

    def read_failure(self, result: object) -> ExecutionError | None:
        """The error that a result tells of: the typed error, or else its text as it is."""
        seen = _mcp_result(result)
        if seen is None:
            return super().read_failure(result)
        typed = error_in_result(seen.structured, seen.texts, is_error=seen.is_error)
        if typed is not None or not seen.is_error:
            return typed
        message = bounded_text("\n".join(seen.texts), _MAX_MESSAGE_CHARS)
        return ExecutionError(type="ToolError", message=message)

    def read_status(self, result: object) -> str | None:
        """The tool's own word for its success."""
        seen = _mcp_result(result)
        if seen is None:
            return super().read_status(result)
        return status_in_result(seen.structured, seen.meta)

    def summarise(self, result: object) -> JsonValue:
        """The structured content, or else the text; other blocks by their kind only."""
        seen = _mcp_result(result)
        if seen is None:
            return super().summarise(result)
        if seen.structured is not None:
            return bounded_json(seen.structured)
        return bounded_json(seen.shown[0] if len(seen.shown) == 1 else seen.shown)


@dataclass(frozen=True, slots=True)
class _McpResult:
    is_error: bool
    texts: Sequence[str]
    shown: Sequence[str]
    structured: object
    meta: Mapping[str, object] | None


def _mcp_result(result: object) -> _McpResult | None:
    """The parts of an MCP result; None for what is none, which is told by its `content` blocks."""
    blocks = _member(result, "content")
    if not isinstance(blocks, list) or not all(
        isinstance(_member(block, "type"), str) for block in blocks
    ):
        return None
    is_text = [_member(block, "type") == "text" for block in blocks]
    shown = [
        str(_member(block, "text") if text else f"<{_member(block, 'type')}>")
        for block, text in zip(blocks, is_text, strict=True)
    ]
    meta = _member(result, "_meta", "meta")
    return _McpResult(
        is_error=_member(result, "isError", "is_error") is True,
        texts=[each for each, text in zip(shown, is_text, strict=True) if text],
        shown=shown,
        structured=_member(result, "structuredContent", "structured_content"),
        meta=meta if isinstance(meta, Mapping) else None,
    )


def _member(value: object, *names: str) -> object:
    for name in names:
        try:
            found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        except Exception:  # noqa: BLE001  # a foreign property may raise anything
            return None
        if found is not None:
            return found
    return None
