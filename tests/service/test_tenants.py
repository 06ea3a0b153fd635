"""Two tenants on one service: every operation with every scope, and from the other workspace.

What is asked is made from the OpenAPI document, so that an operation that is added is crossed too.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import httpx2
import pytest

from aftercall.models import Scope
from service.dashboard.routes import PAGES
from tests.service.keys_helper import ALL, bearer, client_of, key_id, new_key
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)

SCOPES: tuple[Scope, ...] = get_args(Scope)
MARKS = {"red": "cinnabar", "blue": "lapislazuli"}
"""In the names of a tenant's tools, agents and sessions, which the other may guess."""
WORDS = {"red": "vermilion", "blue": "ultramarine"}
"""In its values, contexts, errors and descriptions, which the other never says."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("tenants"))) as started:
        new_key(started, "*")
        yield started


@pytest.fixture(scope="module")
def document(guarded: RunningService) -> dict[str, Any]:
    found: dict[str, Any] = guarded.client.get("/openapi.json").json()
    return found


class Tenant:
    """One workspace, its key with all scopes, and what it knows the ids of."""

    def __init__(self, service: RunningService, name: str) -> None:
        self.name, self.mark, self.word = name, MARKS[name], WORDS[name]
        self.key = new_key(service, name, ALL)
        self.client = client_of(service, self.key)
        self.ids: dict[str, list[str]] = defaultdict(list)

    def tool(self) -> dict[str, Any]:
        """The tool of the same name in both workspaces, which only this one has failed so."""
        return {
            "serverName": "rag-server",
            "toolName": f"{self.mark}_query",
            "agent": f"{self.mark}-agent",
            "sessionId": f"{self.mark}-session",
            "context": f"look {self.word} up",
            "parameters": {"query": f"about {self.word}", "topK": 50},
        }

    def fill(self) -> None:
        """Something of every kind; ids are kept by the name of the path's parameter."""
        error = {"type": "wrong_tool_boundary", "message": f"{self.word} is not mine",
                 "details": {"boundaryAxes": [self.word, "b"]}}  # fmt: skip
        calls = [
            failure(**self.tool()),
            execution(**self.tool() | {"parameters": {"query": self.word, "topK": 5}}),
            failure(**self.tool(), error=error),
        ]
        for number in range(2):  # mended alike in two sessions: a rule
            of = self.tool() | {"sessionId": f"{self.mark}-{number}"}
            calls += [failure(**of), execution(**of | {"parameters": {"query": "q", "topK": 5}})]
        assert self.client.post("/executions", json=calls).json()["accepted"] == 7
        self.ids["executionId"] = [each["executionId"] for each in calls]
        tool = {"name": f"{self.mark}_query", "serverName": "rag-server", "namespace": self.mark,
                "description": f"answers {self.word}"}  # fmt: skip
        assert self.client.put(f"/tools/{self.mark}", json=tool).is_success
        self.ids |= {"toolId": [self.mark], "namespace": [self.mark]}
        self.ids["agent"] = [f"{self.mark}-agent"]
        mark = {"scenario": self.word, "errorMessage": self.word, "severity": "low"}
        assert self.client.post(f"/tools/{self.mark}/failures", json=mark).is_success
        said = {"executionId": calls[0]["executionId"], "text": self.word, "kind": "low_utility"}
        assert self.client.post("/corrections", json=said).is_success
        promotion = {"evolvedVersion": "1.1.0", "originalVersion": "1.0.0", "reason": self.word,
                     "mutation": self.word, "evolvedFile": "t.py"}  # fmt: skip
        assert self.client.put(f"/namespaces/{self.mark}/promotion", json=promotion).is_success
        asked = {n: calls[0][n] for n in calls[0] if n not in ("executionId", "timestamp")}
        answer = self.client.post("/suggest", json={"execution": asked}).json()
        self.ids["suggestionId"] = [each["suggestionId"] for each in answer["suggestions"]]
        self.ids["keyId"] = [key_id(self.key)]
        eventually(lambda: self.client.get("/status").json()["pendingIndexing"] == 0)
        rules = self.client.get("/rules").json()["rules"]
        self.ids["ruleId"] = [each["ruleId"] for each in rules]


