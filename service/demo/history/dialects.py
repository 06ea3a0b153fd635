"""How servers word a refusal: five dialects, as validators and web services really speak.

Some say what would be right, some only what is wrong. Where the words do not help, only experience
does.
"""

import json
from typing import Protocol

from aftercall.json_values import JsonValue
from service.demo.history.faults import FaultKind, ToolFault

TYPE_WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


class Dialect(Protocol):
    """A server's way to word what its checks refuse; `tool` is the tool's name."""

    def unknown(self, tool: str, name: str) -> ToolFault:
        """There is no such parameter."""
        ...

    def missing(self, tool: str, name: str) -> ToolFault:
        """A required parameter was left out."""
        ...

    def wrong_type(self, tool: str, name: str, wanted: str, value: JsonValue) -> ToolFault:
        """`wanted` is a type of JSON Schema."""
        ...

    def out_of_range(
        self, tool: str, name: str, bound: float, value: JsonValue, *, is_upper: bool
    ) -> ToolFault:
        """The value lies above the upper bound, or below the lower one."""
        ...

    def not_a_choice(self, tool: str, name: str, choices: list[str], value: JsonValue) -> ToolFault:
        """The value is none of those listed."""
        ...

    def wrong_form(self, tool: str, name: str, form: str, value: JsonValue) -> ToolFault:
        """The text has another form than `form`, such as `YYYY-MM-DD`."""
        ...


class Pydantic:
    """`1 validation error for ...`, as servers in Python say."""

    def unknown(self, tool: str, name: str) -> ToolFault:
        """As `Dialect`; so are the others."""
        return self._fault(
            "unknown_parameter", tool, name,
            "Unexpected keyword argument [type=unexpected_keyword_argument]",
        )  # fmt: skip

    def missing(self, tool: str, name: str) -> ToolFault:
        """A required parameter was left out."""
        return self._fault(
            "missing_parameter", tool, name, "Missing required argument [type=missing_argument]"
        )

    def wrong_type(self, tool: str, name: str, wanted: str, value: JsonValue) -> ToolFault:
        """`wanted` is a type of JSON Schema."""
        word = TYPE_WORDS.get(wanted, "list")
        said = {
            "int": "Input should be a valid integer, unable to parse string as an integer",
            "float": "Input should be a valid number, unable to parse string as a number",
            "bool": "Input should be a valid boolean",
            "str": "Input should be a valid string",
            "list": "Input should be a valid list",
        }[word]
        return self._fault(
            "wrong_type", tool, name,
            f"{said} [type={word}_type, input_value={value!r}, input_type={type(value).__name__}]",
        )  # fmt: skip

    def out_of_range(
        self, tool: str, name: str, bound: float, value: JsonValue, *, is_upper: bool
    ) -> ToolFault:
        """The value lies above the upper bound, or below the lower one."""
        word, kind = ("less", "less_than_equal") if is_upper else ("greater", "greater_than_equal")
        return self._fault(
            "out_of_range", tool, name,
            f"Input should be {word} than or equal to {bound:g} "
            f"[type={kind}, input_value={value!r}, input_type={type(value).__name__}]",
        )  # fmt: skip

    def not_a_choice(self, tool: str, name: str, choices: list[str], value: JsonValue) -> ToolFault:
        """The value is none of those listed."""
        quoted = [repr(each) for each in choices]
        listed = f"{', '.join(quoted[:-1])} or {quoted[-1]}"
        return self._fault(
            "not_a_choice", tool, name,
            f"Input should be {listed} "
            f"[type=literal_error, input_value={value!r}, input_type={type(value).__name__}]",
        )  # fmt: skip

    def wrong_form(self, tool: str, name: str, form: str, value: JsonValue) -> ToolFault:
        """The text has another form than `form`."""
        return self._fault(
            "wrong_form", tool, name,
            f"Value error, must have the form {form} "
            f"[type=value_error, input_value={value!r}, input_type={type(value).__name__}]",
        )  # fmt: skip

    @staticmethod
    def _fault(kind: FaultKind, tool: str, name: str, said: str) -> ToolFault:
        message = f"1 validation error for {tool}\n{name}\n  {said}"
        return ToolFault(kind, message, type="ValidationError")


