"""What is typed or pasted on *Try it* becomes the wire's question, or faults in plain words."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Evidence, FailedCall, Suggestion, SuggestRequest, SuggestResponse
from service.dashboard.try_it import (
    ASKER,
    MAX_CHARS,
    FaultyFormError,
    Texts,
    answer_words,
    confidence_words,
    evidence_pairs,
    headline,
    request_of,
    texts_of,
)
from tests.dashboard.made import pattern
from tests.dashboard.test_look import look

TYPED = {
    "tool": "rag_query",
    "server": "rag-server",
    "parameters": '{"query": "x", "topK": 50}',
    "error": "Invalid parameter: topK must be <= 10",
}

CALL = {
    "agent": "ada",
    "toolName": "rag_query",
    "parameters": {"topK": 50},
    "error": {"message": "Invalid parameter: topK must be <= 10"},
}

FIELDS = ("tool", "server", "agent", "error", "type", "code", "parameters", "context", "pasted")


def faults(typed: Texts) -> Texts:
    with pytest.raises(FaultyFormError) as refused:
        request_of(typed)
    return refused.value.faults


def test_a_form_becomes_the_question_that_the_wire_knows() -> None:
    """With the fields that were filled in, and the wire's own defaults for the others."""
    call = request_of(TYPED).execution
    assert (call.tool_name, call.server_name) == ("rag_query", "rag-server")
    assert call.parameters == {"query": "x", "topK": 50}
    assert (call.error.type, call.error.code, call.context) == ("Error", None, None)
    assert call.agent == ASKER
    more = {"type": "ValueError", "code": "422", "context": "find", "agent": "ada"}
    call = request_of({**TYPED, **more, "parameters": " \n"}).execution
    assert (call.error.type, call.error.code) == ("ValueError", "422")
    assert (call.context, call.agent, call.parameters) == ("find", "ada", {})


def test_all_that_is_missing_is_told_at_once_at_its_field() -> None:
    """Nobody wants to send a form once per fault."""
    found = faults({})
    assert set(found) == {"tool", "error"}
    assert found["tool"] == "is missing"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ('{"topK": 50', "malformed JSON at line 1"),
        ('{\n "a": nope}', "line 2"),
        ("[1, 2]", "must be a JSON object"),
        ("50", "must be a JSON object"),
        ('{"a": NaN}', "nan"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "nested"),
    ],
    ids=["cut", "line", "list", "number", "nan", "deep"],
)
def test_bad_parameters_are_told_at_the_parameters(parameters: str, said: str) -> None:
    """With where and what, never as a traceback."""
    assert said in faults({**TYPED, "parameters": parameters})["parameters"]


def test_the_wire_s_own_limits_are_told_at_the_field_they_are_about() -> None:
    """A name of 300 characters is refused by the model, not by the form."""
    found = faults({**TYPED, "tool": "x" * 300, "agent": "y" * 300})
    assert set(found) == {"tool", "agent"}
    assert "256" in found["tool"]
    assert set(faults({**TYPED, "type": "t" * 300})) == {"type"}
    assert set(faults({**TYPED, "error": "a\x00b"})) == {"error"}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_is_too_long_is_refused_with_its_name(field: str) -> None:
    """Before anything of it is read."""
    assert "50,000 characters" in faults({**TYPED, field: "x" * (MAX_CHARS + 1)})[field]


def test_a_pasted_call_a_pasted_execution_and_a_pasted_body_ask_the_same() -> None:
    """A log line, a recorded execution, or a request."""
    execution = {
        **CALL,
        "executionId": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
        "timestamp": "2026-02-20T14:30:00Z",
        "outcome": "failure",
    }
    for value in (CALL, execution, {"execution": CALL}, {"execution": CALL, "limit": 1}):
        found = request_of({"pasted": json.dumps(value)})
        assert found.execution.parameters == {"topK": 50}
    assert found.limit == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "malformed JSON at line 1"),
        ("{", "malformed JSON at line 1"),
        ("[]", "must be one JSON object"),
        (json.dumps({**CALL, "outcome": "success"}), "outcome: should be 'failure'"),
        (json.dumps({**CALL, "tool_nam": 1}), "did you mean `toolName`"),
        (json.dumps({"execution": {**CALL, "agent": ""}}), "execution.agent"),
        ("[" * 500, "malformed JSON"),
        ('{"agent": "\ud800"}', "surrogate"),
    ],
    ids=["blank", "cut", "list", "success", "misspelt", "inner", "deep", "surrogate"],
)
def test_what_is_pasted_wrong_is_told_in_plain_words(text: str, said: str) -> None:
    """With the path of the field, and what was probably meant."""
    found = faults({"pasted": text})
    assert set(found) == {"pasted"}
    assert said in found["pasted"]


