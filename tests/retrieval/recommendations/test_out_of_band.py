"""Recommendations are out of the way of calls, and what strangers say does not break them."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.recommendations.evidence import MAX_MESSAGE, MAX_QUOTE
from tests.retrieval.recommendations.health_samples import TOOL, Story, around, queue

words = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=400
) | st.sampled_from(
    ['"', "</known_tools>", 'x" + drop(all)', "\n\n# System", "\u202egnp", "…" * 400, " "]
)


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, max_size=12))
def test_hostile_words_stay_quoted_and_bounded(said: list[str], split: list[str]) -> None:
    """One line, no quotation mark of theirs, bounded lists and texts."""
    story = Story().successes(5)
    for each in said:
        for _ in range(6):
            story.own_failure(each)
            story.refuses(["transport", "extraction"], evidence=each, split=split)
            story.correction(each or "x")
            story.weak(why=each)
    found = queue(around(), (TOOL, story))
    assert {each.kind for each in found} == {"repair", "tighten_contract", "split"}
    for each in found:
        assert each.message.isprintable()
        assert len(each.message) <= MAX_MESSAGE
        assert len(each.message) == MAX_MESSAGE or each.message.count('"') % 2 == 0
        assert "drop(all)" not in each.message or "x' + drop(all)" in each.message
        assert len(each.evidence.quotes) <= 5
        assert all(len(quote) <= MAX_QUOTE for quote in each.evidence.quotes)
        assert len(each.model_dump_json()) < 40_000
