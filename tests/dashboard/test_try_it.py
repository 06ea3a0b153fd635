"""What is typed or pasted on *Try it* becomes the wire's question, or faults in plain words."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Evidence, Pattern, RetryAdvice, Suggestion, SuggestResponse
from service.dashboard import html
from service.dashboard.try_it import (
    answer_words,
    confidence_words,
    evidence_pairs,
    request_of,
    write_headline,
)
from service.errors import ProblemError

CALL = {
    "agent": "ada",
    "toolName": "rag_query",
    "parameters": {"topK": 50},
    "error": {"message": "Invalid parameter: topK must be <= 10"},
}


def test_a_pasted_call_a_pasted_execution_and_a_pasted_body_ask_the_same() -> None:
    """A log line, a recorded execution, or a request."""
    execution = {
        **CALL,
        "executionId": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
        "timestamp": "2026-02-20T14:30:00Z",
        "outcome": "failure",
    }
    short = {name: CALL[name] for name in ("toolName", "parameters")} | {"error": "no"}
    for value in (short, CALL, execution, {"execution": CALL}, {"execution": CALL, "limit": 1}):
        found = request_of(json.dumps(value))
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
        ('{"toolName": "t", "agent": "\ud800"}', "surrogate"),
    ],
    ids=["blank", "cut", "list", "success", "misspelt", "inner", "deep", "surrogate"],
)
def test_what_is_pasted_wrong_is_told_in_plain_words(text: str, said: str) -> None:
    """With the path of the field, and what was probably meant."""
    with pytest.raises(ProblemError, match=re.escape(said)):
        request_of(text)


@given(st.text(max_size=200))
def test_no_text_breaks_the_form(text: str) -> None:
    """Whatever is typed becomes a question or a fault."""
    with suppress(ProblemError):
        request_of(text)


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
    assert write_headline(suggestion(**fields)).endswith(said)


def test_a_confidence_is_told_with_its_interval_and_what_follows() -> None:
    """0.80 is where gateways retry by themselves: above, not at."""
    words = confidence_words(suggestion(confidenceInterval=(0.881, 0.97)))
    assert words.startswith("94.0 %, 90 % interval 88.1 % to 97.0 %; above 80.0 %")
    assert "not above 80.0 %" in confidence_words(suggestion(confidence=0.8))


def test_evidence_is_told_with_its_counts() -> None:
    """And the executions that it rests on."""
    pairs = evidence_pairs(Evidence.model_validate(suggestion().evidence))
    assert dict(pairs)["Successes that agree"] == "1,212"
    assert dict(pairs)["Drawn from"] == "nothing that was recorded"
    assert pairs[-2:] == [("Execution", ONE), ("Execution", TWO)]


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


def test_a_suggestion_shows_what_it_does_with_each_value() -> None:
    """Where the service says so: one of an older version does not."""

    def page(**fields: Any) -> str:
        one = suggestion(**fields)
        response = SuggestResponse(
            pattern=Pattern(category="invalid_parameters", signature="s", confidence=1),
            suggestions=[one],
            retry=RetryAdvice(safe=True, reason="r"),
            abstained=False,
            took_ms=1,
        )
        shown = [(one, write_headline(one), confidence_words(one), evidence_pairs(one.evidence))]
        return html.render_template(
            "answer", said="s", response=response, suggestions=shown, sure=0.8, changes=()
        )

    value = {"path": "/topK", "origin": "moved", "from": "/top_k", "why": "another spelling"}
    told = page(account={"kept": 1, "values": [value]})
    line = "<code>/topK</code>: moved, from <code>/top_k</code> (another spelling)"
    assert line in told
    assert "1 value kept as sent" in told
    assert "each value" not in page()