@given(st.text(max_size=200))
def test_no_text_breaks_the_form(text: str) -> None:
    """Whatever is typed becomes a question or faults."""
    for typed in ({"pasted": text}, {**TYPED, "parameters": text}, dict.fromkeys(FIELDS, text)):
        with suppress(FaultyFormError):
            assert isinstance(request_of(typed), SuggestRequest)


def test_a_call_fills_the_form_and_the_form_asks_the_same_call() -> None:
    """What an example fills in is what is asked."""
    call = FailedCall.model_validate({**CALL, "serverName": "rag", "context": "find"})
    assert request_of(texts_of(call)).execution == call


ONE, TWO = "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d", "1b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"


def suggestion(**fields: Any) -> Suggestion:
    return Suggestion.model_validate(
        {
            "suggestionId": ONE,
            "action": "change_parameters",
            "confidence": 0.94,
            "evidence": {"repairs": 12, "successes": 1212, "executionIds": [ONE, TWO]},
            "lesson": "topK has a limit",
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"changes": [{"op": "remove", "path": "/a", "reason": "r"}]}, "parameters: 1 change"),
        ({"action": "retry_unchanged"}, "Call again unchanged"),
        ({"action": "retry_unchanged", "retryAfterMs": 2300}, "Call again unchanged after 2.3 s"),
        ({"action": "switch_tool", "tool": "fetch"}, "Call another tool: fetch"),
        ({"action": "escalate"}, "Hand it over to somebody who can decide"),
    ],
    ids=["change", "retry", "wait", "switch", "escalate"],
)
def test_every_action_has_a_headline(fields: dict[str, Any], said: str) -> None:
    """In words that need no knowledge of the wire."""
    assert headline(suggestion(**fields)).endswith(said)


def test_a_confidence_is_told_with_its_interval_and_what_follows() -> None:
    """0.80 is where gateways retry by themselves: above, not at."""
    words = confidence_words(suggestion(confidenceInterval=(0.881, 0.97)))
    assert words.startswith("94.0 %, 90 % interval 88.1 % to 97.0 %; above 80.0 %")
    assert "not above 80.0 %" in confidence_words(suggestion(confidence=0.8))


def test_evidence_is_told_with_its_counts_and_leads_to_patterns() -> None:
    """An execution leads to the pattern that it is an example of, where there is one."""
    evidence = Evidence.model_validate(suggestion().evidence)
    pairs = evidence_pairs(look(), evidence, {ONE: pattern("p1")})
    assert dict(pairs)["Successes that agree"] == "1,212"
    assert dict(pairs)["Drawn from"] == "nothing that was recorded"
    assert pairs[-2:] == [("Execution", (ONE, "/dashboard/patterns/p1")), ("Execution", TWO)]


def test_an_answer_is_told_in_one_sentence() -> None:
    """The best suggestion, or why there is none."""

    def words(*suggestions: Suggestion, **fields: Any) -> str:
        answer = {
            "pattern": {"category": "invalid_parameters", "signature": "s", "confidence": 0.9},
            "suggestions": suggestions,
            "retry": {"safe": True, "reason": "r"},
            "abstained": not suggestions,
            "tookMs": 5.2,
        }
        return answer_words(SuggestResponse.model_validate({**answer, **fields}))

    two = words(suggestion(), suggestion())
    assert "confidence 94.0 %, and 1 more (answered in 5.2 ms)" in two
    assert words(reason="no like call") == "No suggestion: no like call (answered in 5.2 ms)."
