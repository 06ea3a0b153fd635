"""What is asked on *Try it*: a form's texts, or a pasted call, become the wire's question. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from pydantic import ValidationError

from aftercall.json_values import JsonObject
from aftercall.models import FailedCall, SuggestRequest
from aftercall.redaction import Redactor
from service.bodies import TooDeep, parse_json
from service.errors import ProblemError, safe_message
from service.explain import Fault as WireFault
from service.explain import faults_of

MAX_CHARS: Final = 50_000
"""Characters of one field: enough for a whole call, and so few that all fields together, each
character escaped, fit into one message of a page (`service.server`)."""

ASKER: Final = "dashboard"
"""The agent of a question that names none."""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of the form, as they were typed."""

    tool: str = ""
    server: str = ""
    parameters: str = ""
    message: str = ""
    error_type: str = ""
    error_code: str = ""
    context: str = ""
    agent: str = ""


FORM_FIELDS: Final = tuple(each.name for each in fields(Form))

PASTED: Final = "pasted"
"""The one field of a call that is pasted whole."""

_FIELD_OF: Final = {
    "toolName": "tool",
    "serverName": "server",
    "parameters": "parameters",
    "error.message": "message",
    "error.type": "error_type",
    "error.code": "error_code",
    "context": "context",
    "agent": "agent",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field, in words that name the cure."""

    field: str
    message: str


Faults = tuple[Fault, ...]


def from_form(form: Form) -> SuggestRequest | Faults:
    """The question that the form asks, or what is wrong with it, field by field."""
    faults = [*_too_long((name, getattr(form, name)) for name in FORM_FIELDS)]
    if not form.tool.strip():
        faults.append(Fault("tool", "is empty; name the tool that was called"))
    if not form.message.strip():
        faults.append(Fault("message", "is empty; write what the tool said when it failed"))
    parameters = {} if faults else _parameters(form.parameters)
    if isinstance(parameters, Fault):
        faults.append(parameters)
    if faults:
        return tuple(faults)
    error = {"message": form.message} | _given(type=form.error_type, code=form.error_code)
    call = {
        "agent": form.agent.strip() or ASKER,
        "toolName": form.tool.strip(),
        "parameters": parameters,
        "error": error,
    } | _given(serverName=form.server, context=form.context)
    try:
        return SuggestRequest(execution=FailedCall.model_validate(call))
    except ValidationError as error_found:
        found = faults_of(error_found, FailedCall)
        return tuple(
            Fault(_FIELD_OF.get(each.path, _outermost(each)), safe_message(each.problem))
            for each in found
        )


def from_pasted(text: str) -> SuggestRequest | Faults:
    """The question in a pasted JSON text: a body of `/suggest`, or a failed call by itself."""
    if faults := tuple(_too_long([(PASTED, text)])):
        return faults
    if not text.strip():
        return (Fault(PASTED, "is empty; paste a failed call as JSON"),)
    value = _parsed(PASTED, text)
    if isinstance(value, Fault):
        return (value,)
    if not isinstance(value, dict):
        return (Fault(PASTED, "must be one JSON object: a failed call, or a body of `/suggest`"),)
    if "execution" not in value and value.get("outcome") == "success":
        return (Fault(PASTED, "is a call that succeeded; paste one that failed"),)
    model = SuggestRequest if "execution" in value else FailedCall
    try:
        read = model.model_validate(value)
    except ValidationError as error:
        sentences = (each.sentence for each in faults_of(error, model))
        return tuple(Fault(PASTED, safe_message(each)) for each in sentences)
    return read if isinstance(read, SuggestRequest) else SuggestRequest(execution=read)


def form_of(call: FailedCall) -> Form:
    """A failed call in the form's fields."""
    return Form(
        tool=call.tool_name,
        server=call.server_name or "",
        parameters=json.dumps(call.parameters, indent=2, ensure_ascii=False),
        message=call.error.message,
        error_type=call.error.type,
        error_code=call.error.code or "",
        context=call.context or "",
        agent=call.agent,
    )


def body_of(request: SuggestRequest, redactor: Redactor) -> str:
    """The body of `POST /suggest` that asks the same, secrets masked, as JSON text."""
    shown = request.model_copy(update={"execution": redactor.call(request.execution)})
    body = shown.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps(body, indent=2, ensure_ascii=False)


def _outermost(fault: WireFault) -> str:
    """The form's field for a fault deeper down, such as `error.details.x`."""
    return _FIELD_OF.get(fault.path.split(".")[0], "message")


def _given(**texts: str) -> dict[str, str]:
    return {name: text.strip() for name, text in texts.items() if text.strip()}


def _too_long(texts: Iterable[tuple[str, str]]) -> Iterable[Fault]:
    for name, text in texts:
        if len(text) > MAX_CHARS:
            yield Fault(
                name,
                f"is longer than {MAX_CHARS:,} characters, more than a page takes; "
                "send it to POST /suggest instead",
            )


def _parameters(text: str) -> JsonObject | Fault:
    if not text.strip():
        return {}
    value = _parsed("parameters", text)
    if isinstance(value, (Fault, dict)):
        return value
    return Fault("parameters", 'must be a JSON object, such as {"topK": 50}')


def _parsed(name: str, text: str) -> object:
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"))
    except ProblemError as error:
        return Fault(name, safe_message(error.message))
    return Fault(name, value.message) if isinstance(value, TooDeep) else value
