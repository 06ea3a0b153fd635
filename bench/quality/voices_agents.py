"""More servers' voices, for the kinds of `kinds_agents`: by a hash half of them are kept.

Each is written after the messages of a real library or the prose of a server, without its code.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.quality.voices import Voice, first, json_kind, rules
from bench.quality.voices import kinds as kinds_in


def half(name: str) -> bool:
    """Whether something is of the half that is kept."""
    return hashlib.sha256(f"agents/{name}".encode()).digest()[0] % 2 == 0


def kinds(of: Any) -> str:
    """The types that a schema states; what else it states is no type."""
    listed = of if isinstance(of, list) else [of]
    is_types = all(isinstance(each, str) for each in listed)
    return kinds_in(of) if is_types else "valid value"


_ORDER = ("required", "additionalProperties", "type", "enum")


def zod(tool: str, errors: Sequence[Any]) -> str:
    """The TypeScript SDK of MCP: zod's issues as JSON."""
    issues = []
    for rule, name, error in rules(errors):
        path = [] if rule == "additionalProperties" else name.split(".")
        if rule == "additionalProperties":
            issues.append({"code": "unrecognized_keys", "keys": [name], "path": path,
                           "message": f'Unrecognized key: "{name}"'})  # fmt: skip
        elif rule == "enum":
            values = "|".join(json.dumps(each) for each in error.validator_value)
            issues.append({"code": "invalid_value", "values": error.validator_value, "path": path,
                           "message": f"Invalid option: expected one of {values}"})  # fmt: skip
        else:
            got = "undefined" if rule == "required" else json_kind(error.instance)
            wanted = _wanted(name, error) if rule == "required" else kinds(error.validator_value)
            message = f"Invalid input: expected {wanted}, received {got}"
            issues.append({"code": "invalid_type", "expected": wanted, "path": path,
                           "message": message})  # fmt: skip
    shown = json.dumps(issues, indent=2)
    return f"MCP error -32602: Input validation error: Invalid arguments for tool {tool}: {shown}"


def _wanted(name: str, error: Any) -> str:
    return kinds(error.schema.get("properties", {}).get(name, {}).get("type", "string"))


def pydantic(tool: str, errors: Sequence[Any]) -> str:
    """The Python SDK of MCP: pydantic's text."""
    found = list(rules(errors))
    told = [f"{len(found)} validation error{'s' * (len(found) > 1)} for {tool}Arguments"]
    for rule, name, error in found:
        of = {"integer": "integer", "number": "number", "boolean": "boolean", "array": "list",
              "object": "dictionary"}.get(kinds(error.validator_value), "string")  # fmt: skip
        what = {"required": ("Field required", "missing"), "additionalProperties":
                ("Unexpected keyword argument", "unexpected_keyword_argument")}.get(
            rule, (f"Input should be a valid {of}", f"{of}_type"))  # fmt: skip
        if rule == "enum":
            values = " or ".join(map(repr, error.validator_value))
            what = (f"Input should be {values}", "literal_error")
        shown = repr(error.instance)[:50]
        told.append(f"{name}\n  {what[0]} [type={what[1]}, input_value={shown}, "
                    f"input_type={type(error.instance).__name__}]")  # fmt: skip
    return "\n".join(told)


def python(tool: str, errors: Sequence[Any]) -> str:
    """A function that was called with keywords."""
    rule, name, error = first(errors, ("additionalProperties", "required", "type", "enum"))
    if rule == "additionalProperties":
        return f"TypeError: {tool}() got an unexpected keyword argument '{name}'"
    if rule == "required":
        return f"TypeError: {tool}() missing 1 required positional argument: '{name}'"
    return f"ValueError: {name}: {error.instance!r}"[:200]


def go_validator(tool: str, errors: Sequence[Any]) -> str:
    """Go's `validator` with the names of fields in a struct; unknown names are passed over."""
    told = []
    for rule, name, error in rules(errors):
        field = "".join(word[:1].upper() + word[1:] for word in name.replace(".", "_").split("_"))
        tag = {"required": "required", "enum": "oneof"}.get(rule)
        if tag:
            told.append(f"Key: 'Args.{field}' Error:Field validation for '{field}' failed on the "
                        f"'{tag}' tag")  # fmt: skip
        elif rule == "type":
            told.append(f"json: cannot unmarshal {json_kind(error.instance)} into Go struct field "
                        f"Args.{name} of type {kinds(error.validator_value)}")  # fmt: skip
    return "\n".join(told[:2]) or f"{tool}: invalid request"


def spring(_: str, errors: Sequence[Any]) -> str:
    """Spring's problem details (RFC 9457) with a list of what is wrong."""
    says = {"required": "must not be null", "additionalProperties": "unknown property"}
    told = [
        {"name": name, "reason": says.get(rule, f"must be a {kinds(error.validator_value)}"
                                          if rule == "type" else "invalid value")}
        for rule, name, error in rules(errors)
    ]  # fmt: skip
    return json.dumps({"type": "about:blank", "title": "Bad Request", "status": 400,
                       "detail": "Invalid request content.", "invalid-params": told})  # fmt: skip


