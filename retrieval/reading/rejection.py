"""Was the call refused before it ran? Only then may one that has effects be sent again.

Words alone prove little: a tool that has done its work may fail on checking what came back, in the
very phrases that refuse a call. So a message counts only

- when the protocol says it (JSON-RPC -32602, HTTP 429), or a framework's frame around its check of
  the arguments opens the message: only the code that calls the tool writes those; or
- when a validator's words open the message and every fault fits the call: the missing name is
  missing, the refused one is there, and where the message shows the input, it is the call's own;

and never when it speaks of an output, a response or a result.
"""

import re
from collections.abc import Sequence

from aftercall.json_values import JsonObject, JsonValue
from retrieval.reading.faults import Fault
from retrieval.reading.signature import strip_frames

_RAN = re.compile(
    r"\b(?:output|outputs|response|responses|result|results|returned|structured content)\b|"
    r"for \w*(?:Response|Result|Output|Reply)\b"
)
_ARGUMENT_CHECK = re.compile(
    # The Python and TypeScript SDKs of MCP, and FastMCP 2, before they call the function.
    r"MCP error -32602: |Input validation error: |Invalid arguments for tool |"
    r"\d+ validation errors? for (?:call\[[^\]\n]{1,256}\]|\w{0,256}Arguments)\n"
)
_FRAME = re.compile(r"(?:Error (?:executing|calling) tool [^\s:]{1,256}: |Error: )*")
_VALIDATOR = re.compile(
    r"\d+ validation errors? for \w|"  # pydantic
    r"[\w.]{1,200}\(\) (?:got an unexpected keyword argument|missing \d+ required) |"  # Python
    r"'[^'\n]{1,64}' is a required property|Additional properties are not allowed|"  # jsonschema
    r"[^\n]{1,200} is not of type '"
)
_REFUSING_CODES = frozenset({"-32602", "429"})
_SHOWN = 24
"""Characters compared of an input that a message shows; pydantic cuts it at 25."""


def is_rejected_before_run(
    code: str, message: str, faults: Sequence[Fault], parameters: JsonObject
) -> bool:
    """Whether the error proves that nothing happened yet.

    Args:
        code: the code the caller gave, or empty.
        message: what the tool said, bounded in length.
        faults: what was read from it, tied to the parameters.
        parameters: what was sent.
    """
    if _RAN.search(message):
        return False
    body = message.lstrip()
    frame = _FRAME.match(body)
    if code in _REFUSING_CODES or _ARGUMENT_CHECK.match(body, frame.end() if frame else 0):
        return True
    if code.isdecimal() or not _VALIDATOR.match(strip_frames(message)):
        return False
    return bool(faults) and all(_fits_call(fault, parameters) for fault in faults)


def _fits_call(fault: Fault, parameters: JsonObject) -> bool:
    if fault.parameter is None or fault.guessed_place:
        return False
    if fault.kind == "missing":
        if len(fault.path) > 1 or fault.parameter in parameters:
            return False
        return _is_start(fault.shown_input, parameters)
    if fault.parameter not in parameters:
        return False
    return len(fault.path) > 1 or _is_start(fault.shown_input, parameters[fault.parameter])


def _is_start(shown: str | None, value: JsonValue) -> bool:
    """Whether `shown`, cut by `...`, may be the `repr` of the value; True when nothing is shown."""
    if shown is None:
        return True
    said = shown.split("...")[0][:_SHOWN]
    return _start_of_repr(value, _SHOWN)[:_SHOWN].startswith(said)


def _start_of_repr(value: JsonValue, size: int) -> str:
    """At least the first `size` characters of `repr(value)`, whatever the size of the value."""
    if isinstance(value, str):
        text = repr(value[:size])
        return text if len(value) <= size else text[:-1]
    if not isinstance(value, dict | list):
        return repr(value)
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    text = opening
    for index, item in enumerate(value):
        if len(text) > size:
            return text
        text += ", " if index else ""
        if isinstance(value, dict):
            text += f"{item!r}: {_start_of_repr(value[str(item)], size)}"
        else:
            text += _start_of_repr(item, size)
    return text + closing
