"""Deliverables: what is read, what is refused and with which words, and what breaks them."""

import sys
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from aftercall.contracts import (
    ContractViolationError,
    Deliverable,
    Violation,
    check,
    checked,
    to_canonical,
)
from aftercall.errors import ConfigurationError
from aftercall.executors import ToolFailedError

MOVIES = Deliverable.from_dict({"titles": {"min_items": 1}})


def broken(value: object, wanted: Any) -> list[tuple[str, str]]:
    """Path and mismatch of each violation."""
    violations = check(value, Deliverable.from_dict(wanted))
    return [(violation.path, violation.mismatch) for violation in violations]


def test_a_deliverable_is_read_in_any_style() -> None:
    """The same constraints, written as Python, JSON and CSS people write them."""
    snake = {"fields": {"titles": {"min_items": 1, "max_items": 9}}, "non_empty": ["titles"]}
    camel = {"Fields": {"titles": {"minItems": 1, "maxItems": 9}}, "nonEmpty": "titles"}
    kebab = {"fields": {"titles": {"min-items": 1, "MAX_ITEMS": 9}}, "non-empty": ("titles",)}
    assert Deliverable.from_dict(snake) == Deliverable.from_dict(camel)
    assert Deliverable.from_dict(snake) == Deliverable.from_dict(kebab)
    assert Deliverable.from_dict(snake).model_dump(mode="json", exclude_defaults=True) == snake


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([], "should be a valid dictionary"),
        ({"min_itms": 1}, "unknown field `min_itms`; did you mean `min_items`?"),
        ({"item": {"type": "string"}}, "did you mean `items`?"),
        ({"properties": {"a": {}}}, "unknown field `properties`; known are type, required"),
        ({"enum": ["a"]}, "unknown field `enum`"),
        ({3: 1}, "Keys should be strings"),
        ({"min_items": 1, "minItems": 2}, "min_items stands twice"),
        ({"min_items": 3, "max_items": 2}, "min_items is 3 and max_items is 2"),
        ({"minimum": 1.5, "maximum": 1}, "minimum is 1.5 and maximum is 1"),
        ({"min_items": -1}, "min_items: should be greater than or equal to 0"),
        ({"min_items": True}, "min_items: should be a valid integer"),
        ({"min_items": "1"}, "min_items: should be a valid integer"),
        ({"max_length": 1.0}, "max_length: should be a valid integer"),
        ({"minimum": "0"}, "minimum: should be a valid number"),
        ({"maximum": float("nan")}, "maximum: should be a finite number"),
        ({"type": "list"}, "type: should be 'object', 'array'"),
        ({"type": {"min_items": 1}}, "type: should be 'object', 'array'"),
        ({"type": "object", "min_items": 1}, "about a object and min_items about a array"),
        ({"min_items": 1, "min_length": 1}, "keep one of them"),
        ({"type": "string", "json_schema": {"type": "array"}}, "and json_schema about a array"),
        ({"non_empty": 1}, "non_empty: must be an array of keys"),
        ({"required": [1]}, "required: must be an array of keys"),
        ({"fields": ["titles"]}, "fields: should be a valid dictionary"),
        ({"fields": {"a": {"fields": {"b": 3}}}}, "fields.a.fields.b: should be a valid dict"),
        ({"items": {"items": {"min_itms": 1}}}, "unknown field `min_itms` in `items.items`"),
        ({"acceptance": ["prose"]}, "acceptance: should be a valid string"),
        ({"acceptance": "x" * 4001}, "at most 4000 characters"),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_cure(content: Any, told: str) -> None:
    """Nothing is guessed: a contract that says something else than was meant is worse than none."""
    with pytest.raises(ConfigurationError) as caught:
        Deliverable.from_dict(content)
    assert told in str(caught.value)


