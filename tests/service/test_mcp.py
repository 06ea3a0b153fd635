"""`/mcp` over streamable HTTP: both eras of the protocol, real clients, bad input, limits."""

import asyncio
import json
import logging
import signal
from pathlib import Path
from typing import Any
from uuid import uuid4

import fastmcp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from service.errors import ProblemError
from service.mcp_exchange import new_session, read_session
from service.middleware import refuse_foreign_origin
from tests.service.mcp_story import CLIENT, TOOLS, text_of, use_every_tool
from tests.service.running_service import RunningService, eventually, failure, serving

pytestmark = pytest.mark.real

ERAS = ("auto", "legacy")
"""Each request by itself (2026-07-28), and a session begun with a handshake (up to 2025-11-25)."""

RECORD: dict[str, Any] = {"toolName": "t", "parameters": {"a": 1}, "outcome": "success"}

ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


def opened(service: RunningService, era: str = "auto") -> Client:
    return Client(f"{service.url}/mcp", mode=era, client_info=CLIENT)


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(service: RunningService, body: object, **headers: str) -> httpx2.Response:
    """A message of the handshake era, as it is."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return service.client.post(
        "/mcp", content=content, headers={"content-type": "application/json", **ACCEPT, **named}
    )


async def test_every_tool_end_to_end(service: RunningService, era: str) -> None:
    """What was recorded over MCP is learned from, and mends the next failure.

    The newest client speaks without a session, an older one by its handshake.
    """
    async with opened(service, era) as client:
        assert client.server_info.name == "aftercall"
        assert client.protocol_version == ("2026-07-28" if era == "auto" else "2025-11-25")
        assert "suggest_fix" in (client.instructions or "")
        await use_every_tool(client, service)


async def test_fastmcp_speaks_to_it(service: RunningService) -> None:
    """The other client that is widely used."""
    async with fastmcp.Client(f"{service.url}/mcp") as client:
        assert tuple(tool.name for tool in await client.list_tools()) == TOOLS
        result = await client.call_tool("record_execution", RECORD)
        assert result.structured_content is not None
        assert result.structured_content["duplicate"] is False


async def test_the_client_names_the_agent(service: RunningService, era: str) -> None:
    """In both eras, although nothing of a client is kept here; `_meta` comes before it."""
    async with opened(service, era) as client:
        ids = []
        for meta in ({}, {"aftercall/agent": "ada", "aftercall/session": "s-1"}):
            result = await client.call_tool("record_execution", RECORD, meta=meta)  # type: ignore[arg-type]
            ids.append(result.structured_content["executionId"])
    plain, named = (service.client.get(f"/executions/{each}").json() for each in ids)
    assert plain["agent"] == CLIENT.name
    assert bool(plain["sessionId"]) is (era == "legacy")
    assert (named["agent"], named["sessionId"]) == ("ada", "s-1")


async def test_an_execution_id_makes_recording_again_harmless(service: RunningService) -> None:
    """Also without a time; the same id with another content is refused with the cure."""
    call = {**RECORD, "executionId": str(uuid4())}
    async with opened(service) as client:
        first = await client.call_tool("record_execution", call)
        again = await client.call_tool("record_execution", call)
        other = await client.call_tool("record_execution", {**call, "parameters": {"a": 2}})
    assert first.structured_content["duplicate"] is False
    assert again.structured_content["duplicate"] is True
    assert other.is_error
    assert "needs an id of its own" in text_of(other)


async def test_what_the_service_refuses_is_told_with_its_cure(service: RunningService) -> None:
    """As results for a model: unknown names with the nearest, contradictions with the field."""
    service.record(failure(toolName="known_one", serverName=None))
    async with opened(service) as client:
        unknown = await client.call_tool("tool_health", {"tool": "known_onee"})
        namespace = await client.call_tool("best_tool", {"namespace": "none", "scenario": "x"})
        contradiction = await client.call_tool("record_execution", {**RECORD, "outcome": "failure"})
    assert unknown.is_error
    assert "known_one" in text_of(unknown)
    assert namespace.is_error
    assert "call `known_tools`" in text_of(namespace)
    assert contradiction.is_error
    assert "a failure needs an error" in text_of(contradiction)


async def test_tools_are_asked_for_by_as_many_names_as_the_service_takes(
    service: RunningService,
) -> None:
    """The schema's bound is the service's own; names too long for an address are told as that."""
    names = [f"no_such_{number}" for number in range(100)]
    async with opened(service) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        most = listed["known_tools"].input_schema["properties"]["tools"]["maxItems"]
        taken = await client.call_tool("known_tools", {"tools": names[:most]})
        beyond = await client.call_tool("known_tools", {"tools": [*names, "one more"]})
        long = await client.call_tool("known_tools", {"tools": ["名" * 256] * most})
        scenario = {"namespace": "n", "scenario": "名" * 10_000}
        told = await client.call_tool("best_tool", scenario)
    assert most == 100
    assert "there is no tool" in text_of(taken)
    assert "tools: " in text_of(beyond)
    for result in (long, told):
        assert result.is_error
        assert "at most 60,000 fit" in text_of(result)


async def test_what_a_tool_asks_is_logged_under_the_id_of_its_request(
    service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each, without what was asked."""
    caplog.set_level(logging.INFO)
    http = httpx2.AsyncClient(headers={"x-request-id": "mine-1"})
    transport = streamable_http_client(f"{service.url}/mcp", http_client=http)
    async with http, Client(transport, client_info=CLIENT) as client:
        await client.call_tool("best_tool", {"namespace": "n", "scenario": "private words"})

    def routes() -> list[str]:
        ours = [each for each in caplog.records if each.name == "service.middleware"]
        fields = [record.__dict__["aftercall_fields"] for record in ours]
        return sorted(each["route"] for each in fields if each["request_id"] == "mine-1")

    # The discovery and the call; a line is written after its answer was sent.
    eventually(lambda: routes() == ["/mcp", "/mcp", "/namespaces/{namespace}/best"])
    from_service = [
        record.getMessage()
        for record in caplog.records
        if record.threadName == "service under test"
    ]
    assert not any("private" in each for each in from_service)


