"""Laws of contracts: they hold for any deliverable and any value."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aftercall.contracts import Deliverable, canonical, check
from aftercall.contracts.deliverables import items_of, members_of
from aftercall.json_patch import value_at
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


@st.composite
def satisfied(draw: st.DrawFn) -> tuple[Deliverable, Any]:
    """A deliverable, and a value made to meet it."""
    wanted = draw(deliverables)
    return wanted, _meeting(draw, wanted)


def _meeting(draw: st.DrawFn, wanted: Deliverable) -> Any:
    kind = wanted.expected_type
    if wanted.json_schema is not None:
        return draw(st.lists(st.just("Heat"), max_size=3))
    if kind == "object":
        names = [n for n in wanted.named if n in wanted.needed or draw(st.booleans())]
        empty = Deliverable()
        return {name: _meeting(draw, wanted.fields.get(name, empty)) for name in names}
    least = wanted.min_items or wanted.min_length or 0
    most = next((m for m in (wanted.max_items, wanted.max_length) if m is not None), least + 3)
    size = draw(st.integers(least, max(least, most)))
    if kind == "array":
        return [_meeting(draw, wanted.items or Deliverable()) for _ in range(size)]
    if kind == "string":
        return "x" * size
    if kind == "number":
        return draw(st.integers(_or(wanted.minimum, -9), _or(wanted.maximum, 9)))
    return True


def _or(bound: float | None, otherwise: int) -> int:
    return otherwise if bound is None else int(bound)


@given(satisfied())
def test_what_satisfies_a_deliverable_never_violates_it(pair: tuple[Deliverable, Any]) -> None:
    wanted, value = pair
    assert check(value, wanted) == []


@given(values, deliverables)
def test_every_path_points_to_a_place_of_the_value(value: Any, wanted: Deliverable) -> None:
    """At most twenty, the same each time, and whole as JSON."""
    violations = check(value, wanted)
    assert len(violations) <= 20
    assert check(value, wanted) == violations
    for violation in violations:
        canonical_json(violation.to_dict())
        place = value_at(value, violation.path) if violation.path else value
        if violation.mismatch == "required":
            assert violation.expected not in place


@st.composite
def disguised(draw: st.DrawFn) -> tuple[Deliverable, Any]:
    """A deliverable, and a value that would meet it but for key styles and containers."""
    wanted, value = draw(satisfied())
    return wanted, _disguise(draw, value)


def _disguise(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        value = {
            draw(st.sampled_from([name, name.title(), name.replace("_", "-"), name.upper()])): (
                _disguise(draw, item)
            )
            for name, item in value.items()
        }
    elif isinstance(value, list):
        value = [_disguise(draw, item) for item in value]
    return draw(st.sampled_from([value, value, value, {"data": value}, {"Result": value}, [value]]))


@given(disguised() | st.tuples(deliverables, values))
def test_a_canonical_shape_is_final_and_keeps_every_value(pair: tuple[Deliverable, Any]) -> None:
    """Keys and containers only: the leaves are the same, each as often as before."""
    wanted, value = pair
    before = canonical_json(value)
    shaped = canonical(value, wanted)
    assert canonical(shaped, wanted) is shaped
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
    assert Deliverable.from_dict(wanted.to_dict()) == wanted
