"""What the gateway adds to a tool call that succeeds, against the same call made directly.

    python -m bench.gateway [--calls 200] [--repeats 7] [--json] [--write]

Direct and through the gateway take turns in one run, over the same kind of connection; the figure
is the median over the repeats of the difference of the p50s. Every call is recorded; the recorder
has nobody to send to and spools, which costs the gateway the same. A row of FastMCP's own proxy for
an `mcpServers` file, left as it comes, is beside them.

A call that looks right is never asked about. Of those that look wrong, the rows of *asking* compare
calls through one gateway: in the place of the direct call stands one that looks right. The question
goes to `POST /check` of a service in a process of its own, over HTTP; the call that is warned of is
then made as it is, the other one with its parameter renamed. *Question alone* is the round trip,
from the gateway's client to the service and back.

`--write` puts the table into `docs/figures/gateway.md`.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

from aftercall import AsyncClient, Recorder
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.server import build_gateway
from aftercall.json_values import JsonObject
from aftercall.models import Call
from bench.figures import FOLDER, write_section
from bench.service import serving

BIN = Path(sys.executable).parent
TIME, TIME_ARGS = str(BIN / "mcp-server-time"), ["--local-timezone", "UTC"]
TOOL, ARGUMENTS = "get_current_time", {"timezone": "Europe/Warsaw"}
WARNED = {"timezone": "Europe/Warsaw", "format": "iso"}
REPAIRED = {"tz": "Europe/Warsaw"}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"timezone": {"type": "string", "description": "IANA timezone name"}},
    "required": ["timezone"],
}
PAGE = FOLDER / "gateway.md"
TITLE = "Added to a call that succeeds"
HTTP_SERVER = """
import sys
from fastmcp import FastMCP
server = FastMCP("clock")
@server.tool
def get_current_time(timezone: str) -> dict[str, str]:
    return {"timezone": timezone, "datetime": "2026-02-20T14:30:00+01:00"}
server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
"""


@dataclass(frozen=True)
class Row:
    """Times in milliseconds per call; `added` is the median of the repeats' differences."""

    name: str
    direct_p50_ms: float
    gateway_p50_ms: float
    added_p50_ms: float
    gateway_p95_ms: float
    calls: int


async def timed(
    client: Client[Any], calls: int, arguments: dict[str, str] = ARGUMENTS
) -> list[float]:
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        result = await client.call_tool_mcp(TOOL, arguments)
        times.append((time.perf_counter() - started) * 1000)
        if result.is_error:
            raise RuntimeError(f"the call failed: {result.content}")
    return times


async def compare(
    name: str,
    direct: Client[Any],
    gateway: Client[Any],
    *,
    calls: int,
    repeats: int,
    arguments: dict[str, str] = ARGUMENTS,
) -> Row:
    for client in {direct, gateway}:
        await timed(client, min(calls, 20))  # warm: connections, caches, imports
    await timed(gateway, min(calls, 20), arguments)
    pairs = [
        (await timed(direct, calls), await timed(gateway, calls, arguments)) for _ in range(repeats)
    ]
    medians = [(statistics.median(d), statistics.median(g)) for d, g in pairs]
    through = sorted(t for _, g in pairs for t in g)
    return Row(
        name=name,
        direct_p50_ms=statistics.median(d for d, _ in medians),
        gateway_p50_ms=statistics.median(g for _, g in medians),
        added_p50_ms=statistics.median(g - d for d, g in medians),
        gateway_p95_ms=through[int(len(through) * 0.95)],
        calls=len(through),
    )


