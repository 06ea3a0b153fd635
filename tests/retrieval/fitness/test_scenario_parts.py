"""A scenario in its parts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.fitness.relevance import MAX_PARTS, scenario_parts


def test_one_request_is_embedded_once():
    """Most scenarios: no embedding more than before."""
    for text in ("translate API documentation", "Translate it. Thanks!", "", "v1.2.0 of a.b?"):
        assert scenario_parts(text) == [text]


def test_several_requests_are_embedded_beside_the_whole():
    """The whole is first: scenarios are compared with each other by it."""
    text = "Find a flight to Oslo. Then book a table for two!\nTell my boss about it"
    assert scenario_parts(text) == [
        text, "Find a flight to Oslo.", "Then book a table for two!", "Tell my boss about it",
    ]  # fmt: skip


@given(st.lists(st.sampled_from(["Do this thing now.", "And then do that one, too!", "Ok."])))
def test_parts_are_few_and_hold_every_request_once(sentences):
    """However many sentences: five texts at most, of neighbours in their order."""
    text = " ".join(sentences)
    whole, *parts = scenario_parts(text)
    assert whole == text
    assert len(parts) <= MAX_PARTS
    assert len(parts) != 1
    if parts:
        assert " ".join(parts) == " ".join(re.findall(r"Do[^.]*\.|And[^!]*!", text))