def test_a_deliverable_that_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    with pytest.raises(ConfigurationError):
        Deliverable.from_dict(deep)


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ([], {"type": "array"}, []),
        ({}, {"type": "array"}, [("", "type")]),
        (None, {"min_items": 0}, [("", "type")]),
        ("no titles found", {"min_items": 1}, [("", "type")]),
        ([1, 2], {"min_items": 3}, [("", "min_items")]),
        ([1, 2], {"max_items": 1}, [("", "max_items")]),
        ("ab", {"min_length": 3}, [("", "min_length")]),
        ("ab", {"max_length": 1}, [("", "max_length")]),
        (1, {"minimum": 1, "maximum": 1}, []),
        (0.5, {"minimum": 1}, [("", "minimum")]),
        (2, {"maximum": 1}, [("", "maximum")]),
        (True, {"minimum": 0}, [("", "type")]),
        (float("nan"), {"type": "number"}, [("", "type")]),
        (2.0, {"type": "integer"}, []),
        (2.5, {"type": "integer"}, [("", "type")]),
        ("", {"non_empty": True}, [("", "non_empty")]),
        (" \n", {"non_empty": True}, [("", "non_empty")]),
        (None, {"non_empty": True}, [("", "non_empty")]),
        ({}, {"non_empty": True}, [("", "non_empty")]),
        ({"result": []}, {"non_empty": True}, [("", "non_empty")]),
        (0, {"non_empty": True}, []),
        (False, {"non_empty": True}, []),
        ({"a": None}, {"required": ["a", "b"]}, [("", "required")]),
        (
            {"a": [], "b": 0},
            {"non_empty": ["a", "b", "c"]},
            [("", "required"), ("/a", "non_empty")],
        ),
        ({}, {"note": {"max_length": 5}}, []),
        ({"note": None}, {"note": {"max_length": 5}}, []),
        ({"note": 7}, {"note": {"max_length": 5}}, [("/note", "type")]),
        ({"a/b~c": []}, {"a/b~c": {"min_items": 1}}, [("/a~1b~0c", "min_items")]),
        ([{"t": "x"}, {}], {"items": {"required": ["t"]}}, [("/1", "required")]),
        ({"a": {"b": []}}, {"a": {"fields": {"b": {"min_items": 1}}}}, [("/a/b", "min_items")]),
        ({}, {"a": {"fields": {"b": {"min_items": 1}}}}, [("", "required")]),
    ],
)
def test_each_constraint_is_broken_by_what_it_forbids(
    value: object, wanted: object, expected: list[tuple[str, str]]
) -> None:
    """Path and mismatch, outer places first; a field that asks for content has to be there."""
    assert broken(value, wanted) == expected


def test_a_violation_tells_counts_and_types_and_no_values() -> None:
    """What a tool returned may be private; the recorded error must not carry it."""
    wanted = Deliverable.from_dict(
        {
            "fields": {
                "password": {"max_length": 3},
                "salary": {"maximum": 10},
                "names": {"type": "string"},
                "notes": {"json_schema": {"enum": ["a"]}},
                "titles": {"min_items": 1},
            }
        }
    )
    secret = {"password": "hunter2", "salary": 98765, "names": ["Ann"], "notes": "hush"}
    with pytest.raises(ContractViolationError) as caught:
        checked(lambda: secret, wanted)()
    told = caught.value.error.model_dump_json() + str(caught.value)
    for value in ("hunter2", "98765", "Ann", "hush"):
        assert value not in told
    assert check(secret, wanted) == [
        Violation("", "required", "titles", "object with 4 keys"),
        Violation("/password", "max_length", 3, 7),
        Violation("/salary", "maximum", 10, "larger number"),
        Violation("/names", "type", "string", "array"),
        Violation("/notes", "json_schema", {"enum": ["a"]}, "string of 4 characters"),
    ]


def test_the_movie_case_is_a_contract_violation() -> None:
    """Seed 003: an empty list under a contract that asks for one title."""
    with pytest.raises(ContractViolationError) as caught:
        checked(lambda: {"status": "success_no_parse", "titles": []}, MOVIES)()
    error = caught.value.error
    assert isinstance(caught.value, ToolFailedError)
    assert caught.value.ran
    assert error.type == "contract_violation"
    assert error.message == (
        "the result breaks its contract at /titles: needs 1 or more items, but has 0"
    )
    one = {"path": "/titles", "mismatch": "min_items", "expected": 1, "actual": 0}
    assert error.details == {**one, "violations": [one]}


def test_at_most_twenty_violations_are_told() -> None:
    """A large bad result gives a small error, which says that there is more."""
    wanted = Deliverable.from_dict({"items": {"type": "string"}})
    with pytest.raises(ContractViolationError) as caught:
        checked(lambda: list(range(1000)), wanted)()
    assert [v.path for v in caught.value.violations] == [f"/{i}" for i in range(20)]
    assert caught.value.error.message.endswith("it is: integer; and at least 19 more")


def test_python_objects_are_seen_as_the_json_they_become() -> None:
    """Dataclasses and models are objects, tuples and sets arrays."""

    @dataclass
    class Found:
        titles: tuple[str, ...]

    class Page(BaseModel):
        titles: list[str]

    assert check(Found(("Heat",)), MOVIES) == []
    assert check(Page(titles=["Heat"]), MOVIES) == []
    assert broken(Found(()), MOVIES) == [("/titles", "min_items")]
    assert broken({"titles": {"Heat"}}, MOVIES) == []
    assert broken(object(), {"type": "object"}) == [("", "type")]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": 3}, "at type: 3 is not valid"),
        ({"$schema": "http://example.com/mine"}, "Unknown meta-schema"),
        ({"$ref": "http://127.0.0.1:9/schema"}, "another document"),
        ({"properties": {"a": {"$dynamicRef": "other.json"}}}, "not present"),
        ({"$ref": "#/$defs/absent"}, "does not exist"),
        ({"pattern": r"(a)\1"}, "takes bounded time"),
        ({"pattern": "^(?=x)a"}, "takes bounded time"),
        ({"pattern": "(.{99}){99}$"}, "takes bounded time"),
        ({"const": float("nan")}, "not a JSON number"),
        ([], "must be a JSON object"),
    ],
)
def test_a_json_schema_is_refused_where_it_is_written(schema: Any, told: str) -> None:
    """Not at the first call, when the tool would look broken."""
    with pytest.raises(ConfigurationError) as caught:
        Deliverable.from_dict({"json_schema": schema})
    assert "json_schema" in str(caught.value)
    assert told in str(caught.value)


