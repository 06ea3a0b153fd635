"""The embedded stores and the servers' adapters give the same answers on the same history."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from bench import history
from tests.mongo.mongo_server import MongoServer, given_uri, missing
from tests.service.running_service import RunningService, eventually, hashing_settings, running

CONFIDENCE = 1e-3
"""Tolerance of confidences, similarities and scores: vectors are kept in half precision here and in
full there, which moves a cosine by some 1e-4."""

EXECUTIONS = 300

Json = dict[str, Any]

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore:Local mode:UserWarning"),
    pytest.mark.skipif(
        missing() is not None or given_uri() is not None,
        reason="needs a MongoDB of its own: nx-27017 (the extra `dev`)",
    ),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningService, ...]]:
    """A service on SQLite and Qdrant Edge, and one on MongoDB and Qdrant, of one history."""
    folder = tmp_path_factory.mktemp("same")
    mongo = MongoServer.start(folder / "mongo")
    embedded = hashing_settings(folder / "embedded", nightly={"every_h": 0})
    servers = hashing_settings(
        folder / "servers",
        mongo={"uri": mongo.uri},
        qdrant={"url": f"local:{folder / 'qdrant'}"},
        nightly={"every_h": 0},
    )
    try:
        with running(embedded) as one, running(servers) as other:
            records = list(islice(history.executions(EXECUTIONS, tool_count=12), EXECUTIONS))
            tools = [
                {
                    "namespace": each.server,
                    "name": each.name,
                    "serverName": each.server,
                    "description": f"{each.name.replace('_', ' ')} for the team",
                    "inputSchema": each.input_schema,
                }
                for each in history.tools(12)
            ]
            for service in (one, other):
                for tool in tools:
                    put = service.client.put(f"/tools/{tool['name']}", json=tool)
                    assert put.status_code in (200, 201), put.text
                for start in range(0, EXECUTIONS, 200):
                    assert service.record(records[start : start + 200]).status_code == 202
            for service in (one, other):
                eventually(lambda at=service: _has_learned(at), 120)
            yield one, other
    finally:
        mongo.stop()


def _has_learned(service: RunningService) -> bool:
    status = service.client.get("/status").json()
    return bool(status["executions"] == EXECUTIONS and status["pendingIndexing"] == 0)


def _like(one: Any, other: Any) -> bool:
    """Equal, but for numbers within the tolerance."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_like(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_like, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return bool(one == pytest.approx(other, abs=CONFIDENCE))
    return bool(one == other)


def _told(suggestion: Json) -> Json:
    """What a caller acts on."""
    told = ("action", "changes", "correctedParameters", "tool", "retryAfterMs", "confidence")
    return {name: suggestion.get(name) for name in told}


def _in_order(suggestions: list[Json]) -> list[Json]:
    """Best first; what is equally sure within the tolerance in the order of its content."""
    return sorted(
        map(_told, suggestions),
        key=lambda each: (-round(each["confidence"] / (2 * CONFIDENCE)), str(each["changes"])),
    )


def test_suggestions_are_the_same(both: tuple[RunningService, ...]) -> None:
    """New failures and repeated ones: the same pattern, changes, ranking, confidence, retry."""
    asked = [
        *history.new_failures(25, tool_count=12),
        *history.repeated_failures(2, tool_count=12),
        *(e for e in history.executions(250, seed=99, tool_count=12) if e["error"]),
    ]
    proposed = 0
    for failed in asked:
        call = {k: v for k, v in failed.items() if k not in {"executionId", "timestamp"}}
        one, other = (
            service.client.post("/suggest", json={"execution": call}).json() for service in both
        )
        assert _like(one["pattern"], other["pattern"])
        assert _like(_in_order(one["suggestions"]), _in_order(other["suggestions"]))
        assert (one["abstained"], one["retry"]) == (other["abstained"], other["retry"])
        proposed += len(one["suggestions"])
    assert len(asked) > 60
    assert proposed > 10


def test_similar_calls_and_tools_are_the_same(both: tuple[RunningService, ...]) -> None:
    """`/similar`, `/tools/find` and the best of a namespace, up to ties and the tolerance."""
    for failed in history.new_failures(6, tool_count=12):
        question = {
            "toolName": failed["toolName"], "serverName": failed["serverName"],
            "context": failed["context"], "parameters": failed["parameters"], "limit": 5,
        }  # fmt: skip
        one, other = (
            service.client.post("/similar", json=question).json()["executions"] for service in both
        )
        assert _like([e["similarity"] for e in one], [e["similarity"] for e in other])
        found = [
            service.client.post("/tools/find", json={"scenario": failed["context"]}).json()
            for service in both
        ]
        one, other = (
            [(each["tool"]["toolId"], each["score"]) for each in answer["candidates"]]
            for answer in found
        )
        assert _like([score for _, score in one], [score for _, score in other])
        assert {tool for tool, _ in one} == {tool for tool, _ in other}
        best = [
            service.client.get(
                f"/namespaces/{failed['serverName']}/best", params={"scenario": failed["context"]}
            ).json()
            for service in both
        ]
        assert _like(best[0]["score"], best[1]["score"])


def test_what_is_known_of_tools_is_the_same(both: tuple[RunningService, ...]) -> None:
    """Health, known tools and counts do not depend on the store."""
    one, other = (service.client.get("/status").json() for service in both)
    for name in ("executions", "tools", "documents"):
        assert one[name] == other[name]
    for tool in history.tools(12):
        healths = [service.client.get(f"/tools/{tool.name}/health").json() for service in both]
        assert _like(*healths)
    texts = [service.client.get("/known-tools", params={"maxTokens": 3_000}) for service in both]
    assert texts[0].text == texts[1].text
