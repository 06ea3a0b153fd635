"""Bad input gets the contract's error, loses nothing else, and the service goes on."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.service.running_service import RunningService, execution, failure

MIB = 1024 * 1024


def error_of(response: httpx2.Response, status: int, code: str) -> str:
    """The message of an error that has the contract's form and nothing else."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert body["error"]["code"] == code
    assert "Traceback" not in response.text
    message: str = body["error"]["message"]
    assert len(message) <= 500
    return message


def goes_on(service: RunningService) -> None:
    """The service takes a good execution after the bad input."""
    good = execution()
    response = service.record(good)
    assert response.json() == {"accepted": 1, "duplicates": 0, "rejected": [], "leftOut": 0}
    assert service.is_stored(good)


def literal(record: dict[str, Any], value: str) -> str:
    """A record as text in which the string "@" is replaced by a piece of raw JSON."""
    return json.dumps(record).replace('"@"', value)


OUTCOME = f"POST /suggestions/{uuid4()}/outcome"
CALL = {"execution": failure(parameters={"x": "@"})}
REFUSED: list[tuple[str, str | bytes, int, str, tuple[str, ...]]] = [
    # Not JSON: refused whole, and the message says where it breaks.
    ("POST /executions", '[{"executionId": "x"},\n {"agent" 1}]', 400, "malformed_json",
     ("line 2, column 11",)),
    *(
        ("POST /executions", body, 400, "malformed_json", ())
        for body in (b"", b"   ", b'{"a": 1} x', b"[1, ", b'"\xff\xfe"', b"\x00", b'["a\nb"]',
                     b"[1,]", b"{'a': 1}")
    ),
    # Neither an object nor a list.
    *(
        ("POST /executions", body, 422, "invalid_request", ("an object", "list"))
        for body in ("3", '"text"', "null", "true", "1.5")
    ),
    # Every endpoint explains itself in the same way.
    *(
        (asked, json.dumps(body), 422, "invalid_request", (said,))
        for asked, body, said in (
            ("POST /suggest", {"execution": {}, "limt": 3},
             "unknown field `limt`; did you mean `limit`?"),
            ("POST /suggest", {"execution": {"foo": 1}}, "unknown field `foo` in `execution`"),
            ("POST /suggest", {"execution": None}, "execution"),
            ("POST /suggest", [], "must be a JSON object"),
            ("POST /similar", {"toolName": "t", "limit": 51}, "limit"),
            ("POST /similar", {}, "toolName: is missing"),
            (OUTCOME, {"outcome": "maybe"}, "outcome"),
        )
    ),
    # A question is checked like a record, and no endpoint is brought down by brackets.
    *(
        ("POST /suggest", literal(CALL, value), 422, "invalid_request", ("execution.parameters",))
        for value in ("NaN", '"\\ud800"', "[" * 200 + "]" * 200, '"a\\u0000"')
    ),
    ("POST /suggest", b"[" * 500_000 + b"]" * 500_000, 422, "invalid_request", ()),
    ("POST /suggest", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 422, "invalid_request", ()),
    # Allow covers every route of the path; parameters are named as the contract does.
    ("POST /tools/some", "{}", 405, "method_not_allowed", ("DELETE, GET, PUT",)),
    ("GET /executions/e-1", "", 422, "invalid_request", ("executionId: must be a UUID",)),
    *(
        (f"GET {path}?limti=3", "", 422, "invalid_request", ("unknown parameter `limti`",))
        for path in ("/boundaries", "/known-tools", "/stats/usage", "/stats/totals")
    ),
    *(
        (asked, "", 404, "not_found", ())
        for asked in (f"GET /executions/{uuid4()}", "GET /tools/none", "DELETE /tools/none")
    ),
    (OUTCOME, json.dumps({"outcome": "success", "executionId": str(uuid4())}), 404, "not_found",
     ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "body", "status", "code", "said"), REFUSED, ids=range(len(REFUSED))
)
def test_what_is_refused_is_told_why(
    service: RunningService,
    asked: str,
    body: str | bytes,
    status: int,
    code: str,
    said: tuple[str, ...],
) -> None:
    """In the contract's form, whatever the endpoint, and the service goes on."""
    method, path = asked.split(" ", 1)
    headers = {"content-type": "application/json"}
    response = service.client.request(method, path, content=body, headers=headers)
    message = error_of(response, status, code)
    assert [words for words in said if words not in message] == []
    assert response.headers.get("allow", "") == ("DELETE, GET, PUT" if status == 405 else "")
    goes_on(service)


