"""The class of what is proposed for a call, and whether it may be followed without asking."""

from functools import partial
from typing import Any

import pytest

from aftercall.models import ExecutionError, FailedCall, ToolAnnotations
from retrieval.answers.answer import Question, answer
from retrieval.answers.proposers.case import CallContext
from retrieval.answers.proposers.faults import held_against_schema, refused_by
from retrieval.knowledge.reading.reader import read_error
from tests.retrieval.cases import make_case, object_schema

DAY = {"type": "string", "format": "date"}
LIST = {"type": "array", "items": {"type": "string"}}
REFUSED = "MCP error -32602: Input validation error: "


def first(
    tool: str,
    parameters: dict[str, Any],
    message: str,
    schema: dict[str, Any] | None = None,
    annotations: ToolAnnotations | None = None,
    code: str | None = None,
) -> tuple[str | None, bool | None]:
    """Class and safety of the first suggestion; `retry` says the same."""
    case = make_case(parameters, message, schema=schema, writes=True, code=code)
    found = answer(
        Question(
            case,
            ExecutionError(message=message, code=code),
            annotations or ToolAnnotations(),
            call_context=CallContext(tool_name=tool),
        ),
        limit=3,
    ).response
    if not found.suggestions:
        return None, False
    best = found.suggestions[0]
    assert found.retry.safe == best.safe
    return best.change_class, best.safe


@pytest.mark.parametrize(
    ("tool", "parameters", "message", "schema"),
    [
        ("delete_entities", {"except": ["a"]}, f"{REFUSED}'entityNames' is a required property",
         object_schema(entityNames=LIST) | {"additionalProperties": False}),
        ("write_file", {"path": "x", "append": "m"}, f"{REFUSED}'content' is a required property",
         object_schema(path="string", content="string") | {"additionalProperties": False}),
        ("search_files", {"path": "x", "exclude": "*"},
         f"{REFUSED}'pattern' is a required property",
         object_schema(path="string", pattern="string") | {"additionalProperties": False}),
        ("delete_rows", {"table": "t", "filter": "id=3"},
         "MCP error -32602: unexpected keyword argument 'filter'",
         object_schema(table="string") | {"additionalProperties": False}),
        ("delete_files", {"paths": "a.txt", "dryRun": True},
         "MCP error -32602: 'paths' must be array",
         object_schema(paths=LIST)),
    ],
)  # fmt: skip
def test_what_could_do_harm_is_left_to_the_caller(
    tool: str, parameters: dict[str, Any], message: str, schema: dict[str, Any]
) -> None:
    """However sure it is, and though the call was rejected before it ran."""
    assert first(tool, parameters, message, schema)[1] is False


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Invalid parameter: topK must be <= 10", "PARAM_INVALID"),
        ("topK must be <= 10", "400"),
        ('[{"type":"less_than_equal","loc":["body","topK"],"msg":"Input should be less than or '
         'equal to 10","input":50,"ctx":{"le":10}}]', "422"),
        ('[{"code":"too_big","maximum":10,"type":"number","inclusive":true,"path":["topK"],'
         '"message":"Number must be less than or equal to 10"}]', None),
    ],
)  # fmt: skip
def test_the_example_of_the_seed_repairs_itself(message: str, code: str | None) -> None:
    """A clamp is lossy, and the tool is presumed only to read; not so one that writes."""
    call = {"query": "q", "topK": 50}
    assert first("rag_query", call, message, code=code) == ("lossy", True)
    assert first("send_query", call, message, code=code) == ("lossy", False)


