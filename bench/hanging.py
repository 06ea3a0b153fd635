"""Seven servers that answer and one that does not: how long a client waits for the list, and calls.

    python -m bench.hanging

The bad one hangs at its start, prints garbage or log messages without end, is late, or lists 20,000
tools, in 6 or in 60 MB. Asked are 3 s for
the list of the others, and 50 ms for the 95th percentile of their calls. No service is there: calls
pass through. 40 calls, 20 ms apart, begin as soon as the list is there.
"""

import asyncio
import logging
import os
import statistics
import sys
import tempfile
import time

from fastmcp import Client

from aftercall import AsyncClient, Recorder
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.server import build_gateway

NOWHERE = "http://127.0.0.1:9"
SERVER = """
import json, sys, time
count, size, late_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
schema = {"type": "object", "properties": {"city": {"type": "string"}}}
names = ["weather", *(f"tool_{number}" for number in range(count - 1))]
tools = [{"name": each, "description": "x" * size, "inputSchema": schema} for each in names]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    method, given = asked["method"], asked.get("params") or {}
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        info = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        answer = {"result": info | {"protocolVersion": given["protocolVersion"]}}
    elif method == "tools/list":
        time.sleep(late_s)
        answer = {"result": {"tools": tools}}
    elif method == "tools/call": answer = {"result": {"content": [{"type": "text", "text": "sun"}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | answer), flush=True)
"""
FLOOD = """
import json, time
params = {"level": "info", "data": "x" * 200}
message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
while True: print(json.dumps(message), flush=True); time.sleep(0.001)
"""
BAD = {
    "none": None,
    "hangs": ["-c", "import time; time.sleep(3600)"],
    "prints garbage": ["-c", "import time\nwhile True: print('?', flush=True); time.sleep(0.001)"],
    "prints log messages": ["-c", FLOOD],
    "is 2 s late": ["-c", SERVER, "1", "200", "2"],
    "lists 20,000 tools, 6 MB": ["-c", SERVER, "20000", "200", "0"],
    "lists 20,000 tools, 60 MB": ["-c", SERVER, "20000", "2900", "0"],
}


async def measure(bad: list[str] | None) -> tuple[float, int, list[float]]:
    """Seconds until the list, tools in it, and milliseconds of calls of the good servers."""
    good = {"command": sys.executable, "args": ["-c", SERVER, "1", "200", "0"]}
    servers = {f"good{number}": good for number in range(7)}
    if bad is not None:
        servers["bad"] = {"command": sys.executable, "args": bad}
    config = GatewayConfig.from_dict({"mcpServers": servers})
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(base_url=NOWHERE, spool_dir=folder) as to,
    ):
        async with AsyncClient(NOWHERE, retries=0) as client:
            begun = time.perf_counter()
            async with Client(build_gateway(config, client=client, recorder=to)) as asking:
                tools = await asking.list_tools()
                listed_s = time.perf_counter() - begun
                return listed_s, len(tools), [await _call(asking, n % 7) for n in range(40)]


async def _call(asking: Client, number: int) -> float:  # type: ignore[type-arg]  # of no transport
    begun = time.perf_counter()
    await asking.call_tool_mcp(f"good{number}_weather", {"city": "Oslo"})
    took_ms = (time.perf_counter() - begun) * 1_000
    await asyncio.sleep(0.02)
    return took_ms


def main() -> None:
    """Measure each kind of bad server, and print a table."""
    logging.disable(logging.CRITICAL)
    print("| the eighth server | list, s | tools | calls of the others, ms: p50 | p95 |")
    print("|---|---|---|---|---|")
    for name, bad in BAD.items():
        listed_s, tools, calls = asyncio.run(measure(bad))
        high = statistics.quantiles(calls, n=20)[-1]
        middle = statistics.median(calls)
        print(f"| {name} | {listed_s:.1f} | {tools} | {middle:.0f} | {high:.0f} |", flush=True)
    print(f"\nMeasured at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
