"""A tool that has run says so, whatever its error says: nothing is done twice by mistake.

Each tool below does its work and then raises the very words that would refuse its arguments.
"""

from functools import partial
from typing import Any

import pytest
from pydantic import Field, ValidationError, validate_call

from aftercall.adapters.functions import reflecting
from tests.sdk.scripted_advice import AsyncScripted, Records, SyncScripted, write, write_async


class Writer:
    def __call__(self, limit: int) -> str:
        return write(limit)


@validate_call
def checked(limit: int = Field(le=10)) -> str:
    """Refuse, and then write."""
    return str(limit)


@pytest.mark.parametrize(
    ("function", "arguments", "ran"),
    [
        (write, {"limit": 50}, True), (write_async, {"limit": 50}, True),
        (Writer(), {"limit": 50}, True), (partial(write), {"limit": 50}, True),
        (checked, {"limit": 50}, None), (write, {"limt": 5}, None), (write_async, {}, None),
    ],
)  # fmt: skip
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
    assert service.said_of_the_run == [ran]
    assert [e.error.details for e in records.executions if e.error] == [{}]


async def test_a_tool_of_a_fastmcp_server_has_run_unless_the_server_refused() -> None:
    """FastMCP wraps what a function raises; the type that is recorded is the function's own."""
    from fastmcp import Client, FastMCP

    from aftercall.adapters.fastmcp import ReflectionMiddleware

    service, records = AsyncScripted(), Records()
    server = FastMCP("notes")
    server.add_middleware(ReflectionMiddleware(client=service, recorder=records))
    for each in (write, write_async):
        server.tool(each)
    async with Client(server) as client:
        for name, limit in (("write", 50), ("write_async", 50), ("write", "many")):
            await client.call_tool(name, {"limit": limit}, raise_on_error=False)
    assert service.said_of_the_run == [True, True, None]
    assert [e.error.type for e in records.executions if e.error] == ["ValidationError"] * 3
