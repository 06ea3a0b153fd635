"""How servers in many languages say what is wrong with a call: all of it, the first, or nothing.

Each voice is written after the messages of a real library, without its code. Half of the voices are
kept for the final table, and nothing is developed on them.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.quality.trial import Json

Voice = Callable[[str, Sequence[Any]], str]


def _names(error: Any) -> list[str]:
    """The parameters that an error of `jsonschema` is about."""
    if error.validator == "required":
        found = re.match(r"'(.*)' is a required property", error.message)
        return [found[1]] if found else []
    if error.validator == "additionalProperties":
        return [name for name in error.instance if name not in error.schema["properties"]]
    return [".".join(map(str, error.absolute_path)) or "input"]


def rules(errors: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
    """The rule, the name and the error of all that is wrong."""
    for error in errors:
        for name in _names(error):
            yield str(error.validator), name, error


def first(errors: Sequence[Any], order: Sequence[str]) -> tuple[str, str, Any]:
    """Of all that is wrong what a validator meets first."""
    ranked = sorted(rules(errors), key=lambda each: order.index(each[0]) if each[0] in order else 9)
    return ranked[0]


def kinds(of: Any) -> str:
    return "/".join(of) if isinstance(of, list) else str(of)


def json_kind(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return names.get(type(value), "null" if value is None else "object")


_DECODED = ("additionalProperties", "type", "required")
_CHECKED = ("required", "type", "additionalProperties")


def go(tool: str, errors: Sequence[Any]) -> str:
    """`encoding/json` with `DisallowUnknownFields`, then a check by hand; stops at the first."""
    rule, name, error = first(errors, _DECODED)
    if rule == "additionalProperties":
        return f'invalid arguments: json: unknown field "{name}"'
    if rule == "type":
        of = {"integer": "int", "number": "float64", "boolean": "bool", "array": "[]string"}
        kind = of.get(kinds(error.validator_value), "string")
        struct = f"{tool[:1].upper()}{tool[1:]}Args"
        return (f"json: cannot unmarshal {json_kind(error.instance)} into Go struct field "
                f"{struct}.{name} of type {kind}")  # fmt: skip
    return f"missing required field: {name}" if rule == "required" else f"invalid {name}"


def joi(_: str, errors: Sequence[Any]) -> str:
    """Joi 17 with `abortEarly`."""
    rule, name, error = first(errors, _CHECKED)
    says = {"required": "is required", "additionalProperties": "is not allowed"}
    if rule == "type":
        wanted = kinds(error.validator_value)
        return f'ValidationError: "{name}" must be {"an" if wanted[0] in "aio" else "a"} {wanted}'
    return f'ValidationError: "{name}" {says.get(rule, "is not valid")}'


def jackson(tool: str, errors: Sequence[Any]) -> str:
    """Jackson on a Java record; stops at the first."""
    rule, name, error = first(errors, _DECODED)
    of = f"com.acme.tools.{tool[:1].upper()}{tool[1:]}Request"
    if rule == "additionalProperties":
        known = ", ".join(f'"{each}"' for each in error.schema["properties"])
        return (f'Unrecognized field "{name}" (class {of}), not marked as ignorable '
                f"({len(error.schema['properties'])} known properties: {known}])")  # fmt: skip
    if rule == "type":
        kind = {"integer": "int", "number": "double"}.get(kinds(error.validator_value), "String")
        return (f"Cannot deserialize value of type `{kind}` from {json_kind(error.instance)} value"
                f' (through reference chain: {of}["{name}"])')  # fmt: skip
    return f"Missing required creator property '{name}' (index 0)"


def laravel(_: str, errors: Sequence[Any]) -> str:
    """Laravel's validator, which tells of every field and none that it does not know."""
    told: dict[str, list[str]] = {}
    for rule, name, error in rules(errors):
        words = name.replace("_", " ")
        if rule == "required":
            told.setdefault(name, []).append(f"The {words} field is required.")
        elif rule == "type":
            kind = kinds(error.validator_value)
            told.setdefault(name, []).append(f"The {words} field must be a {kind}.")
    return json.dumps({"message": "The given data was invalid.", "errors": told})


def fastapi(_: str, errors: Sequence[Any]) -> str:
    """FastAPI's answer of 422."""
    told = []
    for rule, name, error in rules(errors):
        kind = {"integer": "int", "number": "float", "boolean": "bool", "array": "list"}
        of = kind.get(kinds(error.validator_value), "string")
        code, words = {
            "required": ("missing", "Field required"),
            "additionalProperties": ("extra_forbidden", "Extra inputs are not permitted"),
        }.get(rule, (f"{of}_parsing", f"Input should be a valid {of}"))
        told.append({"type": code, "loc": ["body", *name.split(".")], "msg": words})
    return json.dumps({"detail": told})


def by_hand(_: str, errors: Sequence[Any]) -> str:
    """A server's own check of what it needs, one after the other."""
    rule, name, error = first(errors, _CHECKED)
    if rule == "required":
        return f"Error: {name} is required"
    return f"Error: {name} must be a {kinds(error.validator_value)}" if rule == "type" else (
        f"Error: unexpected argument {name}"
    )  # fmt: skip


