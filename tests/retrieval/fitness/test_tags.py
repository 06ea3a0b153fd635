"""Negative tags exclude by a requested tag or by the words of the scenario, and say why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.fitness.score import exclusion_reason

TAG = "not-for-code-blocks"


@pytest.mark.parametrize(
    "scenario",
    [
        "translate docs with code blocks",
        "keep the Code-Block as it is",
        "a CODE BLOCK",
        "code_blocks",
    ],
)
def test_a_scenario_that_says_the_words_in_a_row_excludes(scenario: str) -> None:
    """Singular or plural, in whatever case."""
    reason = exclusion_reason([TAG], [], scenario)
    assert reason is not None
    assert TAG in reason


@pytest.mark.parametrize("scenario", ["code in blocks", "block code", "encode blocks", "translate"])
def test_other_words_do_not(scenario: str) -> None:
    """The words apart, turned round, or inside others."""
    assert exclusion_reason([TAG], [], scenario) is None


def test_a_requested_tag_excludes() -> None:
    """Case and plural aside; a part of it does not."""
    assert exclusion_reason([TAG], ["Code-Block"], "translate") is not None
    assert exclusion_reason([TAG], ["code"], "translate") is None


def test_the_reason_names_both_sides() -> None:
    """The tag, and what met it."""
    assert exclusion_reason(["x", TAG], ["code_blocks"], "go") == (
        "it has the tag 'not-for-code-blocks' and 'code_blocks' was asked for"
    )
    assert exclusion_reason(["not-for-queries"], [], "run a query") == (
        "it has the tag 'not-for-queries' and the scenario says 'query'"
    )


def test_plurals_do_not_make_other_words_alike() -> None:
    """`pas` is no plural of `pa`, nor `class` of `clas`."""
    assert exclusion_reason(["not-for-classes"], [], "one class") is not None
    assert exclusion_reason(["not-for-gas"], [], "ga") is None
    assert exclusion_reason(["not-for-news"], [], "news of today") is not None


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=60))
def test_any_text_is_a_tag_or_a_scenario(tags: list[str], scenario: str) -> None:
    """A tag without a word excludes nothing; nothing raises."""
    exclusion_reason(tags, tags, scenario)
    assert exclusion_reason(["", "not-for-", "---"], tags, scenario) is None