@pytest.mark.parametrize(
    ("parameters", "message", "schema", "expected"),
    [
        ({"a": "2"}, "MCP error -32602: a must be number", object_schema(a="number"), "lossless"),
        ({"files": "a"}, "MCP error -32602: 'files' must be array", object_schema(files=LIST),
         "lossless"),
        ({"files": "a,b"}, "MCP error -32602: 'files' must be array", object_schema(files=LIST),
         "lossy"),
        ({"fileName": "a"}, f"{REFUSED}'file_name' is a required property",
         object_schema(file_name="string") | {"additionalProperties": False}, "lossless"),
        ({"unit": "Celsius"}, f"{REFUSED}'Celsius' is not one of ['celsius', 'kelvin']",
         object_schema(unit={"type": "string", "enum": ["celsius", "kelvin"]}), "lossless"),
        ({"text": "x"}, f"{REFUSED}'prompt' is a required property",
         object_schema(prompt="string") | {"additionalProperties": False}, "plausible"),
        ({"day": "March 5, 2026"}, "Bad request", object_schema(day=DAY), "lossless"),
        ({"day": "2026-03-05T14:30:00Z"}, "Bad request", object_schema(day=DAY), "lossy"),
        ({"n": "five"}, "n must be integer", object_schema(n="integer"), "lossless"),
        ({"n": "yes"}, "n must be boolean", object_schema(n="boolean"), "lossless"),
        ({"n": "1,500"}, "n must be number", object_schema(n="number"), "lossless"),
        ({"n": "~150"}, "n must be number", object_schema(n="number"), "lossy"),
        ({"n": "1,500.0 USD"}, "received NaN", object_schema(n="number"), "semantic"),
        ({"n": "undefined"}, "n must be number", object_schema([], n="number"), "lossless"),
        ({"code": "usd"}, "Bad request",
         object_schema(code={"type": "string", "pattern": "^[A-Z]{3}$"}), "lossless"),
        ({"order": "ascending"}, "invalid order",
         object_schema(order={"enum": ["asc", "desc"]}), "lossless"),
        ({"to": "done"}, "invalid value", object_schema(to={"enum": ["open", "closed"]}),
         "semantic"),
        ({"state": "`open`"}, "Bad request",
         object_schema(state={"enum": ["open", "closed"]}), "lossless"),
        ({"receiver": "x"}, f"{REFUSED}'to' is a required property",
         object_schema(to="string") | {"additionalProperties": False}, "lossless"),
    ],
)  # fmt: skip
def test_the_class_is_what_is_kept(
    parameters: dict[str, Any], message: str, schema: dict[str, Any], expected: str
) -> None:
    """Another form of the same, a neutral word for the only thing missing, a split."""
    assert first("save", parameters, message, schema)[0] == expected


def test_what_stands_in_brackets_is_not_split() -> None:
    """One pattern is one item of the list."""
    case = {"globs": "src/*.{js,ts}"}
    found = first(
        "list_all", case, "MCP error -32602: 'globs' must be array", object_schema(globs=LIST)
    )
    assert found == ("lossless", True)


@pytest.mark.parametrize(
    ("parameters", "message", "refused"),
    [
        ({"n": "5"}, "n must be integer", True),
        ({"n": "5"}, "400 Bad Request", True),
        ({"m": 5}, '{"detail": "n is required"}', True),
        ({"n": 5}, "400 Bad Request", False),  # the call fits
        ({"n": "5"}, "step 1 of 2 done; then n must be integer", False),
        ({"n": "5"}, "Response validation failed: n must be integer", False),
        ({"n": "5", "to": "x"}, "Invalid to: no such user", False),
    ],
)
def test_a_call_that_the_live_schema_refuses_did_not_run(
    parameters: dict[str, Any], message: str, refused: bool
) -> None:
    """Unless the error tells of anything else, or of work that was done."""
    fields = {"agent": "a", "tool_name": "save", "parameters": parameters,
              "error": {"message": message}}  # fmt: skip
    schema = object_schema(["n"], n="integer", to="string")
    call = FailedCall.model_validate({**fields, "input_schema": schema})
    reading = read_error(call.error, parameters)
    for asked, rejected in ((call, refused), (FailedCall.model_validate(fields), False)):
        held = held_against_schema(asked, reading, partial(refused_by, asked))
        assert held.rejected_before_run is rejected
