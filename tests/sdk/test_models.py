"""The wire models: camelCase out, both cases in, nothing unknown, nothing unclean."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

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


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(data=st.data())
@settings(max_examples=30)
def test_models_survive_the_wire(models: st.SearchStrategy[WireModel], data: st.DataObject) -> None:
    """What is sent is what arrives, read from JSON text, from parsed JSON or by Python names.

    No snake_case name leaves; a field that is not of the contract is refused by its name.
    """
    model = data.draw(models)
    kind, text, named = type(model), model.model_dump_json(), model.model_dump(by_alias=False)
    sent = json.loads(text)
    assert set(sent) <= {to_camel(name) for name in kind.model_fields}
    for arrived in map(kind.model_validate, (sent, named)):
        assert arrived == kind.model_validate_json(text) == model
        assert arrived.model_dump_json() == text
    for fields in (sent, named):
        with pytest.raises(ValidationError) as refusal:
            kind.model_validate(fields | {"topk": 1})
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
        ("result", json.loads("[" * 200 + "]" * 200)),
    ],
)  # fmt: skip
def test_bad_values_are_refused_with_the_field(field: str, value: Any) -> None:
    """Each bad input of the contract is refused, and the first place named is its field."""
    with pytest.raises(ValidationError) as refusal:
        Execution.model_validate(EXECUTION | {field: value})
    assert refusal.value.errors()[0]["loc"][0] == field


def test_the_error_must_fit_the_outcome() -> None:
    """A failure has an error, a success has none; the message tells what to do."""
    with pytest.raises(ValidationError, match="a failure needs an error"):
        Execution.model_validate(EXECUTION | {"error": None})
    with pytest.raises(ValidationError, match="a success has no error"):
        Execution.model_validate(EXECUTION | {"outcome": "success"})


def test_annotations_are_booleans_or_nothing() -> None:
    """A retry may hang on them, so nothing is read into a text; unknown hints are ignored."""
    given_hints = {"readOnlyHint": True, "title": "List files", "idempotent_hint": False}
    hints = ToolAnnotations.model_validate(given_hints)
    assert (hints.read_only_hint, hints.idempotent_hint) == (True, False)
    assert hints.destructive_hint is None


def test_a_change_has_the_fields_of_its_operation() -> None:
    """`add` has no `from`, `remove` no `value`, and null is a value like any other."""
    fields = {"path": "/a", "from": None, "value": None, "reason": "r"}
    expected = {"add": {"value"}, "remove": {"from"}, "replace": {"from", "value"}}
    for operation, own in expected.items():
        change = Change.model_validate(fields | {"op": operation})
        assert set(change.model_dump(mode="json")) == {"op", "path", "reason"} | own


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("field", "sent", "kept"),
    [
        ("timestamp", "2026-02-20T15:30:00+01:00", "2026-02-20T14:30:00Z"),
        ("timestamp", "2026-02-20 09:30:00-05:00", "2026-02-20T14:30:00Z"),
        ("timestamp", "2026-02-20t14:30:00z", "2026-02-20T14:30:00Z"),
        ("timestamp", datetime(2026, 2, 20, 15, 30, tzinfo=timezone(timedelta(hours=1))),
         "2026-02-20T14:30:00Z"),
        ("executionId", "0B7E1C9A-2A4E-4B0E-9D5C-3F1F6A1B2C3D", EXECUTION["executionId"]),
        ("executionId", "0b7e1c9a2a4e4b0e9d5c3f1f6a1b2c3d", EXECUTION["executionId"]),
        ("error", {"message": "m", "code": -32602}, EXECUTION["error"] | {
            "type": "Error", "message": "m", "code": "-32602"}),
        ("traceId", TRACE, TRACE), ("traceId", "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736", TRACE),
        ("traceId", "7277407061855694839", None), ("traceId", "0" * 32, None),
        ("traceId", "", None),
    ],
)  # fmt: skip
def test_what_is_written_otherwise_is_kept_in_one_form(field: str, sent: Any, kept: Any) -> None:
    """Times in UTC, ids in canonical form, codes as text; ids of other systems are left out."""
    dumped = Execution.model_validate(EXECUTION | {field: sent}).model_dump(mode="json")
    assert dumped.get(field) == kept


[SUGGESTED] = SUGGESTION["suggestions"]


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        *((SuggestRequest, {"execution": EXECUTION, "limit": n}) for n in (0, 21, "3", 3.5, None)),
        *((SimilarRequest, {"toolName": "t", "limit": n}) for n in (0, 51, "3")),
        *((ToolAnnotations, {"readOnlyHint": said}) for said in ("true", 1, "no")),
        *((Suggestion, SUGGESTED | {"confidenceInterval": each})
          for each in ([0.9], [0.9, 1.1], [-0.1, 0.9], [0.1, 0.2, 0.3], 0.9)),
        (FailedCall, EXECUTION | {"outcome": "success"}),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(model: type[WireModel], fields: dict[str, Any]) -> None:
    """Limits of questions, hints that are no booleans, intervals of no probabilities."""
    with pytest.raises(ValidationError):
        model.model_validate(fields)


def test_what_may_be_left_out() -> None:
    """A service that knows no interval; a question without parameters, or with null."""
    fields = {name: SUGGESTED[name] for name in SUGGESTED if name != "confidenceInterval"}
    assert Suggestion.model_validate(fields).confidence_interval is None
    for given_fields in ({}, {"parameters": None}):
        assert SimilarRequest.model_validate({"toolName": "t", **given_fields}).parameters == {}


def test_arguments_that_are_a_text_are_kept_as_they_came() -> None:
    """Nothing is known of the parameters then, and the text stands beside them."""
    call = FailedCall.model_validate(
        {"agent": "a", "toolName": "t", "parameters": "{'a': 1", "error": {"message": "bad JSON"}}
    )
    assert call.arguments_text == "{'a': 1"
    assert call.parameters == {}
    assert not call.parameters_known