class JsonSchema:
    """As jsonschema and ajv put it, behind JSON-RPC's code for bad parameters."""

    def unknown(self, tool: str, name: str) -> ToolFault:
        """As `Dialect`; so are the others."""
        del tool
        return self._fault(
            "unknown_parameter",
            f"Additional properties are not allowed ({name!r} was unexpected)",
        )

    def missing(self, tool: str, name: str) -> ToolFault:
        """A required parameter was left out."""
        del tool
        return self._fault("missing_parameter", f"{name!r} is a required property")

    def wrong_type(self, tool: str, name: str, wanted: str, value: JsonValue) -> ToolFault:
        """`wanted` is a type of JSON Schema."""
        del tool
        return self._fault("wrong_type", f"{value!r} is not of type {wanted!r} (at {name})")

    def out_of_range(
        self, tool: str, name: str, bound: float, value: JsonValue, *, is_upper: bool
    ) -> ToolFault:
        """The value lies above the upper bound, or below the lower one."""
        del tool
        words = "greater than the maximum" if is_upper else "less than the minimum"
        return self._fault("out_of_range", f"{value!r} is {words} of {bound:g} (at {name})")

    def not_a_choice(self, tool: str, name: str, choices: list[str], value: JsonValue) -> ToolFault:
        """The value is none of those listed."""
        del tool
        return self._fault("not_a_choice", f"{value!r} is not one of {choices!r} (at {name})")

    def wrong_form(self, tool: str, name: str, form: str, value: JsonValue) -> ToolFault:
        """The text has another form than `form`."""
        del tool
        return self._fault("wrong_form", f"{value!r} does not match {form!r} (at {name})")

    @staticmethod
    def _fault(kind: FaultKind, said: str) -> ToolFault:
        return ToolFault(kind, f"Invalid params: {said}", type="McpError", code="-32602")


class PythonCall:
    """A plain function behind a thin wrapper: Python's own errors."""

    def unknown(self, tool: str, name: str) -> ToolFault:
        """As `Dialect`; so are the others."""
        said = f"{tool}() got an unexpected keyword argument '{name}'"
        return ToolFault("unknown_parameter", said, type="TypeError")

    def missing(self, tool: str, name: str) -> ToolFault:
        """A required parameter was left out."""
        said = f"{tool}() missing 1 required keyword-only argument: '{name}'"
        return ToolFault("missing_parameter", said, type="TypeError")

    def wrong_type(self, tool: str, name: str, wanted: str, value: JsonValue) -> ToolFault:
        """`wanted` is a type of JSON Schema."""
        del tool
        word = TYPE_WORDS.get(wanted, "list")
        said = f"{name} must be {word}, not {type(value).__name__}"
        return ToolFault("wrong_type", said, type="TypeError")

    def out_of_range(
        self, tool: str, name: str, bound: float, value: JsonValue, *, is_upper: bool
    ) -> ToolFault:
        """The value lies above the upper bound, or below the lower one."""
        del tool
        sign = "<=" if is_upper else ">="
        said = f"{name} must be {sign} {bound:g}, got {value!r}"
        return ToolFault("out_of_range", said, type="ValueError")

    def not_a_choice(self, tool: str, name: str, choices: list[str], value: JsonValue) -> ToolFault:
        """The value is none of those listed."""
        del tool
        said = f"unsupported {name} {value!r}; choose from {', '.join(choices)}"
        return ToolFault("not_a_choice", said, type="ValueError")

    def wrong_form(self, tool: str, name: str, form: str, value: JsonValue) -> ToolFault:
        """The text has another form than `form`."""
        del tool
        said = f"{name} {value!r} does not match format '{form}'"
        return ToolFault("wrong_form", said, type="ValueError")


