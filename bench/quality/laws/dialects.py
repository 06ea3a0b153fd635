"""What libraries say of a call that a schema refuses: the same complaints in many dialects.

Each dialect is written after the messages of a real library, without its code. Some report all
complaints, some the first one that they meet.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from bench.quality.laws.complaints import BOUNDS, Complaint, complaints_of, kind_of
from bench.quality.trial import Json


def _first(complaints: Sequence[Complaint], *order: str) -> Complaint:
    ranks = {rule: at for at, rule in enumerate(order)}
    return min(complaints, key=lambda each: ranks.get(each.rule, len(order)))


def _types(wanted: Any) -> list[str]:
    return wanted if isinstance(wanted, list) else [str(wanted)]


def _type(wanted: Any, names: Json) -> str:
    kind = next((each for each in _types(wanted) if each != "null"), "string")
    return str(names.get(kind, kind))


def _bound(complaint: Complaint) -> str:
    return f"{BOUNDS[complaint.rule]} {complaint.wanted}"


def jsonschema(_: str, complaints: Sequence[Complaint]) -> str:
    """Python's `jsonschema`, as MCP's Python SDK shows it."""
    said = "\n".join(dict.fromkeys(each.message for each in complaints))
    return f"Input validation error: {said}"


_PYDANTIC = {"integer": "int", "number": "float", "boolean": "bool", "array": "list",
             "object": "dict"}  # fmt: skip
_PYDANTIC_WORDS = {"integer": "integer", "number": "number", "boolean": "boolean",
                   "array": "list", "object": "dictionary"}  # fmt: skip


def _pydantic_words(each: Complaint) -> tuple[str, str]:
    if each.rule == "required":
        return "Field required", "missing"
    if each.rule == "additionalProperties":
        return "Extra inputs are not permitted", "extra_forbidden"
    if each.rule == "type":
        kind = _type(each.wanted, _PYDANTIC)
        return (f"Input should be a valid {_type(each.wanted, _PYDANTIC_WORDS)}",
                f"{kind}_type" if kind != "int" else "int_parsing")  # fmt: skip
    if each.rule == "enum":
        *most, last = map(repr, each.wanted)
        return f"Input should be {', '.join(most)} or {last}".replace("be  or", "be"), "enum"
    if each.rule == "pattern":
        return f"String should match pattern '{each.wanted}'", "string_pattern_mismatch"
    if each.rule == "format":
        return f"Input should be a valid {each.wanted}", f"{each.wanted}_parsing"
    words = {"<=": ("less than or equal to", "less_than_equal"), "<": ("less than", "less_than"),
             ">=": ("greater than or equal to", "greater_than_equal"),
             ">": ("greater than", "greater_than")}[BOUNDS[each.rule]]  # fmt: skip
    return f"Input should be {words[0]} {each.wanted}", words[1]


def pydantic(tool: str, complaints: Sequence[Complaint]) -> str:
    """Pydantic's text, as FastMCP shows it."""
    count = len(complaints)
    lines = [f"{count} validation error{'s' * (count > 1)} for {tool}Arguments"]
    for each in complaints:
        words, code = _pydantic_words(each)
        shown = repr(each.value)
        shown = shown if len(shown) <= 50 else f"{shown[:25]}...{shown[-24:]}"
        kind = type(each.value).__name__
        lines += [
            each.dotted,
            f"  {words} [type={code}, input_value={shown}, input_type={kind}]",
            f"    For further information visit https://errors.pydantic.dev/2.11/v/{code}",
        ]
    return "\n".join(lines)


def fastapi(_: str, complaints: Sequence[Complaint]) -> str:
    """The body of FastAPI's answer of 422."""
    detail = []
    for each in complaints:
        words, code = _pydantic_words(each)
        detail.append({"type": code, "loc": ["body", *each.path], "msg": words})
    return json.dumps({"detail": detail})


