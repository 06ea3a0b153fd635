"""What is embedded of a call, a failure or a lesson: short texts in one form.

Question and document share the form, so one embedding of a failed call finds both its like
successes and its like failures.
"""

import heapq
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue

MAX_TEXT = 1200
"""Characters embedded: about the 256 tokens that all-MiniLM-L6-v2 reads."""
_MAX_VALUE = 60
_MAX_PARAMETERS = 100
"""The first by name; no more than these fit into the text anyway."""


def call_text(tool_name: str, parameters: JsonObject, context: str | None) -> str:
    """A call, for nearness to other calls: tool, intent, parameters."""
    first = heapq.nsmallest(_MAX_PARAMETERS, parameters)
    shown = "; ".join(f"{_clip(name, _MAX_VALUE)}: {_short(parameters[name])}" for name in first)
    intent = f" for {_clip(context, 200)}" if context else ""
    return _clip(f"{tool_name}{intent} with {shown or 'no parameters'}", MAX_TEXT)


def failure_text(tool_name: str | None, signature: str) -> str:
    """A kind of failure: tool and signature."""
    return _clip(f"{tool_name + ' ' if tool_name else ''}failed: {signature}", MAX_TEXT)


def question_text(
    tool_name: str, parameters: JsonObject, context: str | None, signature: str
) -> str:
    """A failed call, for nearness to successes and to failures alike."""
    call = _clip(call_text(tool_name, parameters, context), MAX_TEXT - 420)
    return f"{call} failed: {_clip(signature, 400)}"


def _short(value: JsonValue) -> str:
    if isinstance(value, str):
        return _clip(value, _MAX_VALUE)
    if isinstance(value, dict):
        return "{" + ", ".join(_clip(key, _MAX_VALUE) for key in islice(value, 8)) + "}"
    if isinstance(value, list):
        inside = _clip(", ".join(_short(item) for item in value[:3]), 3 * _MAX_VALUE)
        return f"[{inside}{', ...' if len(value) > 3 else ''}]"
    return str(value)


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length]
