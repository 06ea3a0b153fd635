"""Nobody can hold up the others: what is large is answered within bounds, what idles is closed."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.service.running_service import (
    RunningService,
    connected,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
    serving,
)

ASKED = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
MANY = {f"parameter{n}": n for n in range(100_000)}
LISTED = {"type": "object", "properties": {"city": {"enum": [f"city {n}" for n in range(200_000)]}}}
EITHER = {"properties": {"topK": {"items": {"anyOf": [{"enum": [n]} for n in range(900)]}}}}
LONG = {"type": "Error", "message": "topK must be <= 10 " + "x" * 1_100_000, "stack": "y" * 100_000}


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[RunningService]:
    """A service of twelve connections, whose heads have half a second."""
    limits = {"connections": 12, "head_timeout_s": 0.5}
    with running(hashing_settings(tmp_path, limits=limits)) as service:
        yield service


def answer(connection: socket.socket) -> tuple[int, str]:
    """Status and code of what is answered before the connection is closed."""
    text = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["code"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"parameters": MANY}, "at most 10,000 values"),
        ({"parameters": {"text": "x" * 300_000}}, "262,144 characters"),
        ({"inputSchema": LISTED, "parameters": {"city": "city 7x"}}, None),
        ({"inputSchema": EITHER, "parameters": {"topK": [5000] * 9_000}}, None),
        ({"error": LONG, "parameters": {"topK": 50}}, None),
    ],
    ids=["parameters", "characters", "enum", "alternatives", "error"],
)
def test_large_questions_are_answered_within_bounds(
    service: RunningService, fields: dict[str, Any], reason: str | None
) -> None:
    """What is too large to be looked at changes nothing; the answer says what the bound is."""
    found = service.client.post("/suggest", json={"execution": failure(**fields)}).json()
    assert all(each["correctedParameters"] is None for each in found["suggestions"]) == (
        "error" not in fields
    )
    assert reason is None or reason in found["reason"]
    assert len(found["pattern"]["signature"]) < 1_000


@pytest.mark.parametrize("parameters", [MANY, {"city": "x" * 300_000}])
def test_large_calls_pass_the_check(service: RunningService, parameters: dict[str, Any]) -> None:
    """What is not looked at is not warned of, whatever its schema wants."""
    schema = {"type": "object", "properties": {"id": {}}, "required": ["id"]}
    call = {"agent": "a", "toolName": "t", "parameters": parameters, "inputSchema": schema}
    assert service.client.post("/check", json={"call": call}).json()["verdict"] == "pass"


def test_large_records_are_kept_and_learned(service: RunningService) -> None:
    """Parameters whole; a schema that nothing reads not, and of long texts the beginning."""
    many, listed = execution(parameters=MANY), execution(inputSchema=LISTED)
    long = failure(error=LONG)
    for record in (many, listed, long):
        assert service.record(record).json()["accepted"] == 1
    service.learned()
    read = [service.client.get(f"/executions/{r['executionId']}").json() for r in (many, listed)]
    assert read[0]["parameters"] == MANY
    assert read[1]["inputSchema"] is None
    error = service.client.get(f"/executions/{long['executionId']}").json()["error"]
    assert [len(error[name]) for name in ("message", "stack")] == [65_536, 65_536]
    again = service.record(long).json()
    assert (again["accepted"], again["duplicates"]) == (0, 1)


def test_a_large_body_is_refused_with_the_field(service: RunningService) -> None:
    """As a small one is, though it is validated beside the event loop."""
    asked = {"execution": failure(parametres=MANY)}
    refused = service.client.post("/suggest", json=asked)
    assert refused.status_code == 422
    assert "parametres" in refused.json()["error"]["message"]


def test_a_tool_of_endless_lists_is_refused(service: RunningService) -> None:
    """It says what to shorten."""
    spec = {"namespace": "places", "name": "city", "inputSchema": LISTED}
    refused = service.client.put("/tools/places.city", json=spec)
    assert refused.status_code == 422
    assert "shorten lists of values" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (b"GET /" + b"a" * 66_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", 414,
         "address_too_long"),
        (b"GET /" + b"a" * 300_000, 414, "address_too_long"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 300_000, 431, "head_too_large"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ", 408, "request_timeout"),
        (b"hello\r\n\r\n", 400, "malformed_http"),
    ],
    ids=["address", "endless address", "endless header", "trickle", "other protocol"],
)  # fmt: skip
def test_heads_have_an_end(strict: RunningService, head: bytes, status: int, code: str) -> None:
    """In the form of every error, and the connection is closed."""
    with connected(strict.url) as connection:
        connection.sendall(head)
        assert answer(connection) == (status, code)


def test_what_follows_a_request_and_is_none_ends_the_connection(strict: RunningService) -> None:
    """Nothing is written into the answer that is under way, and others are served."""
    with connected(strict.url) as connection:
        connection.sendall(ASKED + b"\x00\x01\r\n\r\n")
        assert b"".join(iter(lambda: connection.recv(65_536), b"")).count(b"HTTP/1.1") <= 1
    assert strict.client.get("/healthz").status_code == 200


def test_idle_connections_are_closed(strict: RunningService) -> None:
    """One that asks nothing, and one that sends a blank line now and then."""
    with connected(strict.url) as silent, connected(strict.url) as blank:
        blank.sendall(b"\r\n")
        assert silent.recv(1) == b""
        assert blank.recv(1) == b""


def test_too_many_connections_are_told_so(strict: RunningService) -> None:
    """Those that are open are served; further ones hear when to come back, and can, later."""
    crowd(strict.url, 12, 13)


def test_files_do_not_run_out(tmp_path: Path) -> None:
    """A process that may open 300 takes 100 connections, and tells the next ones."""
    with serving(tmp_path / "data", files=300) as service:
        crowd(service.url, 100, 110)
        crowd(service.url, 100, 400)


def crowd(url: str, served: int, come: int) -> None:
    """So many are served, the next one is refused, and once they have gone all is well."""
    held = [connected(url) for _ in range(served + 1)]
    held[served].sendall(ASKED)
    assert answer(held[served]) == (503, "busy")
    held[served - 1].sendall(ASKED)
    assert b"200 OK" in held[served - 1].recv(1_000)
    held += [connected(url) for _ in range(come - served)]
    for each in held:
        each.close()
    with httpx2.Client(base_url=url) as client:
        eventually(lambda: _is_served(client))


def _is_served(client: httpx2.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False
