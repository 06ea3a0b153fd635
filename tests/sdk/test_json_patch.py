"""JSON Patch: diff and apply undo each other, and bad patches are refused."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import (
    JsonPatchError,
    Operation,
    apply,
    diff,
    parse_pointer,
    pointer,
    same_json,
)
from aftercall.json_values import JsonObject
from tests.sdk.strategies import json_objects, texts


@st.composite
def edited_pairs(draw: st.DrawFn) -> tuple[JsonObject, JsonObject]:
    """An object and an edit of it, so that they share most of what they hold."""
    before = draw(json_objects)
    after = deepcopy(before)
    for key in draw(st.lists(st.sampled_from([*before, "new"]), max_size=3)):
        if draw(st.booleans()):
            after.pop(key, None)
        else:
            after[key] = draw(json_objects)
    return before, after


@given(edited_pairs() | st.tuples(json_objects, json_objects))
def test_applying_a_diff_gives_the_other_document(pair: tuple[JsonObject, JsonObject]) -> None:
    """Whatever two objects, the diff of them leads from one to the other, and touches neither."""
    before, after = pair
    kept = deepcopy(before)
    assert same_json(apply(before, diff(before, after)), after)
    assert same_json(before, kept)


@given(edited_pairs())
def test_a_diff_turned_round_leads_back(pair: tuple[JsonObject, JsonObject]) -> None:
    """Each operation carries what it replaced, so a patch can be undone."""
    before, after = pair
    back = {"add": "remove", "remove": "add", "replace": "replace"}
    undo = [
        Operation(back[o.op], o.path, value=o.before, before=o.value)  # type: ignore[arg-type]  # one of the three
        for o in reversed(diff(before, after))
    ]
    assert same_json(apply(after, undo), before)


def test_only_what_differs_is_named() -> None:
    """Nested objects are compared inside, arrays whole; types count, `1` is not `true`."""
    before: JsonObject = {"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": 0.0, "f": 1}
    after: JsonObject = {"a": {"b": 2, "c": [1, 3]}, "d": True, "e": -0.0, "f": 1, "g": None}
    assert diff(before, after) == [
        Operation("replace", "/a/b", value=2, before=1),
        Operation("replace", "/a/c", value=[1, 3], before=[1, 2]),
        Operation("replace", "/d", value=True, before=1),
        Operation("replace", "/e", value=-0.0, before=0.0),
        Operation("add", "/g", value=None),
    ]


@given(st.lists(texts))
def test_pointers_are_read_as_they_were_written(parts: list[str]) -> None:
    """Slashes and tildes in names survive (RFC 6901)."""
    assert parse_pointer(pointer(parts)) == parts


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation("add", "/list/1", value=9), {"list": [1, 9, {"b": 1}]}),
        (Operation("add", "/list/2", value=9), {"list": [1, {"b": 1}, 9]}),
        (Operation("add", "/list/-", value=9), {"list": [1, {"b": 1}, 9]}),
        (Operation("remove", "/list/0"), {"list": [{"b": 1}]}),
        (Operation("remove", "/list/1/b"), {"list": [1, {}]}),
        (Operation("replace", "/list/1", value=9), {"list": [1, 9]}),
    ],
)
def test_arrays_are_edited_by_position(operation: Operation, expected: JsonObject) -> None:
    """`add` inserts or appends, `remove` and `replace` name what exists."""
    assert apply({"list": [1, {"b": 1}]}, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        Operation("remove", "/missing"), Operation("replace", "/missing", value=1),
        Operation("add", "/missing/inner", value=1), Operation("replace", "/list/3", value=1),
        Operation("remove", "/list/-"), Operation("remove", "/list/-1"),
        Operation("remove", "/list/00"), Operation("remove", "/list/01"),
        Operation("remove", "/list/1.0"), Operation("remove", "/list/\u0660"),
        Operation("remove", "/list/" + "9" * 5000), Operation("add", "/list/4", value=1),
        Operation("replace", "/text/0", value=1), Operation("replace", "", value={}),
        Operation("replace", "text", value=1), Operation("replace", "/te~xt", value=1),
        Operation("replace", "/text~", value=1),
    ],
)  # fmt: skip
def test_an_operation_that_does_not_fit_is_refused(operation: Operation) -> None:
    """Nothing is applied by half, and the document stays as it is."""
    document: JsonObject = {"list": [1, 2, 3], "text": "abc", "te~xt": 1}
    kept = deepcopy(document)
    with pytest.raises(JsonPatchError):
        apply(document, [Operation("add", "/first", value=1), operation])
    assert document == kept