async def questions(api: AsyncClient, name: str, arguments: dict[str, str], calls: int) -> Row:
    call = Call(
        agent="bench", server_name="time", tool_name=TOOL, parameters=dict(arguments),
        session_id="bench", input_schema=SCHEMA,
    )  # fmt: skip
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        await api.check(call)
        times.append((time.perf_counter() - started) * 1000)
    middle = statistics.median(times)
    return Row(f"question alone, {name}", 0, middle, middle, sorted(times)[-calls // 20], calls)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def process(command: Sequence[str], port: int, home: Path) -> AsyncIterator[None]:
    log = (home / f"{port}.log").open("w")
    running = await asyncio.create_subprocess_exec(
        *command, stdout=log, stderr=log, env={"HOME": str(home), "PATH": str(BIN)}
    )
    try:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield
    finally:
        running.terminate()
        await asyncio.wait_for(running.wait(), 20)
        log.close()


async def measure(calls: int, repeats: int, asked: str, home: Path) -> list[Row]:
    """The rows; `asked` is where the service is that is asked about calls that look wrong."""
    service = f"http://127.0.0.1:{free_port()}"  # nobody
    config = home / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"time": {"command": TIME, "args": TIME_ARGS}}}))
    gateway_command = [str(BIN / "aftercall"), "gateway", "--service", service]
    quiet = home / "stderr.log"
    rows = []
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stdio = await enter(Client(StdioTransport(TIME, TIME_ARGS, log_file=quiet)))

        recorder = Recorder(base_url=service, spool_dir=home / "spool")
        stack.callback(recorder.close)
        api = await enter(AsyncClient(asked, retries=0))
        in_process = build_gateway(
            GatewayConfig.from_file(config),
            client=api,
            recorder=recorder,
            errlog=stack.enter_context((home / "upstream.log").open("w")),
        )
        memory = await enter(Client(in_process))
        rows.append(
            await compare(
                "in-memory front, stdio server", stdio, memory, calls=calls, repeats=repeats
            )
        )

        for name, odd in (("warned of", WARNED), ("repaired before", REPAIRED)):
            row = await compare(
                f"asking, call {name}", memory, memory, calls=calls, repeats=repeats, arguments=odd
            )
            rows += [row, await questions(api, f"call {name}", odd, calls * repeats)]

        front = StdioTransport(
            gateway_command[0],
            [*gateway_command[1:], "--config", str(config)],
            env={"HOME": str(home)},
            log_file=quiet,
        )
        piped = await enter(Client(front))
        rows.append(
            await compare("stdio front, stdio server", stdio, piped, calls=calls, repeats=repeats)
        )

        server_port, gateway_port = free_port(), free_port()
        script = home / "clock.py"
        script.write_text(HTTP_SERVER)
        await enter(process([sys.executable, str(script), str(server_port)], server_port, home))
        url = f"http://127.0.0.1:{server_port}/mcp"
        (home / "http.json").write_text(json.dumps({"mcpServers": {"clock": {"url": url}}}))
        options = ["--transport", "http", "--port", str(gateway_port)]
        await enter(
            process(
                [*gateway_command, "--config", str(home / "http.json"), *options],
                gateway_port,
                home,
            )
        )
        direct = await enter(Client(url))
        remote = await enter(Client(f"http://127.0.0.1:{gateway_port}/mcp"))
        rows.append(
            await compare("HTTP front, HTTP server", direct, remote, calls=calls, repeats=repeats)
        )

        # For each call it starts the server anew, so a few calls say it all.
        proxy = await enter(Client(create_proxy(StdioTransport(TIME, TIME_ARGS, keep_alive=False))))
        rows.append(await compare("FastMCP's proxy as it comes", stdio, proxy, calls=3, repeats=2))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The section of the page, in Markdown."""
    said = " ".join(" ".join((__doc__ or "").split("\n\n")[2:4]).split())
    lines = [
        f"At a load of {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores. {said}", "",
        "| way | direct p50, ms | gateway p50, ms | added p50, ms | gateway p95, ms | calls |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            f"| {row.name} | {row.direct_p50_ms:.2f} | {row.gateway_p50_ms:.2f} | "
            f"{row.added_p50_ms:.2f} | {row.gateway_p95_ms:.2f} | {row.calls} |"
            for row in rows
        ),
    ]  # fmt: skip
    return "\n".join((*lines, ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="aftercall-bench-"))
    try:
        with serving(home / "data", home / "serve.log") as service:
            rows = asyncio.run(measure(args.calls, args.repeats, service.url, home))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if args.json:
        figures = [asdict(row) for row in rows]
        machine = f"{platform.system()} {platform.machine()}"
        print(json.dumps({"machine": machine, "rows": figures}, indent=2))
        return
    if args.write:
        write_section(PAGE, TITLE, "python -m bench.gateway --write", table(rows))
    print(f"{'':<32}{'direct p50':>12}{'gateway p50':>13}{'added p50':>11}{'p95':>9}   ms per call")
    for row in rows:
        print(
            f"{row.name:<32}{row.direct_p50_ms:>12.2f}{row.gateway_p50_ms:>13.2f}"
            f"{row.added_p50_ms:>11.2f}{row.gateway_p95_ms:>9.2f}   ({row.calls} calls)"
        )


if __name__ == "__main__":
    main()
