"""Telling the service which tools there are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import mcp_types
import pytest

from aftercall import InvalidRequestError, ServiceUnreachableError, Tool, ToolSpec
from aftercall.gateway.server import ToolRegistrar
from tests.gateway.waiting import until


class Registry:
    """A service that can be away, and that takes no tool called `odd`."""

    def __init__(self) -> None:
        self.is_away = False
        self.told: list[str] = []

    async def put_tool(self, tool_id: str, spec: ToolSpec) -> Tool:
        if self.is_away:
            raise ServiceUnreachableError("refused")
        if spec.name == "odd":
            raise InvalidRequestError(status=422, code="invalid_request", message="too odd")
        self.told.append(tool_id)
        return Tool(**spec.model_dump(), tool_id=tool_id, updated_at=datetime.now(UTC))

    async def ready(self) -> bool:
        return not self.is_away


def tool(name: str, description: str = "") -> mcp_types.Tool:
    return mcp_types.Tool(name=name, description=description, input_schema={"type": "object"})


@asynccontextmanager
async def running(registry: Registry, check_every_s: float = 0.02) -> AsyncIterator[ToolRegistrar]:
    registrar = ToolRegistrar(registry, check_every_s=check_every_s)
    task = asyncio.create_task(registrar.run())
    try:
        yield registrar
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_tool_is_told_once_and_again_when_it_changes() -> None:
    """Listing the same tools again costs the service nothing."""
    registry = Registry()
    async with running(registry) as registrar:
        registrar.offer_tools("s", [tool("a"), tool("b")])
        await until(lambda: len(registry.told) == 2)
        registrar.offer_tools("s", [tool("a"), tool("b", "now described")])
        await until(lambda: len(registry.told) == 3)

    assert registry.told == ["s.a", "s.b", "s.b"]


async def test_a_service_that_was_away_is_told_everything_again() -> None:
    """It may have come back with an empty store."""
    registry = Registry()
    async with running(registry) as registrar:
        registrar.offer_tools("s", [tool("a")])
        await until(lambda: registry.told == ["s.a"])
        registry.is_away = True
        registrar.offer_tools("s", [tool("b")])
        await until(lambda: registrar._is_away)
        registry.is_away = False
        await until(lambda: sorted(registry.told) == ["s.a", "s.a", "s.b"])


async def test_a_service_that_was_started_is_told_at_once() -> None:
    """Not when it is looked at next, which may be seconds later."""
    registry = Registry()
    registry.is_away = True
    async with running(registry, check_every_s=600) as registrar:
        registrar.offer_tools("s", [tool("a")])
        await until(lambda: registrar._is_away)
        registry.is_away = False
        registrar.look_again()
        await until(lambda: registry.told == ["s.a"])


async def test_a_tool_that_the_service_refuses_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is named in the log and not sent again."""
    registry = Registry()
    async with running(registry) as registrar:
        registrar.offer_tools("s", [tool("odd"), tool("a")])
        await until(lambda: registry.told == ["s.a"])

    assert caplog.text.count("tool s.odd is not registered: too odd") == 1
