"""`aftercall gateway` as a process: its streams, its signals, and what it leaves behind."""

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2
import psutil
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from aftercall.cli import main
from tests.gateway.conftest import TIME_SERVER
from tests.gateway.contract_service import ContractService
from tests.gateway.speaking import HELLO, answers, command, first_word, request, started
from tests.gateway.waiting import children, until
from tests.service.keys_helper import key_id, new_key
from tests.service.running_service import hashing_settings, on_loop, running

pytestmark = pytest.mark.real

NOW = "get_current_time"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with the time server."""
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"time": TIME_SERVER}}))
    return file


CALL = request(2, "tools/call", name=NOW, arguments={"timezone": "UTC"})


async def test_nothing_but_mcp_goes_to_standard_output(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """Every line is an answer, and a client that leaves ends the gateway with exit code 0."""
    async with started(command(config, service.url, "--verbose"), environment) as process:
        hello, called = await answers(process, HELLO, CALL)
        rest, _ = await process.communicate(b"")  # without input, 3.11 leaves stdin open

    assert hello["result"]["serverInfo"]["name"] == "aftercall-gateway"
    assert called["result"]["structuredContent"]["timezone"] == "UTC"
    assert rest == b""
    assert process.returncode == 0
    (execution,) = service.recorded
    assert (execution["agent"], execution["toolName"]) == ("tester", NOW)


async def test_arguments_may_be_a_text(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """What says an object reaches the server; what is cut off is refused and recorded, masked."""
    loose = request(2, "tools/call", name=NOW, arguments="{'timezone': 'UTC',}")
    cut_off = request(3, "tools/call", name=NOW, arguments='{"password": "pearl-17-x", "timezo')
    async with started(command(config, service.url), environment) as process:
        _, read, refused = await answers(process, HELLO, loose, cut_off)
        await process.communicate(b"")
    assert read["result"]["structuredContent"]["timezone"] == "UTC"
    assert "were read as one" in read["result"]["content"][-1]["text"]
    assert refused["result"]["isError"] is True
    first, second = service.recorded
    assert first["parameters"] == {"timezone": "UTC"}
    assert (second["outcome"], second["parameters"]) == ("failure", {})
    assert second["argumentsText"].startswith('{"password": "[')
    assert "pearl-17-x" not in json.dumps(service.recorded)


async def test_what_the_user_calls_secret_does_not_leave_the_gateway(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """The tool gets it as it is; the service never sees it, but for what a list allows."""
    options = ["--secret-name", "timezone", "--allowlist", "convert_time=time"]
    zones = {"source_timezone": "Europe/Paris", "time": "16:30", "target_timezone": "UTC"}
    named = request(2, "tools/call", name=NOW, arguments={"timezone": "Europe/Paris"})
    listed = request(3, "tools/call", name="convert_time", arguments=zones)
    async with started(command(config, service.url, *options), environment) as process:
        _, *called = await answers(process, HELLO, named, listed)
        await process.communicate(b"")
    assert ["Europe/Paris" in json.dumps(each["result"]) for each in called] == [True, True]
    first, second = (each["parameters"] for each in service.recorded)
    assert first["timezone"].startswith("[redacted:string")
    assert second["source_timezone"].startswith("[hashed:string")
    assert second["time"] == "16:30"
    assert "Europe/Paris" not in json.dumps(service.recorded)


async def test_a_signal_ends_it_in_order(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """Calls are delivered, the servers behind it are ended and reaped, while the client waits."""
    async with started(command(config, service.url), environment) as process:
        await answers(process, HELLO, CALL)
        (behind,) = children("mcp-server-time")
        process.terminate()
        async with asyncio.timeout(200):
            assert await process.wait() == 0

    assert not psutil.pid_exists(behind.pid)
    assert [e["toolName"] for e in service.recorded] == [NOW]


VANISHING = """
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
async def main():
    async with Client(StdioTransport(sys.argv[1], sys.argv[2:])) as client:
        await client.call_tool("wait", {})
asyncio.run(main())
"""
SLOW = """
import asyncio, pathlib
from mcp.server.mcpserver import MCPServer
server = MCPServer("slow")
@server.tool()
async def wait() -> str:
    pathlib.Path("began").touch()
    await asyncio.sleep(3600)
