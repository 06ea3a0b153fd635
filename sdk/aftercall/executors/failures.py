"""How running a tool ends when it does not succeed.

ToolFailedError            the tool failed; `ran` is False when it was rejected before it ran
├── ToolRefusedError           this machine did not run it: not allowed, not there, no way to run it
└── ContractViolationError     (contracts) it returned, but not what its deliverable asks for
"""

from aftercall.json_values import JsonObject, clean_text, make_json_value
from aftercall.models.calls import ExecutionError
from aftercall.outcomes import ToolFailedError

__all__ = [
    "ToolFailedError",
    "ToolRefusedError",
    "last_chars",
    "rejected",
    "timed_out",
    "tool_error",
]

MAX_MESSAGE_CHARS = 8_000
"""Of an error's message that is kept; its end, where command lines say what went wrong."""


class ToolRefusedError(ToolFailedError):
    """This machine did not run the tool, which says nothing about the tool; see the message."""

    def __init__(self, message: str) -> None:
        super().__init__(tool_error("ToolRefused", message), ran=False)


def tool_error(
    kind: str, message: str, *, code: str | int | None = None, details: JsonObject | None = None
) -> ExecutionError:
    """An error in the words of the wire, cut to its bounds and clean."""
    cleaned = make_json_value(details or {})
    return ExecutionError(
        type=clean_text(kind)[:256] or "Error",
        message=clean_text(last_chars(message, MAX_MESSAGE_CHARS)),
        code=None if code is None else clean_text(str(code))[:256],
        details=cleaned if isinstance(cleaned, dict) else {},
    )


def last_chars(text: str, most: int) -> str:
    """The last `most` characters; the first of them is an ellipsis when something was cut off."""
    return text if len(text) <= most else "…" + text[-(most - 1) :]


def rejected(message: str, *, kind: str = "InvalidInput") -> ToolFailedError:
    """The input does not fit the tool; it was not run."""
    return ToolFailedError(tool_error(kind, message), ran=False)


def timed_out(timeout_s: float, what: str) -> ToolFailedError:
    """No result in time; whatever it did until then is done."""
    return ToolFailedError(tool_error("Timeout", f"no result within {timeout_s:g} s; {what}"))
