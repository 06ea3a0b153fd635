"""Refusals: the matter, not a parameter, is what the answer no is about."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ExecutionError, Suggestion
from retrieval.knowledge.reading.category import refusal_of
from retrieval.knowledge.rewrites.edits import Rename
from retrieval.knowledge.tool.rules import SignatureKnowledge
from tests.retrieval.cases import answer_to, make_case, object_schema

_TEXT = (Path(__file__).parents[1] / "refusals.jsonl").read_text(encoding="utf-8")
MESSAGES = [json.loads(line) for line in _TEXT.split("\n") if line]


@pytest.mark.parametrize("row", MESSAGES, ids=range(len(MESSAGES)))
def test_a_refusal_of_the_matter_is_handed_over(row: dict[str, str | None]) -> None:
    """No parameter is changed, nothing is sent again, and the lesson quotes what was said.

    None are values that can be mended, errors of the moment, and permissions.
    """
    message = str(row["message"])
    refusal = refusal_of(message)
    assert (refusal.kind if refusal else None) == row["refusal"]
    if refusal is not None:
        response = answer_to(make_case({"a": "x"}, message), message).response
        assert [each.action for each in response.suggestions] == ["escalate"]
        assert refusal.words in response.suggestions[0].lesson
        assert response.suggestions[0].corrected_parameters is None
        assert not response.retry.safe


def said(message: str, parameters: dict[str, object], **known: object) -> list[Suggestion]:
    case = make_case(parameters, message, **known)  # type: ignore[arg-type]  # passes on
    return answer_to(case, message).response.suggestions


def test_a_stated_repair_outweighs_a_refusal() -> None:
    """The schema shows the wrong name: that is what is wrong, whatever else the words say."""
    schema = object_schema(seats="integer") | {"additionalProperties": False}
    found = said("No seats available", {"seat": 2}, schema=schema)
    assert found[0].corrected_parameters == {"seats": 2}


def test_a_repair_that_was_learned_for_the_refusal_stands_beside_it() -> None:
    """Several sessions mended this very error so; the surer of the two comes first."""
    message = "voucher cannot be used for this"
    signature = make_case({"code": "x"}, message).reading.signature
    known = SignatureKnowledge(signature=signature, category="unknown")
    rule = known.rule_to_update([Rename(name="code", to="voucher_code")])
    rule.repairs, rule.sessions = 5, list("abcde")
    actions = {each.action for each in said(message, {"code": "x"}, signature=known)}
    assert actions == {"escalate", "change_parameters"}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_is_read(text: str) -> None:
    """Never an exception."""
    refusal = refusal_of(ExecutionError.model_construct(message=text).message)
    assert refusal is None or refusal.words
