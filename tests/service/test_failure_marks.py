"""Marked failures over HTTP, and registering tools that evolve."""

from uuid import uuid4

import pytest

from mongo.records import ToolKey
from tests.service.fitness_client import SCENARIO, Fitness, fresh
from tests.service.running_service import failure, on_loop
from tests.service.test_bad_input import error_of


def test_a_mark_sent_twice_counts_once(fitness: Fitness) -> None:
    """By its id, also before it is learned from; the answer says so."""
    name, mark_id = fresh("translator"), str(uuid4())
    fitness.put(name)
    first = fitness.mark(name, markId=mark_id)
    again = fitness.mark(name, markId=mark_id)
    fitness.learned()
    third = fitness.mark(name, markId=mark_id)
    assert [each["duplicate"] for each in (first, again, third)] == [False, True, True]
    assert third["quality"] == pytest.approx(0.9, abs=1e-5)
    assert {each["markId"] for each in (first, again, third)} == {mark_id}
    shown = fitness.client.get(f"/tools/{name}/failures").json()["failures"]
    assert len(shown) == 1


def test_a_mark_of_a_recorded_call_is_one_failure_with_it(fitness: Fitness) -> None:
    """Not two; the mark says how bad it was."""
    name = fresh("translator")
    fitness.put(name)
    call = failure(toolName=name, serverName=None, context=SCENARIO)
    fitness.service.record(call)
    fitness.learned()
    body = {
        "scenario": SCENARIO, "errorMessage": "x", "severity": "high",
        "executionId": call["executionId"],
    }  # fmt: skip
    assert fitness.client.post(f"/tools/{name}/failures", json=body).status_code == 202
    fitness.learned()
    [shown] = fitness.client.get(f"/tools/{name}/failures").json()["failures"]
    assert shown["severity"] == "high"
    found = fitness.candidate(name, name)
    assert len(found["factors"]["similarFailures"]) == 1


def test_failures_are_listed_latest_first_or_nearest_first(fitness: Fitness) -> None:
    """Marked and recorded ones alike, each once; without a scenario the similarity is 0."""
    name = fresh("translator")
    fitness.put(name)
    fitness.mark(name, scenario="translate the minutes of the meeting")
    fitness.record(name, ok=False, context="rename the photos of last winter")
    fitness.record(name, ok=True, context="brew some tea")
    fitness.learned()
    fitness.mark(name, scenario="sort the stamps by country")
    shown = fitness.client.get(f"/tools/{name}/failures").json()["failures"]
    assert [each["scenario"] for each in shown] == [
        "sort the stamps by country",
        "rename the photos of last winter",
        "translate the minutes of the meeting",
    ]
    assert [each["severity"] for each in shown] == ["high", None, "high"]
    assert {each["similarity"] for each in shown} == {0.0}
    fitness.learned()
    near = fitness.client.get(
        f"/tools/{name}/failures",
        params={"scenario": "rename the photos of last winter", "limit": 1},
    ).json()["failures"]
    assert [each["scenario"] for each in near] == ["rename the photos of last winter"]
    assert near[0]["similarity"] == pytest.approx(1, abs=1e-3)


def test_an_unknown_tool_is_404_with_the_nearest_ids(fitness: Fitness) -> None:
    """For marking, listing and reading."""
    name = fresh("currency_converter")
    fitness.put(name)
    wrong = name.replace("converter", "convertor")
    body = {"scenario": "x", "errorMessage": "y"}
    for answer in (
        fitness.client.post(f"/tools/{wrong}/failures", json=body),
        fitness.client.get(f"/tools/{wrong}/failures"),
        fitness.client.get(f"/tools/{wrong}"),
        fitness.client.get(f"/tools/{wrong}", params={"useEvolved": True}),
        fitness.client.delete(f"/tools/{wrong}"),
    ):
        assert repr(name) in error_of(answer, 404, "not_found")
        assert answer.json()["error"]["details"]["nearest"][0] == name


def test_a_circle_of_evolved_from_is_409_with_its_chain(fitness: Fitness) -> None:
    """Of any length, and the tool stays as it was."""
    a, b, c = fresh("a"), fresh("b"), fresh("c")
    fitness.put(a)
    fitness.put(b, evolvedFrom=a)
    fitness.put(c, evolvedFrom=b)
    answer = fitness.client.put(f"/tools/{a}", json={"name": a, "evolvedFrom": c})
    message = error_of(answer, 409, "refused")
    assert f"{a} -> {c} -> {b} -> {a}" in message
    assert fitness.client.get(f"/tools/{a}").json()["evolvedFrom"] is None
    answer = fitness.client.put(f"/tools/{b}", json={"name": b, "evolvedFrom": b})
    assert f"{b} -> {b}" in error_of(answer, 409, "refused")


def test_a_put_that_changes_nothing_keeps_the_tool(fitness: Fitness) -> None:
    """A gateway that tells all its tools again changes none."""
    name = fresh("tool")
    first = fitness.put(name, inputSchema={"type": "object"})
    assert fitness.put(name, inputSchema={"type": "object"}) == first
    changed = fitness.put(name, inputSchema={"type": "object"}, negativeTags=["not-for-x"])
    assert changed["updatedAt"] > first["updatedAt"]
    assert changed["negativeTags"] == ["not-for-x"]


def test_of_two_ids_with_one_name_the_last_put_is_meant_also_when_it_is_as_before(
    fitness: Fitness,
) -> None:
    """Putting the first again makes it the last."""
    name, one, two = fresh("name"), fresh("one"), fresh("two")
    fitness.put(one, name=name)
    fitness.put(two, name=name)
    fitness.put(one, name=name)
    stored = on_loop(
        fitness.service, fitness.service.context.memory.find_tool(ToolKey("default", None, name))
    )
    assert stored is not None
    assert stored.tool.tool_id == one


def test_an_id_may_be_called_find(fitness: Fitness) -> None:
    """`POST /tools/find` asks; the other methods are about the tool of that id."""
    assert fitness.put("find")["toolId"] == "find"
    assert fitness.client.get("/tools/find").json()["toolId"] == "find"
    assert fitness.client.delete("/tools/find").status_code == 204


def test_a_mark_says_its_pattern_and_what_the_tool_is_no_longer_for(fitness: Fitness) -> None:
    """Tags of the failure in the list of failures; negative tags there and in the list of tools."""
    name = fresh("translator")
    fitness.put(name, negativeTags=["not-for-maps"])
    fitness.mark(name, "high", negativeTags=["not-for-poems"])
    fitness.learned()
    found = fitness.client.get(f"/tools/{name}/failures").json()
    [failure] = found["failures"]
    assert failure["tags"] == ["tool_failure", name, "severity_high"]
    assert found["negativeTags"] == ["not-for-maps", "not-for-poems"]
    listed = {each["toolId"]: each for each in fitness.client.get("/tools").json()["tools"]}
    assert listed[name]["negativeTags"] == ["not-for-maps", "not-for-poems"]