def test_pages_under_the_service_own_names_are_answered(service: RunningService) -> None:
    """An origin that only a program of this machine can have; others are for `test_keys.py`."""
    assert post(service, message("tools/list"), origin=service.url).status_code == 200


def test_any_host_is_no_origin() -> None:
    """Where every name is answered to, a page's name says nothing."""
    refuse_foreign_origin("https://a.example", {"*", "a.example"})
    for origin in ("https://b.example", "https://*"):
        with pytest.raises(ProblemError):
            refuse_foreign_origin(origin, {"*", "a.example"})


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_are_no_streams_and_no_sessions_to_end(service: RunningService, method: str) -> None:
    """Every request is a POST with one answer; MCP clients go on without the others."""
    answer = service.client.request(method, "/mcp", headers=ACCEPT)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"[]", b"[" * 100_000, b'{"jsonrpc": "2.0", "id": 1, "method": 7}', b"\xff\xfe"],
)
def test_what_is_no_message_is_refused(service: RunningService, body: bytes) -> None:
    """Without a stack trace, in either era."""
    for version in ("2025-11-25", "2026-07-28"):
        answer = post(service, body, mcp_protocol_version=version)
        assert answer.status_code == 400
        assert "Traceback" not in answer.text


def test_a_client_that_takes_no_json_is_told(service: RunningService) -> None:
    """Every answer is JSON; `*/*` takes it."""
    assert post(service, message("tools/list"), accept="text/event-stream").status_code == 406
    assert post(service, message("tools/list"), accept="*/*").status_code == 200


@pytest.mark.parametrize(
    "name", [None, "inspector", "Schreibmaschine für Übungen", "x" * 500, "名" * 100]
)
def test_a_session_says_its_client_by_itself(name: str | None) -> None:
    """Any process reads what another one wrote; long names are cut between characters."""
    text = new_session(name)
    assert len(text) <= 300
    assert text.isascii()
    read = read_session(text)
    assert read is not None
    assert (name or "").startswith(read[1] or "")
    assert bool(read[1]) is bool(name)


@pytest.mark.parametrize(
    "text", [None, "", "abc", "0" * 32, f"{'0' * 32}.a", f"{'0' * 32}.____", "x" * 10_000]
)
def test_what_is_no_session_of_ours_is_none(text: str | None) -> None:
    """It is a header that anybody may send."""
    assert read_session(text) is None


async def test_the_service_stops_with_clients_connected(tmp_path: Path) -> None:
    """At once and in order: there is no stream that would hold it."""
    with serving(tmp_path / "data", environ={"AFTERCALL_SERVER_SHUTDOWN_S": "60"}) as process:
        async with Client(f"{process.url}/mcp", mode="legacy") as client:
            await client.list_tools()
            process.process.send_signal(signal.SIGTERM)
            # Long before the time that running requests would get.
            assert await asyncio.to_thread(process.process.wait, 20) == 0
