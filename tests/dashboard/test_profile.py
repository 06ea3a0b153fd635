"""The profile of parameters: what is common knowledge is told, what is some caller's own is not."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from aftercall.redaction import Redactor
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.record import ToolRecord
from service.dashboard.profile import MAX_PARAMETERS, ToolParameters, parameters_of
from tests.retrieval.known_tools.hostile import records
from tests.retrieval.known_tools.made_records import knowledge, record, tool
from tests.retrieval.profiles import at


def learned(
    calls: Sequence[tuple[str, dict[str, Any]]], failed: Sequence[dict[str, Any]] = ()
) -> ToolProfile:
    """The profile of successes, each of an agent in a session of its own, and of failures."""
    profile = ToolProfile()
    for number, (agent, parameters) in enumerate(calls):
        profile.observe_success(parameters, f"s{number}", agent, at(number))
    for parameters in failed:
        fault = Fault(path=("top_k",), kind="out_of_range")
        profile.observe_failure(parameters, [fault], at(99), blame_parameters=True)
    return profile


def shown(profile: ToolProfile, schema: dict[str, Any] | None = None) -> ToolParameters:
    """What a page shows of it."""
    registered = tool(schema=schema) if schema is not None else None
    schema_hash = (registered.schema_hash or "") if registered is not None else ""
    known = record(registered, knowledge=knowledge(profile, schema_hash))
    return parameters_of(known, Redactor())


def row(found: ToolParameters, name: str) -> dict[str, Any]:
    """The row of one parameter."""
    return dict(next(each for each in found.rows if each["name"] == name))


BOTH = [("ada", {"q": "x", "top_k": 5}), ("bob", {"q": "x", "top_k": 10})] * 3


SCHEMA = {
    "properties": {
        "mode": {"enum": ["a", "b"], "default": "a"},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 20},
    },
    "required": ["top_k"],
}


@pytest.mark.parametrize(
    ("profile", "schema", "expected"),
    [
        (
            learned([*BOTH, ("ada", {"q": "x"}), ("bob", {"q": "x"})]), None,
            {"q": {"presence": 1.0, "values": '"x" (100.0 %)', "required": "probably"},
             "top_k": {"presence": 0.75, "worked": "integer", "required": ""}},
        ),
        (
            learned([("ada", {"top_k": 5})]), SCHEMA,
            {"top_k": {"stated": "integer, from 1, up to 20", "required": "yes"},
             "mode": {"stated": 'one of "a" | "b", default "a"', "presence": 0.0}},
        ),
        (
            learned(BOTH, [{"q": "x", "top_k": 98_765}, {"q": "x", "top_k": "4321"}]), None,
            {"q": {}, "top_k": {
                "failed": "integer 50 %, string 50 % (integer-text)", "refused": 2,
            }},
        ),
        (
            learned([*BOTH, ("ada", {"top_k": 10}), ("bob", {"top_k": 5})], [{"top_k": 98}]), None,
            {"top_k": {"range": "5 to 10 worked; more was refused"}, "q": {}},
        ),
        (
            learned([("ada", {"top_k": number}) for number in range(10, 20)]), None,
            {"top_k": {"range": ""}},
        ),
    ],
    ids=["presence, types and common values", "what the schema states, required ones first",
         "failures by type and number", "where two agents came", "one session's ends are its own"],
)  # fmt: skip
def test_parameters_are_told_as_far_as_they_are_common_knowledge(
    profile: ToolProfile, schema: dict[str, Any] | None, expected: dict[str, dict[str, Any]]
) -> None:
    """What was refused is its caller's own, and never told by its value."""
    found = shown(profile, schema)
    told = {each["name"]: each for each in found.rows}
    assert list(told) == list(expected)
    assert {
        name: {column: told[name][column] for column in columns}
        for name, columns in expected.items()
    } == expected
    assert not any(value in repr(found) for value in ("98765", "4321"))


def test_what_one_caller_alone_sent_or_named_is_counted_and_not_told() -> None:
    """A key that somebody made up may say anything; values are some caller's own."""
    own = {"q": "my secret plan", "top_k": 7, "my_own_name": 1}
    found = shown(learned([*BOTH, ("ada", own)]))
    assert not any(each in repr(found) for each in ("secret plan", "my_own_name"))
    assert "7" not in row(found, "top_k")["values"]
    assert "Names that one caller alone used are not shown: 1." in found.notes


def test_of_many_parameters_the_most_used_are_shown() -> None:
    """And the others are counted."""
    calls = [(agent, {f"p{n:02}": 1 for n in range(60)}) for agent in ("ada", "bob")] * 3
    found = shown(learned(calls))
    assert len(found.rows) == MAX_PARAMETERS
    assert "20 more parameters." in found.notes


def test_values_are_masked_by_a_name_that_became_secret_after_they_were_learned() -> None:
    """Those of calls and those that the schema states, numbers and keys inside too."""
    redactor = Redactor.create(extra_names=["door_word", "pin"])
    called = {"door_word": "zebra", "pin": 4711, "inside": {"doorWord": "zebra"}, "q": "plain"}
    stated = {"type": "string", "default": "zebra", "enum": ["zebra", "zebu"]}
    properties = {"door_word": stated, "pin": {}, "inside": {}, "q": {"default": "plain"}}
    schema = {"type": "object", "properties": properties}
    registered = tool(schema=schema)
    learned_of = knowledge(
        learned([("ada", called), ("bob", called)] * 3), registered.schema_hash or ""
    )
    found = parameters_of(record(registered, knowledge=learned_of), redactor)
    assert not any(word in str(found) for word in ("zebra", "zebu", "4711"))
    assert row(found, "q")["values"] == '"plain" (100.0 %)'


@given(records())
def test_hostile_names_and_values_are_plain_bounded_text(hostile: ToolRecord) -> None:
    """One line of visible characters each."""
    found = parameters_of(hostile, Redactor())
    for each in found.rows if found is not None else ():
        assert all(str(value).isprintable() for value in each.values())
        assert len(str(each["name"])) <= 100
