"""The wire models: camelCase out, both cases in, nothing unknown, nothing unclean."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from aftercall.json_patch import same_json
from aftercall.models import (
    Change,
    Execution,
    FailedCall,
    SimilarRequest,
    Suggestion,
    SuggestRequest,
    SuggestResponse,
    ToolAnnotations,
    WireModel,
)
from tests.sdk import strategies

EXECUTION: dict[str, Any] = {
    "executionId": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
    "timestamp": "2026-02-20T14:30:00Z",
    "agent": "librarian", "serverName": "rag-server", "toolName": "rag_query", "toolVersion": None,
    "parameters": {"query": "...", "topK": 50}, "context": "what the agent was trying to do",
    "outcome": "failure", "durationMs": 245.0,
    "error": {
        "type": "ValidationError", "message": "Invalid parameter: topK must be <= 10",
        "code": "PARAM_INVALID", "stack": None, "details": {},
    },
    "result": None, "sessionId": "s-1", "sequence": 7, "attempt": 1, "repairOf": None,
    "suggestionId": None, "inputSchema": None,
}  # fmt: skip
SUGGESTION: dict[str, Any] = {
    "pattern": {
        "category": "invalid_parameters",
        "signature": "Invalid parameter: topK must be <= <n>",
        "confidence": 0.97,
    },
    "suggestions": [{
        "suggestionId": "1b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d", "action": "change_parameters",
        "changes": [{
            "op": "replace", "path": "/topK", "from": 50, "value": 10, "reason": "the limit is 10",
        }],
        "correctedParameters": {"query": "...", "topK": 10}, "tool": None, "retryAfterMs": None,
        "confidence": 0.94, "confidenceInterval": [0.88, 0.97],
        "evidence": {
            "repairs": 12, "successes": 212, "failures": 1,
            "executionIds": ["0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"],
        },
        "lesson": "topK has a hard limit of 10; page through more results with offset.",
        "example": {"failed": {"topK": 50}, "successful": {"topK": 10}},
    }],
    "retry": {"safe": True, "reason": "the call was rejected before it ran"},
    "abstained": False, "reason": None, "tookMs": 5.2,
}  # fmt: skip

MODELS = {
    "Execution": strategies.executions,
    "FailedCall": strategies.failed_calls,
    "SuggestRequest": strategies.suggest_requests,
    "SuggestResponse": strategies.suggest_responses,
    "SimilarRequest": strategies.similar_requests,
    "SimilarResponse": strategies.similar_responses,
    "RecordReceipt": strategies.receipts,
    "ToolSpec": strategies.tool_specs,
    "Tool": strategies.tools,
}
every_model = pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)


@every_model
@given(data=st.data())
@settings(max_examples=30)
def test_models_survive_the_wire(models: st.SearchStrategy[WireModel], data: st.DataObject) -> None:
    """What is sent is what arrives, read from JSON text, from parsed JSON or by Python names."""
    model = data.draw(models)
    text = model.model_dump_json()
    for arrived in (
        type(model).model_validate_json(text),
        type(model).model_validate(json.loads(text)),
        type(model).model_validate(model.model_dump(by_alias=False)),
    ):
        assert arrived == model
        assert arrived.model_dump_json() == text


@every_model
@given(data=st.data())
@settings(max_examples=10)
def test_field_names_on_the_wire_are_camel_case(
    models: st.SearchStrategy[WireModel], data: st.DataObject
) -> None:
    """No snake_case name leaves, at any level that is a model."""
    model = data.draw(models)
    assert set(model.model_dump(mode="json")) <= {
        to_camel(name) for name in type(model).model_fields
    }


@every_model
@given(data=st.data())
@settings(max_examples=10)
def test_unknown_fields_are_refused_by_name(
    models: st.SearchStrategy[WireModel], data: st.DataObject
) -> None:
    """The error says which field is not of the contract."""
    model = data.draw(models)
    for fields in (model.model_dump(mode="json"), model.model_dump(by_alias=False)):
        with pytest.raises(ValidationError) as refusal:
            type(model).model_validate(fields | {"topk": 1})
        assert [error["loc"] for error in refusal.value.errors()] == [("topk",)]


def test_the_examples_of_the_contract_are_valid_and_come_back_whole() -> None:
    """Every field of the documented execution and answer survives with its value."""
    execution = Execution.model_validate(EXECUTION).model_dump(mode="json")
    assert execution.pop("resultStatus") is None
    assert execution == EXECUTION
    answer = SuggestResponse.model_validate(SUGGESTION).model_dump(mode="json")
    del answer["suggestions"][0]["evidence"]["sources"]
    assert answer["suggestions"][0].pop("split") == []
    for name in ("parameters", "class", "safe"):
        assert answer["suggestions"][0].pop(name) is None
    assert answer == SUGGESTION


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parameters", {"a": float("nan")}),
        ("parameters", {"a": [float("inf")]}),
        ("parameters", {"a": "x\0"}),
        ("parameters", {"a": "\ud800"}),
        ("parameters", {"a": 2**63}),
        ("parameters", []),
        ("parameters", None),
        ("parameters", "{}"),
        ("context", "x\0"),
        ("context", "\udc00"),
        ("context", 1),
        ("agent", ""),
        ("agent", "x" * 257),
        ("agent", None),
        ("toolName", "a\0b"),
        ("durationMs", -1),
        ("durationMs", float("nan")),
        ("durationMs", float("inf")),
        ("durationMs", "245"),
        ("durationMs", True),
        ("sequence", "7"),
        ("sequence", 7.5),
        ("sequence", True),
        ("sequence", -1),
        ("sequence", 2**63),
        ("attempt", 0),
        ("attempt", "1"),
        ("outcome", "Success"),
        ("outcome", "succeeded"),
        ("executionId", "not-a-uuid"),
        ("executionId", 7),
        ("executionId", ""),
        ("executionId", "{0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d}"),
        ("executionId", "0b7e1c9a2a4e4b0e9d5c3f1f6a1b2c_d"),
        ("repairOf", "x"),
        ("timestamp", "2026-02-20T14:30:00"),
        ("timestamp", "2026-02-20"),
        ("timestamp", "yesterday"),
        ("timestamp", "1771597800"),
        ("timestamp", 1771597800),
        ("timestamp", "2026-02-30T14:30:00Z"),
        ("timestamp", "9999-12-31T23:59:59Z"),
        ("timestamp", "9999-12-31T23:59:59-14:00"),
        ("timestamp", "0001-01-01T00:00:00+14:00"),
        ("timestamp", "1969-12-31T23:59:59Z"),
        ("timestamp", "1970-01-01T00:30:00+01:00"),
        ("timestamp", None),
        ("inputSchema", True),
        ("error", "boom"),
        ("error", {"type": "", "message": "m"}),
        ("error", {"message": None}),
        ("error", {"message": "m", "details": {"a": float("nan")}}),
    ],
)  # fmt: skip
def test_bad_values_are_refused_with_the_field(field: str, value: Any) -> None:
    """Each bad input of the contract is refused, and the first place named is its field."""
    with pytest.raises(ValidationError) as refusal:
        Execution.model_validate(EXECUTION | {field: value})
    assert refusal.value.errors()[0]["loc"][0] == field


def test_nesting_200_deep_is_refused() -> None:
    """Deep nesting gives an error that says so, not a crash."""
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    with pytest.raises(ValidationError, match="nested deeper than 100 levels"):
        Execution.model_validate(EXECUTION | {"result": deep})


def test_the_error_must_fit_the_outcome() -> None:
    """A failure has an error, a success has none; the message tells what to do."""
    with pytest.raises(ValidationError, match="a failure needs an error"):
        Execution.model_validate(EXECUTION | {"error": None})
    with pytest.raises(ValidationError, match="a success has no error"):
        Execution.model_validate(EXECUTION | {"outcome": "success"})
    with pytest.raises(ValidationError):
        FailedCall.model_validate(EXECUTION | {"outcome": "success"})


def test_times_are_kept_in_utc() -> None:
    """The same moment in any zone is the same timestamp, and leaves as UTC."""
    for text in (
        "2026-02-20T14:30:00Z",
        "2026-02-20T15:30:00+01:00",
        "2026-02-20 09:30:00-05:00",
        "2026-02-20t14:30:00z",
    ):
        execution = Execution.model_validate(EXECUTION | {"timestamp": text})
        assert execution.timestamp == datetime(2026, 2, 20, 14, 30, tzinfo=UTC)
        assert execution.timestamp.tzinfo is UTC
        assert execution.model_dump(mode="json")["timestamp"] == "2026-02-20T14:30:00Z"
    moment = datetime(2026, 2, 20, 15, 30, tzinfo=timezone(timedelta(hours=1)))
    assert Execution.model_validate(EXECUTION | {"timestamp": moment}).timestamp.hour == 14


def test_ids_are_kept_in_their_canonical_form() -> None:
    """Upper case and missing dashes are the same id."""
    for text in ("0B7E1C9A-2A4E-4B0E-9D5C-3F1F6A1B2C3D", "0b7e1c9a2a4e4b0e9d5c3f1f6a1b2c3d"):
        execution = Execution.model_validate(EXECUTION | {"executionId": text})
        assert execution.execution_id == EXECUTION["executionId"]


def test_error_codes_may_be_numbers() -> None:
    """JSON-RPC and HTTP give numbers; they are kept as text."""
    error = {"message": "m", "code": -32602}
    execution = Execution.model_validate(EXECUTION | {"error": error})
    assert execution.error.code == "-32602"


def test_annotations_are_booleans_or_nothing() -> None:
    """A retry may hang on them, so nothing is read into a text; unknown hints are ignored."""
    given_hints = {"readOnlyHint": True, "title": "List files", "idempotent_hint": False}
    hints = ToolAnnotations.model_validate(given_hints)
    assert (hints.read_only_hint, hints.idempotent_hint) == (True, False)
    assert hints.destructive_hint is None
    for value in ("true", 1, "no"):
        with pytest.raises(ValidationError):
            ToolAnnotations.model_validate({"readOnlyHint": value})


def test_a_change_has_the_fields_of_its_operation() -> None:
    """`add` has no `from`, `remove` no `value`, and null is a value like any other."""
    fields = {"path": "/a", "from": None, "value": None, "reason": "r"}
    expected = {"add": {"value"}, "remove": {"from"}, "replace": {"from", "value"}}
    for operation, own in expected.items():
        change = Change.model_validate(fields | {"op": operation})
        assert set(change.model_dump(mode="json")) == {"op", "path", "reason"} | own


def test_limits_of_questions_are_checked() -> None:
    """`limit` is bounded, and a number."""
    for bad in (0, 21, "3", 3.5, None):
        with pytest.raises(ValidationError):
            SuggestRequest.model_validate({"execution": EXECUTION, "limit": bad})
    for bad in (0, 51, "3"):
        with pytest.raises(ValidationError):
            SimilarRequest.model_validate({"toolName": "t", "limit": bad})
    assert same_json(SimilarRequest(tool_name="t").model_dump()["parameters"], {})
    assert SimilarRequest.model_validate({"toolName": "t", "parameters": None}).parameters == {}


def test_a_confidence_may_have_its_interval() -> None:
    """Two probabilities; a service that says none of it is understood too."""
    [answered] = SUGGESTION["suggestions"]
    fields = {name: answered[name] for name in answered if name != "confidenceInterval"}
    assert Suggestion.model_validate(fields).confidence_interval is None
    given = Suggestion.model_validate(fields | {"confidenceInterval": [0.88, 0.97]})
    assert given.confidence_interval == (0.88, 0.97)
    assert given.model_dump(mode="json")["confidenceInterval"] == [0.88, 0.97]
    for bad in ([0.9], [0.9, 1.1], [-0.1, 0.9], [0.1, 0.2, 0.3], 0.9):
        with pytest.raises(ValidationError):
            Suggestion.model_validate(fields | {"confidenceInterval": bad})


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("4BF92F35-77B3-4DA6-A3CE-929D0E0E4736", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("7277407061855694839", None),
        ("0" * 32, None),
        ("", None),
    ],
)
def test_a_call_is_kept_whatever_its_trace_is_called(sent: str, kept: str | None) -> None:
    """Ids of other systems are left out."""
    assert Execution.model_validate({**EXECUTION, "traceId": sent}).trace_id == kept