@pytest.fixture(scope="module")
def tenants(guarded: RunningService) -> Iterator[tuple[Tenant, Tenant]]:
    red, blue = Tenant(guarded, "red"), Tenant(guarded, "blue")
    with red.client, blue.client:
        red.fill()
        blue.fill()
        yield red, blue


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def asked_of(
    path: str, operation: Mapping[str, Any], ids: Mapping[str, list[str]]
) -> tuple[str, dict[str, Any]]:
    """An address with these ids in it, and the first example of a body."""
    real = re.sub(r"\{(\w+)\}", lambda name: (ids.get(name[1]) or ["none"])[0], path)
    if path.endswith("/best"):
        real += "?scenario=x"
    content = operation.get("requestBody", {}).get("content", {})
    bodies = [*content.get("application/json", {}).get("examples", {}).values()]
    return real, {"json": bodies[0]["value"]} if bodies else {}


def test_every_operation_wants_its_scope(guarded: RunningService, document: dict[str, Any]) -> None:
    """None is answered without a key; with one scope those that name it; `admin` opens all."""
    keys = {scope: new_key(guarded, "scopes", [scope]) for scope in SCOPES}
    is_open = {"/healthz", "/readyz"}
    for method, path, operation in operations(document):
        real, body = asked_of(path, operation, {})
        status = guarded.client.request(method, real, **body).status_code
        assert (status == 401) == (path not in is_open), path
        wanted = {each for way in operation.get("security", ()) for each in way.get("key", ())}
        assert wanted or path in is_open | {"/metrics"}, path
        for scope, key in keys.items():
            answer = guarded.client.request(method, real, headers=bearer(key), **body)
            refused = answer.status_code == 403
            may = path in is_open or scope == "admin" or wanted == {scope}
            assert refused == (not may or path == "/metrics"), (method, path, scope, answer.text)
            assert not refused or answer.json()["error"]["code"] == "outside_scope"


def test_what_lies_in_another_workspace_is_not_there(
    document: dict[str, Any], tenants: tuple[Tenant, Tenant]
) -> None:
    """Where a path names something, it is a 404, never a 403; nothing answers the other's word."""
    for own, other in (tenants, tenants[::-1]):
        for method, path, operation in operations(document):
            named = re.findall(r"\{(\w+)\}", path)
            real, body = asked_of(path, operation, other.ids)
            if method == "PUT" and path in {"/tools/{toolId}", "/promotions"}:
                continue  # the same id is another tool here
            answer = own.client.request(method, real, **body)
            assert answer.status_code != 403 or path == "/metrics", path
            if named and named != ["agent"]:
                assert answer.status_code in (404, 422), (method, path, answer.text)
            assert not is_crossed(answer, other), (method, path)
            # ... and it is there for whose it is.
            if method == "GET" and named and named != ["patternId"]:
                assert other.client.get(real).status_code == 200, path


def test_pages_and_tools_show_one_workspace(tenants: tuple[Tenant, Tenant]) -> None:
    """The dashboard with its tables, and what an MCP client is told."""
    for own, other in (tenants, tenants[::-1]):
        for page in PAGES:
            path = re.sub(r"\{\w+(:path)?\}", other.mark, page.path)
            for query in ("", f"?workspace={other.name}", "?table=tools&as=csv", "?name=x"):
                answer = own.client.get(f"/dashboard{path}{query}")
                assert not is_crossed(answer, other), (path, query)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "known_tools", "arguments": {}}}  # fmt: skip
        headers = {"accept": "application/json, text/event-stream"}
        told = own.client.post("/mcp", json=call, headers=headers)
        assert told.status_code == 200
        assert not is_crossed(told, other)


