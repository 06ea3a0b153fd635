"""A third set of servers' voices, for the kinds of `kinds_fresh`.

Each is written after the messages of a real library or framework, without its code.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.quality.voices import Voice, first, json_kind, rules
from bench.quality.voices_agents import kinds

_ORDER = ("required", "additionalProperties", "type", "enum")


def _wanted(error: Any) -> str:
    return kinds(error.validator_value)


def ajv(_: str, errors: Sequence[Any]) -> str:
    """Ajv's errors as JSON."""
    told = []
    for rule, name, error in rules(errors):
        place = "/" + "/".join(map(str, error.absolute_path)) if error.absolute_path else ""
        says = {
            "required": ({"missingProperty": name}, f"must have required property '{name}'"),
            "additionalProperties": ({"additionalProperty": name},
                                     "must NOT have additional properties"),
            "enum": ({"allowedValues": error.validator_value},
                     "must be equal to one of the allowed values"),
        }.get(rule, ({"type": _wanted(error)}, f"must be {_wanted(error)}"))  # fmt: skip
        told.append({"instancePath": place, "keyword": rule, "params": says[0], "message": says[1]})
    return f"Invalid arguments: {json.dumps(told)}"


def langchain(tool: str, errors: Sequence[Any]) -> str:
    """LangGraph's words around what pydantic says."""
    found = list(rules(errors))
    told = [f"Error invoking tool '{tool}' with error:", f"{len(found)} validation errors"]
    for rule, name, error in found:
        says = {"required": "Field required", "additionalProperties": "Extra inputs are not"
                " permitted"}.get(rule, f"Input should be a valid {_wanted(error)}")  # fmt: skip
        told.append(f" {name}: {says}")
    return "\n".join([*told, " Please fix the error and try again."])


def pydantic_1(tool: str, errors: Sequence[Any]) -> str:
    """Pydantic before its second version."""
    found = list(rules(errors))
    told = [f"{len(found)} validation error{'s' * (len(found) > 1)} for {tool.title()}Input"]
    for rule, name, error in found:
        says = {"required": "field required (type=value_error.missing)", "additionalProperties":
                "extra fields not permitted (type=value_error.extra)"}.get(
            rule, f"value is not a valid {_wanted(error)} (type=type_error.{_wanted(error)})"
        )  # fmt: skip
        told.append(f"{name.replace('.', ' -> ')}\n  {says}")
    return "\n".join(told)


def kotlin(_: str, errors: Sequence[Any]) -> str:
    """Kotlin's serialization; stops at the first."""
    rule, name, error = first(errors, ("additionalProperties", "type", "required", "enum"))
    if rule == "additionalProperties":
        return (f"Unexpected JSON token at offset 12: Encountered an unknown key '{name}' at path: "
                "$. Use 'ignoreUnknownKeys = true'")  # fmt: skip
    if rule == "required":
        return f"Field '{name}' is required for type with serial name 'Args', but it was missing"
    return f"Unexpected JSON token at offset 31: {json_kind(error.instance)} at path: $.{name}"


def php(tool: str, errors: Sequence[Any]) -> str:
    """PHP with named arguments; the first."""
    rule, name, error = first(errors, ("additionalProperties", "required", "type", "enum"))
    if rule == "additionalProperties":
        return f"Uncaught Error: Unknown named parameter ${name}"
    if rule == "required":
        return f"ArgumentCountError: {tool}(): Argument ${name} not passed"
    return (f"TypeError: {tool}(): Argument ${name} must be of type {_wanted(error)}, "
            f"{json_kind(error.instance)} given")  # fmt: skip


def openapi(_: str, errors: Sequence[Any]) -> str:
    """A gateway that holds requests against an OpenAPI document."""
    rule, name, error = first(errors, _ORDER)
    says = {"required": f"missing required property '{name}'", "additionalProperties":
            f"property '{name}' is not defined and additionalProperties is false"}.get(
        rule, f"property '{name}' expected {_wanted(error)}, got {json_kind(error.instance)}"
    )  # fmt: skip
    return f"400 Request body does not match schema: {says}"


def click(tool: str, errors: Sequence[Any]) -> str:
    """A command line's parser; the first."""
    rule, name, error = first(errors, ("additionalProperties", "type", "enum", "required"))
    option = f"--{name.replace('_', '-')}"
    says = {"additionalProperties": f"No such option: {option}", "required":
            f"Missing option '{option}'."}.get(
        rule, f"Invalid value for '{option}': {json.dumps(error.instance)[:60]} is not a valid "
        f"{_wanted(error)}.")  # fmt: skip
    return f"Usage: {tool} [OPTIONS]\nTry '{tool} --help' for help.\n\nError: {says}"


def elixir(_: str, errors: Sequence[Any]) -> str:
    """Ecto's changeset, which knows no unknown names."""
    told = [
        f'{name}: {{"can\'t be blank", [validation: :required]}}' if rule == "required"
        else f'{name}: {{"is invalid", [type: :{_wanted(error)}, validation: :cast]}}'
        for rule, name, error in rules(errors)
        if rule != "additionalProperties"
    ]  # fmt: skip
    return f"#Ecto.Changeset<action: :insert, errors: [{', '.join(told)}], valid?: false>"


def prose(tool: str, errors: Sequence[Any]) -> str:
    """One sentence of all of it."""
    told = [
        {"required": f"{name} was not given", "additionalProperties":
         f"{name} is not something that {tool} knows"}.get(rule, f"{name} makes no sense to me")
        for rule, name, _ in rules(errors)
    ]  # fmt: skip
    return f"The call to {tool} was rejected because {' and '.join(told)}."


def spanish(_: str, errors: Sequence[Any]) -> str:
    """A server that speaks Spanish."""
    says = {"required": "El parámetro '{}' es obligatorio.", "additionalProperties":
            "Parámetro desconocido: '{}'."}  # fmt: skip
    told = [says.get(rule, "Tipo inválido para '{}'.").format(name) for rule, name, _ in
            rules(errors)]  # fmt: skip
    return f"Error de validación. {' '.join(told)}"


def silent(_: str, errors: Sequence[Any]) -> str:
    """Something went wrong."""
    return ("Tool execution failed", "invalid_request_error", "Bad input.")[len(errors) % 3]


VOICES: Mapping[str, Voice] = {
    "ajv": ajv, "langchain": langchain, "pydantic 1": pydantic_1, "kotlin": kotlin, "php": php,
    "openapi": openapi, "click": click, "elixir": elixir, "prose": prose, "spanish": spanish,
    "silent": silent,
}  # fmt: skip
