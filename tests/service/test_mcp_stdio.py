"""`aftercall mcp`: the same tools over stdio, by a process that a client starts."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from aftercall.cli import main
from tests.mongo.mongo_server import free_port
from tests.service.mcp_story import CLIENT, TOOLS, text_of, use_every_tool
from tests.service.running_service import RunningService, aftercall, hashing_settings, running

pytestmark = pytest.mark.real

RECORD: dict[str, Any] = {"toolName": "t", "parameters": {"a": 1}, "outcome": "success"}

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    },
}


def opened(url: str, *options: str, mode: str = "auto") -> Client:
    words = ["-m", "aftercall.cli", "mcp", "--service", url, *options]
    command = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    return Client(command, mode=mode, client_info=CLIENT)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_tool_end_to_end(service: RunningService, mode: str) -> None:
    """As over HTTP, in both eras of the protocol."""
    async with opened(service.url, mode=mode) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        await use_every_tool(client, service)


@pytest.mark.parametrize(("options", "agent"), [((), CLIENT.name), (("--agent", "ada"), "ada")])
async def test_a_process_is_a_session_of_its_client(
    service: RunningService, options: tuple[str, ...], agent: str
) -> None:
    """So that what follows a failure can be told from it."""
    async with opened(service.url, *options) as client:
        stored = []
        for _ in range(2):
            result = await client.call_tool("record_execution", RECORD)
            execution_id = result.structured_content["executionId"]
            stored.append(service.client.get(f"/executions/{execution_id}").json())
    assert [each["agent"] for each in stored] == [agent, agent]
    assert stored[0]["sessionId"] == stored[1]["sessionId"] is not None


async def test_a_service_that_is_away_is_told_of_and_may_come_back(tmp_path: Path) -> None:
    """A result that says how to start it; with the same process, the next call is answered."""
    port = free_port()
    async with opened(f"http://127.0.0.1:{port}") as client:
        assert tuple(tool.name for tool in (await client.list_tools()).tools) == TOOLS
        away = await client.call_tool("record_execution", RECORD)
        assert away.is_error
        assert "`aftercall serve`" in text_of(away)
        with running(hashing_settings(tmp_path), port=port):
            assert not (await client.call_tool("record_execution", RECORD)).is_error
        assert (await client.call_tool("record_execution", RECORD)).is_error


@contextmanager
def by_hand(*options: str) -> Iterator["subprocess.Popen[str]"]:
    """The process with a session begun, and the answer to that read."""
    process = aftercall("mcp", *options)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE) + "\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"]["protocolVersion"] == "2025-06-18"
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=200)


def test_it_ends_with_its_input() -> None:
    """The client has left; nothing is written then."""
    with by_hand() as process:
        out, err = process.communicate(timeout=200)
        assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it(number: signal.Signals, status: int) -> None:
    """Also while its input is open and silent."""
    with by_hand() as process:
        process.send_signal(number)
        assert process.wait(timeout=200) == status


def test_standard_output_carries_the_protocol_alone(service: RunningService) -> None:
    """Lines that are no messages, and words of the log, leave it as it is."""
    with by_hand("--service", service.url, "--verbose") as process:
        call = {"name": "best_tool", "arguments": {"namespace": "n", "scenario": "private words"}}
        lines = [
            "this is no message",
            json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["id"] == 2
        out, err = process.communicate(timeout=200)
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
        assert "private words" not in err
        assert "private%20words" not in err
        assert "Traceback" not in err


def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong address, and the extra that was not installed."""
    assert main(["mcp", "--service", "here"]) == 1
    assert "http://" in capsys.readouterr().err
    for name in [each for each in sys.modules if each.startswith("aftercall.mcp_server.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    assert main(["mcp"]) == 1
    assert "'./sdk[mcp]'" in capsys.readouterr().err