def zod(tool: str, complaints: Sequence[Complaint]) -> str:
    """Zod's issues as JSON, as MCP's TypeScript SDK shows them."""
    issues: list[Json] = []
    for each in complaints:
        path = list(each.path)
        if each.rule == "additionalProperties":
            issues.append({"code": "unrecognized_keys", "keys": [each.name], "path": path[:-1],
                           "message": f"Unrecognized key(s) in object: '{each.name}'"})  # fmt: skip
        elif each.rule in ("required", "type"):
            wanted = _type(each.wanted, {"integer": "number"})
            got = "undefined" if each.rule == "required" else kind_of(each.value)
            got = "number" if got == "integer" else got
            words = "Required" if each.rule == "required" else f"Expected {wanted}, received {got}"
            issues.append({"code": "invalid_type", "expected": wanted, "received": got,
                           "path": path, "message": words})  # fmt: skip
        elif each.rule == "enum":
            shown = " | ".join(f"'{value}'" for value in each.wanted)
            issues.append({"code": "invalid_enum_value", "options": each.wanted, "path": path,
                           "received": each.value, "message": f"Invalid enum value. Expected "
                           f"{shown}, received '{each.value}'"})  # fmt: skip
        elif each.rule in BOUNDS:
            is_high = "aximum" in each.rule
            code, key = ("too_big", "maximum") if is_high else ("too_small", "minimum")
            side = "less than or equal to" if is_high else "greater than or equal to"
            words = f"Number must be {side} {each.wanted}"
            issues.append({"code": code, key: each.wanted, "type": "number", "inclusive": True,
                           "path": path, "message": words})  # fmt: skip
        else:
            issues.append({"code": "invalid_string", "validation": each.rule, "path": path,
                           "message": "Invalid" if each.rule == "pattern" else
                           f"Invalid {each.wanted}"})  # fmt: skip
    shown = json.dumps(issues, indent=2)
    return f"MCP error -32602: Invalid arguments for tool {tool}: {shown}"


def ajv(_: str, complaints: Sequence[Complaint]) -> str:
    """Ajv 8 with `allErrors` and `errorsText`."""
    lines = []
    for each in complaints:
        place, holder = f"data{each.slashed}", "data" + "".join(f"/{key}" for key in each.above)
        if each.rule == "required":
            lines.append(f"{holder} must have required property '{each.name}'")
        elif each.rule == "additionalProperties":
            lines.append(f"{holder} must NOT have additional properties")
        elif each.rule == "type":
            lines.append(f"{place} must be {','.join(_types(each.wanted))}")
        elif each.rule == "enum":
            lines.append(f"{place} must be equal to one of the allowed values")
        elif each.rule in BOUNDS:
            lines.append(f"{place} must be {_bound(each)}")
        else:
            lines.append(f'{place} must match {each.rule} "{each.wanted}"')
    return ", ".join(dict.fromkeys(lines))


_DECODED = ("additionalProperties", "type", "enum", "required")
_SERDE = {"string": "a string", "integer": "i64", "number": "f64", "boolean": "a boolean",
          "array": "a sequence", "object": "a map"}  # fmt: skip


def serde(_: str, complaints: Sequence[Complaint]) -> str:
    """Serde with `serde_path_to_error`, as rmcp shows it; the first complaint alone."""
    each = _first(complaints, *_DECODED)
    place = each.indexed
    if each.rule == "additionalProperties":
        known = ", ".join(f"`{name}`" for name in each.wanted)
        words = f"{place}: unknown field `{each.name}`, expected one of {known}"
    elif each.rule == "required":
        holder = each.indexed.rpartition(".")[0]
        words = f"{holder}: missing field `{each.name}`".removeprefix(": ")
    elif each.rule == "type":
        shown = json.dumps(each.value)
        got = {"string": f"string {shown}", "array": "sequence", "object": "map", "null": "null",
               "boolean": f"boolean `{shown}`", "integer": f"integer `{shown}`",
               "number": f"floating point `{shown}`"}[kind_of(each.value)]  # fmt: skip
        words = f"{place}: invalid type: {got}, expected {_type(each.wanted, _SERDE)}"
    elif each.rule == "enum":
        known = ", ".join(f"`{value}`" for value in each.wanted)
        words = f"{place}: unknown variant `{each.value}`, expected one of {known}"
    elif each.rule in BOUNDS:
        words = f"{place}: invalid value: integer `{each.value}`, expected a value {_bound(each)}"
    else:
        words = f"{place}: input contains invalid characters"
    return f"failed to deserialize parameters: {words}"


_GO = {"integer": "int", "number": "float64", "boolean": "bool", "array": "[]interface {}",
       "object": "map[string]interface {}"}  # fmt: skip


