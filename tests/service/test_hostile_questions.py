"""Hostile questions: an answer or an honest abstention, never a fault of the service."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.service.running_service import DAY, RunningService, execution, failure

MIB = 1024 * 1024
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Rome", "Oslo"]},
        "limit": {"type": "integer", "maximum": 10},
        "rows": {"type": "array", "items": {"type": "object", "required": ["day"]}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", autouse=True)
def _experience(service: RunningService) -> None:
    """A tool with repairs, so that every source of proposals has something to say."""
    records = []
    for number in range(6):
        at = {"sessionId": f"s-{number}", "agent": f"a-{number}", "toolName": "weather"}
        wrong = failure(
            parameters={"town": "Rome", "limit": 50}, error={"message": "'city' is required"}, **at
        )
        right = execution(
            parameters={"city": "Rome", "limit": 5, "rows": [{"day": "1"}]},
            repairOf=wrong["executionId"], timestamp=f"{DAY}T14:31:00Z", **at,
        )  # fmt: skip
        records += [wrong, right]
    service.record(records).raise_for_status()
    service.learned()


def ask(service: RunningService, **fields: Any) -> httpx2.Response:
    """POST /suggest about a failed call of the tool."""
    error = fields.pop("error", None) or {"message": fields.pop("message", "'city' is required")}
    call = failure(**{"toolName": "weather", "parameters": {"town": "Rome"}, **fields}, error=error)
    return service.client.post("/suggest", json={"execution": call})


def answered(response: httpx2.Response) -> dict[str, Any]:
    """An answer of bounded size: suggestions, or the reason why there are none."""
    assert response.status_code == 200, response.text[:500]
    body: dict[str, Any] = response.json()
    assert body["abstained"] == (not body["suggestions"])
    assert bool(body["reason"]) == body["abstained"]
    assert len(body["suggestions"]) <= 3
    assert len(body["pattern"]["signature"]) < 2_000
    assert all(len(each["lesson"]) < 5_000 for each in body["suggestions"])
    return body


def deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("field", "value"),
    [*(("parameters", each) for each in (["a"], 3, True, None)), ("inputSchema", ["string"])],
)
def test_what_is_no_object_is_said_to_be_so(
    service: RunningService, field: str, value: Any
) -> None:
    """422 that names the field."""
    response = ask(service, **{field: value})
    assert response.status_code == 422
    assert f"execution.{field}" in response.json()["error"]["message"]


def test_arguments_that_are_a_text_are_answered_with_the_object_they_say(
    service: RunningService,
) -> None:
    """The first suggestion holds the object."""
    text, message = "{'query': 'reflection', 'topK': 5}", "the arguments are no JSON object"
    response = ask(service, toolName="search", parameters=text, message=message)
    assert response.status_code == 200
    first = response.json()["suggestions"][0]
    assert first["correctedParameters"] == {"query": "reflection", "topK": 5}


PARAMETERS: dict[str, Any] = {
    "long": {"town": "x" * MIB},
    "many": {f"k{n}": n for n in range(20_000)},
    "like names": {f"citys{n}": "Rome" for n in range(3_000)},
    "list": {"rows": list(range(100_000))},
    "objects": {"city": "Rome", "rows": [{"dya": n} for n in range(20_000)]},
    "deep": {"rows": deep(90)},
    "wide and deep": {"rows": [deep(30)] * 300},
    "other scripts": {"city": "羅馬" * 1_000, "Ort": "ё" * 10_000},
    "controls": {"city": "\x01\x02\x1b[31m\u202e" * 1_000},
    "masks": {f"k{n}": "[redacted:string:9-16]" for n in range(1_000)},
}


MESSAGES = {
    "letters": "x" * MIB,
    "digits": "7" * MIB,
    "brackets": "[" * MIB,
    "objects in text": '{"a":' * (MIB // 5),
    "spaces": "city " + " " * MIB + "is required",
    "missing": "'city' is a required property; " * (MIB // 31),
    "ranges": "limit must be <= 10, " * (MIB // 21),
    "paths": "/a" * (MIB // 2),
    "json": '{"errors": [' + '{"loc": ["city"], "msg": "Field required"},' * 20_000 + "{}]}",
    "numbers as lists": "must be one of " + ", ".join(str(n) for n in range(100_000)),
    "emoji": "🔥" * (MIB // 4),
    "binary": "".join(chr(1 + n % 255) for n in range(MIB // 2)),
    "blank": " ",
    "empty": "",
}


CONTEXTS = {
    "words": "the city of Rome " * (MIB // 17),
    "digits": "7" * MIB,
    "quoted": "".join(f"'city {n}' " for n in range(90_000)),
    "mixed quotes": "\"'`“" * (MIB // 6),
    "addresses": "a@b.co " * (MIB // 7),
    "half addresses": "a@" * (MIB // 2),
    "no spaces": "ё" * (MIB // 2),
    "binary": "".join(chr(1 + n % 255) for n in range(MIB // 2)),
}


DETAILS: dict[str, Any] = {
    "deep": {"errors": deep(90)},
    "many": {"errors": [{"loc": ["city"], "type": "missing", "msg": "Field required"}] * 20_000},
    "no places": {"errors": [{"loc": None, "path": 3, "msg": []}, None, 7, "x"]},
    "long": {"retryAfter": "9" * MIB},
    "waits": {f"retry-after-{n}": n for n in range(50_000)},
    "allowed": {"allowed": [f"city {n}" for n in range(50_000)], "suggested": "x" * MIB},
    "tools": {"suggestedSplit": deep(60), "alternatives": ["weather"] * 50_000},
}


SCHEMAS: dict[str, Any] = {
    "wrong types": {"type": "object", "properties": {"city": "string"}, "required": "city"},
    "recursive": {"$ref": "#"},
    "mutually recursive": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"city": {"$ref": "#/$defs/a"}},
    },
    "a tree of itself": {
        "type": "object", "properties": {"city": {"$ref": "#"}, "rows": {"items": {"$ref": "#"}}},
        "required": ["city"],
    },
    "remote": {"properties": {"city": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "nowhere": {"properties": {"city": {"$ref": "#/$defs/none"}}, "required": ["city"]},
    "branching": {"anyOf": [{"anyOf": [{"anyOf": [{"$ref": "#"}] * 9}] * 9}] * 9},
    "pattern": {"properties": {"city": {"pattern": "^(a+)+$"}}, "required": ["city"]},
    "huge": {"properties": {f"p{n}": {"type": "string"} for n in range(30_000)}},
    "deep": {"properties": {"city": deep(60)}},
    "all of it": {"properties": {"city": {"description": "one of 'a', 'b' " * 40_000}}},
}  # fmt: skip


QUESTIONS: dict[str, dict[str, Any]] = {
    **{
        f"parameters, {name}, {schema is not None}": {"parameters": each, "inputSchema": schema}
        for name, each in PARAMETERS.items()
        for schema in (None, SCHEMA)
    },
    **{
        f"message, {name}": {"message": each, "inputSchema": SCHEMA}
        for name, each in MESSAGES.items()
    },
    **{
        f"context, {name}, {message}": {"context": each, "message": message, "parameters": sent}
        for name, each in CONTEXTS.items()
        for message, sent in (
            ("'city' is a required property", {}),
            ("No city found with name 'Rmoe'", {"city": "Rmoe"}),
        )
    },
    **{
        f"details, {name}, {kind}": {"error": {"type": kind, "message": said, "details": each}}
        for name, each in DETAILS.items()
        for kind, said in (
            ("ValidationError", "Invalid"), ("RateLimitError", "429 Too many requests"),
            ("wrong_tool_boundary", "Invalid"),
        )
    },
    **{
        f"schema, {name}, {list(sent)}": {"inputSchema": each, "parameters": sent}
        for name, each in SCHEMAS.items()
        for sent in (
            {"city": "a" * 60 + "!", "limit": 50}, {"rows": [{"city": {"city": {}}}]}, {},
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_of_any_kind_are_answered(service: RunningService, name: str) -> None:
    """Huge and strange, in other languages or no text at all; an invalid schema proves nothing."""
    answered(ask(service, **QUESTIONS[name]))


def test_a_tool_never_seen_is_answered_by_its_error_alone(service: RunningService) -> None:
    """No schema, no history: what the error states is all there is, or there is nothing."""
    sure = answered(ask(service, toolName="never", message="limit must be <= 10",
                        parameters={"limit": 50}))  # fmt: skip
    assert sure["suggestions"][0]["correctedParameters"] == {"limit": 10}
    assert sure["suggestions"][0]["evidence"]["repairs"] == 0
    assert answered(ask(service, toolName="never", message="oops"))["abstained"]


@pytest.mark.parametrize("name", [*PARAMETERS, *MESSAGES])
def test_what_is_asked_about_can_be_recorded_and_learned(
    service: RunningService, name: str
) -> None:
    """A failure of this kind and what mended it: learning goes on, and the next is answered."""
    hostile = PARAMETERS.get(name, {"town": "Rome"})
    message = MESSAGES.get(name) or "'city' is required"
    at = {"toolName": f"tool {name}", "sessionId": str(uuid4()), "context": CONTEXTS["quoted"]}
    wrong = failure(parameters=hostile, error={"message": message}, **at)
    right = execution(
        parameters={**hostile, "city": "Rome"}, repairOf=wrong["executionId"],
        timestamp=f"{DAY}T14:31:00Z", **at,
    )  # fmt: skip
    receipt = service.record([wrong, right])
    assert receipt.json() == {"accepted": 2, "duplicates": 0, "rejected": [], "leftOut": 0}
    service.learned()
    answered(ask(service, toolName=f"tool {name}", message=message, parameters=hostile))
