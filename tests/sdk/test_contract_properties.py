"""Laws of contracts: they hold for any deliverable and any value."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.contracts import Deliverable, check, to_canonical
from aftercall.contracts.deliverables import items_of, members_of
from aftercall.json_patch import value_at_pointer
from aftercall.json_values import JsonValue, canonical_json
from tests.sdk.strategies import json_values

NAMES = st.sampled_from(["titles", "movie_titles", "items", "result", "a/b", "~"])
STYLES = ["titles", "Titles", "movieTitles", "Movie-Titles", "items", "data", "Result", "a/b", "~"]

# Values whose keys are near the names that deliverables ask for, so that shapes do meet.
near_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", " ", "Heat", "Alien"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(STYLES), inner, max_size=3)
    ),
    max_leaves=10,
)
values = near_values | json_values


def _range(low: str, high: str, numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    both = st.tuples(numbers, numbers).map(sorted).map(lambda two: {low: two[0], high: two[1]})
    return st.just({}) | both | numbers.map(lambda n: {low: n}) | numbers.map(lambda n: {high: n})


_counts = st.integers(0, 4)
_leaves = st.one_of(
    st.just({}),
    st.sampled_from(["object", "array", "string", "boolean"]).map(lambda kind: {"type": kind}),
    st.just({"non_empty": True}),
    _range("min_items", "max_items", _counts),
    _range("min_length", "max_length", _counts),
    _range("minimum", "maximum", st.integers(-3, 3)),
    st.just({"json_schema": {"type": "array", "items": {"type": "string"}}}),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"fields": st.dictionaries(NAMES, inner, max_size=3)},
        optional={"required": st.lists(NAMES, max_size=2)},
    )
    return objects | inner.map(lambda item: {"items": item, "type": "array"})


deliverables = st.recursive(_leaves, _nested, max_leaves=6).map(Deliverable.from_dict)


@given(values, deliverables)
def test_every_path_points_to_a_place_of_the_value(value: Any, wanted: Deliverable) -> None:
    """At most twenty, the same each time, and whole as JSON."""
    violations = check(value, wanted)
    assert len(violations) <= 20
    assert check(value, wanted) == violations
    for violation in violations:
        canonical_json(asdict(violation))
        place = value_at_pointer(value, violation.path) if violation.path else value
        if violation.mismatch == "required":
            assert violation.expected not in place


@given(wanted=deliverables, value=values)
@settings(max_examples=300)
def test_a_canonical_shape_is_final_and_keeps_every_value(wanted: Deliverable, value: Any) -> None:
    """Keys and containers only: the leaves are the same, each as often as before."""
    before = canonical_json(value)
    shaped = to_canonical(value, wanted)
    assert to_canonical(shaped, wanted) is shaped
    assert _leaves_of(shaped) == _leaves_of(value)
    assert canonical_json(value) == before


def _leaves_of(value: JsonValue) -> Counter[str]:
    items, members = items_of(value), members_of(value)
    if items is None and members is None:
        return Counter([canonical_json(value)])
    held = items if items is not None else list((members or {}).values())
    return sum((_leaves_of(item) for item in held), Counter())


@given(deliverables)
def test_a_deliverable_survives_being_written_down(wanted: Deliverable) -> None:
    assert Deliverable.from_dict(wanted.model_dump(exclude_defaults=True)) == wanted