def go_json(tool: str, complaints: Sequence[Complaint]) -> str:
    """Go's `encoding/json` with `DisallowUnknownFields` and go-playground's validator."""
    each = _first(complaints, *_DECODED)
    struct = f"{tool[:1].upper()}{tool[1:]}Args"
    field = each.name[:1].upper() + each.name[1:]
    if each.rule == "additionalProperties":
        return f'invalid arguments: json: unknown field "{each.name}"'
    if each.rule == "type":
        got = {"integer": "number", "boolean": "bool"}.get(kind_of(each.value), kind_of(each.value))
        place = ".".join(str(key) for key in each.path if isinstance(key, str))
        return (f"json: cannot unmarshal {got} into Go struct field {struct}.{place} of type "
                f"{_type(each.wanted, _GO)}")  # fmt: skip
    tags = {"required": "required", "enum": "oneof", "maximum": "max", "minimum": "min"}
    tag = tags.get(each.rule, str(each.wanted))
    return f"Key: '{struct}.{field}' Error:Field validation for '{field}' failed on the '{tag}' tag"


def go_jsonschema(_: str, complaints: Sequence[Complaint]) -> str:
    """Google's `jsonschema-go`, as MCP's Go SDK shows it; the first complaint alone."""
    each = _first(complaints, "type", "enum", "required")
    path = each.path if each.rule not in ("required", "additionalProperties") else each.above
    places, steps = [], ""
    for key in path:
        steps += "/items" if isinstance(key, int) else f"/properties/{key}"
        places.append(f"validating {steps}: ")
    if each.rule == "required":
        words = f'required: missing properties: ["{each.name}"]'
    elif each.rule == "additionalProperties":
        words = f'unexpected additional properties ["{each.name}"]'
    elif each.rule == "type":
        wanted = _type(each.wanted, {})
        words = f'type: {json.dumps(each.value)} has type "{kind_of(each.value)}", want "{wanted}"'
    elif each.rule == "enum":
        words = f"enum: {each.value} does not equal any of: [{' '.join(map(str, each.wanted))}]"
    elif each.rule in BOUNDS:
        side = "greater" if "aximum" in each.rule else "less"
        words = f"{each.rule}: {each.value}/1 is {side} than {float(each.wanted):f}"
    else:
        words = f"{each.rule}: {json.dumps(each.value)} does not match {json.dumps(each.wanted)}"
    return f'validating "arguments": validating root: {"".join(places)}{words}'


_DOTNET = {"string": "System.String", "integer": "System.Int32", "number": "System.Double",
           "boolean": "System.Boolean", "object": "Tools.Settings",
           "array": "System.Collections.Generic.List`1[System.String]"}  # fmt: skip


def dotnet(_: str, complaints: Sequence[Complaint]) -> str:
    """.NET's `System.Text.Json`, then data annotations; the first complaint alone."""
    each = _first(complaints, *_DECODED)
    if each.rule == "additionalProperties":
        return (f"The JSON property '{each.name}' could not be mapped to any .NET member contained "
                "in type 'Tools.Arguments'.")  # fmt: skip
    if each.rule == "required":
        return ("JSON deserialization for type 'Tools.Arguments' was missing required properties "
                f"including: '{each.name}'.")  # fmt: skip
    if each.rule in BOUNDS:
        words = f"The field {each.name} must be {_bound(each)}."
        return json.dumps({"title": "One or more validation errors occurred.", "status": 400,
                           "errors": {each.indexed: [words]}})  # fmt: skip
    kind = "Tools.Choice" if each.rule != "type" else _type(each.wanted, _DOTNET)
    return (f"The JSON value could not be converted to {kind}. KeyPath: $.{each.indexed} | "
            "LineNumber: 0 | BytePositionInLine: 41.")  # fmt: skip


_JAVA = {"string": "java.lang.String", "integer": "int", "number": "double", "boolean": "boolean",
         "array": "java.util.ArrayList<java.lang.Object>"}  # fmt: skip


