"""What explains the differences between two calls: every explanation gives what was sent."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import same_json
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.rewrites.rewriting import candidate_edits, find_differences, forms_between
from retrieval.knowledge.tool.examples import RepairExample, common_changes
from retrieval.knowledge.tool.repairs import learned_repairs
from retrieval.knowledge.values.parameters import EVERY, value_at

NOW = datetime(2026, 11, 29, tzinfo=UTC)
SCALARS = st.none() | st.booleans() | st.integers(-999, 999) | st.text("abc -_/,:09", max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=3)
    ),
    max_leaves=6,
)
CALLS = st.dictionaries(st.sampled_from("abcde"), VALUES, max_size=4)


def told(pairs: Any, asked: Any) -> Any:
    """What a call becomes after so many agents mended theirs."""
    examples = [
        RepairExample(*pair, [], f"key-{at}/agent", f"session {at}", f"call {at}", NOW)
        for at, pair in enumerate(pairs)
    ]
    found = learned_repairs(examples, common_changes(examples), asked, "key-9/agent")
    return try_edits(asked, found[0].edits) if found else None


@given(CALLS, CALLS)
def test_every_explanation_of_one_place_gives_what_stands_there(failed: Any, mended: Any) -> None:
    for edit in candidate_edits(failed, mended):
        made = try_edits(failed, [edit])
        if made is None or EVERY in edit.path or isinstance(edit, ed.Remove | ed.Rename):
            continue
        assert same_json(value_at(made, edit.path), value_at(mended, edit.path)), edit


@given(CALLS)
def test_equal_calls_have_nothing_to_explain(call: Any) -> None:
    assert candidate_edits(call, call) == []
    assert find_differences(call, call) == (set(), set(), set())


@given(VALUES, VALUES)
def test_a_form_that_is_found_makes_the_value(before: Any, after: Any) -> None:
    for form in forms_between(before, after):
        made = try_edits({"v": before}, [form.at_path(("v",))])
        assert made is not None
        assert same_json(made["v"], after)


@pytest.mark.parametrize(
    ("pairs", "asked", "meant"),
    [
        (
            [
                ({"f": {"text": word, "on": True}}, {"f": {"on": True, "match": {"body": word}}})
                for word in ("oak", "elm")
            ],
            {"f": {"text": "ash", "on": False}},
            {"f": {"on": False, "match": {"body": "ash"}}},
        ),
        (
            [({"a": "one", "b": "two"}, {"a": "two", "b": "one"}),
             ({"a": "red", "b": "sky"}, {"a": "sky", "b": "red"})],
            {"a": "low", "b": "high"}, {"a": "high", "b": "low"},
        ),
        (
            [({"ids": [42, 117]}, {"ids": ["0042", "0117"]}), ({"ids": [8]}, {"ids": ["0008"]})],
            {"ids": [7, 1200]}, {"ids": ["0007", "1200"]},
        ),
        (
            [({"x": [word]}, {"x": [{"id": word, "type": "svc"}]}) for word in ("PX7", "QA1")],
            {"x": ["ZZ9", "AB2"]},
            {"x": [{"id": "ZZ9", "type": "svc"}, {"id": "AB2", "type": "svc"}]},
        ),
        (
            [({"r": "3-9"}, {"from": 3, "to": 9}), ({"r": "1-4"}, {"from": 1, "to": 4})],
            {"r": "10-25"}, {"from": 10, "to": 25},
        ),
        (
            [({"n": 5, "of": "EUR"}, {"price": "5 EUR"}),
             ({"n": 8, "of": "USD"}, {"price": "8 USD"})],
            {"n": 71, "of": "CHF"}, {"price": "71 CHF"},
        ),
        (
            [({"on": True}, {"on": "Y"}), ({"on": False}, {"on": "N"})], {"on": False}, {"on": "N"},
        ),
    ],
)  # fmt: skip
def test_two_agents_teach_a_rewrite_for_other_values(pairs: Any, asked: Any, meant: Any) -> None:
    assert told(pairs, asked) == meant


def test_half_of_a_move_is_no_lesson() -> None:
    """Where the text that was moved is another one, to leave it out would lose it."""
    pairs = [({"f": {"text": "oak"}}, {"f": {"body": "pine"}}),
             ({"f": {"text": "elm"}}, {"f": {"body": "larch"}})]  # fmt: skip
    assert told(pairs, {"f": {"text": "ash"}}) is None
