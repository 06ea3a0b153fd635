"""Calls as text: what was sent, what came back, what a repair changed. Bounded and visible. Pure.

Callers pass executions that went through the redactor; nothing here masks, and nothing here makes
markup: a page shows these texts as they are.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from aftercall.json_patch import Operation, diff
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.models import Execution

MAX_PARAMETERS = 4_000
"""Characters of a call's parameters as JSON; of more, the first are shown."""

MAX_ERROR = 2_000
MAX_CONTEXT = 1_000
MAX_CHANGES = 20
"""Operations of one repair that are listed."""

_MAX_VALUE = 120
"""Characters of a value in a line that says what changed."""

_LAYOUT = frozenset("\n\t")
_READ = 20
"""Times the limit that is looked at: what is beyond can hardly become visible within it."""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One execution as a page shows it. All texts are bounded, and all their characters visible."""

    execution_id: str
    at: datetime
    agent: str
    agent_name: str
    """As calls give it, for a link."""
    version: str | None
    attempt: int
    duration_ms: float
    parameters: str
    """Indented JSON, or a sentence where nobody saw them."""
    error: str | None
    """`type (code): message`; None of a success."""
    context: str | None
    followed_suggestion: bool


def shown_call(execution: Execution) -> ShownCall:
    """An execution as text."""
    return ShownCall(
        execution_id=execution.execution_id,
        at=execution.timestamp,
        agent=one_line(execution.agent, 256),
        agent_name=execution.agent,
        version=None if execution.tool_version is None else visible(execution.tool_version, 256),
        attempt=execution.attempt,
        duration_ms=execution.duration_ms,
        parameters=_parameters(execution),
        error=_error(execution),
        context=visible(execution.context, MAX_CONTEXT) if execution.context else None,
        followed_suggestion=execution.suggestion_id is not None,
    )


def visible(text: str, limit: int) -> str:
    r"""A text of at most `limit` characters, in which whatever cannot be seen stands as an escape.

    Changes of direction and zero-width characters can make a text read as another one, so they are
    told (`\u202e`) instead of being drawn. Line ends and tabs stay.
    """
    text = text[: _READ * limit].replace("\r\n", "\n")
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_shown, text))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def one_line(text: str, limit: int) -> str:
    """The same, with every run of white space as one blank."""
    return visible(" ".join(text[: _READ * limit].split()), limit)


def as_json(value: JsonValue, limit: int) -> str:
    """A value as indented JSON, at most `limit` characters, as `visible`."""
    return visible(json.dumps(value, indent=2, ensure_ascii=False), limit)


def changes_between(failed: JsonObject, mended: JsonObject) -> list[str]:
    """What a repair changed, as JSON Patch operations (RFC 6902), one line each.

    `replace /topK: 50 -> 10`, `add /page: 1`, `remove /tz (was "CET")`. Empty where nothing was.
    """
    operations = diff(failed, mended)
    lines = [_line(each) for each in operations[:MAX_CHANGES]]
    left = len(operations) - len(lines)
    return [*lines, f"and {left} more"] if left else lines


def patch_of(failed: JsonObject, mended: JsonObject) -> str:
    """The same as a JSON Patch document, for a tool that applies one."""
    return as_json([_operation(each) for each in diff(failed, mended)], MAX_PARAMETERS)


def _parameters(execution: Execution) -> str:
    if not execution.parameters_known:
        return "Whoever told of the call did not see its parameters."
    return as_json(execution.parameters, MAX_PARAMETERS)


def _error(execution: Execution) -> str | None:
    error = execution.error
    if error is None:
        return None
    code = f" ({error.code})" if error.code else ""
    return visible(f"{error.type}{code}: {error.message}", MAX_ERROR)


def _shown(char: str) -> str:
    if char.isprintable() or char in _LAYOUT:
        return char
    return char.encode("unicode_escape").decode()


def _line(operation: Operation) -> str:
    path = one_line(operation.path, _MAX_VALUE)
    match operation.op:
        case "add":
            return f"add {path}: {_value(operation.value)}"
        case "remove":
            return f"remove {path} (was {_value(operation.before)})"
        case "replace":
            return f"replace {path}: {_value(operation.before)} -> {_value(operation.value)}"


def _value(value: JsonValue) -> str:
    return one_line(canonical_json(value), _MAX_VALUE)


def _operation(operation: Operation) -> JsonObject:
    return dict(_fields(operation))


def _fields(operation: Operation) -> Iterator[tuple[str, JsonValue]]:
    yield "op", operation.op
    yield "path", operation.path
    if operation.op != "remove":
        yield "value", operation.value
