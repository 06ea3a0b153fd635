"""What OpenAPI says of each route, and the page at `/docs` that is made from it.

FastAPI's own pages load their scripts from a content delivery network and stay empty behind a
firewall. This one needs no script at all.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse

from aftercall.models import (
    Correction,
    ErrorResponse,
    EvolutionRequest,
    Execution,
    FailureMark,
    FindRequest,
    OutcomeReport,
    Promotion,
    RecommendationChange,
    SimilarRequest,
    SuggestRequest,
    ToolSpec,
)

_REFERENCE = "#/components/schemas/{model}"

_BODIES: tuple[type[BaseModel], ...] = (
    Execution,
    SuggestRequest,
    OutcomeReport,
    SimilarRequest,
    ToolSpec,
    FindRequest,
    FailureMark,
    Promotion,
    EvolutionRequest,
    RecommendationChange,
    Correction,
)

ErrorExample = tuple[str, str, str]
"""When it is answered, its code, and a message."""

_ERRORS: Mapping[int, ErrorExample] = {
    400: (
        "The body is not JSON.",
        "malformed_json",
        "malformed JSON at line 1, column 14: Expecting ':' delimiter",
    ),
    403: (
        "The Host header names another host.",
        "host_not_allowed",
        "this service does not answer under that host name; "
        "name it in AFTERCALL_SERVER_ALLOWED_HOSTS",
    ),
    404: ("There is none of that id.", "not_found", "there is no execution of that id"),
    408: (
        "The body took too long to arrive.",
        "request_timeout",
        "the body did not arrive within 30 seconds",
    ),
    409: (
        "The id is taken by other content.",
        "conflict",
        "an execution of that id with other content is stored already; "
        "give every execution an id of its own",
    ),
    413: (
        "The body is larger than 8 MiB, or the list longer than 1,000.",
        "too_large",
        "1,001 records in one request, at most 1,000 are taken; nothing was stored, split it",
    ),
    414: (
        "Path and query are longer than 65,535 bytes.",
        "uri_too_long",
        "path and query are longer than 65,535 bytes; a scenario has at most 10,000 characters, "
        "and one that is long when percent-encoded fits into `POST /tools/find`",
    ),
    415: (
        "The body is not application/json.",
        "unsupported_media_type",
        "send the body with Content-Type: application/json",
    ),
    422: (
        "JSON, but not what the contract asks for; the message names the field.",
        "invalid_request",
        "unknown field `params` in `execution`; did you mean `parameters`?",
    ),
    500: (
        "Unexpected; the service's log has it under the id.",
        "internal_error",
        "something unexpected happened; the service's log has it under 8c1f0e7a",
    ),
    503: (
        "Come back after the seconds in Retry-After.",
        "not_ready",
        "the service is opening its stores; try again shortly",
    ),
}

_ALWAYS = (403, 500)


def answers(
    status: int,
    example: object,
    *,
    errors: Sequence[int] = (),
    own: Mapping[int, ErrorExample] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: its success with an example, its errors in their one form.

    Args:
        status: of the success.
        example: its body.
        errors: statuses that are told as everywhere.
        own: statuses that mean something else here.
    """
    success: dict[str, Any] = {"content": {"application/json": {"example": example}}}
    told = {code: _ERRORS[code] for code in (*errors, *_ALWAYS)} | dict(own or {})
    return {status: success, **{code: _error(code, *told[code]) for code in sorted(told)}}


def json_body(
    model: type[BaseModel], examples: Mapping[str, object], *, or_list: bool = False
) -> dict[str, Any]:
    """The `openapi_extra` of a route that reads its body itself."""
    schema: dict[str, Any] = {"$ref": _REFERENCE.format(model=model.__name__)}
    if or_list:
        schema = {"oneOf": [schema, {"type": "array", "items": schema, "maxItems": 1000}]}
    return body_of(schema, examples)


def body_of(schema: Mapping[str, Any], examples: Mapping[str, object]) -> dict[str, Any]:
    """As `json_body`, for a body that is no wire model."""
    content = {
        "schema": schema,
        "examples": {name: {"value": value} for name, value in examples.items()},
    }
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def install_openapi(app: FastAPI) -> None:
    """Let `app.openapi()` know the models of the bodies that routes read themselves."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
                separate_input_output_schemas=False,
            )
            _, bodies = models_json_schema(
                [(model, "validation") for model in _BODIES], ref_template=_REFERENCE
            )
            schema["components"]["schemas"].update(bodies["$defs"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _error(status: int, description: str, code: str, message: str) -> dict[str, Any]:
    example = {"error": {"code": code, "message": message, "details": None}}
    described: dict[str, Any] = {
        "model": ErrorResponse,
        "description": description,
        "content": {"application/json": {"example": example}},
    }
    if status == 503:
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
