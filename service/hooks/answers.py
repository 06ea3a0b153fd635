"""Writing an answer in a client's own form. Pure.

Nothing is said in a form that the client would not follow: where an input cannot be changed before
the one who approves it sees it, the change is advice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aftercall.json_values import JsonObject
from service.hooks.clients import Choice
from service.hooks.events import HookEvent, Payload, hold_all


@dataclass(frozen=True, slots=True, kw_only=True)
class EventAnswer:
    """What there is to do about an event; nothing, as it is for most."""

    context: str = ""
    """What the model is shown."""
    arguments: JsonObject | None = None
    """The call's other input: of this call before it is made, of a further one after it failed."""
    refusal: str = ""
    """Why the call is not made."""


def write_answer(event: HookEvent, outcome: EventAnswer) -> JsonObject:
    """Return what the client gets; an empty object for nothing."""
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
    """Return whether an input that is changed now is what the user approves, or needs none."""
    return any(hold_all(each.conditions, event.view) for each in event.rule.change)


def may_call_again(event: HookEvent) -> bool:
    """Return whether the client makes another call whose result stands for this one's."""
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
    """Fill the places of a text once: what is put in is data, and is not looked into."""
    parts: list[str] = []
    for word in value.split("$"):
        name = next((p for p in filled if f"${word}".startswith(p)), None) if parts else None
        parts.append(f"{filled[name]}{word[len(name) - 1 :]}" if name else word)
    return "".join(parts)
