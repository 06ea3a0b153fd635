"""The fittest tool over HTTP: its factors, what is told beside it, and what is refused."""

from urllib.parse import quote

import pytest

from tests.service.fitness_client import SCENARIO, Fitness, fresh
from tests.service.test_bad_input import error_of


def test_the_score_is_the_product_of_its_factors(fitness: Fitness) -> None:
    """Base x quality x failure demotion, for every candidate, and the first one is the answer."""
    name = fresh("translator")
    fitness.put(name)
    fitness.put(f"{name}.other", namespace=name, evolvedFrom=name, version="0.9")
    assert fitness.promote(name).status_code == 200
    fitness.mark(name)
    fitness.learned()
    found = fitness.best(name)
    assert {each["source"] for each in found["candidates"]} >= {"evolved", "original", "semantic"}
    for each in found["candidates"]:
        factors = each["factors"]
        product = factors["base"] * factors["quality"] * factors["failureDemotion"]
        assert each["score"] == pytest.approx(product)
        assert each["belowThreshold"] is (each["score"] < found["threshold"])
    scores = [each["score"] for each in found["candidates"]]
    assert scores == sorted(scores, reverse=True)
    first = {key: found[key] for key in found["candidates"][0]}
    assert first == found["candidates"][0]


def test_a_failure_in_a_like_scenario_demotes_and_is_shown(fitness: Fitness) -> None:
    """With its scenario, message, severity, similarity and weight; by 0.7 in the mode `seed`."""
    name = fresh("translator")
    fitness.put(name)
    fitness.mark(name, "low")
    fitness.learned()
    factors = fitness.candidate(name, name)["factors"]
    assert factors["quality"] == pytest.approx(0.99, abs=1e-6)
    assert factors["posterior"]["failures"] == pytest.approx(1.0, abs=0.01)
    assert factors["failureDemotion"] < 0.7
    factors = fitness.candidate(name, name, mode="seed")["factors"]
    assert factors["posterior"] is None
    assert factors["failureDemotion"] == pytest.approx(0.7, abs=1e-6)
    [shown] = factors["similarFailures"]
    assert shown["scenario"] == SCENARIO
    assert (shown["severity"], shown["errorMessage"]) == ("low", "IndexError")
    assert shown["similarity"] == pytest.approx(1.0, abs=1e-3)
    assert shown["weight"] == pytest.approx(1.0, abs=1e-6)


def test_only_what_may_be_tried_out_counts_by_its_upper_bound(fitness: Fitness) -> None:
    """A tool that only reads, or any that the caller allows to try."""
    changes, reads = fresh("sender"), fresh("sender")
    fitness.put(changes)
    fitness.put(reads, annotations={"readOnlyHint": True})
    for name in (changes, reads):
        fitness.record(name, ok=True)
        fitness.record(name, ok=False)
    fitness.learned()
    for name, query, bound in (
        (changes, {}, "mean"), (changes, {"explore": True}, "upperBound"), (reads, {}, "upperBound")
    ):  # fmt: skip
        factors = fitness.candidate(name, name, **query)["factors"]
        assert factors["posterior"]["mean"] < factors["posterior"]["upperBound"]
        here = factors["quality"] * factors["failureDemotion"]
        assert here == pytest.approx(factors["posterior"][bound])


def test_without_search_only_base_and_quality_count(fitness: Fitness) -> None:
    """`useRag=false`: the promoted version and the original, no similarity, no demotion."""
    name = fresh("translator")
    fitness.put(name)
    fitness.put(f"{name}.two", namespace=name, evolvedFrom=name, version="0.9")
    fitness.promote(name)
    fitness.mark(name)
    fitness.learned()
    found = fitness.best(name, useRag=False, mode="seed")
    assert [each["source"] for each in found["candidates"]] == ["evolved", "original"]
    for each in found["candidates"]:
        assert each["factors"]["similarity"] is None
        assert each["factors"]["failureDemotion"] == 1.0
    assert found["score"] == pytest.approx(0.9, abs=1e-6)


def test_tools_near_the_namespace_are_compared_too(fitness: Fitness) -> None:
    """As semantic matches, where they are near enough to matter."""
    name, near, far = fresh("translator"), fresh("near"), fresh("far")
    fitness.put(name, description="Says something.")
    fitness.put(near, description=f"Can {SCENARIO}")
    fitness.put(far, description="Rotates photos of cats by ninety degrees")
    fitness.learned()
    found = {each["tool"]["toolId"]: each for each in fitness.best(name)["candidates"]}
    assert found[near]["source"] == "semantic"
    assert far not in found


