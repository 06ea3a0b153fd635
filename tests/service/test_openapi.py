"""OpenAPI describes every route of the contract, with examples that hold."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.service.running_service import RunningService

CONTRACT = {
    ("post", "/executions"),
    ("get", "/executions/{executionId}"),
    ("get", "/status"),
    ("post", "/suggest"),
    ("post", "/suggestions/{suggestionId}/outcome"),
    ("post", "/similar"),
    ("put", "/tools/{toolId}"),
    ("get", "/tools/{toolId}"),
    ("delete", "/tools/{toolId}"),
    ("get", "/tools"),
    ("post", "/tools/find"),
    ("post", "/tools/{toolId}/failures"),
    ("get", "/tools/{toolId}/failures"),
    ("get", "/tools/{toolId}/health"),
    ("get", "/namespaces"),
    ("get", "/namespaces/{namespace}/best"),
    ("put", "/namespaces/{namespace}/promotion"),
    ("get", "/namespaces/{namespace}/promotion"),
    ("delete", "/namespaces/{namespace}/promotion"),
    ("get", "/namespaces/{namespace}/promotion/history"),
    ("post", "/namespaces/{namespace}/promotion/rollback"),
    ("get", "/promotions"),
    ("put", "/promotions"),
    ("post", "/evolutions/find"),
    ("get", "/boundaries"),
    ("get", "/recommendations"),
    ("put", "/recommendations/{recommendationId}"),
    ("post", "/corrections"),
    ("get", "/corrections"),
    ("get", "/known-tools"),
    ("get", "/patterns"),
    ("get", "/stats/totals"),
    ("get", "/stats/usage"),
    ("get", "/stats/trend"),
    ("get", "/stats/latency"),
    ("get", "/stats/tools"),
    ("get", "/stats/agents/{agent}"),
    ("get", "/stats/reflection"),
    ("get", "/stats/patterns"),
    ("get", "/stats/patterns/{patternId}"),
    ("get", "/stats/confidence"),
    ("get", "/metrics"),
    ("post", "/v1/traces"),
    ("get", "/healthz"),
    ("get", "/readyz"),
}


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


def test_every_body_has_examples_that_fit_its_schema(openapi: dict[str, Any]) -> None:
    """An example that the service would refuse teaches a mistake."""
    bodies = 0
    for method, path, operation in operations(openapi):
        if method not in {"post", "put"} or path.endswith("/rollback"):
            assert "requestBody" not in operation
            continue
        content = operation["requestBody"]["content"]["application/json"]
        assert content["examples"], path
        for example in content["examples"].values():
            fits(openapi, content["schema"], example["value"])
            bodies += 1
    assert bodies >= 6


def test_every_answer_has_an_example_that_fits_its_schema(openapi: dict[str, Any]) -> None:
    """Successes and errors alike."""
    for _, path, operation in operations(openapi):
        for status, response in operation["responses"].items():
            if status == "204":
                continue
            content = response["content"].get("application/json")
            content = content or response["content"]["text/plain"]
            assert content["example"], (path, status)
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


def test_503_documents_retry_after(openapi: dict[str, Any]) -> None:
    """A client can rely on it."""
    response = openapi["paths"]["/suggest"]["post"]["responses"]["503"]
    assert "Retry-After" in response["headers"]


def test_every_example_body_is_accepted(service: RunningService, openapi: dict[str, Any]) -> None:
    """The examples work when they are sent to a true service."""
    suggestion = "5b8a1f7e-64a1-4f5c-8f0e-2d3c4b5a6f33"
    service.client.put("/tools/t", json={"name": "t"})
    service.client.put("/tools/n", json={"name": "n"})
    for method, path, operation in operations(openapi):
        if "requestBody" not in operation or "outcome" in path or "/recommendations" in path:
            continue  # an outcome needs a suggestion that was made, and so on
        real = path.replace("{toolId}", "t").replace("{suggestionId}", suggestion)
        real = real.replace("{namespace}", "n")
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            response = service.client.request(method, real, json=example["value"])
            assert response.status_code in {200, 202}, (path, response.text)


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
