"""From which earlier calls of a session a parameter takes its values."""

from typing import Any

import pytest

from retrieval.knowledge.session.session_calls import EarlierCall, extract_values, session_call
from retrieval.knowledge.tool.links import Links


@pytest.mark.parametrize(
    ("result", "values"),
    [
        ({"user": {"id": "u1"}}, {"user.id": ["u1"]}),
        ([{"id": 1}, {"id": 2}], {"[].id": [1, 2]}),
        ('{"id": "u1"}', {"id": ["u1"]}),
        ([{"type": "text", "text": '{"id": "u1"}'}], {"[].type": ["text"], "id": ["u1"]}),
        ('{"id": "u1", "name": "cut o', {"id": ["u1"]}),
        (None, {}),
        (True, {}),
    ],
)
def test_a_result_is_read_as_its_plain_values(result: Any, values: dict[str, list[Any]]) -> None:
    """By place; also where a text holds JSON, or the beginning of it."""
    found = extract_values(result)
    assert {place: found.get(place) for place in values} == values
    assert set(found) - set(values) <= {"text", "word"}


def test_the_extract_of_a_large_result_is_small() -> None:
    """Whatever its size and depth."""
    deep: Any = "leaf"
    for _ in range(200):
        deep = {"a": [deep]}
    large = {"rows": [{"id": f"id-{at}"} for at in range(5_000)], "deep": deep}
    assert sum(len(each) for each in extract_values(large).values()) <= 120  # type: ignore[arg-type]
    assert sum(len(each) for each in extract_values("word " * 50_000).values()) <= 120  # type: ignore[arg-type]


def earlier(*calls: tuple[str, Any]) -> list[EarlierCall]:
    """Earlier calls of a session, by tool and result."""
    return [session_call(tool, {}, extract_values(result)) for tool, result in calls]


def test_a_source_that_is_not_followed_speaks_against_its_link() -> None:
    """The only value that was there was not the one that was sent."""
    links = Links()
    links.learn_values({"t": "a"}, earlier(("make", {"x": "a"})))
    links.learn_values({"t": "z"}, earlier(("make", {"x": "b"})))
    [(_, _, link)] = links.list_candidates("t", earlier(("make", {"x": "c"})))
    assert (link.right, link.wrong) == (1, 1)


def test_a_key_of_the_parameters_name_is_a_source_at_once() -> None:
    """Before it was ever seen to be one; and the latest call of a tool counts."""
    calls = earlier(("distance", {"distance": 10}), ("distance", {"distance": 750, "other": 1}))
    [(source, values, link)] = Links().list_candidates("distance", calls)
    assert (source, values, link.right) == ("distance distance", [750], 1)


def test_links_are_bounded() -> None:
    """However many tools and places a session has."""
    links = Links()
    for at in range(500):
        links.learn_values({f"p{at}": f"v{at}"}, earlier((f"tool{at}", {f"k{at}": f"v{at}"})))
    assert len(links.by_place) <= 40
    for at in range(200):
        links.learn_values({"p1": f"w{at}"}, earlier((f"tool{at}", {"k": f"w{at}"})))
    assert all(len(each) <= 6 for each in links.by_place.values())
