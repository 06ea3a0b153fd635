"""Reading by family: what each validator, language and engine says, table by table."""
# ruff: noqa: E501, PLR0133, PLW0108 - messages stand as the tools write them; Python is made to fail

import datetime as dt
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ExecutionError
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import read_error
from tests.retrieval.cases import answer_to, make_case

Call = dict[str, Any]


def read(message: str, parameters: Call) -> tuple[Fault, ...]:
    return read_error(ExecutionError(message=message), parameters).faults


def fault_at(path: tuple[str | int, ...], message: str, parameters: Call) -> Fault:
    found = {fault.path: fault for fault in read(message, parameters)}
    assert path in found, found
    return found[path]


# ---------------------------------------------------------------- validators that are run here

SCHEMA = {
    "type": "object", "required": ["q"], "additionalProperties": False,
    "dependentRequired": {"card": ["billing"]},
    "properties": {
        "q": {"type": "string"}, "limit": {"type": "integer", "maximum": 10, "minimum": 1},
        "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 5},
        "name": {"type": "string", "minLength": 3, "maxLength": 5, "pattern": "^[a-z]+$"},
        "mode": {"enum": ["a", "b"]}, "kind": {"const": "x"},
        "tags": {"type": "array", "minItems": 2, "maxItems": 3, "uniqueItems": True, "items": {"type": "string"}},
        "when": {"type": "string", "format": "date"}, "card": {"type": "string"}, "billing": {},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "place": {"type": "object", "properties": {"zip": {"type": "integer"}}},
    },
}  # fmt: skip

JSONSCHEMA: list[tuple[Call, tuple[str | int, ...], dict[str, Any]]] = [
    ({}, ("q",), {"kind": "missing"}),
    ({"q": 5}, ("q",), {"kind": "wrong_type", "expected_types": ("string",)}),
    ({"q": "z", "more": 1}, ("more",), {"kind": "unexpected"}),
    ({"q": "z", "limit": 50}, ("limit",), {"kind": "out_of_range", "maximum": 10}),
    ({"q": "z", "limit": 0}, ("limit",), {"kind": "out_of_range", "minimum": 1}),
    ({"q": "z", "ratio": -5}, ("ratio",), {"kind": "out_of_range", "minimum": 1, "exclusive": True}),
    ({"q": "z", "ratio": 7}, ("ratio",), {"multiple_of": 5}),
    ({"q": "z", "name": "ab"}, ("name",), {"kind": "out_of_range", "of_length": True}),
    ({"q": "z", "name": "abcdefg"}, ("name",), {"kind": "out_of_range", "of_length": True}),
    ({"q": "z", "name": "AB1"}, ("name",), {"kind": "bad_format", "expected_format": "^[a-z]+$"}),
    ({"q": "z", "mode": "c"}, ("mode",), {"kind": "not_allowed", "allowed": ("a", "b")}),
    ({"q": "z", "tags": ["a"]}, ("tags",), {"kind": "out_of_range", "of_length": True}),
    ({"q": "z", "tags": ["a", "a"]}, ("tags",), {"kind": "invalid"}),
    ({"q": "z", "tags": ["a", 5]}, ("tags", 1), {"kind": "wrong_type"}),
    ({"q": "z", "when": "tomorrow"}, ("when",), {"kind": "bad_format", "expected_format": "date"}),
    ({"q": "z", "either": "5"}, ("either",), {"kind": "invalid"}),
    ({"q": "z", "card": "1"}, ("billing",), {"kind": "missing"}),
    ({"q": "z", "place": {"zip": "x"}}, ("place", "zip"), {"kind": "wrong_type", "expected_types": ("integer",)}),
]  # fmt: skip


@pytest.mark.parametrize(("call", "path", "fields"), JSONSCHEMA)
def test_what_jsonschema_says_is_read(
    call: Call, path: tuple[str | int, ...], fields: dict[str, Any]
) -> None:
    """The real library's message leads to the exact place, with kind and bound."""
    validator = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    [error] = validator.iter_errors(call)
    fault = fault_at(path, error.message, call)
    assert {name: getattr(fault, name) for name in fields} == fields


def test_the_place_that_jsonschema_shows_is_kept() -> None:
    """Its full text tells where in the call the fault lies, also for what is missing there."""
    schema = {"properties": {"to": {"items": {"required": ["city"]}}}}
    call = {"to": [{"city": "x"}, {}]}
    [error] = jsonschema.Draft202012Validator(schema).iter_errors(call)
    assert [(fault.kind, fault.path) for fault in read(str(error), call)] == [
        ("missing", ("to", 1, "city"))
    ]


