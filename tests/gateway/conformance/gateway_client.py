"""A client for MCP's conformance suite: it does what a scenario wants, by the gateway."""

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import mcp_types
from fastmcp import Client

from aftercall import AsyncClient, Recorder
from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.server import build_gateway

NOWHERE = "http://127.0.0.1:9"
ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}
"""Of tools that take some, where the suite does not say which."""
SCHEMA_ECHO = "json-schema-2020-12-preservation"


async def _accept(_message: str, _kind: object, params: Any, _context: object) -> Any:
    """Answer with the defaults of what is asked, and yes to the rest."""
    fields = (params.requested_schema or {}).get("properties", {})
    filled = {name: field.get("default", True) for name, field in fields.items()}
    return mcp_types.ElicitResult(action="accept", content=filled)


@asynccontextmanager
async def connected(url: str, version: str) -> AsyncIterator[Client[Any]]:
    """A client of a gateway in front of the suite's server."""
    mode: Any = "auto" if version == "2026-07-28" else "legacy"
    config = GatewayConfig.from_dict({"mcpServers": {"suite": {"url": url}}})
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(base_url=NOWHERE, spool_dir=folder) as to,
    ):
        async with AsyncClient(NOWHERE, retries=0) as client:
            gateway = build_gateway(config, client=client, recorder=to)
            async with Client(gateway, mode=mode, elicitation_handler=_accept) as asking:
                yield asking


async def play(asking: Client[Any], scenario: str, wanted: list[dict[str, Any]]) -> None:
    """Do what the scenario looks at: list all, and call each tool, or those that it names."""
    tools = await asking.list_tools()
    if scenario == SCHEMA_ECHO:
        focal, echo = tools
        await asking.call_tool_mcp(echo.name, {"schema": focal.input_schema})
        return
    for call in wanted or [{"name": each.name, "arguments": {}} for each in tools]:
        arguments = call["arguments"] or ARGUMENTS.get(call["name"], {})
        with suppress(Exception):  # what the scenario makes of it is what counts
            await asking.call_tool_mcp(call["name"], arguments)
    with suppress(Exception):
        for resource in await asking.list_resources():
            await asking.read_resource(str(resource.uri))
    with suppress(Exception):
        for prompt in await asking.list_prompts():
            await asking.get_prompt(prompt.name, {})


async def run_scenario(told: dict[str, Any]) -> None:
    """Play one scenario by the gateway; `told` is what the suite tells its clients."""
    wanted = json.loads(told["context"] or "{}").get("toolCalls", [])
    async with connected(told["url"], told["version"]) as asking:
        await play(asking, told["scenario"], wanted)
