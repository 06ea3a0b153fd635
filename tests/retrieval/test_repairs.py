"""What several mended alike: examples, what they have in common, and who may hear of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import NO_SOURCES
from retrieval.knowledge.rewrites.inference import all_edits
from retrieval.knowledge.tool.examples import (
    MAX_EXAMPLES,
    MAX_OF_ONE_AGENT,
    RepairExample,
    add_example,
    common_changes,
)
from retrieval.knowledge.tool.links import FirstCall
from retrieval.knowledge.tool.repairs import LearnedRepair, learned_repairs

Call = dict[str, Any]


def an_example(number: int, failed: Call, mended: Call, **fields: Any) -> RepairExample:
    """One session's repair; each of an agent of its own."""
    return RepairExample(
        failed=failed,
        mended=mended,
        edits=all_edits(failed, mended, NO_SOURCES),
        **{
            "agent": f"agent {number}",
            "session": f"session {number}",
            "execution_id": f"call {number}",
            "at": datetime(2026, 3, 1, tzinfo=UTC),
        }
        | fields,
    )


def learned(
    pairs: list[tuple[Call, Call]], asked: Call, agent: str = "asker"
) -> list[LearnedRepair]:
    """What examples of these pairs say of a call."""
    examples = [an_example(number, *pair) for number, pair in enumerate(pairs)]
    return learned_repairs(examples, common_changes(examples), asked, agent)


def mended(pairs: list[tuple[Call, Call]], asked: Call) -> Call | None:
    """The call as the first of these repairs makes it."""
    found = learned(pairs, asked)
    return apply_edits(asked, found[0].edits) if found else None


@pytest.mark.parametrize(
    ("before", "after", "asked", "meant"),
    [
        ([50, 40, 23], [10, 10, 10], 70, 10),
        ([50, 50], [10, 10], 50, 10),
        ([1, 2], [5, 5], 3, 5),
        (["2.10", "2.10"], ["3.1", "3.1"], "2.10", "3.1"),
        (["users", "orders"], ["app_users", "app_orders"], "items", "app_items"),
        (["/home/a/x", "/home/b/y.txt"], ["/srv/a/x", "/srv/b/y.txt"], "/home/c", "/srv/c"),
        ([5, 7], ["5d", "7d"], 30, "30d"),
        ([5, 7], [5000, 7000], 30, 30000),
        (["a-v1.json", "b-v1.json"], ["a-v2.json", "b-v2.json"], "c-v1.json", "c-v2.json"),
        (["03/04/2026", "15/04/2026"], ["2026-04-03", "2026-04-15"], "21/05/2026", "2026-05-21"),
        (["04/03/2026", "04/15/2026"], ["2026-04-03", "2026-04-15"], "05/06/2026", "2026-05-06"),
        (
            [{"mode": "x"}, {"mode": "x"}],
            [{"mode": "y"}, {"mode": "y"}],
            {"mode": "x"},
            {"mode": "y"},
        ),
    ],
)
def test_a_value_is_mended_as_others_mended_such_values(
    before: list[Any], after: list[Any], asked: Any, meant: Any
) -> None:
    """In the most general form that explains all of them, whatever the value looks like."""
    pairs = [
        ({"v": old, "q": f"words {at}"}, {"v": new, "q": f"words {at}"})
        for at, (old, new) in enumerate(zip(before, after, strict=True))
    ]
    assert mended(pairs, {"v": asked, "q": "mine"}) == {"v": meant, "q": "mine"}


@pytest.mark.parametrize(
    ("failed", "worked", "asked", "meant"),
    [
        ({"a": "1"}, {"b": "1"}, {"a": "9"}, {"b": "9"}),
        ({"a": "1"}, {"a": "1", "format": "json"}, {"a": "9"}, {"a": "9", "format": "json"}),
        ({"a": "1", "x": 5}, {"a": "1"}, {"a": "9", "x": 8}, {"a": "9"}),
        (
            {"name": "n", "kind": "k"},
            {"items": [{"name": "n", "kind": "k"}]},
            {"name": "m", "kind": "l"},
            {"items": [{"name": "m", "kind": "l"}]},
        ),
        (
            {"input": {"name": "n", "kind": "k"}},
            {"name": "n", "kind": "k"},
            {"input": {"name": "m", "kind": "l"}},
            {"name": "m", "kind": "l"},
        ),
        (
            {"unit": "km", "size": 500},
            {"unit": "metric", "size": 100},
            {"unit": "km", "size": 500},
            {"unit": "metric", "size": 100},
        ),
    ],
)
def test_names_and_structure_are_mended_alike(
    failed: Call, worked: Call, asked: Call, meant: Call
) -> None:
    """Also several changes at once; what is common is one repair."""
    assert mended([(failed, worked), (failed, worked)], asked) == meant


def test_the_next_question_is_no_repair() -> None:
    """What differs each time is the caller's own, beside what is common."""
    pairs = [
        ({"q": f"old {at}", "mode": "fast"}, {"q": f"new {at}", "mode": "quick"}) for at in range(4)
    ]
    assert mended(pairs, {"q": "mine", "mode": "fast"}) == {"q": "mine", "mode": "quick"}