class Inner(pydantic.BaseModel):
    city: str


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    limit: Annotated[int, pydantic.Field(ge=1, le=10)] = 1
    ratio: Annotated[float, pydantic.Field(multiple_of=5)] = 5
    name: Annotated[str, pydantic.Field(min_length=3, pattern="^[a-z]+$")] = "abc"
    mode: Literal["a", "b"] = "a"
    tags: Annotated[list[str], pydantic.Field(max_length=1)] = []
    when: dt.date | None = None
    url: pydantic.HttpUrl | None = None
    inner: list[Inner] = []


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("call", "path", "fields"),
    [
        ({"limit": 50}, ("limit",), {"maximum": 10}),
        ({"limit": "x"}, ("limit",), {"expected_types": ("integer",)}),
        ({"ratio": 7}, ("ratio",), {"multiple_of": 5}),
        ({"name": "ab"}, ("name",), {"minimum": 3, "of_length": True}),
        ({"name": "AB1"}, ("name",), {"expected_format": "^[a-z]+$"}),
        ({"mode": "c"}, ("mode",), {"allowed": ("a", "b")}),
        ({"tags": ["a", "b"]}, ("tags",), {"maximum": 1, "of_length": True}),
        ({"when": "soon"}, ("when",), {"expected_format": "date"}),
        ({"url": "foo"}, ("url",), {"expected_format": "uri"}),
        ({"more": 1}, ("more",), {"kind": "unexpected"}),
        ({"inner": [{"city": "a"}, {}]}, ("inner", 1, "city"), {"kind": "missing"}),
    ],
)
def test_what_pydantic_says_is_read(
    call: Call, path: tuple[str | int, ...], fields: dict[str, Any], form: str
) -> None:
    """Text and JSON of the real library alike."""
    with pytest.raises(pydantic.ValidationError) as caught:
        Model(**call)
    message = str(caught.value) if form == "text" else caught.value.json()
    fault = fault_at(path, message, call)
    assert {name: getattr(fault, name) for name in fields} == fields


PYTHON: list[tuple[Any, Call, str, tuple[str, ...]]] = [
    (lambda: "5" + 3, {"a": "5", "note": "x"}, "a", ("number",)),  # type: ignore[operator]
    (lambda: 5 + "3", {"a": "3"}, "a", ("number",)),  # type: ignore[operator]
    (lambda: "5" < 3, {"a": "5"}, "a", ("number",)),  # type: ignore[operator]
    (lambda: range(2.0), {"n": 2.0}, "n", ("integer",)),  # type: ignore[call-overload]
    (lambda: "a" in 5, {"n": 5}, "n", ("array",)),  # type: ignore[operator]
    (lambda: (5).split(), {"text": 5}, "text", ("string",)),  # type: ignore[attr-defined]
    (lambda: None.split(), {"text": None}, "text", ("string",)),  # type: ignore[attr-defined]
    (lambda: [].items(), {"map": []}, "map", ("object",)),  # type: ignore[attr-defined]
    (lambda: len(5), {"n": 5}, "n", ("array",)),  # type: ignore[arg-type]
    (lambda: float("12,5"), {"x": "12,5"}, "x", ("number",)),
    (lambda: int("ab"), {"x": "ab"}, "x", ("integer",)),
    (lambda: re.sub("a", "b", 5), {"x": 5}, "x", ("string",)),  # type: ignore[call-overload]
]


@pytest.mark.parametrize(("fails", "call", "name", "types"), PYTHON)
def test_python_tells_types_and_the_call_tells_the_parameter(
    fails: Any, call: Call, name: str, types: tuple[str, ...]
) -> None:
    """The one value of the type that Python complains about is what it means."""
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        fails()
    message = f"{type(caught.value).__name__}: {caught.value}"
    assert fault_at((name,), message, call).expected_types == types


def test_a_key_that_is_missing_is_a_value_of_the_call_or_a_name() -> None:
    """`KeyError: 'Berln'` is about the city that was sent, `KeyError: 'country'` about a name."""
    assert read("KeyError: 'Berln'", {"city": "Berln"})[0].kind == "not_found"
    reading = read_error(ExecutionError(message="'country'"), {"city": "Berlin"})
    assert [(fault.kind, fault.path) for fault in reading.faults] == [("missing", ("country",))]
    assert "country" not in reading.signature
    assert not reading.rejected_before_run