server.run()
"""


async def test_a_client_that_is_killed_in_a_call_leaves_nothing_running(
    service: ContractService, environment: dict[str, str], tmp_path: Path
) -> None:
    """The gateway ends though a server still works, and the server with it."""
    (tmp_path / "slow.py").write_text(SLOW)
    config = tmp_path / "slow.json"
    slow = {"command": sys.executable, "args": ["slow.py"], "cwd": str(tmp_path)}
    config.write_text(json.dumps({"mcpServers": {"slow": slow}}))
    words = [sys.executable, "-c", VANISHING, *command(config, service.url)]
    async with started(words, environment) as client:
        await until((tmp_path / "began").exists, 60)
        behind = psutil.Process(client.pid).children(recursive=True)
        client.kill()
        await until(lambda: not any(psutil.pid_exists(each.pid) for each in behind), 60)
    assert len(behind) == 2


async def test_over_http_agents_share_the_servers(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """Several clients over HTTP, one server process; Ctrl-C ends all with exit code 130."""
    words = command(config, service.url, "--transport", "http", "--port", "0", "--agent", "house")
    words += ["--context", "keeping house"]
    async with started(words, environment) as process:
        line = await first_word(process)
        url = line.split()[-1]
        named = StreamableHttpTransport(url, headers={"aftercall-context": "a trip"})
        async with Client(url) as one, Client(url, mode="legacy") as other:
            results = await asyncio.gather(
                *(c.call_tool(NOW, {"timezone": "UTC"}) for c in (one, other, one, other))
            )
            async with Client(named) as third:
                await third.call_tool(NOW, {"timezone": "UTC"})
            processes = children("mcp-server-time")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(200):
            assert await process.wait() == 130

    assert line.startswith("aftercall: gateway at http://127.0.0.1:")
    assert len(results) == 4
    assert len(processes) == 1
    assert children("mcp-server-time") == []
    assert {e["agent"] for e in service.recorded} == {"house"}
    # A modern HTTP client has one of ours; one from before has its own, and not its secret.
    assert len({e["sessionId"] for e in service.recorded} - {None}) == 2
    assert [e["context"] for e in service.recorded].count("keeping house") == 4
    assert [e["context"] for e in service.recorded].count("a trip") == 1


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("{", (), "Expecting property name"),
        ('{"mcpServers": {"a": {}}}', (), "server 'a': needs either"),
        ('{"mcpServers": {"a": {"command": "x"}}}', ("--allowlist", "mail"), "TOOL=NAME"),
        (
            '{"mcpServers": {"a": {"command": "x"}}}', ("--min-confidence", "7"),
            "min_confidence must be between 0 and 1",
        ),
        (
            '{"mcpServers": {"a": {"command": "x"}}}', ("--min-failure-rate", "7"),
            "min_failure_rate must be between 0 and 1",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str,
    more: Sequence[str],
    message: str,
) -> None:
    """No traceback, nothing on standard output, exit code 1."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "broken.json"
    file.write_text(content)
    assert main(command(file, "http://127.0.0.1:9", *more)[1:]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("aftercall: ")
    assert message in err
    assert len(err.splitlines()) == 1


async def test_over_http_each_key_has_a_gateway_of_its_own(
    config: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """No session with a server is shared; the service sees the caller's key, and says who may."""
    with running(hashing_settings(tmp_path / "keys")) as keyed:
        keys = {name: new_key(keyed, name) for name in ("red", "blue")}
        house = environment | {"AFTERCALL_API_KEY": new_key(keyed, "house")}
        words = command(config, keyed.url, "--transport", "http", "--port", "0")
        async with started(words, house) as process:
            url = (await first_word(process)).split()[-1]
            for key in keys.values():
                async with Client(url, auth=key) as one:
                    await one.call_tool(NOW, {"timezone": "UTC"})
            async with Client(url) as own:
                await own.call_tool(NOW, {"timezone": "UTC"})
            assert len(children("mcp-server-time")) == 3
            headers = {"authorization": f"Bearer {keys['red']}x"}
            assert httpx2.post(url, json={}, headers=headers).status_code == 401
            process.terminate()
            async with asyncio.timeout(200):
                assert await process.wait() == 0
        log = keyed.context.store.events
        for name, key in (*keys.items(), ("house", house["AFTERCALL_API_KEY"])):
            [event] = on_loop(keyed, log.latest_events(name, "execution", 5))
            assert event.principal == key_id(key)