def test_a_json_schema_is_checked_by_its_draft() -> None:
    """2020-12 unless `$schema` says otherwise; local references work."""
    new = {"prefixItems": [{"type": "string"}], "$defs": {"t": {"type": "string"}}}
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"$ref": "#/definitions/t"}],
        "definitions": {"t": {"type": "string"}},
    }
    for schema in (new, old):
        assert broken([1], {"json_schema": schema}) == [("/0", "json_schema")]
        assert broken(["a", 1], {"json_schema": schema}) == []
    assert broken({"a": [1, 1.0]}, {"a": {"json_schema": {"uniqueItems": True}}}) == [
        ("/a", "json_schema")
    ]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 100_000 + "!"),
        ({"propertyNames": {"pattern": "^(a|a)*$"}}, {"a" * 50_000 + "!": 1}),
        ({"patternProperties": {"^(a|a)*$": {"type": "string"}}}, {"a" * 50_000: 1}),
        ({"uniqueItems": True}, [[i] for i in range(20_000)] + [[0]]),
    ],
)
def test_what_backtracks_or_compares_all_pairs_elsewhere_ends_here(
    schema: Any, value: object
) -> None:
    """Each would take `re` or the library's own comparison minutes to years."""
    assert len(broken(value, {"json_schema": schema})) == 1


def test_a_value_that_no_schema_can_be_applied_to_is_no_violation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By itself `check` raises; in a call the result stands, and the log says so."""
    wanted = Deliverable.from_dict({"json_schema": {"$ref": "#"}})
    value: list[Any] = []
    for _ in range(1_000):
        value = [value]
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        check(value, wanted)
    assert checked(lambda: value, wanted)() is value
    assert "nested too deeply" in caplog.text


def test_without_jsonschema_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything but `json_schema` works without it."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert broken([], {"min_items": 1}) == [("", "min_items")]
    with pytest.raises(ConfigurationError, match=r"\./sdk\[contracts\]"):
        Deliverable.from_dict({"json_schema": {"title": "never seen before"}})


TITLES = {"fields": {"movie_titles": {"items": {"type": "string"}}}, "required": ["movie_titles"]}
FILM = {"required": ["title"]}


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ({"movieTitles": ["Heat"], "n": 1}, TITLES, {"movie_titles": ["Heat"], "n": 1}),
        ({"Movie-Titles": []}, TITLES, {"movie_titles": []}),
        ({"data": {"MovieTitles": []}}, TITLES, {"movie_titles": []}),
        ([{"movieTitles": []}], TITLES, {"movie_titles": []}),
        ({"result": []}, {"min_items": 1}, []),
        ({"Items": ["a"]}, {"type": "array"}, ["a"]),
        ({"result": "text"}, {"type": "string"}, "text"),
        (["text"], {"type": "string"}, "text"),
        ({"title": "Heat"}, {"items": FILM}, [{"title": "Heat"}]),
        ({"data": [{"Title": "Heat"}]}, {"items": FILM}, [{"title": "Heat"}]),
        ({"titles": {"items": ["a"]}}, {"titles": {"min_items": 1}}, {"titles": ["a"]}),
    ],
)
def test_keys_and_containers_are_brought_into_shape(
    value: object, wanted: object, expected: object
) -> None:
    """What differs in style or in an envelope only is what was asked for."""
    assert to_canonical(value, Deliverable.from_dict(wanted)) == expected


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"films": ["Heat"]}, TITLES), ({"movieTitles": [], "MovieTitles": []}, TITLES),
        ("no titles found", {"type": "array", "items": {"type": "string"}}),
        ({"message": "none"}, {"items": FILM}), ({"errors": ["timeout"]}, {"min_items": 1}),
        ({"result": [], "total": 0}, {"min_items": 1}),
        ({"result": {"result": []}}, {"min_items": 1}), (["a", "b"], {"type": "string"}),
        ("5", {"type": "integer"}), ({"data": {"other": 1}}, TITLES),
    ],
)  # fmt: skip
def test_what_could_mean_something_else_stays_as_it_is(value: object, wanted: object) -> None:
    """Synonyms, two candidates, prose, other keys beside the envelope: the check will say so."""
    assert to_canonical(value, Deliverable.from_dict(wanted)) is value
