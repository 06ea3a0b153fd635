"""OpenAPI: FastAPI's document, with examples and errors from `openapi.json`; and `/docs`.

FastAPI's own pages load their scripts from a content delivery network and stay empty behind a
firewall. This one needs no script at all.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse

from aftercall.json_values import MAX_INTEGER
from aftercall.models import ErrorResponse

_ALWAYS = {"403", "414", "431", "500"}
_WITH_KEY = {"401", "429"}
_OF_BODIES = {"400", "408", "413", "415", "422"}
_WITHOUT_STORES = {"/healthz", "/metrics"}


def install_openapi(app: FastAPI) -> None:
    """Let `app.openapi()` have examples, and the errors in their one form."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                separate_input_output_schemas=False,
            )
            app.openapi_schema = _completed(document)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    text = Path(__file__).with_name("openapi.json").read_text("utf-8")
    # What is older than the retention is refused, so that examples are of yesterday.
    yesterday = datetime.now(UTC) - timedelta(days=1)
    data = json.loads(text.replace("2026-02-20", f"{yesterday:%Y-%m-%d}"))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            extra = data["operations"][f"{method.upper()} {path}"]
            operation["responses"].pop("422", None)
            if "security" in operation:
                operation["security"].insert(0, {})  # on loopback, until there is a key
            _add_body(operation, extra)
            _add_answer(operation, extra)
            for status in sorted(_errors_of(path, operation, extra)):
                error = extra.get("errors", {}).get(status) or data["errors"][status]
                operation["responses"][status] = _error(status, error)
    schemas = document["components"]["schemas"]
    for of_fastapi in ("HTTPValidationError", "ValidationError"):
        schemas.pop(of_fastapi, None)
    reference = "#/components/schemas/{model}"
    _, errors = models_json_schema([(ErrorResponse, "validation")], ref_template=reference)
    schemas.update(errors["$defs"])
    for methods in document["paths"].values():
        for operation in methods.values():
            for taken in (operation.get("requestBody"), operation.get("parameters")):
                _bound(taken, schemas, {"Json"})
    schemas["Json"] = _JSON
    return document


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


def _bound(part: Any, schemas: Mapping[str, Any], seen: set[str]) -> None:
    """Say in the schemas of what is taken what `aftercall.json_values` checks: no NUL, 64 bits."""
    if isinstance(part, list):
        for each in part:
            _bound(each, schemas, seen)
    if not isinstance(part, dict):
        return
    name = part.get("$ref", "").removeprefix(_REFERENCE)
    if name and name not in seen:
        seen.add(name)
        _bound(schemas[name], schemas, seen)
    for key, each in part.items():
        if key not in ("examples", "example", "default", "not"):
            _bound(each, schemas, seen)
    for each in part.get("properties", {}).values():
        if "type" not in each and not _SAYS_MORE & each.keys():
            each.update(_ANY)
    kind = part.get("type")
    if kind == "string" and not _SAYS_MORE & part.keys():
        part["pattern"] = _NO_NUL
    is_free = part.get("additionalProperties", True) is True and "properties" not in part
    if is_free and (kind == "object" or (isinstance(kind, list) and "object" in kind)):
        part |= {"additionalProperties": _ANY, "propertyNames": {"pattern": _NO_NUL}}


def _add_body(operation: dict[str, Any], extra: Mapping[str, Any]) -> None:
    if "bodyContent" in extra:
        operation["requestBody"] = {"required": True, "content": extra["bodyContent"]}
    if "body" in extra:
        content = operation["requestBody"]["content"]["application/json"]
        content["examples"] = {name: {"value": value} for name, value in extra["body"].items()}


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


def _errors_of(path: str, operation: Mapping[str, Any], extra: Mapping[str, Any]) -> set[str]:
    statuses = _ALWAYS | set(extra.get("errors", ()))
    if "requestBody" in operation:
        statuses |= _OF_BODIES
    if "parameters" in operation:
        statuses.add("422")
    if "security" in operation:
        statuses |= _WITH_KEY
    return statuses if path in _WITHOUT_STORES else statuses | {"503"}


def _error(status: str, error: Mapping[str, str]) -> dict[str, Any]:
    example = {"error": {"code": error["code"], "message": error["message"], "details": None}}
    schema = {"$ref": "#/components/schemas/ErrorResponse"}
    described: dict[str, Any] = {
        "description": error["description"],
        "content": {"application/json": {"schema": schema, "example": example}},
    }
    if status in ("429", "503"):
        described["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
        }
    return described


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;
margin:2rem auto;padding:0 1rem;color:#1c1f23}
h2{margin-top:2.5rem;border-top:1px solid #d5d9de;padding-top:1rem}
code,pre{font:14px/1.45 ui-monospace,monospace}
pre{background:#f3f5f7;padding:.8rem;overflow:auto;border-radius:6px}
.method{color:#fff;background:#2b5c8a;border-radius:4px;padding:.1rem .5rem}
table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}
@media (prefers-color-scheme:dark){body{background:#16181b;color:#e4e7ea}pre{background:#22262a}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


def render_docs(openapi: Mapping[str, Any]) -> HTMLResponse:
    """One page: each operation with its body, its answer and its errors, then the schemas."""
    info = openapi["info"]
    operations = [
        (path, method, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    page = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style>",
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{_text(info['description'])}</p>",
        "<p>For programs: <a href=openapi.json>openapi.json</a></p><ul>",
        *(
            f"<li><a href='#{escape(operation['operationId'])}'><code>{method.upper()} "
            f"{escape(path)}</code></a> {_text(operation.get('summary', ''))}"
            for path, method, operation in operations
        ),
        "</ul>",
        *(part for operation in operations for part in _operation(*operation)),
        "<h2>Schemas</h2>",
        *(
            f"<h3 id='schema-{escape(name)}'>{escape(name)}</h3>{_json(schema)}"
            for name, schema in sorted(openapi["components"]["schemas"].items())
        ),
    ]
    return HTMLResponse("\n".join(page), headers={"content-security-policy": _POLICY})


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"<h2 id='{escape(operation['operationId'])}'><span class=method>{method.upper()}</span> "
        f"<code>{escape(path)}</code></h2><p><b>{_text(operation.get('summary', ''))}</b></p>"
        f"<p>{_text(operation.get('description', ''))}</p>"
    )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        for name, example in body.get("examples", {}).items():
            yield f"<p>Body, {_text(name)}:</p>{_json(example['value'])}"
    yield "<table><tr><th>Status<th>Meaning"
    for status, response in sorted(operation["responses"].items()):
        yield f"<tr><td><code>{escape(status)}</code><td>{_text(response['description'])}"
        example = response.get("content", {}).get("application/json", {}).get("example")
        if example is not None:
            yield f"{_json(example)}"
    yield "</table>"


def _json(value: object) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _text(text: str) -> str:
    """Escaped, with the `code` spans of Markdown."""
    parts = escape(text).split("`")
    return "".join(
        f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts)
    )
