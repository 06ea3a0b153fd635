"""Inference: the most general edit that explains a repair, at any depth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import same_json
from aftercall.models import ExecutionError
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import (
    Add,
    Cast,
    Clamp,
    Edit,
    EditDoesNotApplyError,
    FromContext,
    FromError,
    Remove,
    Rename,
    Replace,
    Respell,
    Unwrap,
    ValueSources,
    edit_key,
    edits_of_key,
    names_of,
    touch_same_place,
)
from retrieval.knowledge.rewrites.inference import infer_edits
from retrieval.knowledge.rewrites.sentences import lesson_of

names = st.sampled_from(["a", "b", "c"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-50, 50),
    st.sampled_from(
        ["x", "X", "a b", "a_b", "2025-03-04", "3 March 2025", "'q'", "a,b", "1", "#t"]
    ),
    st.text(alphabet="xyzXY 01_-#@./'", max_size=6),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
objects = st.dictionaries(names, values, max_size=3)


def reading_of(*faults: Fault) -> ErrorReading:
    """A reading that names these faults."""
    return ErrorReading("invalid_parameters", 1.0, "s", faults, rejected_before_run=True)


def inferred(
    before: Any, after: Any, context: str | None = None, kind: Any = "invalid", **fault: Any
) -> list[Edit] | None:
    """The edits of a repair that changed the one parameter `x` that the error names."""
    reading = reading_of(Fault(kind, ("x",), **fault))
    failed = {"x": before, "other": "a-source-value"}
    value_sources = ValueSources(reading.faults, context)
    return infer_edits(failed, failed | {"x": after}, reading, value_sources)


@given(objects, objects)
def test_what_is_inferred_gives_the_mended_values(
    failed: dict[str, Any], mended: dict[str, Any]
) -> None:
    """Applied to the failed call, inferred edits make the mended one wherever they touch it."""
    reading = reading_of(*(Fault("wrong_type", (name,)) for name in ("a", "b", "c")))
    edits = infer_edits(failed, mended, reading)
    if edits is None:
        return
    made = apply_edits(failed, edits, ValueSources(reading.faults))
    for name in {name for edit in edits for name in names_of(edit)}:
        assert (name in made) == (name in mended)
        assert same_json(made.get(name), mended.get(name))


@given(objects, objects)
def test_edits_touch_only_what_they_name(failed: dict[str, Any], mended: dict[str, Any]) -> None:
    """Every other parameter stays as it was, and the call that was given is not changed."""
    reading = reading_of(Fault("invalid", ("a",)))
    edits = infer_edits(failed, mended, reading) or []
    before = repr(failed)
    made = apply_edits(failed, edits, ValueSources(reading.faults))
    touched = {name for edit in edits for name in names_of(edit)}
    assert all(made[name] is value for name, value in failed.items() if name not in touched)
    assert repr(failed) == before


@given(objects, objects)
def test_applying_is_deterministic_and_keys_are_lossless(
    failed: dict[str, Any], mended: dict[str, Any]
) -> None:
    """The edits that come back from their key do the same, in whatever order nothing overlaps."""
    reading = reading_of(*(Fault("invalid", (name,)) for name in ("a", "b", "c")))
    edits = infer_edits(failed, mended, reading) or []
    assert edit_key(edits_of_key(edit_key(edits))) == edit_key(edits)
    value_sources = ValueSources(reading.faults)
    assert same_json(
        apply_edits(failed, edits, value_sources), apply_edits(failed, edits, value_sources)
    )


@pytest.mark.parametrize(
    ("before", "after", "edit"),
    [
        ("5", 5, Cast(name="x", to="integer")),
        ("a", ["a"], Cast(name="x", to="array")),
        ([[1, 2]], [1, 2], Unwrap(name="x")),
        ("Business", "business", Respell(name="x", style="lower")),
        ("usd", "USD", Respell(name="x", style="upper")),
        ("new york", "New York", Respell(name="x", style="title")),
        ("Fuel Level", "fuel_level", Respell(name="x", style="snake")),
        ("pageSize", "page-size", Respell(name="x", style="kebab")),
        ("master", "main", Replace(name="x", before="master", value="main")),
    ],
)  # fmt: skip
def test_the_general_edit_is_found(before: Any, after: Any, edit: Edit) -> None:
    """A change of form is learned as the change, not as the two values."""
    assert inferred(before, after) == [edit]
    assert lesson_of([edit]).endswith(".")
    assert edits_of_key(edit_key([edit])) == [edit]


def test_what_the_error_states_is_taken_from_it() -> None:
    """The suggested or right value of the error at hand, not the literal one."""
    assert inferred("mian", "main", suggested="main") == [FromError(name="x")]
    assert inferred(5, 7, value_text="5", stated=7) == [FromError(name="x")]
    another = ValueSources((Fault("not_found", ("x",), suggested="trunk"),))
    assert apply_edits({"x": "trnk"}, [FromError(name="x")], another) == {"x": "trunk"}


def test_what_the_context_states_is_taken_from_it() -> None:
    """For another call it is what that call's own context states, or nothing."""
    edits = inferred("acme", "ada@acme.org", context="Write to ada@acme.org about it")
    assert edits == [FromContext(name="x", form="email")]
    theirs = ValueSources(context="Please mail bob@b.io today")
    assert apply_edits({"x": "b"}, edits, theirs) == {"x": "bob@b.io"}
    for context in ("no address", "a@b.io or c@d.io", None):
        with pytest.raises(EditDoesNotApplyError):
            apply_edits({"x": "b"}, edits, ValueSources(context=context))


