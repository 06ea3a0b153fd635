"""Choosing tools at the edges: names with line breaks, races, what is gone or too long."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from mongo.records import ToolKey
from retrieval.knowledge.rows.log import read_marks
from tests.service.fitness_client import SCENARIO, Fitness, fresh
from tests.service.running_service import failure, on_loop
from tests.service.test_bad_input import error_of
from tests.service.test_promotions import entry, put_file

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105  # it only looks like one


@pytest.mark.parametrize("place", ["{name}%0A", "%0D{name}", "{name}%0A/x"])
def test_a_name_with_a_line_break_is_another_name(fitness: Fitness, place: str) -> None:
    """Above all not the tool whose id is the path without it."""
    name = fresh("translator")
    fitness.put(name)
    fitness.promote(name)
    path = place.format(name=name)
    error_of(fitness.client.delete(f"/tools/{path}"), 404, "not_found")
    error_of(fitness.client.delete(f"/namespaces/{path}/promotion"), 404, "not_found")
    assert fitness.client.put(f"/tools/{path}", json={"name": "other"}).status_code == 200
    assert fitness.client.get(f"/tools/{path}").json()["name"] == "other"
    answer = fitness.client.get(f"/namespaces/{path}/best", params={"scenario": SCENARIO})
    assert answer.json()["tool"]["name"] == "other"
    assert fitness.client.get(f"/tools/{name}").json()["name"] == name
    assert fitness.client.get(f"/namespaces/{name}/promotion").status_code == 200


def test_one_name_on_two_servers_is_two_tools(fitness: Fitness) -> None:
    """Calls of one say nothing of the other."""
    name = fresh("translator")
    for server in ("east", "west"):
        fitness.put(f"{name}.{server}", name=name, serverName=server, namespace=name)
    fitness.record(name, ok=False, serverName="east")
    fitness.mark(f"{name}.east", executionId=None)
    fitness.learned()
    east, west = (fitness.candidate(name, f"{name}.{each}")["factors"] for each in ("east", "west"))
    assert east["quality"] < 0.85
    assert len(east["similarFailures"]) == 2
    assert (west["quality"], west["similarFailures"]) == (1.0, [])
    assert fitness.best(name)["tool"]["serverName"] == "west"


@pytest.mark.parametrize("field", ["reason", "mutation"])
def test_words_of_a_promotion_are_bounded(fitness: Fitness, field: str) -> None:
    """10,000 characters are kept; of more nothing is, by the body and by the file."""
    name = fresh("translator")
    fitness.put(name)
    assert fitness.promote(name, **{field: "x" * 10_000}).status_code == 200
    message = error_of(fitness.promote(name, **{field: "x" * 10_001}), 422, "invalid_request")
    assert message.startswith(f"{field}: has 10,001 characters")
    before = fitness.client.get("/promotions").text
    answer = put_file(fitness, json.dumps({name: entry(**{field: "y" * 10_001})}))
    message = error_of(answer, 422, "invalid_request")
    assert message.startswith(f"entry {name!r}: {field}: has 10,001 characters")
    assert fitness.client.get("/promotions").text == before


def test_what_a_mark_says_is_masked_and_bounded(fitness: Fitness) -> None:
    """A tag with a secret is left out: masked, it would fit every scenario that holds one."""
    name = fresh("translator")
    fitness.put(name)
    fitness.mark(
        name, errorMessage="y" * 2_000_000, negativeTags=[f"not-for-{SECRET}", "not-for-harbours"]
    )
    fitness.learned()
    store = fitness.service.context.store
    [mark] = on_loop(fitness.service, read_marks(store.events, ToolKey("default", None, name), 5))
    assert len(mark.error_message) == 10_000
    assert mark.negative_tags == ("not-for-harbours",)
    assert fitness.best_answer(name, f"sail with {SECRET}").status_code == 200
    answer = fitness.best_answer(name, f"sail into harbours with {SECRET}")
    assert SECRET not in answer.text
    assert "not-for-harbours" in error_of(answer, 404, "no_tool_fits")


def test_a_mark_without_a_version_is_of_the_version_of_its_call(fitness: Fitness) -> None:
    """Not of the one that was promoted meanwhile; without a call it is of the one in force."""
    name = fresh("translator")
    fitness.put(name)
    call = failure(toolName=name, serverName=None, toolVersion="1.0.0", context=SCENARIO)
    unnamed = failure(toolName=name, serverName=None, context=SCENARIO)
    for each in (call, unnamed):
        assert fitness.service.record(each).status_code == 202
    fitness.learned()
    fitness.promote(name)
    assert fitness.mark(name, executionId=call["executionId"])["version"] == "1.0.0"
    assert fitness.mark(name, executionId=unnamed["executionId"])["version"] is None
    fitness.learned()
    status = fitness.client.get(f"/namespaces/{name}/promotion").json()
    assert (status["evolved"]["failures"], status["original"]["failures"]) == (0, 2)
    assert fitness.mark(name)["version"] == "1.1.0"
    assert fitness.mark(name, executionId=call["executionId"], version="1.1.0")["version"] == (
        "1.1.0"
    )


def test_the_quality_that_a_mark_answers_is_the_one_that_is_ranked_by(fitness: Fitness) -> None:
    """Also of a version that was promoted long ago, whose inherited debt has worn off since."""
    name = fresh("translator")
    fitness.put(name)
    for _ in range(4):
        fitness.mark(name)
    long_ago = (datetime.now(UTC) - timedelta(days=28)).isoformat()
    inherited = fitness.promote(name, promotedAt=long_ago).json()["inheritedQuality"]
    assert inherited == pytest.approx(0.6, abs=1e-4)
    answered = fitness.mark(name, "low")["quality"]
    assert answered == pytest.approx(0.89, abs=1e-3)
    fitness.learned()
    best = fitness.best(name, useRag=False)
    assert best["source"] == "evolved"
    assert best["factors"]["quality"] == pytest.approx(answered, abs=1e-4)


def test_two_puts_at_once_close_no_circle(fitness: Fitness) -> None:
    """Of two tools that each evolve from the other, one is refused, whichever comes first."""
    for _ in range(10):
        one, other = fresh("a"), fresh("b")
        fitness.put(one)
        fitness.put(other)

        def evolve(pair: tuple[str, str]) -> int:
            tool, parent = pair
            with httpx2.Client(base_url=fitness.service.url) as client:
                spec = {"name": tool, "evolvedFrom": parent}
                return client.put(f"/tools/{tool}", json=spec).status_code

        with ThreadPoolExecutor(2) as threads:
            statuses = list(threads.map(evolve, [(one, other), (other, one)]))
        assert sorted(statuses) == [200, 409]


def test_of_a_large_namespace_the_answer_stays_small(own_fitness: Fitness) -> None:
    """Hundreds of originals: the nearest one is best, few are shown, few exclusions are listed."""
    for number in range(150):
        own_fitness.put(
            f"t{number:03}", namespace="many", description=f"Counts the ships of port {number}",
            negativeTags=["not-for-tea"],
        )  # fmt: skip
    own_fitness.put("wanted", namespace="many", description="Brews green leaves in hot water")
    own_fitness.learned()
    best = own_fitness.best("many", "brew green leaves in hot water")
    assert best["tool"]["toolId"] == "wanted"
    assert len(best["candidates"]) == 10
    for use_rag in (True, False):
        found = own_fitness.best("many", "brew some tea", useRag=use_rag)
        assert found["tool"]["toolId"] == "wanted"
        assert 0 < len(found["excluded"]) <= 50