class Zod:
    """A list of issues, as servers in TypeScript send it."""

    def unknown(self, tool: str, name: str) -> ToolFault:
        """As `Dialect`; so are the others."""
        del tool
        said = f"Unrecognized key(s) in object: '{name}'"
        return self._fault(
            "unknown_parameter", {"code": "unrecognized_keys", "keys": [name], "path": []}, said
        )

    def missing(self, tool: str, name: str) -> ToolFault:
        """A required parameter was left out."""
        del tool
        issue: dict[str, JsonValue] = {"code": "invalid_type", "received": "undefined"}
        return self._fault("missing_parameter", issue | {"path": [name]}, "Required")

    def wrong_type(self, tool: str, name: str, wanted: str, value: JsonValue) -> ToolFault:
        """`wanted` is a type of JSON Schema."""
        del tool
        expected = "number" if wanted == "integer" else wanted
        received = "string" if isinstance(value, str) else "array"
        issue: dict[str, JsonValue] = {
            "code": "invalid_type", "expected": expected, "received": received, "path": [name],
        }  # fmt: skip
        return self._fault("wrong_type", issue, f"Expected {expected}, received {received}")

    def out_of_range(
        self, tool: str, name: str, bound: float, value: JsonValue, *, is_upper: bool
    ) -> ToolFault:
        """The value lies above the upper bound, or below the lower one."""
        del tool, value
        word, code, key = (
            ("less", "too_big", "maximum") if is_upper else ("greater", "too_small", "minimum")
        )
        said = f"Number must be {word} than or equal to {bound:g}"
        issue: dict[str, JsonValue] = {"code": code, key: bound, "inclusive": True, "path": [name]}
        return self._fault("out_of_range", issue, said)

    def not_a_choice(self, tool: str, name: str, choices: list[str], value: JsonValue) -> ToolFault:
        """The value is none of those listed."""
        del tool
        listed = " | ".join(f"'{each}'" for each in choices)
        issue: dict[str, JsonValue] = {
            "code": "invalid_enum_value", "options": list(choices), "received": value,
            "path": [name],
        }  # fmt: skip
        said = f"Invalid enum value. Expected {listed}, received '{value}'"
        return self._fault("not_a_choice", issue, said)

    def wrong_form(self, tool: str, name: str, form: str, value: JsonValue) -> ToolFault:
        """The text has another form than `form`."""
        del tool, value
        issue: dict[str, JsonValue] = {
            "code": "invalid_string", "validation": "regex", "path": [name],
        }  # fmt: skip
        return self._fault("wrong_form", issue, f"Invalid: expected {form}")

    @staticmethod
    def _fault(kind: FaultKind, issue: dict[str, JsonValue], message: str) -> ToolFault:
        text = json.dumps([issue | {"message": message}], indent=2)
        return ToolFault(kind, text, type="ZodError")


class WebApi:
    """A web service that names the field and hardly ever what would be right."""

    def unknown(self, tool: str, name: str) -> ToolFault:
        """As `Dialect`; so are the others."""
        del tool
        return self._fault("unknown_parameter", f"Unknown field: {name}", "unknown_field")

    def missing(self, tool: str, name: str) -> ToolFault:
        """A required parameter was left out."""
        del tool
        return self._fault("missing_parameter", f"Field {name} is required", "missing_field")

    def wrong_type(self, tool: str, name: str, wanted: str, value: JsonValue) -> ToolFault:
        """`wanted` is a type of JSON Schema."""
        del tool, value
        return self._fault("wrong_type", f"Field {name} must be of type {wanted}", "invalid_field")

    def out_of_range(
        self, tool: str, name: str, bound: float, value: JsonValue, *, is_upper: bool
    ) -> ToolFault:
        """The value lies above the upper bound, or below the lower one."""
        del tool, bound, value
        word = "large" if is_upper else "small"
        return self._fault("out_of_range", f"Field {name} is too {word}", "invalid_field")

    def not_a_choice(self, tool: str, name: str, choices: list[str], value: JsonValue) -> ToolFault:
        """The value is none of those listed; it does not say which are."""
        del tool, choices
        said = f"Invalid value for field {name}: {value}"
        return self._fault("not_a_choice", said, "invalid_field")

    def wrong_form(self, tool: str, name: str, form: str, value: JsonValue) -> ToolFault:
        """The text has another form than `form`; it does not say which one."""
        del tool, form
        return self._fault("wrong_form", f"Cannot parse field {name}: {value}", "invalid_field")

    @staticmethod
    def _fault(kind: FaultKind, said: str, code: str) -> ToolFault:
        return ToolFault(kind, f"400 Bad Request: {said}", type="ApiError", code=code)