# ---------------------------------------------------------------- families that are not run here

_TEXT = Path(__file__).with_name("messages.jsonl").read_text(encoding="utf-8")
MESSAGES = [json.loads(line) for line in _TEXT.split("\n") if line]
"""Messages of real validators and tools, and what a reader sees in each."""


@pytest.mark.parametrize("row", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_is_read_as_it_is_meant(row: dict[str, Any]) -> None:
    """Its category, and the kind and exact place of its fault with what is stated beside."""
    error = ExecutionError(message=row["message"], code=row.get("code"))
    reading = read_error(error, row["call"])
    assert reading.category == row.get("category", reading.category)
    for fault in reading.faults:
        said = json.loads(json.dumps(asdict(fault) | {"parameter": fault.parameter}))
        wanted = {name: row[name] for name in ("kind", "parameter", "path") if name in row}
        wanted |= row.get("fields", {})
        if {name: said[name] for name in wanted} == wanted:
            break
    else:
        assert "kind" not in row, reading.faults


_TEXT = Path(__file__).with_name("servers.jsonl").read_text(encoding="utf-8")
SERVERS = [json.loads(line) for line in _TEXT.split("\n") if line]
"""What well-known MCP servers, policies, HTTP and failing tools say, and what a person reads."""


@pytest.mark.parametrize("row", SERVERS, ids=range(len(SERVERS)))
def test_what_servers_say_is_read_as_a_person_reads_it(row: dict[str, Any]) -> None:
    """A rule that forbids the call is a refusal: no outage, and no value to be mended."""
    reading = read_error(ExecutionError(message=row["message"]), row.get("call", {}))
    assert reading.category == row["category"]


@pytest.mark.parametrize(
    "message", [row["message"] for row in SERVERS if row["from"] == "policy"][:18]
)
def test_what_a_policy_forbids_is_handed_over(message: str) -> None:
    """Whatever else could be sent, and whichever general code the server gave it."""
    for code in (None, "-32603", "-32602", "500"):
        case = make_case({"command": "rm", "url": "http://10.0.0.8/"}, message, code=code)
        response = answer_to(case, message).response
        assert [each.action for each in response.suggestions] == ["escalate"]
        assert not response.retry.safe


@pytest.mark.parametrize(
    "message", ["output_format must be one of: json, csv", "Invalid result_type: x"]
)
def test_a_parameter_called_output_is_no_broken_contract(message: str) -> None:
    """What is said of a parameter that was sent is said of the call."""
    reading = read_error(
        ExecutionError(message=message), {"output_format": "x", "result_type": "x"}
    )
    assert reading.category == "invalid_parameters"


def test_a_place_that_is_only_inferred_proves_no_rejection() -> None:
    """A validator inside the tool may use the name of something inside the call."""
    message = (
        "1 validation error for Row\nprice\n  Input should be a valid number [type=float_type]"
    )
    reading = read_error(ExecutionError(message=message), {"order": {"price": "x"}})
    assert not reading.rejected_before_run


@pytest.mark.parametrize("message", ["Error", "Operation failed.", "exit status 1", "{}", "null"])
def test_an_empty_message_is_left_to_no_classifier(message: str) -> None:
    """Where nothing is said, there is nothing to classify."""
    assert not read_error(ExecutionError(message=message), {}).is_unsure


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["errors", "field", "message", "path", "code", "loc", "params", "keyword", "source",
                         "instancePath", "detail", "type", "options", "minimum", "keys"]) | st.text(max_size=5),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_PARTS = st.sampled_from(
    ["'a'", "must be", "one of", "expected", "not found", "is required", "a.b[0]", "→ at ", "✖ ", "\n", ": ", "5",
     "1.2.3", "is not of type", "[", "{", "\"", "KeyError", "user", "denied", "total is", "but", "é", "\\"]
)  # fmt: skip


@given(st.lists(_PARTS | st.text(max_size=6), max_size=12), JSON, JSON)
def test_reading_raises_on_nothing(parts: list[str], details: Any, call: Any) -> None:
    """Whatever the text, the details and the call, a reading comes."""
    message = " ".join(parts).replace("\x00", "")
    parameters = call if isinstance(call, dict) else {"a": call}
    reading = read_error(
        ExecutionError.model_construct(type="", code=None, message=message, details=details),
        parameters,
    )
    assert 0 <= reading.confidence <= 1
    assert len(reading.signature) <= 400