def test_an_empty_list_is_recorded_as_nothing(service: RunningService) -> None:
    """Sending nothing is no error."""
    response = service.record([])
    assert response.status_code == 202
    assert response.json() == {"accepted": 0, "duplicates": 0, "rejected": [], "leftOut": 0}


Spoil = Callable[[dict[str, Any]], str]

NEVER_VALID: dict[str, tuple[Spoil, tuple[str, ...]]] = {
    "an unknown field": (
        lambda r: json.dumps(r | {"params": {}}), ("unknown field `params`", "`parameters`")),
    "an unknown nested field": (
        lambda r: json.dumps(r | {"outcome": "failure", "error": {"message": "m", "kode": "x"}}),
        ("unknown field `kode` in `error`", "`code`")),
    "a field of a wrong type": (
        lambda r: json.dumps(r | {"parameters": ["a"]}), ("parameters", "object")),
    "a number as text": (
        lambda r: json.dumps(r | {"durationMs": "fast"}), ("durationMs", "number")),
    "a number as a name": (lambda r: json.dumps(r | {"agent": 7}), ("agent", "string")),
    "a missing field": (
        lambda r: json.dumps({k: v for k, v in r.items() if k != "toolName"}),
        ("toolName", "missing")),
    "an id that is no uuid": (
        lambda r: json.dumps(r | {"executionId": "e-1"}), ("executionId", "UUID")),
    "nan": (lambda r: literal(r | {"parameters": {"x": "@"}}, "NaN"), ("x", "nan")),
    "infinity": (lambda r: literal(r | {"parameters": {"x": "@"}}, "Infinity"), ("x", "inf")),
    "a number beyond floats": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, "1e999"), ("x", "inf")),
    "a nan duration": (lambda r: literal(r | {"durationMs": "@"}, "NaN"), ("durationMs", "finite")),
    "an integer of 400 digits": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, "1" * 400), ("x", "64 bits")),
    "an integer of 5,000 digits": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, "1" * 5000), ("x", "inf")),
    "nesting 150 deep": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, "[" * 150 + "]" * 150),
        ("parameters", "nested deeper than 100")),
    "nesting 200 deep": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, '{"a":' * 200 + "1" + "}" * 200),
        ("parameters", "nested deeper than 100")),
    "nesting 400 deep": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, "[" * 400 + "]" * 400),
        ("nested deeper than 100",)),
    "a lone surrogate": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, '"\\ud800"'), ("x", "surrogate")),
    "a lone surrogate in bytes": (
        lambda r: literal(r | {"context": "@"}, '"\ud800"'), ("context", "surrogate")),
    "a lone surrogate in a key": (
        lambda r: literal(r | {"parameters": {"x": "@"}}, '{"\\udfff": 1}'), ("surrogate",)),
    "a lone surrogate in a field name": (
        lambda r: json.dumps(r)[:-1] + ', "\\ud800": 1}', ("a field name", "surrogate")),
    "nul in a parameter": (
        lambda r: json.dumps(r | {"parameters": {"x": "a\0b"}}), ("x", "NUL")),
    "nul in a name": (lambda r: json.dumps(r | {"toolName": "a\0b"}), ("toolName", "NUL")),
    "a timestamp without a zone": (
        lambda r: json.dumps(r | {"timestamp": "2026-02-20T14:30:00"}), ("timestamp", "timezone")),
    "a timestamp in the year 9999": (
        lambda r: json.dumps(r | {"timestamp": "9999-12-31T23:59:59Z"}), ("timestamp",)),
    "a timestamp before 1970": (
        lambda r: json.dumps(r | {"timestamp": "1969-12-31T00:00:00Z"}), ("timestamp", "1970")),
    "a timestamp two days ahead": (
        lambda r: json.dumps(r | {"timestamp": str(datetime.now(UTC) + timedelta(days=2))}),
        ("timestamp",)),
    "a timestamp as a number": (
        lambda r: json.dumps(r | {"timestamp": 1_700_000_000}), ("timestamp", "RFC 3339")),
    "a success with an error": (
        lambda r: json.dumps(r | {"error": {"message": "m"}}), ("a success has no error",)),
    "a failure without an error": (
        lambda r: json.dumps(r | {"outcome": "failure"}), ("a failure needs an error",)),
    "an unknown outcome": (lambda r: json.dumps(r | {"outcome": "ok"}), ("outcome", "success")),
    "an empty tool name": (lambda r: json.dumps(r | {"toolName": ""}), ("toolName",)),
    "a tool name of 300 characters": (lambda r: json.dumps(r | {"toolName": "t" * 300}), ("256",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", NEVER_VALID)
def test_a_bad_execution_is_refused_with_field_and_problem_and_its_neighbours_are_stored(
    service: RunningService, kind: str
) -> None:
    """Alone with 422 or 409; in a list it is named by its position."""
    spoil, said = NEVER_VALID[kind]
    record, before, after = spoil(execution()), execution(), execution()
    alone = service.record_text(record)
    if alone.status_code == 409:  # well-formed, but not by this clock
        message = error_of(alone, 409, "refused")
    else:
        message = error_of(alone, 422, "invalid_request")
    response = service.record_text(f"[{json.dumps(before)}, {record}, {json.dumps(after)}]")
    assert response.status_code == 202, response.text
    receipt = response.json()
    assert (receipt["accepted"], receipt["duplicates"]) == (2, 0)
    [rejection] = receipt["rejected"]
    assert rejection["index"] == 1
    for words in said:
        assert words in message
        assert words in rejection["message"]
    assert service.is_stored(before)
    assert service.is_stored(after)


def test_records_that_are_no_objects_are_rejected_one_by_one(service: RunningService) -> None:
    """Any JSON value may stand where an execution should."""
    good = execution()
    receipt = service.record([3, "text", None, [], good, True]).json()
    assert receipt["accepted"] == 1
    assert [entry["index"] for entry in receipt["rejected"]] == [0, 1, 2, 3, 5]
    assert service.is_stored(good)


@pytest.mark.parametrize("body", [b"[" + b" " * (9 * MIB) + b"]", repeat(b" " * MIB, 9)])
def test_a_9_mib_body_is_413(service: RunningService, body: bytes | Iterator[bytes]) -> None:
    """By its length; without one, once it has grown too large."""
    response = service.client.post(
        "/executions", content=body, headers={"content-type": "application/json"}
    )
    assert "8,388,608 bytes" in error_of(response, 413, "too_large")
    goes_on(service)


def test_a_body_just_under_8_mib_is_taken(service: RunningService) -> None:
    """The limit is where the contract says it is."""
    large = execution(result="x" * (8 * MIB - 2000))
    assert service.record(large).json()["accepted"] == 1
    assert service.is_stored(large)


@pytest.mark.parametrize("spoil", ["", "NaN"], ids=["clean", "with a NaN"])
def test_1001_executions_are_413_and_none_is_stored(service: RunningService, spoil: str) -> None:
    """Too many records are refused whole, whichever parser reads them."""
    records = [execution(result=0 if spoil else None) for _ in range(1001)]
    text = json.dumps(records)
    if spoil:
        text = text.replace('"result": 0', '"result": NaN', 1)
    message = error_of(service.record_text(text), 413, "too_large")
    assert "1,000" in message
    assert "nothing was stored" in message
    assert not service.is_stored(records[1])
    goes_on(service)


def test_1000_executions_are_taken_at_once(service: RunningService) -> None:
    """The largest batch of the contract is recorded."""
    receipt = service.record([execution() for _ in range(1000)]).json()
    assert receipt == {"accepted": 1000, "duplicates": 0, "rejected": [], "leftOut": 0}


def test_an_id_with_other_content_is_a_conflict(service: RunningService) -> None:
    """The same content again is a duplicate; in a list the conflict rejects no neighbour."""
    first, good = execution(), execution()
    other = first | {"agent": "somebody else"}
    service.record(first)
    again = service.record(first).json()
    assert again == {"accepted": 0, "duplicates": 1, "rejected": [], "leftOut": 0}
    error_of(service.record(other), 409, "conflict")
    receipt = service.record([first, other, good]).json()
    assert (receipt["accepted"], receipt["duplicates"]) == (1, 1)
    assert [entry["index"] for entry in receipt["rejected"]] == [1]
    assert service.is_stored(good)
    assert service.client.get(f"/executions/{first['executionId']}").json()["agent"] == "librarian"


def test_of_a_key_that_stands_twice_the_last_value_counts(service: RunningService) -> None:
    """Both parsers agree, so that a NaN elsewhere in the batch does not change what is stored."""
    twice, other = execution(), execution()
    text = json.dumps(twice)[:-1] + ', "agent": "the last"}'
    bad = literal(execution(parameters={"x": "@"}), "NaN")
    service.record_text(f"[{text}]")
    again = json.dumps(other)[:-1] + ', "agent": "the last"}'
    service.record_text(f"[{again}, {bad}]")
    for record in (twice, other):
        stored = service.client.get(f"/executions/{record['executionId']}").json()
        assert stored["agent"] == "the last"


def test_a_missing_field_does_not_hide_the_misspelt_one(service: RunningService) -> None:
    """What was probably meant comes first, before what is therefore missing."""
    record = execution()
    record["tool_nmae"] = record.pop("toolName")
    message = error_of(service.record(record), 422, "invalid_request")
    assert message.startswith("unknown field `tool_nmae`; did you mean `toolName`?")


def test_messages_never_repeat_a_value(service: RunningService) -> None:
    """A rejected value may be a secret or a megabyte; neither comes back."""
    secret = "sk-live-abcdefghijklmnop123456"  # noqa: S105  # it only looks like one
    for spoiled in (
        execution(agent=[secret]),
        execution(durationMs=secret),
        execution(outcome=secret),
        execution(executionId=secret),
        execution(timestamp=secret),
        execution(**{secret: 1}),
    ):
        response = service.record(spoiled)
        error_of(response, 422, "invalid_request")
        assert secret not in response.text
    huge = service.record(execution(**{"x" * 100_000: 1}))
    assert len(huge.text) < 1000


def test_a_thousand_bad_records_get_a_bounded_answer(service: RunningService) -> None:
    """Each rejection is short, whatever was sent."""
    response = service.record([{"x" * 200 + str(i): 1 for i in range(30)} for _ in range(1000)])
    assert len(response.json()["rejected"]) == 1000
    assert len(response.content) < 1000 * 600


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
    ids=["text", "form", "multipart", "none", "utf-16", "gzip"],
)
def test_other_media_types_are_415(service: RunningService, headers: dict[str, str]) -> None:
    """What a web page may send without a preflight is never read."""
    record = execution()
    content = json.dumps(record).encode()
    response = service.client.post("/executions", content=content, headers=headers)
    error_of(response, 415, "unsupported_media_type")
    assert not service.is_stored(record)


def test_a_preflight_grants_nothing(service: RunningService) -> None:
    """No CORS header lets a page of another origin send JSON or read an answer."""
    response = service.client.options(
        "/executions", headers={"origin": "https://example.com",
                                "access-control-request-method": "POST",
                                "access-control-request-headers": "content-type"},
    )  # fmt: skip
    error_of(response, 405, "method_not_allowed")
    granted = service.client.get("/status", headers={"origin": "https://example.com"})
    for answer in (response, granted):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_foreign_host_name_is_403(service: RunningService) -> None:
    """A name that was rebound to this machine is not answered."""
    response = service.client.get("/status", headers={"host": "rebound.example.com:8799"})
    assert "AFTERCALL_SERVER_ALLOWED_HOSTS" in error_of(response, 403, "host_not_allowed")
    for name in ("localhost", "127.0.0.1:1", "[::1]:8799", "LOCALHOST:8799"):
        assert service.client.get("/status", headers={"host": name}).status_code == 200


def test_an_unknown_path_is_404(service: RunningService) -> None:
    """Also for paths that FastAPI would redirect or serve by default."""
    for path in ("/nope", "/executions/", "/redoc", "/tools/", "//status"):
        response = service.client.get(path)
        assert response.status_code in {404, 405, 422}, path
        assert set(response.json()) == {"error"}
    error_of(service.client.get("/nope"), 404, "not_found")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "Error", "message": "Invalid id"},
        {"type": None, "message": "Invalid id", "code": None, "stack": None, "details": None},
    ],
)
def test_empty_texts_and_nulls_of_an_error_are_answered(
    service: RunningService, error: dict[str, Any]
) -> None:
    """An empty parameter beside a context is no fault of the service; null is as left out."""
    asked = failure(parameters={"id": ""}, error=error, context="Cancel it please")
    assert service.client.post("/suggest", json={"execution": asked}).status_code == 200
    assert service.record(asked).json()["accepted"] == 1
