"""Corrections are proposed for what says so, and for nothing that only sounds like it.

The labelled messages were written before the rules were. The rules were tuned on the first two
lists; the held-out ones were only measured, and are not to be tuned on.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.corrections import MAX_PHRASE_CHARS, propose_correction

PHRASES = json.loads((Path(__file__).parent / "data" / "correction_phrases.json").read_text())


@pytest.mark.parametrize(("text", "kind"), PHRASES["corrections"].items())
def test_a_correction_is_proposed_with_its_kind(text: str, kind: str) -> None:
    proposal = propose_correction(text)
    assert proposal.kind == kind
    assert proposal.phrase in text
    assert 0 < proposal.confidence < 1


@pytest.mark.parametrize("text", PHRASES["not_corrections"])
def test_what_only_sounds_like_a_correction_is_left_alone(text: str) -> None:
    assert propose_correction(text) is None


def test_on_messages_that_the_rules_were_not_written_for() -> None:
    """The measured figures, so that no change makes them worse: 17 of 25 found, none wrongly."""
    held_out = PHRASES["held_out_corrections"]
    found = [propose_correction(text) for text in held_out]
    kinds = [proposal.kind if proposal else None for proposal in found]
    right = [a == b for a, b in zip(kinds, held_out.values(), strict=True)]
    assert sum(right) >= 17
    assert not any(map(propose_correction, PHRASES["held_out_not_corrections"]))


def test_what_is_wrong_counts_more_than_that_it_should_be_done_again() -> None:
    vague = propose_correction("Try again.")
    clear = propose_correction("Try again. That is not what I asked for, you see.")
    assert vague.confidence < clear.confidence
    assert clear.phrase == "That is not what I asked for, you see"


def test_a_correction_far_into_a_long_text_is_somebody_elses() -> None:
    """A pasted document may say of anything that it is wrong."""
    assert propose_correction("Summarise this review. " + "x " * 500 + ". That is wrong.") is None


_WORDS = "no, |that |this is |these are not |a b |s |, not |i wanted |you |don't use |wrong |tool "
_PIECES = [*_WORDS.split("|"), ".", "?", "\n", "- ", "but ", "x", " ", "\u0130", "\u2019"]


@given(st.lists(st.sampled_from(_PIECES), max_size=8), st.integers(1, 200))
def test_any_text_gets_an_answer_with_a_phrase_of_it(pieces: list[str], times: int) -> None:
    """Also what a pattern that backtracks would never come back from."""
    text = "".join(pieces) * times
    proposal = propose_correction(text)
    if proposal is not None:
        assert 0 < len(proposal.phrase) <= MAX_PHRASE_CHARS
        assert proposal.phrase in text
