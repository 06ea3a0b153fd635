"""Payloads, read: the tool, its arguments, or what is wrong with them. Nothing here raises."""

import json
import re
from collections.abc import Mapping
from typing import NoReturn

from aftercall.bounded import bounded_text
from aftercall.events.model import PAYLOAD_PARSE_ERROR, PAYLOAD_TOO_LARGE
from aftercall.harmony.items import HarmonyCall, HarmonyResult
from aftercall.harmony.markup import Header, tool_name
from aftercall.json_values import JsonObject, JsonValue, check_json_object, check_text

PREVIEW_CHARS = 200
"""Of a payload that a call carries: what its hash is made of (seed 001)."""

_MAX_MESSAGE_CHARS = 300
_MAX_KEY_CHARS = 60

_TOOL_FIRST = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.){1,256}")')


class _PayloadError(ValueError):
    """The payload is not that of a call; the message says why."""


def read_call(
    header: Header, payload: str, *, text_tools: Mapping[str, str], doubtful: bool
) -> HarmonyCall:
    """A call, with its arguments or with `tool_payload_parse_error`.

    Args:
        header: of the message.
        payload: all of it.
        text_tools: recipients whose payload is text and no JSON, with the argument that takes it.
        doubtful: see `HarmonyCall`.
    """
    try:
        tool, arguments = _tool_and_arguments(header, payload, text_tools)
    except (ValueError, RecursionError) as error:
        problem = "is nested too deeply" if isinstance(error, RecursionError) else _words(error)
        return failed_call(header, payload, f"the payload {problem}", doubtful=doubtful)
    return HarmonyCall(
        tool=tool,
        recipient=header.recipient,
        channel=header.channel,
        arguments=arguments,
        payload=payload[:PREVIEW_CHARS],
        doubtful=doubtful,
    )


def failed_call(
    header: Header,
    payload: str,
    message: str,
    *,
    doubtful: bool,
    error_type: str = PAYLOAD_PARSE_ERROR,
) -> HarmonyCall:
    """A call that cannot be made. Its tool is told where header or payload begin with it."""
    return HarmonyCall(
        tool=_name_at_start(header, payload),
        recipient=header.recipient,
        channel=header.channel,
        error_type=error_type,
        message=bounded_text(message, _MAX_MESSAGE_CHARS),
        payload=payload[:PREVIEW_CHARS],
        doubtful=doubtful,
    )


def oversized_call(header: Header, payload: str, max_bytes: int, *, doubtful: bool) -> HarmonyCall:
    """A call whose payload goes on after the limit; `payload` is what stands before it."""
    message = f"the payload is larger than {max_bytes} bytes; send less, or in several calls"
    return failed_call(header, payload, message, doubtful=doubtful, error_type=PAYLOAD_TOO_LARGE)


def read_result(header: Header, text: str, *, truncated: bool = False) -> HarmonyResult:
    """What a tool answered; the tool is the role that speaks."""
    recipient = None if header.role == "tool" else header.role
    return HarmonyResult(
        tool=recipient and tool_name(recipient),
        text=text,
        truncated=truncated,
        recipient=recipient,
        channel=header.channel or "commentary",
    )


def _tool_and_arguments(
    header: Header, payload: str, text_tools: Mapping[str, str]
) -> tuple[str, JsonObject]:
    if header.recipient is None:
        return _pseudo_call(payload)
    name = tool_name(header.recipient)
    if name is None:
        raise _PayloadError("is addressed to a tool without a name")
    if not header.complete and not payload.strip():
        raise _PayloadError("never came: the message broke off before it")
    if header.recipient in text_tools:
        return name, {text_tools[header.recipient]: check_text(payload)}
    # A function without parameters is often called with nothing at all.
    return name, _arguments(_loads(payload)) if payload.strip() else {}


def _pseudo_call(payload: str) -> tuple[str, JsonObject]:
    value = _loads(payload)
    if not isinstance(value, dict):
        raise _PayloadError('is no object; write {"tool": NAME, "arguments": {...}}')
    tool = value.get("tool")
    name = tool_name(tool) if isinstance(tool, str) else None
    if name is None:
        raise _PayloadError('names no tool; write {"tool": NAME, "arguments": {...}}')
    return name, _arguments(value.get("arguments", {}))


def _arguments(value: object) -> JsonObject:
    """An object; also one that was encoded twice, as the Chat API has it in `arguments`."""
    if isinstance(value, str):
        value = _loads(value)
    if not isinstance(value, dict):
        raise _PayloadError("has arguments that are no object; write them as {NAME: VALUE}")
    return check_json_object(value)


def _loads(text: str) -> JsonValue:
    value: JsonValue = json.loads(
        text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant
    )
    return value


def _without_duplicates(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Of a key that stands twice nobody knows which value was meant."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _PayloadError(f"has the key {bounded_text(key, _MAX_KEY_CHARS)!r} twice")
            seen.add(key)
    return made


def _no_constant(name: str) -> NoReturn:
    raise _PayloadError(f"holds {name}, which is not JSON; write null or a finite number")


def _words(error: ValueError) -> str:
    if isinstance(error, _PayloadError):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg} at character {error.pos}"
    return f"cannot be taken: {error}"  # such as a number of thousands of digits


def _name_at_start(header: Header, payload: str) -> str | None:
    if header.recipient is not None:
        return tool_name(header.recipient)
    found = _TOOL_FIRST.match(payload)
    try:
        return tool_name(json.loads(found[1])) if found else None
    except ValueError:
        return None
