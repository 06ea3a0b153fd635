"""OpenAPI describes every route of the contract, with examples that hold."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import jsonschema
import pytest

from tests.service.running_service import RunningService

METHODS = {
    "/executions": "post",
    "/executions/{executionId}": "get",
    "/status": "get",
    "/suggest": "post",
    "/check": "post",
    "/hooks": "get",
    "/hooks/{client}": "post",
    "/suggestions/{suggestionId}/outcome": "post",
    "/similar": "post",
    "/tools/{toolId}": "put get delete",
    "/tools": "get put",
    "/tools/find": "post",
    "/tools/{toolId}/failures": "post get",
    "/tools/{toolId}/health": "get",
    "/namespaces": "get",
    "/namespaces/{namespace}/best": "get",
    "/namespaces/{namespace}/promotion": "put get delete",
    "/namespaces/{namespace}/promotion/history": "get",
    "/namespaces/{namespace}/promotion/rollback": "post",
    "/promotions": "get put",
    "/evolutions/find": "post",
    "/boundaries": "get",
    "/recommendations": "get",
    "/recommendations/{recommendationId}": "put",
    "/corrections": "post get",
    "/known-tools": "get",
    "/known-tools/contracts": "get",
    "/patterns": "get",
    "/stats/totals": "get",
    "/stats/usage": "get",
    "/stats/trend": "get",
    "/stats/latency": "get",
    "/stats/tools": "get",
    "/stats/agents/{agent}": "get",
    "/stats/reflection": "get",
    "/stats/criteria": "get",
    "/stats/patterns": "get",
    "/stats/fix-first": "get",
    "/patterns/{patternId}": "put",
    "/stats/patterns/{patternId}": "get",
    "/stats/confidence": "get",
    "/metrics": "get",
    "/v1/traces": "post",
    "/keys": "post get",
    "/keys/{keyId}/rotation": "post",
    "/keys/{keyId}": "delete",
    "/audit": "get",
    "/workspaces": "get",
    "/forget": "post",
    "/export": "get",
    "/rules": "get",
    "/rules/{ruleId}": "get delete put",
    "/healthz": "get",
    "/readyz": "get",
}
CONTRACT = {(method, path) for path, methods in METHODS.items() for method in methods.split()}


@pytest.fixture(scope="module")
def openapi(service: RunningService) -> dict[str, Any]:
    response = service.client.get("/openapi.json")
    assert response.status_code == 200
    document: dict[str, Any] = response.json()
    return document


def operations(openapi: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def fits(openapi: dict[str, Any], schema: dict[str, Any], value: object) -> None:
    """Raise unless the value fits the schema."""
    jsonschema.Draft202012Validator({**schema, "components": openapi["components"]}).validate(value)


def test_every_route_of_the_contract_is_there(openapi: dict[str, Any]) -> None:
    """Under the contract's own names of path parameters."""
    assert {(method, path) for method, path, _ in operations(openapi)} == CONTRACT


def test_every_operation_says_what_it_does(openapi: dict[str, Any]) -> None:
    """A summary, a description, and an id for generated clients."""
    for _, path, operation in operations(openapi):
        assert operation["summary"], path
        assert operation["description"], path
    ids = [operation["operationId"] for _, _, operation in operations(openapi)]
    assert len(ids) == len(set(ids))


def test_every_example_fits_its_schema(openapi: dict[str, Any]) -> None:
    """Those of bodies, answers and errors alike; each operation has them."""
    for method, path, operation in operations(openapi):
        place = f"{method} {path}"
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        has_body = method in {"post", "put"} and not path.endswith("/rollback")
        assert (body is not None) == has_body, place
        for example in body["examples"].values() if body else ():
            fits(openapi, body["schema"], example["value"])
        for status, response in operation["responses"].items():
            assert ("content" in response) == (status != "204"), (place, status)
            for content in response.get("content", {}).values():
                if "$ref" in content.get("schema", {}):
                    fits(openapi, content["schema"], content["example"])


def test_every_error_has_the_one_form(openapi: dict[str, Any]) -> None:
    """And each operation says which ones it has, 500 among them."""
    reference = {"$ref": "#/components/schemas/ErrorResponse"}
    for _, path, operation in operations(openapi):
        errors = {code: r for code, r in operation["responses"].items() if code >= "400"}
        assert "500" in errors, path
        for response in errors.values():
            assert response["content"]["application/json"]["schema"] == reference
    assert "HTTPValidationError" not in openapi["components"]["schemas"]


PLACES = {
    "executionId": "3f0b5a3e-8f4e-4a57-9c1e-0a1f0f9f7a11",
    "toolId": "translator",
    "namespace": "translator",
    "agent": "librarian",
}

FREE = {"parameters", "inputSchema", "annotations", "changes", "result", "details", "error"} | {
    "implementation",
    "erased",
}
"""Whose keys are the tools' own, or depend on what they say."""


def same_shape(example: object, answer: object, place: str) -> None:
    """Objects at the same place have the same keys."""
    if isinstance(example, dict) and isinstance(answer, dict):
        assert example.keys() == answer.keys(), place
        for key in example.keys() - FREE:
            same_shape(example[key], answer[key], f"{place}.{key}")
    if isinstance(example, list) and isinstance(answer, list):
        for one, other in zip(example[:1], answer[:1], strict=False):
            same_shape(one, other, f"{place}[0]")


def test_every_example_is_accepted_and_the_example_of_an_answer_is_what_is_answered(
    service: RunningService, openapi: dict[str, Any]
) -> None:
    """All are sent to a true service, those that store something first."""
    order = sorted(
        operations(openapi), key=lambda each: (each[0] == "delete", each[0] == "get", each[1])
    )
    order.sort(key=lambda each: each[1] != "/executions" and "{toolId}" not in each[1])
    asked = 0
    for method, path, operation in order:
        if path == "/v1/traces" or method == "delete" or path.endswith("/rollback"):
            continue
        places = {name: f"{{{name}}}" in path and value for name, value in PLACES.items()}
        real = path.format_map(defaultdict(lambda: str(uuid4()), **places))
        bodies = operation.get("requestBody", {}).get("content", {}).get("application/json")
        examples = bodies["examples"].values() if bodies else [{"value": None}]
        query = {"scenario": "translate a page"} if path.endswith("/best") else {}
        for each in examples:
            response = service.client.request(method, real, params=query, json=each["value"])
            if response.status_code == 403:  # without keys nobody makes the first one from afar
                assert path.startswith("/keys")
                continue
            if response.status_code == 404:  # a pattern, suggestion, recommendation made up here
                assert not any(places.values()), (path, response.text)
                continue
            assert response.is_success, (path, response.text)
            content = operation["responses"][str(response.status_code)].get("content", {})
            if "application/json" in content:
                same_shape(content["application/json"]["example"], response.json(), path)
                asked += 1
    assert asked > 25


def test_the_docs_page_needs_nothing_from_elsewhere(service: RunningService) -> None:
    """It shows every route and works without the internet and without scripts."""
    response = service.client.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for _, path in CONTRACT:
        assert path in response.text
    for fetches in ("<script", "<link", "<img", "src=", "@import", "url("):
        assert fetches not in response.text
