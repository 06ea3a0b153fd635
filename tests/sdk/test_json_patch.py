"""JSON Patch: diff and apply undo each other, and bad patches are refused."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import (
    JsonPatchError,
    Operation,
    apply,
    diff,
    make_pointer,
    parse_pointer,
    same_json,
)
from aftercall.json_values import JsonObject, JsonValue
from aftercall.leaves import leaves_by_path
from tests.sdk import trees
from tests.sdk.strategies import json_objects, texts

pairs = trees.edited_pairs() | st.tuples(json_objects, json_objects)


@given(pairs)
def test_applying_a_diff_gives_the_other_document(pair: tuple[JsonObject, JsonObject]) -> None:
    """Whatever two objects, the diff of them leads from one to the other, and touches neither."""
    before, after = pair
    kept = deepcopy(before)
    assert same_json(apply(before, diff(before, after)), after)
    assert same_json(before, kept)


@given(pairs)
def test_a_diff_turned_round_leads_back(pair: tuple[JsonObject, JsonObject]) -> None:
    """Each operation carries what it replaced, so a patch can be undone."""
    before, after = pair
    back = {"add": "remove", "remove": "add", "replace": "replace"}
    undo = [
        Operation(back[o.op], o.path, value=o.before, before=o.value)  # type: ignore[arg-type]  # one of the three
        for o in reversed(diff(before, after))
    ]
    assert same_json(apply(after, undo), before)


@given(json_objects)
def test_equal_documents_have_no_difference(document: JsonObject) -> None:
    """Whatever it holds."""
    assert diff(document, deepcopy(document)) == []


@given(pairs)
def test_what_is_the_same_at_the_same_place_is_not_named(
    pair: tuple[JsonObject, JsonObject],
) -> None:
    """No operation replaces a leaf that both hold, in objects and in lists of the same length."""
    before, after = pair
    operations = diff(before, after)
    then = leaves_by_path(after)
    for path, value in leaves_by_path(before).items():
        if path in then and same_json(value, then[path]) and _is_in_place(before, after, path):
            assert trees.named_by(before, path, operations) == path


def _is_in_place(before: JsonValue, after: JsonValue, path: str) -> bool:
    """Whether the lists on the way to a place have as many elements before as after."""
    for part in parse_pointer(path):
        if isinstance(before, list) and isinstance(after, list):
            if len(before) != len(after):
                return False
            before, after = before[int(part)], after[int(part)]
        elif isinstance(before, dict) and isinstance(after, dict):
            before, after = before[part], after[part]
        else:
            return False
    return bool(path)


def test_only_what_differs_is_named() -> None:
    """At every depth; types count, `1` is not `true`, and a value of another type is one change."""
    before: JsonObject = {"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": 0.0, "f": 1, "h": "[1]"}
    after: JsonObject = {
        "a": {"b": 2, "c": [1, 3]}, "d": True, "e": -0.0, "f": 1, "h": [1], "g": None,
    }  # fmt: skip
    assert diff(before, after) == [
        Operation("replace", "/a/b", value=2, before=1),
        Operation("replace", "/a/c/1", value=3, before=2),
        Operation("replace", "/d", value=True, before=1),
        Operation("replace", "/e", value=-0.0, before=0.0),
        Operation("replace", "/h", value=[1], before="[1]"),
        Operation("add", "/g", value=None),
    ]


_FILES: JsonValue = [{"file_path": "a.py", "contents": "    return 2\n"}, {"path": "b.py"}]


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        pytest.param(
            _FILES, [{"path": "a.py", "contents": "    return 2\n"}, {"path": "b.py"}],
            ["remove /list/0/file_path", "add /list/0/path"], id="one key of one element",
        ),
        pytest.param([1, None, 2, 3, None], [1, 2, 3],
                     ["remove /list/1", "remove /list/3"], id="some are gone"),
        pytest.param([1, 2], [0, 1, 5, 2, 9],
                     ["add /list/0", "add /list/2", "add /list/4"], id="some are new"),
        pytest.param([{"a": 1}, 7, 8], [{"b": 1}, 8],
                     ["remove /list/0/a", "add /list/0/b", "remove /list/1"], id="both"),
        pytest.param([[1, 2], [3]], [[1], [3, 4]],
                     ["remove /list/0/1", "add /list/1/1"], id="lists in a list"),
        pytest.param([], [1, 2], ["add /list/0", "add /list/1"], id="from nothing"),
        pytest.param([1, 2], [], ["remove /list/0", "remove /list/0"], id="to nothing"),
        pytest.param([1], {"a": 1}, ["replace /list"], id="another type"),
        pytest.param(["[1]"], [[1]], ["replace /list/0"], id="text to list"),
        pytest.param(
            [-1, *range(500), -2], [-1, *range(1_000, 1_499), -2],
            [*(f"replace /list/{n}" for n in range(1, 500)), "remove /list/500"],
            id="many: the ends are aligned",
        ),
    ],
)  # fmt: skip
def test_lists_are_compared_by_their_elements(
    before: JsonValue, after: JsonValue, operations: list[str]
) -> None:
    """An operation's index counts what those before it have left there."""
    one, other = {"list": before}, {"list": after}
    made = diff(one, other)
    assert [f"{each.op} {each.path}" for each in made] == operations
    assert same_json(apply(one, made), other)


@given(st.lists(texts))
def test_pointers_are_read_as_they_were_written(parts: list[str]) -> None:
    """Slashes and tildes in names survive (RFC 6901)."""
    assert parse_pointer(make_pointer(parts)) == parts


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


def test_a_part_that_stands_twice_in_a_call_is_changed_once() -> None:
    """In Python one list may be two members; in the copy they are two."""
    part: list[Any] = ["a"]
    changed = apply({"x": part, "y": part}, [Operation("replace", "/x/0", value="b")])
    assert changed == {"x": ["b"], "y": ["a"]}
    assert part == ["a"]