MASK = "[redacted:string:9-16]"


@pytest.mark.parametrize(
    ("pairs", "asked"),
    [
        # What differs each time, also where the same value gave way.
        ([({"q": f"old {at}"}, {"q": f"new {at}"}) for at in range(6)], {"q": "mine"}),
        ([({"id": "A"}, {"id": f"B{at}"}) for at in range(5)], {"id": "A"}),
        # One mask stands for many values.
        ([({"key": MASK}, {"key": "open"})] * 2, {"key": MASK}),
        # Once is no rule.
        ([({"a": 1, "m": "fast"}, {"a": 1, "m": "quick"})], {"a": 2, "m": "fast"}),
    ],
)
def test_repairs_that_have_nothing_in_common_teach_nothing(
    pairs: list[tuple[Call, Call]], asked: Call
) -> None:
    """From two sessions with the same change on, there is something to say."""
    assert learned(pairs, asked) == []


def test_what_nobody_changed_alone_is_known_as_such() -> None:
    """What else was changed, each time otherwise, may be what mended the calls."""
    passing = [({"q": f"a {at}", "all": True}, {"q": f"b {at}", "all": False}) for at in range(2)]
    asked = {"q": "mine", "all": True}
    [found] = learned(passing, asked)
    assert (found.sessions, found.alone) == (2, 0)
    [found] = learned([*passing, ({"q": "a", "all": True}, {"q": "a", "all": False})], asked)
    assert (found.sessions, found.alone) == (3, 1)


def test_twice_is_a_rule() -> None:
    """Of two agents, whom nobody contradicted."""
    pair = ({"a": 1, "m": "fast"}, {"a": 1, "m": "quick"})
    [found] = learned([pair, pair], {"a": 2, "m": "fast"})
    assert (found.sessions, found.otherwise) == (2, 0)


def test_a_value_of_one_agent_is_its_own() -> None:
    """Other agents hear of it when two of them had it; of names and structure at once."""
    value = [an_example(at, {"m": "fast"}, {"m": "quick"}, agent="one") for at in range(3)]
    changes = common_changes(value)
    assert learned_repairs(value, changes, {"m": "fast"}, "other") == []
    assert learned_repairs(value, changes, {"m": "fast"}, "one")
    name = [an_example(at, {"m": "fast"}, {"n": "fast"}, agent="one") for at in range(3)]
    assert learned_repairs(name, common_changes(name), {"m": "slow"}, "other")


def test_what_followed_a_suggestion_speaks_only_against() -> None:
    """It says what such a call may also have meant, and is no independent word for anything."""
    pair = ({"m": "fast"}, {"m": "quick"})
    followed = [an_example(at, *pair, followed=True) for at in range(3)]
    assert learned_repairs(followed, common_changes(followed), {"m": "fast"}, "other") == []
    mixed = [
        an_example(0, *pair), an_example(1, *pair),
        an_example(2, {"m": "fast"}, {"m": "swift"}, followed=True),
    ]  # fmt: skip
    assert learned_repairs(mixed, common_changes(mixed), {"m": "fast"}, "other") == []


def test_examples_are_bounded() -> None:
    """One of each session, some of each agent, and none that is large."""
    examples: list[RepairExample] = []
    for at in range(60):
        add_example(examples, an_example(at, {"m": "a"}, {"m": "b"}, agent=f"agent {at % 2}"))
    assert len(examples) == 2 * MAX_OF_ONE_AGENT
    for at in range(60):
        add_example(examples, an_example(at, {"m": "a"}, {"m": "b"}))
    assert len(examples) == MAX_EXAMPLES
    add_example(examples, an_example(59, {"m": "a"}, {"m": "c"}))
    assert [each.session for each in examples].count("session 59") == 1
    large = an_example(99, {"m": "a" * 2_000}, {"m": "b"})
    add_example(examples, large)
    assert large not in examples


def test_what_followed_a_suggestion_takes_no_place_of_what_an_agent_did_by_itself() -> None:
    """However often a repair worked, what it was learned from stays."""
    examples: list[RepairExample] = []
    for at in range(40):
        one = an_example(at, {"m": "a"}, {"m": "b"}, agent="ada", followed=at > 1)
        add_example(examples, one)
    add_example(examples, an_example(0, {"m": "a"}, {"m": "b"}, agent="ada", followed=True))
    assert [each.session for each in examples if not each.followed] == ["session 0", "session 1"]
    assert learned_repairs(examples, common_changes(examples), {"m": "a"}, "ada")


def test_a_first_call_knows_where_its_parameters_stand() -> None:
    """As long as all of them do, in every session."""
    first = FirstCall(tool_name="Read")
    first.learn_session("one", {"path": "/a"}, {"file": "/a", "text": "t"}, "call 1")
    first.learn_session("two", {"path": "/b"}, {"file": "/b", "text": "t"}, "call 2")
    assert (first.parameters, first.is_whole) == ({"path": "file"}, True)
    first.learn_session("three", {"path": "/c", "limit": 5}, {"file": "/c"}, "call 3")
    assert (first.parameters, first.is_whole) == ({"path": "file"}, False)
