"""Promotions over HTTP: the seed's flow and file, history, the way back, and what is refused."""

import json
from typing import Any

import pytest

from aftercall.promotions_file import parse_promotions
from tests.service.fitness_client import Fitness, fresh
from tests.service.test_bad_input import error_of

JSON_BODY = {"content-type": "application/json"}

SEED_FILE = """{
  "test_tool": {
    "evolved_version": "1.1.0",
    "evolved_file": "tools/executable/test_tool_v1_1.py",
    "original_version": "1.0.0",
    "reason": "Evolved to fix timeout",
    "mutation": "add caching",
    "promoted_at": "2024-01-15T10:00:00Z"
  }
}
"""
"""The file of seed 002's first test."""


def entry(**fields: Any) -> dict[str, Any]:
    """An entry of a promotions file."""
    return {
        "evolved_version": "1.1.0", "evolved_file": "tools/it_v1_1.py",
        "original_version": "1.0.0", "reason": "timeout", "mutation": "add caching",
        "promoted_at": "2024-01-15T10:00:00Z", **fields,
    }  # fmt: skip


def put_file(fitness: Fitness, text: str) -> Any:
    return fitness.client.put("/promotions", content=text.encode(), headers=JSON_BODY)


@pytest.fixture
def bare(fitness: Fitness) -> Fitness:
    """The same service, of which nothing is promoted."""
    assert put_file(fitness, "{}").status_code == 200
    return fitness


def test_seed_1_an_imported_promotion_is_detected_and_comes_out_as_it_went_in(
    bare: Fitness,
) -> None:
    """Seed 002, "Evolution Detection": version 1.1.0, is evolved; without evolution 1.0.0.

    The exported text has the keys, order and times of the file; it is imported as unchanged.
    """
    assert put_file(bare, SEED_FILE).json()["added"] == ["test_tool"]
    assert bare.client.get("/promotions").text == SEED_FILE
    assert put_file(bare, SEED_FILE).json() == {
        "added": [], "changed": [], "removed": [], "unchanged": ["test_tool"],
        "unknownNamespaces": ["test_tool"],
    }  # fmt: skip
    bare.put("test_tool")
    tool = bare.client.get("/tools/test_tool", params={"useEvolved": True}).json()
    assert (tool["version"], tool["isEvolved"]) == ("1.1.0", True)
    tool = bare.client.get("/tools/test_tool").json()
    assert (tool["version"], tool["isEvolved"]) == ("1.0.0", False)


def test_a_registered_tool_of_the_version_is_the_promoted_one(fitness: Fitness) -> None:
    """It needs no file, and has its own implementation and its own record."""
    name = fresh("translator")
    fitness.put(name)
    evolved = fresh("translator_v1_1")
    fitness.put(
        evolved, namespace=name, version="1.1.0", evolvedFrom=name, implementation={"own": True}
    )
    answer = fitness.promote(name, evolvedFile=None)
    assert answer.status_code == 200, answer.text
    tool = fitness.client.get(f"/tools/{name}", params={"useEvolved": True}).json()
    assert (tool["toolId"], tool["implementation"], tool["isEvolved"]) == (
        evolved, {"own": True}, True,
    )  # fmt: skip
    fitness.mark(name)
    fitness.learned()
    assert fitness.candidate(name, evolved)["factors"]["quality"] == pytest.approx(0.9, abs=1e-6)
    assert fitness.candidate(name, name)["factors"]["quality"] == 1.0


def test_an_evolved_version_inherits_quality_and_has_its_own_record(fitness: Fitness) -> None:
    """It starts with the original's quality; later calls of either count for that one alone."""
    name = fresh("translator")
    fitness.put(name)
    fitness.mark(name)
    fitness.mark(name)
    status = fitness.promote(name).json()  # at once: marks count before they are learned from
    assert status["inheritedQuality"] == pytest.approx(0.8, abs=1e-5)
    fitness.record(name, ok=False, toolVersion="1.1.0", context="rename some photos")
    fitness.record(name, ok=False, toolVersion="1.0.0", context="rename some photos")
    fitness.record(name, ok=False, toolVersion="1.0.0", context="rename some photos")
    fitness.learned()
    found = {each["source"]: each for each in fitness.best(name)["candidates"]}
    assert found["evolved"]["factors"]["quality"] == pytest.approx(0.72, abs=1e-4)
    assert found["original"]["factors"]["quality"] == pytest.approx(0.648, abs=1e-4)
    status = fitness.client.get(f"/namespaces/{name}/promotion").json()
    assert (status["evolved"]["failures"], status["original"]["failures"]) == (1, 4)