def drawn(rng: random.Random, tenant: Tenant, document: Mapping[str, Any]) -> httpx2.Response:
    """One request: anything of the document, or a call, a question, a page, with ids of both."""
    other = MARKS["blue" if tenant.name == "red" else "red"]
    kind = rng.random()
    if kind < 0.25:
        made = rng.choice((execution, failure))(**tenant.tool())
        tenant.ids["executionId"].append(made["executionId"])
        return tenant.client.post("/executions", json=made)
    if kind < 0.45:  # the other's tool by its name, as a guess would have it
        foreign = {"toolName": f"{other}_query", "serverName": "rag-server"}
        error = {"type": "ValidationError", "message": "topK must be <= 10"}
        asked = {**foreign, "agent": "guess", "parameters": {"topK": 50}, "error": error}
        asked |= {"outcome": "failure"}
        if kind < 0.35:
            return tenant.client.post("/similar", json={**foreign, "parameters": {"topK": 5}})
        return tenant.client.post("/suggest", json={"execution": asked})
    if kind < 0.6:
        path = rng.choice(PAGES).path
        return tenant.client.get(f"/dashboard{re.sub(r'{[^}]*}', 'x', path)}")
    method, path, operation = rng.choice(
        [
            each
            for each in operations(document)
            if "DELETE" not in each and "keys" not in each[1] and each[1] != "/v1/traces"
        ]
    )
    ids = {name: [rng.choice(found)] for name, found in tenant.ids.items() if found}
    if path.startswith(("/promotions", "/executions")) and method != "GET":
        method = "GET"
    real, body = asked_of(path, operation, ids)
    return tenant.client.request(method, real, **body)


def is_crossed(answer: httpx2.Response, other: Tenant) -> bool:
    """Whether an answer says what only the other tenant knows, or a name that was not asked for."""
    asked = f"{answer.request.url}{answer.request.content!r}"
    named = other.mark in answer.text and other.mark not in asked
    return named or other.word in answer.text


@pytest.mark.parametrize(
    "number", [400, pytest.param(25_000, marks=[pytest.mark.prove, pytest.mark.timeout(3600)])]
)
def test_two_tenants_never_meet(
    document: dict[str, Any], tenants: tuple[Tenant, Tenant], number: int
) -> None:
    """Requests of both in turn: no word or number of the one is in an answer to the other."""
    rng = random.Random(number)  # noqa: S311  # draws requests
    red, blue = tenants
    before = {each.name: stored(each) for each in tenants}
    recorded = defaultdict[str, int](int)
    for _ in range(number // 2):
        for own, other in ((red, blue), (blue, red)):
            answer = drawn(rng, own, document)
            assert answer.status_code < 500, answer.text
            assert not is_crossed(answer, other), (answer.request.method, answer.request.url)
            path = answer.request.url.path
            if path == "/executions" and answer.request.method == "POST":
                recorded[own.name] += answer.json()["accepted"]
    for each in tenants:
        assert stored(each) == before[each.name] + recorded[each.name]
        exported = each.client.get("/promotions").text
        assert all(mark == each.mark or mark not in exported for mark in MARKS.values())


def stored(tenant: Tenant) -> int:
    """Executions, as the tenant's own status counts them."""
    return int(tenant.client.get("/status").json()["executions"])


def test_vectors_and_caches_are_asked_for_by_workspace(
    guarded: RunningService, tenants: tuple[Tenant, Tenant]
) -> None:
    """Alike calls of the other are not found, however near they are; counts are one's own."""
    red, blue = tenants
    asked = {"serverName": "rag-server", "context": "look it up",
             "parameters": {"query": red.word, "topK": 5}, "outcome": "success"}  # fmt: skip
    asked["toolName"] = f"{red.mark}_query"
    assert red.client.post("/similar", json=asked).json()["executions"]
    assert blue.client.post("/similar", json=asked).json()["executions"] == []
    for tenant, other in ((red, blue), (blue, red)):
        totals = json.dumps(tenant.client.get("/stats/tools?window=7d").json())
        assert f"{tenant.mark}_query" in totals
        assert other.mark not in totals
    events = guarded.context.store.events
    assert {*on_loop(guarded, events.read_heads())} >= {"red", "blue"}