def test_of_tools_that_nobody_used_yet_the_nearest_to_the_scenario_is_best(
    fitness: Fitness,
) -> None:
    """All originals have the base 0.9; what they say decides, not how they are called."""
    name = fresh("text")
    said = {"a": "Brews a cup of tea.", "b": "Counts the ships of a port.", "c": "Mends a bike."}
    for member, description in said.items():
        fitness.put(f"{name}.{member}", namespace=name, description=description)
    fitness.learned()
    best = fitness.best(name, "count the ships of a port", limit=50)
    assert best["tool"]["toolId"] == f"{name}.b"
    scores = {each["score"] for each in best["candidates"] if each["source"] == "original"}
    assert scores == {0.9}


def test_a_negative_tag_excludes_and_says_why(fitness: Fitness) -> None:
    """The tool's own, and one that a mark gave it."""
    name, other = fresh("translator"), fresh("book")
    fitness.put(name, negativeTags=["not-for-poems"])
    fitness.put(other, namespace=name)
    fitness.mark(other, negativeTags=["not-for-contracts"])
    fitness.learned()
    for words, excluded, offered in (
        ("translate the poems", name, other), ("translate the contract", other, name)
    ):  # fmt: skip
        found = fitness.best(name, words)
        [why] = [each["reason"] for each in found["excluded"] if each["toolId"] == excluded]
        assert f"not-for-{words.split()[-1].rstrip('s')}s" in why
        candidates = {each["tool"]["toolId"] for each in found["candidates"]}
        assert offered in candidates
        assert excluded not in candidates


def test_namespaces_and_ids_may_hold_slashes_and_reserved_words(fitness: Fitness) -> None:
    """A namespace that is called like a path below it is told apart."""
    for name in (
        f"{fresh('a')}/best",
        f"{fresh('a')}/promotion/history",
        f"{fresh('a')}/promotion",
    ):
        encoded = quote(name, safe="")
        fitness.put(quote(fresh("tool"), safe=""), namespace=name)
        assert fitness.best_answer(encoded).status_code == 200
        assert fitness.promote(encoded).status_code == 200
        assert fitness.client.get(f"/namespaces/{encoded}/promotion").status_code == 200
        changes = fitness.client.get(f"/namespaces/{encoded}/promotion/history").json()["changes"]
        assert [each["action"] for each in changes] == ["promoted"]
        rolled = fitness.client.post(f"/namespaces/{encoded}/promotion/rollback")
        assert rolled.status_code == 200


def test_find_offers_tools_of_all_namespaces_best_first(own_fitness: Fitness) -> None:
    """A promoted version in place of its original; with tags, only tools that have one."""
    own_fitness.put("translator", description="Translates a report into Spanish", tags=["text"])
    own_fitness.put("speaker", description="Reads a report aloud in Spanish", tags=["Voice"])
    own_fitness.put("rotator", description="Rotates photos")
    own_fitness.promote("translator")
    own_fitness.learned()
    found = own_fitness.find("translate a report into Spanish")["candidates"]
    assert [each["tool"]["toolId"] for each in found[:2]] == ["translator", "speaker"]
    assert (found[0]["source"], found[0]["tool"]["version"]) == ("evolved", "1.1.0")
    assert found[0]["factors"]["base"] == pytest.approx(0.8 * found[0]["factors"]["similarity"])
    tagged = own_fitness.find("translate a report into Spanish", tags=["voice", "music"])
    assert [each["tool"]["toolId"] for each in tagged["candidates"]] == ["speaker"]
    assert own_fitness.find("translate a report", tags=["nothing"])["candidates"] == []
    assert len(own_fitness.find("translate a report", limit=1)["candidates"]) == 1


def test_a_tool_that_was_put_again_is_found_by_its_new_words(fitness: Fitness) -> None:
    """And one that was deleted is found no more, at once."""
    tool = fresh("tool")
    fitness.put(tool, description="Weaves baskets from willow")
    fitness.put(tool, description="Brews coffee from beans")
    fitness.learned()
    found = fitness.find("brew coffee from beans")["candidates"]
    assert found[0]["tool"]["toolId"] == tool
    fitness.client.delete(f"/tools/{tool}")
    found = fitness.find("brew coffee from beans")["candidates"]
    assert tool not in {each["tool"]["toolId"] for each in found}
    error_of(fitness.best_answer(tool), 404, "not_found")
