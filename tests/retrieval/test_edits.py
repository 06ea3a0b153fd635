"""Edits: what a repair did, in general form."""

import pytest

from aftercall.models import ExecutionError
from retrieval.edit_effects import apply_edits
from retrieval.edits import (
    Add,
    Cast,
    Clamp,
    EditDoesNotApplyError,
    Remove,
    Rename,
    Replace,
    ValueSources,
)
from retrieval.inference import infer_edits
from retrieval.reading.reader import read_error


def test_a_moved_value_is_a_rename() -> None:
    """The general edit is the rename, whatever the value was."""
    reading = read_error(
        ExecutionError(message="'timezone' is a required property"), {"tz": "Europe/Berlin"}
    )
    edits = infer_edits({"tz": "Europe/Berlin"}, {"timezone": "Europe/Berlin"}, reading)
    assert edits == [Rename(name="tz", to="timezone")]


def test_a_bound_that_the_error_states_is_a_clamp() -> None:
    """50 -> 10 under `must be <= 10` is general: under `<= 20` another number is moved to 20."""
    reading = read_error(ExecutionError(message="topK must be <= 10"), {"topK": 50})
    edits = infer_edits({"topK": 50}, {"topK": 10}, reading)
    assert edits == [Clamp(name="topK")]
    other = read_error(ExecutionError(message="topK must be <= 20"), {"topK": 99})
    assert apply_edits({"topK": 99}, edits, ValueSources(other.faults)) == {"topK": 20}


def test_a_new_intent_is_no_part_of_the_repair() -> None:
    """What changed beside the named fault is the caller's own and is not learned."""
    failed = {"query": "a", "topK": 50}
    reading = read_error(ExecutionError(message="topK must be <= 10"), failed)
    edits = infer_edits(failed, {"query": "b", "topK": 10}, reading)
    assert edits == [Clamp(name="topK")]


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
def test_an_edit_without_its_object_does_not_apply(edit: object, call: dict) -> None:  # type: ignore[type-arg]  # plain JSON
    """An edit never guesses: it applies to what it was learned for, or not at all."""
    with pytest.raises(EditDoesNotApplyError):
        apply_edits(call, [edit])  # type: ignore[list-item]  # the union's members
