"""Two tenants ask whatever they like, at every endpoint: no 500, and nothing of the other's.

    python -m tests.proof.fuzz [--requests 100000] [--seed 1]

Requests are made from the OpenAPI document of the service (its examples, changed at random), the
pages of the dashboard and the MCP endpoint. Each tenant's values hold a word of its own; an answer
that has the other tenant's is a crossing. Ids that one tenant was told are asked for by the other.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from service.dashboard.routes import PAGES
from service.settings import Settings
from tests.service.keys_helper import bearer, new_key
from tests.service.running_service import RunningService, hashing_settings, running

WORDS = {"red": "vermilionrhubarb", "blue": "ultramarineturnip"}
AT_ONCE = 8
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MAX_IDS = 500
_LEFT_ALONE = ("/keys", "/forget")
"""Whose ids are not taken: a tenant that revokes its own key asks nothing more."""
_ODD: Sequence[Any] = (
    None, True, 0, -1, 2**63, 1e308, "", " ", "\x00", "\ud800", "é" * 300, "../..", "%00", [], {},
    [[[]]], {"": {"": None}}, "9" * 5_000, "2026-13-45T99:99:99Z", "<script>", "$where", "' OR 1=1",
    "https://bot:pw@host/x", ["a"] * 500, {"$ref": "#"}, "a" * 70_000, -0.0, "null", "NaN",
)  # fmt: skip
_HEADERS: Sequence[dict[str, str]] = (
    {}, {}, {}, {"accept": "text/html"}, {"content-type": "text/plain"}, {"origin": "http://evil"},
    {"if-none-match": "*"}, {"accept-encoding": "br"}, {"x-request-id": "9" * 300},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """A method and a path, with what it takes."""

    method: str
    path: str
    parameters: Sequence[Mapping[str, Any]]
    bodies: Sequence[Any]


@dataclass(slots=True)
class Tenant:
    """Who asks: its key, its word, the ids that it was told."""

    name: str
    key: str
    ids: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """What all of its values hold."""
        return WORDS[self.name]


@dataclass(slots=True)
class Found:
    """What came of all requests."""

    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    crossings: list[str] = field(default_factory=list)


def operations_of(document: Mapping[str, Any]) -> list[Operation]:
    """Return what can be asked, with the examples that the document has of bodies."""
    found = [
        Operation("GET", f"/dashboard{page.path.replace(':path', '')}", (), ()) for page in PAGES
    ]
    for method in ("tools/list", "tools/call", "initialize", "x"):
        call = {"name": "suggest_fix", "arguments": {"toolName": "t", "parameters": {}}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": call}
        found.append(Operation("POST", "/mcp", (), (message,)))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            bodies = [
                example["value"]
                for each in content.values()
                for example in each.get("examples", {}).values()
            ]
            parameters = operation.get("parameters", ())
            found.append(Operation(method.upper(), path, parameters, bodies))
    return found


def odd(rng: random.Random, tenant: Tenant) -> Any:
    """Return a value that nobody expects, or one of the tenant's own."""
    return deepcopy(rng.choice((*_ODD, tenant.word, f"{tenant.word} {rng.random()}")))


def changed(body: Any, rng: random.Random, tenant: Tenant) -> Any:
    """Return a body with the tenant's word in its texts, and some places that are odd."""
    body = _worded(deepcopy(body), rng, tenant)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
        body = _hit(body, rng, tenant)
    return body


def _worded(value: Any, rng: random.Random, tenant: Tenant) -> Any:
    if isinstance(value, dict):
        return {key: _worded(each, rng, tenant) for key, each in value.items()}
    if isinstance(value, list):
        return [_worded(each, rng, tenant) for each in value]
    if isinstance(value, str) and _ID.fullmatch(value):
        return rng.choice(tenant.ids or [value]) if rng.random() < 0.5 else _new_id(rng)
    is_word = isinstance(value, str) and " " in value
    return f"{value} {tenant.word}" if is_word and rng.random() < 0.5 else value


def _new_id(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join(
        (digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:])
    )


def _hit(value: Any, rng: random.Random, tenant: Tenant) -> Any:
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return odd(rng, tenant)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        value[at] = _hit(value[at], rng, tenant)
        return value
    name = rng.choice(list(value))
    roll = rng.random()
    if roll < 0.1:
        del value[name]
    elif roll < 0.2:
        value[str(odd(rng, tenant))[:200]] = odd(rng, tenant)
    else:
        value[name] = _hit(value[name], rng, tenant)
    return value


