"""Alerts: what is new is said once to the configured address, as data, and seldom."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from aftercall.models import ToolName
from service.alerts import EVERY, Alert, Said, due_of, find_news, send_alerts
from service.context import Space
from tests.service.running_service import (
    RunningService,
    failure,
    hashing_settings,
    on_loop,
    running,
)
from tests.service.statistics.test_failures import SECRET, ago, consolidated, counted

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def alert(tool: str) -> Alert:
    return Alert(
        kind="new_pattern", workspace="default", tool=ToolName(tool_name=tool), text="x", at=NOW
    )


def test_of_a_tool_at_most_one_an_hour_is_due_and_nothing_twice() -> None:
    """What had to wait comes an hour later."""
    found = [("a1", alert("a")), ("a2", alert("a")), ("b1", alert("b"))]
    said: Said = {}
    assert list(due_of(said, found, NOW)) == ["a1", "b1"]
    said["a1"] = said[alert("a").about] = NOW
    assert list(due_of(said, found, NOW + EVERY / 2)) == ["b1"]
    assert list(due_of(said, found, NOW + EVERY)) == ["a2", "b1"]


@pytest.fixture
def address() -> Iterator[tuple[str, list[dict[str, Any]], list[int]]]:
    """An address that keeps what is posted to it, and answers with the first of its statuses."""
    posted: list[dict[str, Any]] = []
    statuses = [500, 204]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as the library calls it
            body = self.rfile.read(int(self.headers["content-length"]))
            posted.append(json.loads(body))
            self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", posted, statuses
        server.shutdown()


def send(service: RunningService, url: str) -> int:
    sent: int = on_loop(service, send_alerts(service.context, url))
    return sent


def test_a_new_failure_and_a_drifted_contract_are_posted_once(
    tmp_path: Path, address: tuple[str, list[dict[str, Any]], list[int]]
) -> None:
    """After the first look, which says nothing; what was not taken is sent again; no secrets."""
    url, posted, _ = address
    settings = hashing_settings(tmp_path)
    error = {"message": f"</b> no such {SECRET} thing", "type": "E"}
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tool = {"name": "drifting", "inputSchema": schema}
    with running(settings) as service:
        service.record([failure(timestamp=ago(hours=30)) for _ in range(3)])
        service.client.put("/tools/drifting", json=tool).raise_for_status()
        counted(service, 3)
        assert send(service, url) == 0
        service.record([failure(timestamp=ago(minutes=5), error=error) for _ in range(4)])
        counted(service, 7)
        consolidated(settings, service)
        changed = {**tool, "inputSchema": schema | {"required": ["q"]}}
        service.client.put("/tools/drifting", json=changed).raise_for_status()
        kinds = {
            each.kind for _, each in on_loop(service, find_news(Space(service.context, "default")))
        }
        assert kinds == {"new_pattern", "contract_drift"}
        with pytest.raises(httpx2.HTTPStatusError):
            send(service, url)
        posted.clear()
        assert send(service, url) == 2
        assert {each["kind"] for each in posted} == kinds
        assert SECRET not in json.dumps(posted)
        assert send(service, url) == 0
