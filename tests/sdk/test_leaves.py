"""Leaves: what a change does not name is the caller's, byte for byte, at every depth."""

from copy import deepcopy

import pytest
from hypothesis import given

from aftercall.json_patch import JsonPatchError, Operation, apply, diff, same_json, value_at_pointer
from aftercall.json_values import JsonObject, JsonValue
from aftercall.leaves import leaves_by_path, untouched_leaves_changed
from tests.sdk.strategies import json_objects
from tests.sdk.trees import edited_pairs, named_by, operation_lists

CALL: JsonObject = {
    "files": [{"file_path": "a.py", "contents": "    return 2\n"}, {"contents": "x;"}],
    "dry": False,
    "tags": [],
    "~a/b": {"": None},
}


def test_the_leaves_are_scalars_and_empty_containers() -> None:
    """Each stands under its JSON Pointer, escaped as RFC 6901 says; types are as they were."""
    assert leaves_by_path(CALL) == {
        "/files/0/file_path": "a.py",
        "/files/0/contents": "    return 2\n",
        "/files/1/contents": "x;",
        "/dry": False,
        "/tags": [],
        "/~0a~1b/": None,
    }
    assert (leaves_by_path({}), leaves_by_path(5)) == ({"": {}}, {"": 5})


@given(json_objects)
def test_each_leaf_is_found_under_its_pointer(tree: JsonObject) -> None:
    """A pointer of a leaf leads to its value."""
    found = leaves_by_path(tree)
    assert all(
        same_json(value_at_pointer(tree, path), value) for path, value in found.items() if path
    )


@given(edited_pairs())
def test_a_diff_names_all_that_it_changes(pair: tuple[JsonObject, JsonObject]) -> None:
    """Whatever two objects, no leaf changes that the diff of them does not name."""
    before, after = pair
    assert untouched_leaves_changed(before, after, diff(before, after)) == []


@given(operation_lists())
def test_operations_change_what_they_name_alone(drawn: tuple[JsonObject, list[Operation]]) -> None:
    """Whatever operations, also in lists whose elements move: each other leaf comes out as it was.

    The oracle follows each leaf by itself through each operation.
    """
    before, operations = drawn
    after = apply(before, operations)
    assert untouched_leaves_changed(before, after, operations) == []
    places = {path: named_by(before, path, operations) for path in leaves_by_path(before)}
    for path, place in places.items():
        if place is None:
            continue
        assert same_json(value_at_pointer(after, place), value_at_pointer(before, path))
        broken = apply(after, [Operation("replace", place, value="changed by no one")])
        assert path in untouched_leaves_changed(before, broken, operations)


@pytest.mark.parametrize(
    ("operations", "after", "changed"),
    [
        pytest.param(
            [Operation("replace", "/dry", value=True)],
            {**CALL, "dry": True, "tags": ["x"]}, ["/tags"], id="an empty list is a leaf",
        ),
        pytest.param(
            [Operation("add", "/tags/0", value="x")],
            {**CALL, "tags": ["x"]}, [], id="a change leads into it",
        ),
        pytest.param(
            [Operation("remove", "/files/0")],
            {**CALL, "files": [{"contents": "x"}]}, ["/files/1/contents"], id="it moved up",
        ),
        pytest.param(
            [Operation("remove", "/files")],
            {"dry": 0, "tags": [], "~a/b": {"": None}}, ["/dry"], id="false is not 0",
        ),
        pytest.param(
            [], {**CALL, "~a/b": {}}, ["/~0a~1b/"], id="it is gone",
        ),
        pytest.param(
            [Operation("remove", "/files/0/file_path"),
             Operation("add", "/files/0/path", value="a.py")],
            {**CALL, "files": [{"path": "a.py", "contents": "return 2"}, {"contents": "x;"}]},
            ["/files/0/contents"], id="the text editor",
        ),
    ],
)  # fmt: skip
def test_a_leaf_that_no_operation_names_must_stay(
    operations: list[Operation], after: JsonObject, changed: list[str]
) -> None:
    """Its pointer into the first document is told."""
    assert untouched_leaves_changed(CALL, after, operations) == changed


@pytest.mark.parametrize(
    "operation",
    [
        Operation("remove", "/none"), Operation("replace", "/files/2", value=1),
        Operation("add", "/files/3", value=1), Operation("add", "/dry/0", value=1),
        Operation("remove", ""), Operation("remove", "/files/x"), Operation("add", "files"),
    ],
)  # fmt: skip
def test_an_operation_that_does_not_fit_is_refused(operation: Operation) -> None:
    """As by `json_patch.apply`."""
    kept: JsonValue = deepcopy(CALL)
    with pytest.raises(JsonPatchError):
        untouched_leaves_changed(CALL, CALL, [operation])
    with pytest.raises(JsonPatchError):
        apply(CALL, [operation])
    assert kept == CALL
