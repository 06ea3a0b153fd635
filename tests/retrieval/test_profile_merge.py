"""Learned in any order, a profile is the same; beyond its bounds nothing is invented."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mongo.records import decode_json, encode_json
from retrieval.knowledge.tool.profile import ToolProfile
from tests.retrieval.profiles import Seen, calls, profile_of


@settings(deadline=None)
@given(st.lists(calls, max_size=40), st.data())
def test_the_order_of_calls_does_not_matter(seen: list[Seen], data: st.DataObject) -> None:
    """Only their own times count; and what is stored is what was learned."""
    whole = profile_of(*seen)
    assert profile_of(*data.draw(st.permutations(seen))) == whole
    assert decode_json(ToolProfile, encode_json(whole)) == whole
