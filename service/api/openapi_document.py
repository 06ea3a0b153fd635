"""OpenAPI: FastAPI's document, with examples and errors from `openapi.json`; and `/docs`.

FastAPI's own pages load their scripts from a content delivery network and stay empty behind a
firewall. This one needs no script at all.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse

from aftercall.json_values import MAX_INTEGER
from aftercall.models import ErrorResponse
from service.dashboard.html import render_template

_ALWAYS = {"403", "414", "431", "500"}
_OF_PARTS = {
    "requestBody": {"400", "408", "413", "415", "422"},
    "parameters": {"422"},
    "security": {"401", "429"},
}


def install_openapi(app: FastAPI) -> None:
    """Give `app.openapi()` examples, and the errors in their one form."""

    def make_document() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                separate_input_output_schemas=False,
            )
            app.openapi_schema = _complete_document(document)
        return app.openapi_schema

    app.openapi = make_document  # type: ignore[method-assign]  # FastAPI's documented way


def _complete_document(document: dict[str, Any]) -> dict[str, Any]:
    text = Path(__file__).with_name("openapi.json").read_text("utf-8")
    # Executions older than the retention are refused, so that examples are of yesterday.
    yesterday = datetime.now(UTC) - timedelta(days=1)
    data = json.loads(text.replace("2026-02-20", f"{yesterday:%Y-%m-%d}"))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            extra = data["operations"][f"{method.upper()} {path}"]
            _complete_operation(operation, extra)
            errors = data["errors"] | extra.get("errors", {})
            for status in sorted(_list_errors(path, operation, extra)):
                operation["responses"][status] = _describe_error(status, errors[status])
    schemas = document["components"]["schemas"]
    for of_fastapi in ("HTTPValidationError", "ValidationError"):
        schemas.pop(of_fastapi, None)
    _, error_schema = models_json_schema(
        [(ErrorResponse, "validation")], ref_template=f"{_REFERENCE}{{model}}"
    )
    schemas.update(error_schema["$defs"])
    for methods in document["paths"].values():
        for operation in methods.values():
            _bound_schema(operation.get("requestBody"), schemas, {"Json"})
            _bound_schema(operation.get("parameters"), schemas, {"Json"})
    schemas["Json"] = _JSON
    return document


def _complete_operation(operation: dict[str, Any], extra: Mapping[str, Any]) -> None:
    operation["responses"].pop("422", None)
    description = operation["description"].partition("\nRaises:\n")[0]
    operation["description"] = description.rstrip()
    if "security" in operation:
        operation["security"].insert(0, {})  # on loopback, until there is a key
    if "bodyContent" in extra:
        operation["requestBody"] = {"required": True, "content": extra["bodyContent"]}
    if "body" in extra:
        content = operation["requestBody"]["content"]["application/json"]
        examples = content["examples"] = {}
        for name, value in extra["body"].items():
            examples[name] = {"value": value}
    _add_answer(operation, extra)


_NO_NUL = "^[^\\x00]*$"
_REFERENCE = "#/components/schemas/"
_ANY = {"$ref": f"{_REFERENCE}Json"}
_JSON = {
    "description": "A JSON value, at most 100 levels deep.",
    "anyOf": [
        {"type": ["null", "boolean"]},
        {"type": "number", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER},
        {"type": "string", "pattern": _NO_NUL},
        {"type": "array", "items": _ANY},
        {"type": "object", "propertyNames": {"pattern": _NO_NUL}, "additionalProperties": _ANY},
    ],
}
_SAYS_MORE = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "pattern", "format", "properties"}


def _bound_schema(part: Any, schemas: Mapping[str, Any], seen: set[str]) -> None:
    """Add to schemas of input the bounds of `aftercall.json_values`: no NUL, 64 bits."""
    if isinstance(part, list):
        for each in part:
            _bound_schema(each, schemas, seen)
    if not isinstance(part, dict):
        return
    name = part.get("$ref", "").removeprefix(_REFERENCE)
    if name and name not in seen:
        seen.add(name)
        _bound_schema(schemas[name], schemas, seen)
    for key, each in part.items():
        if key not in ("examples", "example", "default", "not"):
            _bound_schema(each, schemas, seen)
    for each in part.get("properties", {}).values():
        if "type" not in each and not _SAYS_MORE & each.keys():
            each.update(_ANY)
    kind = part.get("type")
    if kind == "string" and not _SAYS_MORE & part.keys():
        part["pattern"] = _NO_NUL
    kinds = kind if isinstance(kind, list) else [kind]
    if "object" not in kinds or "properties" in part:
        return
    if part.get("additionalProperties", True) is True:
        part["additionalProperties"] = _ANY
        part["propertyNames"] = {"pattern": _NO_NUL}


def _add_answer(operation: dict[str, Any], extra: Mapping[str, Any]) -> None:
    [status] = operation["responses"]
    answer = operation["responses"][status]
    answer["description"] = extra.get("description", answer["description"])
    if status == "204":
        answer.pop("content", None)
    elif "content" in extra:
        answer["content"] = extra["content"]
    else:
        answer["content"]["application/json"]["example"] = extra["answer"]


def _list_errors(path: str, operation: Mapping[str, Any], extra: Mapping[str, Any]) -> set[str]:
    statuses = _ALWAYS.union(extra.get("errors", ()))
    for part, of_part in _OF_PARTS.items():
        if part in operation:
            statuses |= of_part
    if path not in ("/healthz", "/metrics"):
        statuses.add("503")
    return statuses


def _describe_error(status: str, error: Mapping[str, str]) -> dict[str, Any]:
    body = {"code": error["code"], "message": error["message"], "details": None}
    content = {"schema": {"$ref": f"{_REFERENCE}ErrorResponse"}, "example": {"error": body}}
    described: dict[str, Any] = {
        "description": error["description"],
        "content": {"application/json": content},
    }
    if status in ("429", "503"):
        wait = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
        described["headers"] = {"Retry-After": wait}
    return described


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


def render_docs(openapi: Mapping[str, Any]) -> HTMLResponse:
    """Return a page with each operation, its body, answer and errors, and then the schemas."""
    page = render_template("docs", openapi=openapi)
    return HTMLResponse(page, headers={"content-security-policy": _POLICY})
