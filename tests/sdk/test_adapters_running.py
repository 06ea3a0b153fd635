"""A tool that has run says so, whatever its error says: nothing is done twice by mistake.

Each tool below does its work and then raises the very words that would refuse its arguments.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from agents import Agent, ModelBehaviorError, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from fastmcp import Client, FastMCP
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field, ValidationError, validate_call

from aftercall.adapters.fastmcp import ReflectionMiddleware as FastMcpReflection
from aftercall.adapters.functions import reflecting
from aftercall.adapters.langgraph import ReflectionMiddleware as GraphReflection
from aftercall.adapters.openai_agents import ToolReflection
from tests.sdk.scripted_advice import AsyncScripted, Records, SyncScripted


class Limited(BaseModel):
    limit: int = Field(le=10)


def write(limit: int) -> str:
    """Write, and look at what came back."""
    return Limited(limit=limit).model_dump_json()


async def write_async(limit: int) -> str:
    """Write, and look at what came back."""
    await asyncio.sleep(0)
    return write(limit)


class Writer:
    def __call__(self, limit: int) -> str:
        return write(limit)


@validate_call
def checked(limit: int = Field(le=10)) -> str:
    """Refuse, and then write."""
    return str(limit)


def said_of_the_run(service: AsyncScripted | SyncScripted) -> list[object]:
    """What each question says of it."""
    return [each.error.details.get("ran") for each in service.asked if each.error is not None]


@pytest.fixture(autouse=True)
def no_tracing() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@pytest.mark.parametrize(
    ("function", "arguments", "ran"),
    [
        (write, {"limit": 50}, True),
        (write_async, {"limit": 50}, True),
        (Writer(), {"limit": 50}, True),
        (partial(write), {"limit": 50}, True),
        (checked, {"limit": 50}, None),
        (write, {"limt": 5}, None),
        (write_async, {}, None),
    ],
)
async def test_a_function_has_run_when_its_code_was_reached(
    function: Any, arguments: dict[str, int], ran: bool | None
) -> None:
    """Not where its signature or `validate_call` refused; the record is the tool's own error."""
    records, service = Records(), SyncScripted()
    reflected = reflecting(client=service, recorder=records)(function)

    async def called() -> None:
        answered = reflected(**arguments)
        await answered

    with pytest.raises((ValidationError, TypeError)):
        await called()
    assert said_of_the_run(service) == [ran]
    assert [e.error.details for e in records.executions if e.error] == [{}]


def refuses(limit: int) -> str:
    """Write, and run an agent whose model blunders."""
    raise ModelBehaviorError(f"Invalid JSON input for tool other: limit {limit}")


async def test_a_tool_of_the_agents_sdk_has_run_unless_the_sdk_refused() -> None:
    """An error of the SDK's that the tool has met is no refusal of the tool's arguments."""
    service = AsyncScripted()
    reflection = ToolReflection(client=service, recorder=Records())
    tools = [reflection.reflecting(function_tool(each)) for each in (write, write_async, refuses)]
    calls = [
        function_call("write", {"limit": 50}, call_id="1"),
        function_call("write_async", {"limit": 50}, call_id="2"),
        function_call("write", {"limit": "many"}, call_id="3"),
        function_call("refuses", {"limit": 50}, call_id="4"),
    ]
    steps = [*([call] for call in calls), [assistant_message("done")]]
    await Runner.run(Agent(name="ada", model=ScriptedModel(steps), tools=tools), "write")
    assert said_of_the_run(service) == [True, True, None, None]
    codes = [each.error.code for each in service.asked if each.error is not None]
    assert codes == [None, None, "-32602", None]


@pytest.mark.parametrize("handle", [True, False])
def test_a_tool_of_a_graph_has_run_unless_its_schema_refused(handle: bool) -> None:
    """Raised or told by the tool node; a `ToolException` is left to its words."""

    @tool
    def hands_on(limit: int) -> str:
        """Tell what a server said."""
        raise ToolException(f"Input validation error: {limit} is too many")

    @tool
    def breaks(limit: int) -> str:
        """Write, and call something wrongly."""
        raise TypeError(f"inner() got an unexpected keyword argument 'limit' {limit}")

    service = SyncScripted()
    reflection = GraphReflection(client=service, recorder=Records())
    node = ToolNode(
        [tool(write), hands_on, breaks],
        wrap_tool_call=reflection.wrap_tool_call,
        handle_tool_errors=handle,
    )
    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile()
    for name, limit in (("write", 50), ("write", "many"), ("hands_on", 50), ("breaks", 50)):
        call = {"name": name, "args": {"limit": limit}, "id": name}
        compiled.invoke({"messages": [AIMessage(content="", tool_calls=[call])]})
    assert said_of_the_run(service) == [True, None, None, True]
    types = [each.error.type for each in service.asked if each.error is not None]
    assert types == ["ValidationError", "ValidationError", "ToolException", "TypeError"]


async def test_a_tool_of_a_fastmcp_server_has_run_unless_the_server_refused() -> None:
    """FastMCP wraps what a function raises; the type that is recorded is the function's own."""
    service, records = AsyncScripted(), Records()
    server = FastMCP("notes")
    server.add_middleware(FastMcpReflection(client=service, recorder=records))
    for each in (write, write_async):
        server.tool(each)
    async with Client(server) as client:
        for name, limit in (("write", 50), ("write_async", 50), ("write", "many")):
            await client.call_tool(name, {"limit": limit}, raise_on_error=False)
    assert said_of_the_run(service) == [True, True, None]
    assert [e.error.type for e in records.executions if e.error] == ["ValidationError"] * 3
