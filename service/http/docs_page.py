"""The pages at `/docs`: plain HTML made from OpenAPI, so that they work without the internet.

FastAPI's own pages load their scripts from a content delivery network and stay empty behind a
firewall. This one needs no script at all.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from starlette.responses import HTMLResponse

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