def test_a_further_version_inherits_from_the_one_it_replaces(fitness: Fitness) -> None:
    """1.2.0 in place of 1.1.0 starts where 1.1.0 stands."""
    name = fresh("translator")
    fitness.put(name)
    fitness.promote(name)
    fitness.mark(name)  # of 1.1.0, which is in force
    status = fitness.promote(name, evolvedVersion="1.2.0", originalVersion="1.1.0").json()
    assert status["inheritedQuality"] == pytest.approx(0.9, abs=1e-5)


def test_the_same_promotion_again_changes_nothing(fitness: Fitness) -> None:
    """Also without its time, which the service gave it."""
    name = fresh("translator")
    fitness.put(name)
    first, again = fitness.promote(name).json(), fitness.promote(name).json()
    assert first["promotedAt"] == again["promotedAt"]
    changes = fitness.client.get(f"/namespaces/{name}/promotion/history").json()["changes"]
    assert len(changes) == 1


def test_rolling_back_goes_one_step_further_each_time(fitness: Fitness) -> None:
    """To what held before, at last to the original; then 409, and everything is in the history."""
    name = fresh("translator")
    fitness.put(name)
    fitness.promote(name)
    fitness.promote(name, evolvedVersion="1.2.0", originalVersion="1.1.0")
    path = f"/namespaces/{name}/promotion"
    rolled = fitness.client.post(f"{path}/rollback").json()
    assert rolled["changes"][0]["promotion"]["evolvedVersion"] == "1.1.0"
    assert fitness.client.get(path).json()["evolvedVersion"] == "1.1.0"
    assert fitness.best(name, useRag=False)["tool"]["version"] == "1.1.0"
    assert fitness.client.post(f"{path}/rollback").json()["changes"][0]["promotion"] is None
    error_of(fitness.client.get(path), 404, "not_promoted")
    error_of(fitness.client.post(f"{path}/rollback"), 409, "nothing_before")
    changes = fitness.client.get(f"{path}/history").json()["changes"]
    assert [each["action"] for each in changes] == [
        "rolled_back", "rolled_back", "promoted", "promoted",
    ]  # fmt: skip
    assert fitness.client.get(f"{path}/history", params={"limit": 1}).json()["changes"] == [
        changes[0]
    ]


def test_a_removal_can_be_rolled_back(fitness: Fitness) -> None:
    """DELETE lets the original serve; rolling back brings the promotion and its quality back."""
    name = fresh("translator")
    fitness.put(name)
    fitness.mark(name)
    before = fitness.promote(name).json()
    path = f"/namespaces/{name}/promotion"
    assert fitness.client.delete(path).status_code == 204
    assert fitness.best(name, useRag=False)["source"] == "original"
    error_of(fitness.client.delete(path), 404, "not_promoted")
    fitness.client.post(f"{path}/rollback")
    after = fitness.client.get(path).json()["inheritedQuality"]
    assert after == pytest.approx(before["inheritedQuality"])


def test_an_unknown_namespace_is_404_everywhere(fitness: Fitness) -> None:
    """With the nearest names."""
    name = fresh("currency_converter")
    fitness.put(name)
    wrong = name.replace("converter", "convertor")
    path = f"/namespaces/{wrong}/promotion"
    for answer in (
        fitness.promote(wrong),
        fitness.client.get(path),
        fitness.client.delete(path),
        fitness.client.get(f"{path}/history"),
        fitness.client.post(f"{path}/rollback"),
    ):
        assert repr(name) in error_of(answer, 404, "not_found")


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"evolvedVersion": "new"}, 422, "evolvedVersion: 'new' is no version"),
        ({"evolvedFile": "../secret.py"}, 422, "evolvedFile"),
        ({"evolvedFile": "/etc/passwd"}, 422, "evolvedFile"),
        ({"evolved": "1.1.0"}, 422, "unknown field `evolved`"),
        ({"promotedAt": "yesterday"}, 422, "promotedAt"),
        ({"evolvedVersion": "1.0.0"}, 409, "not above originalVersion 1.0.0"),
        ({"evolvedVersion": "0.9"}, 409, "not above originalVersion 1.0.0"),
        ({"evolvedFile": None}, 409, "neither an evolvedFile nor a registered tool"),
    ],
)
def test_promotions_that_make_no_sense_are_refused(
    fitness: Fitness, fields: dict[str, Any], status: int, said: str
) -> None:
    """Named by their field, or as nothing newer; and nothing is promoted."""
    name = fresh("translator")
    fitness.put(name)
    code = {422: "invalid_request", 409: "refused"}[status]
    assert said in error_of(fitness.promote(name, **fields), status, code)
    error_of(fitness.client.get(f"/namespaces/{name}/promotion"), 404, "not_promoted")


def test_export_of_a_promotion_made_here_is_imported_as_unchanged(bare: Fitness) -> None:
    """The file has whole seconds, the service microseconds."""
    name = fresh("translator")
    bare.put(name)
    bare.promote(name)
    exported = bare.client.get("/promotions").text
    assert set(parse_promotions(exported)) == {name}
    assert put_file(bare, exported).json()["unchanged"] == [name]