def grpc_violations(_: str, errors: Sequence[Any]) -> str:
    """GRPC's BadRequest with violations of fields."""
    says = {"required": "field is required", "additionalProperties": "unknown field"}
    told = "; ".join(f"{name}: {says.get(rule, 'bad value')}" for rule, name, _ in rules(errors))
    return f"rpc error: code = InvalidArgument desc = request validation failed: {told}"


def graphql_variable(tool: str, errors: Sequence[Any]) -> str:
    """GraphQL of a variable that cannot be coerced."""
    rule, name, error = first(errors, _ORDER)
    of = f"{tool[:1].upper()}{tool[1:]}Input!"
    what = {"required": f'Field "{name}" of required type "String!" was not provided.',
            "additionalProperties": f'Field "{name}" is not defined by type "{of[:-1]}".'}.get(
        rule, f'Expected type "{kinds(error.validator_value).title()}".')  # fmt: skip
    return f'Variable "$input" got invalid value at "input.{name}"; {what}'


def superstruct(_: str, errors: Sequence[Any]) -> str:
    """Superstruct's first failure."""
    rule, name, error = first(errors, ("type", "required", "enum", "additionalProperties"))
    if rule == "additionalProperties":
        return f"At path: {name} -- Expected a value of type `never`"
    wanted = _wanted(name, error) if rule == "required" else kinds(error.validator_value)
    got = "undefined" if rule == "required" else json.dumps(error.instance)[:60]
    wanted = "one of " + json.dumps(error.validator_value) if rule == "enum" else f"a {wanted}"
    return f"At path: {name} -- Expected {wanted}, but received: {got}"


def serde_path(_: str, errors: Sequence[Any]) -> str:
    """Rust's `serde_path_to_error`."""
    rule, name, error = first(errors, ("additionalProperties", "type", "enum", "required"))
    if rule == "additionalProperties":
        known = ", ".join(f"`{each}`" for each in error.schema["properties"])
        return f"{name}: unknown field `{name}`, expected one of {known} at line 1 column 24"
    if rule == "required":
        return f"missing field `{name}` at line 1 column 60"
    if rule == "enum":
        known = ", ".join(f"`{each}`" for each in error.validator_value)
        return f"{name}: unknown variant `{error.instance}`, expected one of {known}"
    wanted = {"integer": "i64", "number": "f64", "array": "a sequence"}.get(
        kinds(error.validator_value), "a string")  # fmt: skip
    return f"{name}: invalid type: {json_kind(error.instance)}, expected {wanted} at line 1"


def german(_: str, errors: Sequence[Any]) -> str:
    """A server that speaks German."""
    says = {"required": "Pflichtfeld '{}' fehlt.", "additionalProperties":
            "Unbekannter Parameter '{}'.", "enum": "Ungültiger Wert für '{}'."}  # fmt: skip
    told = (
        says.get(rule, "Falscher Typ von '{}'.").format(name) for rule, name, _ in rules(errors)
    )
    return f"Ungültige Anfrage: {' '.join(told)}"


def chinese(_: str, errors: Sequence[Any]) -> str:
    """A server that speaks Chinese, of the first fault."""
    rule, name, _error = first(errors, _ORDER)
    says = {"required": "缺少必填参数: {}", "additionalProperties": "未知参数: {}"}
    return "参数错误: " + says.get(rule, "参数 {} 类型不正确").format(name)


def friendly(tool: str, errors: Sequence[Any]) -> str:
    """Prose that means well."""
    rule, name, error = first(errors, _ORDER)
    says = {
        "required": f"I couldn't find `{name}` in your request, and I need it.",
        "additionalProperties": f"I don't know what to do with `{name}`.",
        "enum": f"`{name}` can't be {error.instance!r}.",
    }
    said = says.get(rule, f"`{name}` looks wrong: I expected {kinds(error.validator_value)}.")
    return f"Sorry, {tool} could not run. {said} Please check the documentation and try again."


def terse(_: str, errors: Sequence[Any]) -> str:
    """A code, and the name of what is wrong at most."""
    rule, name, _error = first(errors, _ORDER)
    return f"E_{rule.upper()}: {name}"


def http_only(_: str, errors: Sequence[Any]) -> str:
    """The status of an HTTP answer."""
    return ("HTTP 422 Unprocessable Entity", "Request failed with status code 400")[len(errors) % 2]


VOICES: Mapping[str, Voice] = {
    "zod": zod, "pydantic": pydantic, "python": python, "go validator": go_validator,
    "spring": spring, "grpc violations": grpc_violations, "graphql variable": graphql_variable,
    "superstruct": superstruct, "serde path": serde_path, "german": german, "chinese": chinese,
    "friendly": friendly, "terse": terse, "http only": http_only,
}  # fmt: skip
