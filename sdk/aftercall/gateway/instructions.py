"""What the servers say about themselves, passed on to whoever connects to the gateway."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import mcp_types
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from aftercall.gateway.upstreams import Upstream

WAIT_S = 5.0
"""A client that connects while the servers start waits this long for their words, then does
without."""


class InstructionsMiddleware(Middleware):
    """Adds the servers' instructions to the answer that opens a connection.

    Args:
        upstreams: the servers; with several, each one's words stand under its name.
    """

    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self._upstreams = upstreams

    async def on_initialize(
        self,
        context: MiddlewareContext[mcp_types.InitializeRequest],
        call_next: CallNext[mcp_types.InitializeRequest, mcp_types.InitializeResult | None],
    ) -> mcp_types.InitializeResult | None:
        """The handshake up to 2025-11-25."""
        result = await call_next(context)
        if result is None:
            return None
        return result.model_copy(update={"instructions": await self._instructions()})

    async def on_discover(
        self,
        context: MiddlewareContext[mcp_types.DiscoverRequest],
        call_next: CallNext[mcp_types.DiscoverRequest, mcp_types.DiscoverResult | dict[str, Any]],
    ) -> mcp_types.DiscoverResult | dict[str, Any]:
        """The question that takes the handshake's place from 2026-07-28 on."""
        result = await call_next(context)
        if not isinstance(result, mcp_types.DiscoverResult):
            return result
        return result.model_copy(update={"instructions": await self._instructions()})

    async def _instructions(self) -> str | None:
        with suppress(TimeoutError):
            connecting = (upstream.client() for upstream in self._upstreams)
            await asyncio.wait_for(asyncio.gather(*connecting, return_exceptions=True), WAIT_S)
        told = [(u.name, u.instructions) for u in self._upstreams if u.instructions]
        if len(self._upstreams) == 1:
            return told[0][1] if told else None
        return "\n\n".join(f"# {name}\n{text}" for name, text in told) or None