def nothing(_: str, errors: Sequence[Any]) -> str:
    """That it was refused, and no more."""
    return ("Bad Request", "400 Bad Request: invalid arguments")[len(errors) % 2]


def a_count(tool: str, errors: Sequence[Any]) -> str:
    """How much is wrong, and not what."""
    return f"Input validation failed for tool {tool}: {len(errors)} error(s)"


KNOWN: tuple[Voice, ...] = (go, joi, jackson, laravel, fastapi, by_hand, nothing, a_count)


def serde(_: str, errors: Sequence[Any]) -> str:
    """Rust's serde with `deny_unknown_fields`; a wrong type has no name."""
    rule, name, error = first(errors, _DECODED)
    if rule == "additionalProperties":
        known = ", ".join(f"`{each}`" for each in error.schema["properties"])
        return f"failed to deserialize parameters: unknown field `{name}`, expected one of {known}"
    if rule == "type":
        kind = {"integer": "i64", "number": "f64", "boolean": "a boolean", "array": "a sequence"}
        shown = json.dumps(error.instance)[:40]
        wanted = kind.get(kinds(error.validator_value), "a string")
        return f"invalid type: {json_kind(error.instance)} {shown}, expected {wanted}"
    return f"failed to deserialize parameters: missing field `{name}`"


def rails(_: str, errors: Sequence[Any]) -> str:
    """Rails' strong parameters and validations; stops at the first."""
    rule, name, _error = first(errors, _CHECKED)
    if rule == "required":
        return f"ActionController::ParameterMissing: param is missing or the value is empty: {name}"
    if rule == "additionalProperties":
        return f"found unpermitted parameter: :{name}"
    return f"Validation failed: {name.replace('_', ' ').capitalize()} is not a number"


def aspnet(_: str, errors: Sequence[Any]) -> str:
    """ASP.NET's problem details, with the fields in capitals."""
    told = {
        name[:1].upper() + name[1:]: [
            f"The {name} field is required." if rule == "required"
            else f"The JSON value could not be converted to {kinds(error.validator_value)}."
        ]
        for rule, name, error in rules(errors)
        if rule != "additionalProperties"
    }  # fmt: skip
    title = "One or more validation errors occurred."
    return json.dumps({"title": title, "status": 400, "errors": told})


def class_validator(_: str, errors: Sequence[Any]) -> str:
    """Nest's pipe: every complaint in a list."""
    says = {"additionalProperties": "property {} should not exist", "required": "{} should not be "
            "empty"}  # fmt: skip
    told = [
        says[rule].format(name) if rule in says else f"{name} must be a {kinds(e.validator_value)}"
        for rule, name, e in rules(errors)
    ]
    return json.dumps({"statusCode": 400, "message": told, "error": "Bad Request"})


def marshmallow(_: str, errors: Sequence[Any]) -> str:
    """Marshmallow's dictionary of messages, as Python prints it."""
    says = {"additionalProperties": "Unknown field.", "required": "Missing data for required field"}
    told = {name: [says.get(rule, f"Not a valid {kinds(error.validator_value)}.")]
            for rule, name, error in rules(errors)}  # fmt: skip
    return str(told)


def graphql(tool: str, errors: Sequence[Any]) -> str:
    """GraphQL's check of an input; the first of all."""
    rule, name, error = first(errors, _CHECKED)
    of = f"{tool[:1].upper()}{tool[1:]}Input"
    if rule == "required":
        return f'Field "{of}.{name}" of required type "String!" was not provided.'
    if rule == "additionalProperties":
        return f'Field "{name}" is not defined by type "{of}".'
    wanted = kinds(error.validator_value).title()
    return f"{wanted} cannot represent value: {json.dumps(error.instance)[:60]}"


def grpc(_: str, errors: Sequence[Any]) -> str:
    """A gateway before gRPC: the first unknown name, else nothing that says anything."""
    rule, name, _error = first(errors, _DECODED)
    if rule == "additionalProperties":
        return (f'INVALID_ARGUMENT: Invalid JSON payload received. Unknown name "{name}": '
                "Cannot find field.")  # fmt: skip
    return "INVALID_ARGUMENT: Request contains an invalid argument."


def usage(tool: str, errors: Sequence[Any]) -> str:
    """A command's usage, with what it needs and nothing of what was wrong."""
    properties = errors[0].schema.get("properties", {}) if errors else {}
    needed = errors[0].schema.get("required", ()) if errors else ()
    words = [f"<{name}>" if name in needed else f"[{name}]" for name in properties]
    return f"usage: {tool} {' '.join(words)}\nerror: invalid arguments"


KEPT: tuple[Voice, ...] = (
    serde, rails, aspnet, class_validator, marshmallow, graphql, grpc, usage
)  # fmt: skip
"""For the final table only."""


def said(voice: Voice, tool: str, errors: Sequence[Any]) -> Json:
    """An error as the service is asked about it."""
    return {"type": "ToolError", "message": voice(tool, errors)}
