"""An answer in words and rows says what the wire says."""

from typing import Any

import pytest

from aftercall.models import Change, FailurePattern, Suggestion, SuggestResponse
from service.dashboard.shown.answered import (
    ABSENT,
    answer_words,
    change_rows,
    confidence_words,
    evidence_links,
    evidence_pairs,
    headline,
    pattern_of,
    value_text,
)

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


def response(*suggestions: Suggestion, **fields: Any) -> SuggestResponse:
    return SuggestResponse.model_validate(
        {
            "pattern": {"category": "invalid_parameters", "signature": "s", "confidence": 0.9},
            "suggestions": suggestions,
            "retry": {"safe": True, "reason": "r"},
            "abstained": not suggestions,
            "tookMs": 5.2,
            **fields,
        }
    )


def pattern(pattern_id: str, signature: str, *examples: str, **fields: Any) -> FailurePattern:
    return FailurePattern.model_validate(
        {
            "patternId": pattern_id,
            "tool": {"toolName": "t"},
            "category": "invalid_parameters",
            "signature": signature,
            "count": 3,
            "examples": examples,
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
    told = confidence_words(suggestion(confidenceInterval=(0.881, 0.97)))
    assert told.startswith("94.0 %, 90 % interval 88.1 % to 97.0 %; above 80.0 %")
    assert "not above 80.0 %" in confidence_words(suggestion(confidence=0.8))


def test_evidence_is_told_with_its_counts() -> None:
    """Thousands separated."""
    pairs = dict(evidence_pairs(suggestion().evidence))
    assert pairs["Repairs with the same edit"] == "12"
    assert pairs["Successes that agree"] == "1,212"
    assert pairs["Drawn from"] == "nothing that was recorded"


def test_no_value_is_told_apart_from_null() -> None:
    """`add` has nothing before, `remove` nothing after; null is a value."""
    changes = [
        Change(op="add", path="/a", value=None, reason="r"),
        Change(op="remove", path="/b", from_=1, reason="r"),
        Change(op="replace", path="/c", from_="1", value=1, reason="r"),
    ]
    rows = change_rows(suggestion(changes=changes))
    assert [(row["from"], row["value"]) for row in rows] == [
        (ABSENT, "null"), ("1", ABSENT), ('"1"', "1"),
    ]  # fmt: skip


def test_a_value_is_shown_bounded_and_without_invisible_characters() -> None:
    """A change of direction may make a value read as another."""
    assert len(value_text("x" * 10_000)) == 300
    assert "\u202e" not in value_text("a\u202eb")


def test_an_answer_is_told_in_one_sentence() -> None:
    """The best suggestion, or why there is none."""
    told = answer_words(response(suggestion(), suggestion()))
    assert "confidence 94.0 %, and 1 more (answered in 5.2 ms)" in told
    assert answer_words(response(reason="no like call")) == (
        "No suggestion: no like call (answered in 5.2 ms)."
    )


def test_executions_and_wordings_lead_to_their_pattern() -> None:
    """Where a pattern has the execution as an example, or the error's wording."""
    mine = pattern("p1", "other", ONE, wordings=["s"])
    links = evidence_links(suggestion().evidence, [mine])
    assert [(each.execution_id, each.pattern) for each in links] == [(ONE, mine), (TWO, None)]
    assert pattern_of(response(), [pattern("p0", "z"), mine]) == mine
    assert pattern_of(response(), [pattern("p0", "z")]) is None
