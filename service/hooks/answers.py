"""Writing an answer in a client's own form. Pure.

An answer has no form that the client would not follow: if an input cannot be changed before its
user sees and approves it, the change is advice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aftercall.json_values import JsonObject
from service.hooks.clients import Choice
from service.hooks.events import HookEvent, Payload, hold_all


@dataclass(frozen=True, slots=True, kw_only=True)
class EventAnswer:
    """The answer to an event; most events have none."""

    context: str = ""
    """The text for the model."""
    arguments: JsonObject | None = None
    """The call's other input: of this call before it is made, of a further one after it failed."""
    refusal: str = ""
    """Why the call is not made."""


def write_answer(event: HookEvent, outcome: EventAnswer) -> JsonObject:
    """Return the answer for the client; an empty object for no answer."""
    call = event.call
    filled: dict[str, object] = {
        "$context": outcome.context,
        "$reason": outcome.refusal,
        "$error": (call.error if call is not None else "") or "",
        "$tool": call.wire_name if call is not None else "",
        "$input": outcome.arguments,
    }
    if outcome.refusal:
        return _fill_choice(event.rule.refuse, event.view, filled)
    if outcome.arguments is not None:
        choices = event.rule.change if event.kind == "before" else event.rule.again
        return _fill_choice(choices, event.view, filled)
    return _fill_choice(event.rule.context, event.view, filled) if outcome.context else {}


def may_change(event: HookEvent) -> bool:
    """Return whether the user approves a changed input, or no approval is needed."""
    return any(hold_all(each.conditions, event.view) for each in event.rule.change)


def may_call_again(event: HookEvent) -> bool:
    """Return whether the client makes another call whose result replaces this one's."""
    return any(hold_all(each.conditions, event.view) for each in event.rule.again)


def _fill_choice(
    choices: Sequence[Choice], view: Payload, filled: Mapping[str, object]
) -> JsonObject:
    for each in choices:
        if hold_all(each.conditions, view):
            answer: JsonObject = _fill_value(each.answer, filled)
            return answer
    return {}


def _fill_value(value: Any, filled: Mapping[str, object]) -> Any:
    if isinstance(value, dict):
        return {key: _fill_value(each, filled) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    if value in filled:
        return filled[value]
    for place, text in filled.items():
        if isinstance(text, str) and place in value:
            return _fill_text(value, filled)
    return value


def _fill_text(value: str, filled: Mapping[str, object]) -> str:
    """Fill the places of a text once: a filled text is data, and is not searched for places."""
    parts: list[str] = []
    for word in value.split("$"):
        name = next((p for p in filled if f"${word}".startswith(p)), None) if parts else None
        parts.append(f"{filled[name]}{word[len(name) - 1 :]}" if name else word)
    return "".join(parts)
