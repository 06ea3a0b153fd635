"""Deliverables of MCP tools: in one's own FastMCP server, and in the gateway's configuration."""

import asyncio
import json
import sys
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.tools.base import ToolResult
from mcp_types import TextContent

from aftercall import Recorder
from aftercall.adapters.fastmcp import ReflectionMiddleware
from aftercall.contracts import Deliverable
from aftercall.models import SuggestResponse
from aftercall.reflection import ReflectionPolicy
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService
from tests.gateway.results import texts
from tests.sdk.scripted_advice import AsyncScripted, Records

MOVIES: dict[str, Any] = {"fields": {"titles": {"min_items": 1}}}
WEAK = {"status": "success_no_parse", "titles": []}


class Films:
    """A FastMCP server whose tools give what they are told to give."""

    def __init__(self, *script: SuggestResponse, **deliverables: Any) -> None:
        self.records = Records()
        self.service = AsyncScripted(*script)
        self.mcp: FastMCP[Any] = FastMCP("films")
        self.mcp.add_middleware(
            ReflectionMiddleware(
                client=self.service,
                recorder=self.records,
                server_name="films",
                policy=ReflectionPolicy(base_backoff_s=0),
                deliverables={k: Deliverable.from_dict(v) for k, v in deliverables.items()},
            )
        )

        @self.mcp.tool(output_schema=None)
        def give(structured: Any = None, blocks: list[str] | None = None) -> ToolResult:
            content = [TextContent(type="text", text=text) for text in blocks or []]
            return ToolResult(content=content, structured_content=structured, meta={"own": 1})

        @self.mcp.tool
        def titles(count: int) -> list[str]:
            return ["Heat"] * count

    async def call(self, name: str, **arguments: Any) -> Any:
        async with Client(self.mcp) as client:
            return await client.call_tool_mcp(name, arguments)


async def test_a_violation_shows_the_tools_own_content_first() -> None:
    """An error result: what the tool gave, then what it breaks; recorded as a failed call."""
    films = Films(give=MOVIES)
    result = await films.call("give", structured=WEAK, blocks=["No titles were found."])

    assert result.is_error
    assert result.structured_content == WEAK
    own, told = texts(result)
    assert own == "No titles were found."
    assert told == (
        "contract_violation: the result breaks its contract at /titles: needs 1 or more items, "
        "but has 0"
    )
    assert result.meta["own"] == 1
    assert result.meta["aftercall"]["violation"]["mismatch"] == "min_items"
    (execution,) = films.records.executions
    assert (execution.outcome, execution.error.type) == ("failure", "contract_violation")
    assert execution.error.details["path"] == "/titles"
    assert [asked.error for asked in films.service.asked] == [execution.error]


@pytest.mark.parametrize(
    ("structured", "blocks", "wanted", "is_error"),
    [
        (None, ['{"titles": []}'], MOVIES, True),
        (None, ['{"titles": ["Heat"]}'], MOVIES, False),
        (None, ["Found one:", '{"titles": ["Heat"]}'], MOVIES, False),
        (None, ["no titles found"], MOVIES, True),
        (None, ["no titles found"], {"min_items": 1}, True),
        (None, ["[1]"], {"min_items": 1}, False),
        (None, ['{"t": 1}', '{"t": 2}'], {"min_items": 2}, False),
        (None, ["one", "two"], {"min_items": 1}, True),
        (None, ["42"], {"type": "integer", "minimum": 42}, False),
        (None, ["42"], {"type": "string", "min_length": 3}, True),
        (None, ["[" * 100_000], {"type": "string"}, False),
        (None, ["[" * 100_000], {"type": "array"}, True),
        (None, [], {"non_empty": True}, True),
        ({"titles": ["Heat"]}, ['{"titles": []}'], MOVIES, False),
        ({"Titles": ["Heat"]}, [], MOVIES, False),
    ],
)
async def test_structured_content_is_checked_or_the_text_where_there_is_none(
    structured: Any, blocks: list[str], wanted: Any, *, is_error: bool
) -> None:
    films = Films(give=wanted)
    result = await films.call("give", structured=structured, blocks=blocks)

    assert result.is_error is is_error
    assert texts(result)[: len(blocks)] == blocks
    assert result.structured_content == structured


@pytest.mark.parametrize("wanted", [{"min_items": 1}, {"non_empty": True}, {"type": "array"}])
async def test_what_fastmcp_wrapped_is_checked_unwrapped(wanted: Any) -> None:
    """A list is `{"result": [...]}` on the wire; the deliverable is about the list."""
    films = Films(titles=wanted)
    none, one = await films.call("titles", count=0), await films.call("titles", count=1)

    assert none.is_error is (wanted != {"type": "array"})
    assert not one.is_error
    assert one.structured_content == {"result": ["Heat"]}


_SERVER = """
from typing import Any
from fastmcp import FastMCP
films = FastMCP("films")
@films.tool(annotations={"readOnlyHint": True})
def find_movies(page: int) -> dict[str, list[str]]:
    return {"titles": ["Heat"] * page}
films.run(show_banner=False)
"""


def _server(**deliverables: Any) -> dict[str, Any]:
    own = {"deliverables": deliverables}
    return {"command": sys.executable, "args": ["-c", _SERVER], "aftercall": own}


@pytest.mark.real
async def test_the_gateway_checks_what_its_configuration_asks_for(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """By server and tool, under whichever name the tool is offered."""
    servers = {"films": _server(find_movies=MOVIES), "free": _server()}
    async with open_gateway(servers) as client:
        weak = await client.call_tool_mcp("films_find_movies", {"page": 0})
        good = await client.call_tool_mcp("films_find_movies", {"page": 2})
        free = await client.call_tool_mcp("free_find_movies", {"page": 0})
    await asyncio.to_thread(recorder.flush)

    assert [each.is_error for each in (weak, good, free)] == [True, False, False]
    own, told = texts(weak)
    assert json.loads(own) == weak.structured_content == {"titles": []}
    assert told.startswith("contract_violation: the result breaks its contract at /titles")
    assert good.structured_content == {"titles": ["Heat", "Heat"]}
    first = service.recorded[0]
    assert (first["serverName"], first["toolName"]) == ("films", "find_movies")
    assert (first["outcome"], first["error"]["type"]) == ("failure", "contract_violation")
    assert len(service.questions) == 1