def test_nested_edits_name_every_element() -> None:
    """What was done to each element of an array is one edit, for arrays of any length."""
    reading = reading_of(Fault("unexpected", ("flights", 0, "day")))
    failed = {"flights": [{"day": "1"}, {"day": "2"}], "n": 1}
    mended = {"flights": [{"date": "1"}, {"date": "2"}], "n": 1}
    edits = infer_edits(failed, mended, reading)
    assert edits == [Rename(name="flights", inside=("*", "day"), to="date")]
    assert apply_edits({"flights": [{"date": "0"}, {"day": "9"}]}, edits) == {
        "flights": [{"date": "0"}, {"date": "9"}]
    }
    with pytest.raises(EditDoesNotApplyError):
        apply_edits({"flights": [{"date": "0"}]}, edits)


def test_a_nested_edit_of_one_element_keeps_its_position() -> None:
    """Where the others were right, only the one is changed."""
    reading = reading_of(Fault("invalid", ("to", 1)))
    edits = infer_edits({"to": ["a", "B", "C"]}, {"to": ["a", "b", "C"]}, reading)
    assert edits == [Respell(name="to", inside=(1,), style="lower")]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("flight_number", "HAT229", "HAT084"),
        ("payment_id", "gift_card_7480005", "credit_card_9879898"),
        ("query", "cats", "dogs"),
        ("note", "see you at the old place", "see you at the new place"),
        ("passengers", [{"n": "Ann"}], [{"n": "Ann"}, {"n": "Bob"}]),
    ],
)
def test_another_thing_is_no_repair(name: str, before: Any, after: Any) -> None:
    """Another number, id, query, text or list is another wish, unless the error states it."""
    reading = reading_of(Fault("not_found", (name,)))
    assert infer_edits({name: before, "k": 1}, {name: after, "k": 1}, reading) is None
    if not isinstance(after, list):
        stated = reading_of(Fault("not_found", (name,), suggested=after))
        edits = infer_edits({name: before, "k": 1}, {name: after, "k": 1}, stated)
        assert edits == [FromError(name=name)]


def test_a_value_that_nothing_calls_wrong_is_the_callers() -> None:
    """The balance is too low, and the caller flies economy instead: no rule for anybody."""
    reading = read_error(ExecutionError(message="gift card balance is not enough"), {})
    failed = {"cabin": "business", "id": "r", "pay": "g"}
    assert infer_edits(failed, failed | {"cabin": "economy"}, reading) is None


def test_a_mask_explains_nothing() -> None:
    """A redacted value is never the source of a general edit."""
    masked = "[redacted:string:9-16]"
    reading = reading_of(Fault("invalid", ("x",)))
    edits = infer_edits({"x": "b", "y": masked}, {"x": masked, "y": masked}, reading) or []
    assert not any(isinstance(edit, FromContext) for edit in edits)
    value_sources = ValueSources((Fault("invalid", ("x",), suggested=masked),))
    with pytest.raises(EditDoesNotApplyError):
        apply_edits({"x": "b", "y": masked}, [FromError(name="x")], value_sources)


def test_stored_edits_of_the_first_form_still_load() -> None:
    """Top-level edits are written as they always were."""
    line = '{"name":"tz","kind":"rename","to":"timezone"}'
    assert edits_of_key(line) == [Rename(name="tz", to="timezone")]
    assert edit_key(edits_of_key(line)) == line


def test_edits_of_one_place_are_told_from_those_of_two() -> None:
    """Two keys of one object may be mended together; a key and its object may not."""
    one, two = Remove(name="a", inside=("*", "x")), Remove(name="a", inside=(0, "y"))
    assert not touch_same_place(one, two)
    assert touch_same_place(one, Remove(name="a", inside=(0, "x")))
    assert touch_same_place(one, Remove(name="a"))
    assert touch_same_place(Rename(name="b", to="a"), Add(name="a", value=1))


def test_a_long_or_deep_call_costs_little_and_raises_nothing() -> None:
    """Hostile sizes end in a literal edit, no edit, or a refusal that says so."""
    deep: Any = "x"
    for _ in range(45):
        deep = {"k": [deep]}
    reading = reading_of(Fault("invalid", ("a",)))
    infer_edits({"a": deep, "n": 1}, {"a": {"k": [deep]}, "n": 1}, reading)
    wide = {"a": [{"k": str(i)} for i in range(5_000)], "n": 1}
    infer_edits(wide, {"a": [{"k": i} for i in range(5_000)], "n": 1}, reading)
    with pytest.raises(EditDoesNotApplyError):
        apply_edits(wide, [Cast(name="a", inside=("*", "k"), to="integer")])


@pytest.mark.parametrize(
    ("edit", "call"),
    [
        (Rename(name="a", to="b"), {"c": 1}),
        (Rename(name="a", to="b"), {"a": 1, "b": 2}),
        (Remove(name="a"), {}),
        (Add(name="a", value=1), {"a": 2}),
        (Cast(name="a", to="integer"), {"a": "x"}),
        (Clamp(name="a", maximum=10), {"a": 5}),
        (Replace(name="a", before="x", value="y"), {"a": "z"}),
    ],
)
def test_an_edit_without_its_object_does_not_apply(edit: Edit, call: dict[str, Any]) -> None:
    """An edit never guesses: it applies to what it was learned for, or not at all."""
    with pytest.raises(EditDoesNotApplyError):
        apply_edits(call, [edit])
