"""Typed outcomes inside results of MCP tools, without a library of MCP. Pure."""

from collections.abc import Mapping, Sequence

from aftercall.models.calls import ExecutionError
from aftercall.outcomes.outcome import Outcome
from aftercall.outcomes.typed_errors import typed_error, typed_error_in_text

STATUS_KEY = "aftercall/status"
"""Under this key of a result's `_meta` stands the tool's own word for its success."""

_WRAPPED = {"result"}
"""FastMCP puts what is no object under this one key, as MCP has structured content be an object."""


def error_in_result(
    structured: object, texts: Sequence[str], *, is_error: bool
) -> ExecutionError | None:
    """The typed error that a result carries: as structured content, or as a text that is its JSON.

    Args:
        structured: the structured content; None without.
        texts: the text blocks.
        is_error: whether the result says that it is an error. The text of one that does not is
            never read: a tool that reads files or pages may have found just such a text.
    """
    found = typed_error(unwrapped(structured), has_failed=is_error)
    if found is None and is_error:
        found = next((each for text in texts if (each := typed_error_in_text(text))), None)
    return found


def status_in_result(structured: object, meta: Mapping[str, object] | None) -> str | None:
    """The tool's own word for its success: in the result's `_meta`, or else its own `status`."""
    stated = (meta or {}).get(STATUS_KEY)
    return Outcome.coerce({"status": stated} if stated else unwrapped(structured)).status


def unwrapped(structured: object) -> object:
    """Structured content as the tool returned it."""
    if isinstance(structured, dict) and structured.keys() == _WRAPPED:
        return structured["result"]
    return structured
