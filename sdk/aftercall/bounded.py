"""What is recorded of calls, made clean and small enough: results, texts, names, executions."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from aftercall.json_values import JsonValue, clean_text, make_json_value
from aftercall.models import Execution

_LOGGER = logging.getLogger("aftercall")

MAX_RESULT_CHARS = 4000
"""Of a recorded result. A result shows what a success looks like; it is never played back."""

MAX_NAME_CHARS = 256
"""Of a name, as the models have it."""

_MAX_CONTEXT_CHARS = 4000
_NAMES = ("server_name", "tool_version", "session_id", "result_status")
_DEPTH = 20
_SCALAR_COST = 4


def bounded_json(value: object, *, max_chars: int = MAX_RESULT_CHARS) -> JsonValue:
    """A JSON value like `value` with at most about `max_chars` characters of text in it.

    Long texts end in an ellipsis; of long arrays and objects the first members are kept. The work
    is bounded like the outcome, whatever the size of `value`. Never raises.
    """
    return _cut(value, [max_chars], _DEPTH)


def bounded_text(text: str, max_chars: int) -> str:
    """Clean text of at most `max_chars` characters, the last being an ellipsis when cut."""
    return clean_text(str(text) if len(text) <= max_chars else text[: max_chars - 1] + "…")


def bounded_name(text: str | None) -> str | None:
    """A clean name of at most 256 characters; None when nothing is left of it."""
    return (clean_text(text).strip()[:MAX_NAME_CHARS] or None) if text else None


def execution_of(*, agent: str, tool_name: str, **fields: Any) -> Execution | None:
    """An execution of these fields, its names and context cut to what is recorded.

    Recording must not fail a call that worked: None when the fields make none, with a warning that
    names them and holds no values.
    """
    fields |= {name: bounded_name(fields[name]) for name in _NAMES if name in fields}
    fields["agent"] = bounded_name(agent) or "unknown"
    fields["tool_name"] = bounded_name(tool_name) or "unknown"
    if context := fields.get("context"):
        fields["context"] = bounded_text(context, _MAX_CONTEXT_CHARS)
    try:
        return Execution(**fields)
    except ValidationError as error:
        wrong = ", ".join(str(each["loc"]) for each in error.errors(include_input=False))
        _LOGGER.warning("a call of %s could not be recorded: %s", tool_name, wrong)
        return None


def _cut(value: object, budget: list[int], depth: int) -> JsonValue:
    try:
        if isinstance(value, str):
            return _spend(value, budget)
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            return _cut_container(value, budget, depth) if depth > 0 else _named(value, budget)
    # A foreign container, or a proxy of nothing, may raise anything.
    except Exception:  # noqa: BLE001
        return _named(value, budget)
    made = make_json_value(value)
    if isinstance(made, str):
        return _spend(made, budget)
    budget[0] -= _SCALAR_COST
    return made


def _cut_container(
    value: Mapping[Any, Any] | Iterable[Any], budget: list[int], depth: int
) -> JsonValue:
    if isinstance(value, Mapping):
        members: dict[str, JsonValue] = {}
        for key, item in value.items():
            if budget[0] <= 0:
                break
            name = _spend(key if isinstance(key, str) else str(make_json_value(key)), budget)
            members[name] = _cut(item, budget, depth - 1)
        return members
    items: list[JsonValue] = []
    for item in value:
        if budget[0] <= 0:
            break
        items.append(_cut(item, budget, depth - 1))
    return items


def _named(value: object, budget: list[int]) -> JsonValue:
    return _spend(f"<{type(value).__name__}>", budget)


def _spend(text: str, budget: list[int]) -> str:
    kept = bounded_text(text, max(budget[0], 1))
    budget[0] -= len(kept) + _SCALAR_COST
    return kept