def test_an_import_says_what_became_of_each_entry(bare: Fitness) -> None:
    """What the file does not name is promoted no more; all of it is in the histories."""
    kept, changed, gone, new = (fresh(each) for each in ("kept", "changed", "gone", "new"))
    for name in (kept, changed, gone):
        bare.put(name)
    put_file(bare, json.dumps({name: entry() for name in (kept, changed, gone)}))
    second = {
        kept: entry(), changed: entry(evolved_version="1.2.0"),
        new: entry(evolved_file="tools/ünïcode.py"),
    }  # fmt: skip
    assert put_file(bare, json.dumps(second)).json() == {
        "added": [new], "changed": [changed], "removed": [gone], "unchanged": [kept],
        "unknownNamespaces": [new],
    }  # fmt: skip
    assert bare.client.get("/promotions").json() == second
    for name, actions in (
        (kept, ["imported"]), (changed, ["imported", "imported"]),
        (gone, ["removed", "imported"]), (new, ["imported"]),
    ):  # fmt: skip
        history = bare.client.get(f"/namespaces/{name}/promotion/history").json()
        assert [each["action"] for each in history["changes"]] == actions


def bad(**fields: Any) -> str:
    """A file with a good entry and a bad one."""
    return json.dumps({"good": entry(), "bad": entry(**fields)}, indent=1)


@pytest.mark.parametrize(
    ("text", "status", "code", "said"),
    [
        ('{\n  "a": {,\n}', 400, "malformed_json", "nothing was imported"),
        ("[]", 422, "invalid_request", "nothing was imported"),
        (bad(file="x"), 422, "invalid_request", "entry 'bad'"),
        (bad(evolved_version="0.9"), 409, "refused", "'bad': evolvedVersion: 0.9 is not above"),
        (bad(evolved_file=None), 409, "refused", "'bad': there is neither an evolvedFile nor"),
    ],
)
def test_a_file_that_makes_no_sense_is_named_with_its_entry_and_nothing_is_imported(
    fitness: Fitness, text: str, status: int, code: str, said: str
) -> None:
    """Not even its good entries, also for what only the registry knows."""
    before = fitness.client.get("/promotions").text
    assert said in error_of(put_file(fitness, text), status, code)
    assert fitness.client.get("/promotions").text == before


def test_a_promotion_that_fails_more_is_reported_and_not_undone(fitness: Fitness) -> None:
    """`GET /recommendations`, with its evidence; the promotion holds on."""
    name = fresh("translator")
    fitness.put(name)

    def used(version: str, failures: int) -> list[dict[str, Any]]:
        """What is recommended of the tool after 20 calls of a version."""
        for number in range(20):
            fitness.record(name, ok=number >= failures, toolVersion=version)
        fitness.learned()
        answer = fitness.client.get("/recommendations", params={"toolId": name})
        found: list[dict[str, Any]] = answer.json()["recommendations"]
        return found

    assert used("1.0.0", 1) == []
    fitness.promote(name)
    [found] = used("1.1.0", 13)
    assert (found["kind"], found["namespace"]) == ("review_promotion", name)
    assert "13 of 20 calls against 1 of 20 calls" in found["message"]
    assert found["confidence"] > 0.95
    promotion = found["evidence"]["promotion"]
    assert promotion["failsMore"] is True
    status = fitness.client.get(f"/namespaces/{name}/promotion").json()
    assert status["evolved"]["failures"] == promotion["evolved"]["failures"] == 13
    assert fitness.client.get(f"/tools/{name}?useEvolved=true").json()["version"] == "1.1.0"


def test_evolutions_are_found_by_what_they_were_for(fitness: Fitness) -> None:
    """Also those of the past."""
    name = fresh("weaver")
    fitness.put(name)
    fitness.promote(name, reason="Baskets fell apart", mutation="weave the willow tighter")
    fitness.promote(name, evolvedVersion="1.2.0", originalVersion="1.1.0", reason="Too slow")
    fitness.learned()
    answer = fitness.client.post(
        "/evolutions/find", json={"scenario": "weave the willow baskets tighter", "limit": 50}
    )
    mine = [each for each in answer.json()["evolutions"] if each["namespace"] == name]
    assert mine[0]["promotion"]["mutation"] == "weave the willow tighter"
    assert {each["promotion"]["evolvedVersion"] for each in mine} == {"1.1.0", "1.2.0"}
    near = [each["similarity"] for each in answer.json()["evolutions"]]
    assert near == sorted(near, reverse=True)
    for bad in ({"scenario": " "}, {"scenario": "x", "limit": 0}, {"text": "x"}):
        error_of(fitness.client.post("/evolutions/find", json=bad), 422, "invalid_request")