def jackson(tool: str, complaints: Sequence[Complaint]) -> str:
    """Jackson on Java records; the first complaint alone."""
    each = _first(complaints, *_DECODED)
    of = f"com.acme.tools.{tool[:1].upper()}{tool[1:]}Request"
    chain = "->".join(
        f"java.util.ArrayList[{key}]" if isinstance(key, int) else f'{of}["{key}"]'
        for key in each.path
    )
    at = f" at [Source: UNKNOWN; byte offset: #UNKNOWN] (through reference chain: {chain})"
    if each.rule == "additionalProperties":
        known = ", ".join(f'"{name}"' for name in each.wanted)
        return (f'Unrecognized field "{each.name}" (class {of}), not marked as ignorable '
                f"({len(each.wanted)} known properties: {known}])\n{at}")  # fmt: skip
    if each.rule == "required":
        return f"Missing required creator property '{each.name}' (index 0)\n{at}"
    if each.rule == "enum":
        listed = ", ".join(map(str, each.wanted))
        return (f'Cannot deserialize value of type `{of}$Choice` from String "{each.value}": not '
                f"one of the values accepted for Enum class: [{listed}]\n{at}")  # fmt: skip
    if each.rule == "type":
        token = {"string": "String", "array": "Array", "object": "Object", "integer": "Integer",
                 "number": "Floating-point", "boolean": "Boolean"}  # fmt: skip
        got = token.get(kind_of(each.value), "Null")
        return (
            f"Cannot deserialize value of type `{_type(each.wanted, _JAVA)}` from {got} value\n{at}"
        )
    limits = {"<=": "less than or equal to", ">=": "greater than or equal to"}
    side = limits.get(BOUNDS.get(each.rule, ""))
    words = f"must be {side} {each.wanted}" if side else f'must match "{each.wanted}"'
    return json.dumps({"title": "Constraint Violation", "status": 400,
                       "violations": [{"field": each.indexed, "message": words}]})  # fmt: skip


def networknt(tool: str, complaints: Sequence[Complaint]) -> str:
    """The networknt validator, as MCP's Java SDK shows it."""
    lines = []
    for each in complaints:
        holder = "".join(f"/{key}" for key in each.above)
        if each.rule == "required":
            lines.append(f"{holder}: required property '{each.name}' not found")
        elif each.rule == "additionalProperties":
            lines.append(f"{holder}: property '{each.name}' is not defined in the schema and the "
                         "schema does not allow additional properties")  # fmt: skip
        elif each.rule == "type":
            wanted = ", ".join(_types(each.wanted))
            lines.append(f"{each.slashed}: {kind_of(each.value)} found, {wanted} expected")
        elif each.rule == "enum":
            listed = json.dumps(each.wanted)
            lines.append(f"{each.slashed}: does not have a value in the enumeration {listed}")
        elif each.rule in BOUNDS:
            lines.append(f"{each.slashed}: must have a {each.rule} value of {each.wanted}")
        else:
            lines.append(f"{each.slashed}: does not match the {each.rule} {each.wanted}")
    said = ", ".join(dict.fromkeys(lines))
    return (f"Tool ({tool}) input validation failed: Validation failed: JSON schema validation "
            f"errors: [{said}]")  # fmt: skip


_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool",
           "array": "list", "object": "dict"}  # fmt: skip


def python(tool: str, complaints: Sequence[Complaint]) -> str:
    """A Python function that checks its arguments by hand; the first complaint alone."""
    each = _first(complaints, "additionalProperties", "required", "type", "enum")
    if each.rule == "additionalProperties":
        return f"TypeError: {tool}() got an unexpected keyword argument '{each.name}'"
    if each.rule == "required":
        return f"TypeError: {tool}() missing 1 required positional argument: '{each.name}'"
    if each.rule == "type":
        wanted, got = _type(each.wanted, _PYTHON), type(each.value).__name__
        return f"TypeError: {each.indexed} must be {wanted}, not {got}"
    if each.rule == "enum":
        return f"ValueError: {each.indexed} must be one of {each.wanted!r}, got {each.value!r}"
    if each.rule in BOUNDS:
        return f"ValueError: {each.indexed} must be {_bound(each)}, got {each.value!r}"
    return f"ValueError: {each.indexed}: {each.value!r} does not match {each.wanted!r}"


Dialect = Callable[[str, Sequence[Complaint]], str]
DIALECTS: dict[str, Dialect] = {
    "jsonschema": jsonschema, "pydantic": pydantic, "fastapi": fastapi, "zod": zod, "ajv": ajv,
    "serde": serde, "go json": go_json, "go jsonschema": go_jsonschema, ".net": dotnet,
    "jackson": jackson, "networknt": networknt, "python": python,
}  # fmt: skip


def error_in(dialect: str, tool: str, complaints: Sequence[Complaint]) -> Json:
    """Return the error of a refused call in the words of a library."""
    return {"type": "ToolError", "message": DIALECTS[dialect](tool, complaints)}


def refusal(dialect: str, tool: str, schema: Json, call: Json) -> Json | None:
    """Return the error about a call; None where the schema takes it, or refuses it unclearly."""
    complaints = complaints_of(schema, call)
    return error_in(dialect, tool, complaints) if complaints else None