def request_of(
    operation: Operation, rng: random.Random, tenant: Tenant, other: Tenant
) -> dict[str, Any]:
    """Return the arguments of a request."""
    path = operation.path
    for name in re.findall(r"\{([^}]*)\}", path):
        known = rng.choice((tenant, other)).ids
        text = str(rng.choice((*known[-50:], "t", tenant.word, odd(rng, tenant)))) or "t"
        safe = text.encode("utf-8", "replace").decode()[:3_000]
        path = path.replace(f"{{{name}}}", quote(safe, safe=""))
    query = {}
    for each in operation.parameters:
        if each.get("in") == "query" and rng.random() < 0.5:
            likely = (*each.get("schema", {}).get("enum", ()), each.get("example", 1), "24h", "7d")
            query[each["name"]] = str(rng.choice((*likely, odd(rng, tenant))))[:3_000]
    asked: dict[str, Any] = {"headers": {**bearer(tenant.key), **rng.choice(_HEADERS)}}
    if operation.bodies:
        body = changed(rng.choice(operation.bodies), rng, tenant)
        content = json.dumps(body).encode()
        if rng.random() < 0.05:
            content = content[: rng.randrange(len(content) + 1)] + b"\xff" * rng.randrange(3)
        asked["content"] = content
        asked["headers"].setdefault("content-type", "application/json")
        asked["headers"].setdefault("accept", "application/json, text/event-stream")
    params = {key: value.encode("utf-8", "replace").decode() for key, value in query.items()}
    return {"method": operation.method, "url": path, "params": params, **asked}


async def ask(
    url: str, tenants: Sequence[Tenant], operations: Sequence[Operation], requests: int, seed: int
) -> Found:
    """Ask so often, some at a time, and look at each answer."""
    found, left = Found(), iter(range(requests))

    async def worker(number: int) -> None:
        rng = random.Random(f"{seed} {number}")  # noqa: S311  # a scenario
        async with httpx2.AsyncClient(base_url=url, timeout=120) as client:
            for _ in left:
                tenant, other = rng.sample(tenants, 2)
                asked = request_of(rng.choice(operations), rng, tenant, other)
                try:
                    answer = await client.request(**asked)
                except (httpx2.InvalidURL, UnicodeError, ValueError):
                    found.answers["not sent"] += 1
                    continue
                except httpx2.TransportError as error:
                    found.answers[f"{type(error).__name__}"] += 1
                    continue
                judge(found, asked, answer, tenant, other)

    await asyncio.gather(*(worker(number) for number in range(AT_ONCE)))
    return found


def judge(
    found: Found, asked: Mapping[str, Any], answer: httpx2.Response, tenant: Tenant, other: Tenant
) -> None:
    """Count an answer, and keep what is wrong with it."""
    found.answers[str(answer.status_code)] += 1
    what = f"{tenant.name} {asked['method']} {asked['url'][:200]} {asked['params']}"[:500]
    # 503 says "not now", as while a workspace is learned anew after `/forget`.
    if answer.status_code >= 500 and answer.status_code != 503:
        body = asked.get("content", b"")[:500]
        found.faults.append(f"{answer.status_code} {what} {body!r}: {answer.text[:300]}")
    if other.word in answer.text:
        found.crossings.append(f"{what}: {answer.text[:300]}")
    if not asked["url"].startswith(_LEFT_ALONE):
        tenant.ids += _ID.findall(answer.text)[:5]
        del tenant.ids[:-_MAX_IDS]


def prove(service: RunningService, requests: int, seed: int) -> Found:
    """Ask a running service with keys of two workspaces."""
    new_key(service, "*")
    tenants = [Tenant(name, new_key(service, name)) for name in WORDS]
    document = httpx2.get(f"{service.url}/openapi.json", timeout=60).json()
    return asyncio.run(ask(service.url, tenants, operations_of(document), requests, seed))


def main() -> int:
    """Ask, and say what came of it; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        settings: Settings = hashing_settings(Path(name))
        with running(settings) as service:
            found = prove(service, given.requests, given.seed)
    for wrong in (*found.faults[:20], *found.crossings[:20]):
        sys.stderr.write(f"{wrong}\n")
    sys.stdout.write(
        f"{found.answers.total():,} requests: {len(found.faults)} answered 500, "
        f"{len(found.crossings)} crossings; {dict(sorted(found.answers.items()))}\n"
    )
    return bool(found.faults or found.crossings)


if __name__ == "__main__":
    sys.exit(main())
