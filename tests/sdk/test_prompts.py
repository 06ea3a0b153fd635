"""The ready texts: what they ask, and that nothing quoted in them can step out of its quotation."""

from hypothesis import given

from aftercall import self_evaluation
from aftercall.prompts import MAX_DELIVERABLE_CHARS, SELF_EVALUATION
from tests.sdk.strategies import json_values


def test_the_questions_are_letter_spirit_and_referral() -> None:
    """In this order, with the guard against overuse and the wish for evidence (seed 000)."""
    asked = [SELF_EVALUATION.index(f"{n}. The {what}") for n, what in
             enumerate(("letter", "spirit", "referral"), start=1)]  # fmt: skip
    assert asked == sorted(asked)
    for word in ("boundary_axes", "suggested_split", "evidence", "no way out", "of little use"):
        assert word in SELF_EVALUATION
    assert "must not" not in SELF_EVALUATION.lower()
    assert self_evaluation() == SELF_EVALUATION


@given(json_values)
def test_a_deliverable_is_quoted_as_data(deliverable: object) -> None:
    """Bounded, on one line, and it cannot close its quotation, whatever it is."""
    if deliverable is None:
        return
    text = self_evaluation(deliverable)  # type: ignore[arg-type]  # any JSON value
    assert text.endswith(SELF_EVALUATION)
    [line] = [each for each in text.split("\n") if each.startswith("<deliverable>")]
    inside = line.removeprefix("<deliverable>").removesuffix("</deliverable>")
    assert not set("<>") & set(inside)
    assert len(inside) <= MAX_DELIVERABLE_CHARS
