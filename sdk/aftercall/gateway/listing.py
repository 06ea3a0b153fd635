"""What clients read about the servers: when they connect, before a server has started, on changes.

A client waits for the list of tools before it does anything else, and a server that is fetched by
`npx` may take a minute. So each server's list is kept in the data folder, under a hash of its
entry in the configuration, and is what clients see until the server has stated what it offers now.
"""

import asyncio
import hmac
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import mcp_types
from fastmcp import FastMCP
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from pydantic import ValidationError

from aftercall.files import replace_file, user_key
from aftercall.gateway.config import UpstreamServer
from aftercall.gateway.connection import FirstAnswers
from aftercall.gateway.upstreams import Upstream

INSTRUCTIONS_WAIT_S = 5.0
"""A client that connects while the servers start waits this long for their words."""
InUse: TypeAlias = Callable[[], Awaitable[str]]
OpeningT = TypeVar("OpeningT", mcp_types.InitializeResult, mcp_types.DiscoverResult)
_MOST_SESSIONS = 256
"""That are shown of changes, the newest first; those of stdio are one."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerList:
    """What a server listed, and what it states about its use."""

    tools: Sequence[mcp_types.Tool]
    instructions: str | None = None


class LastLists:
    """The lists of the last run, a file for each server in `folder`; without one, none are kept.

    What cannot be read or written is left out: then clients wait for the server, as at first.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(self, server: UpstreamServer) -> ServerList | None:
        """Return the list of this server, as it is configured now; None where none is kept."""
        if self._folder is None:
            return None
        try:
            kept = json.loads(_list_file(self._folder, server).read_bytes())
            tools = [mcp_types.Tool.model_validate(each) for each in kept["tools"]]
            return ServerList(tools, kept["instructions"])
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            return None

    def write(self, server: UpstreamServer, listed: ServerList) -> None:
        """Keep the list of a server for the next run."""
        if self._folder is None:
            return
        tools = [each.model_dump(mode="json", by_alias=True) for each in listed.tools]
        content = json.dumps({"tools": tools, "instructions": listed.instructions})
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(_list_file(self._folder, server), content.encode())
            files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for file in files[:-200]:
                file.unlink(missing_ok=True)
        except OSError as error:
            _logger.info("the list of tools of %s is not kept: %s", server.name, error)


def _list_file(folder: Path, server: UpstreamServer) -> Path:
    """Return the name shows nothing of the entry, which may hold secrets."""
    fields = ("name", "command", "args", "env", "cwd", "url", "headers")
    entry = json.dumps([getattr(server, field) for field in fields], sort_keys=True)
    return folder / f"{hmac.digest(user_key(), entry.encode(), 'sha256').hex()}.json"


class Announcer(Middleware):
    """Shows clients how the servers describe their use, and that the list of tools has changed.

    With several servers each one's words stand under its name. Servers that stated something (or
    nothing) in the last run, `before`, are not waited for. `in_use` states which service is used.

    Run `run` in a task. Up to 2025-11-25 every session hears of a change, from 2026-07-28 on who
    asks (subscriptions/listen).
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        before: Mapping[str, str | None],
        in_use: InUse | None,
        first: FirstAnswers,
    ) -> None:
        self._first = first
        self._upstreams = upstreams
        self._before = before
        self._in_use = in_use
        self._changed = asyncio.Event()
        self._sessions: deque[ServerSession] = deque(maxlen=_MOST_SESSIONS)
        self.bus = InMemorySubscriptionBus()
        """Where clients of 2026-07-28 listen."""
        self.listed = asyncio.Event()
        """Set once a client was given a list."""

    def serve_clients(self, gateway: FastMCP) -> None:
        """Let clients of the gateway ask to be shown."""
        gateway.add_middleware(self)

    def announce_change(self) -> None:
        """Announce a change soon; several at a time are announced once."""
        self._changed.set()

    async def run(self) -> None:
        """Announce changes, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.bus.publish(ToolsListChanged())
            for session in list(self._sessions):
                with suppress(Exception):  # it has gone, or does not read
                    async with asyncio.timeout(2.0):
                        await session.send_tool_list_changed()

    async def on_initialize(
        self,
        context: MiddlewareContext[mcp_types.InitializeRequest],
        call_next: CallNext[mcp_types.InitializeRequest, mcp_types.InitializeResult | None],
    ) -> mcp_types.InitializeResult | None:
        """Return a session begins, by the handshake up to 2025-11-25, and wants to be shown."""
        result = await call_next(context)
        if context.fastmcp_context is not None:
            self._sessions.append(context.fastmcp_context.session)
        return None if result is None else await self._with_instructions(result)

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp_types.ListToolsRequest],
        call_next: CallNext[mcp_types.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Note that a list is given."""
        tools = await call_next(context)
        self.listed.set()
        return tools

    async def on_discover(
        self,
        context: MiddlewareContext[mcp_types.DiscoverRequest],
        call_next: CallNext[mcp_types.DiscoverRequest, mcp_types.DiscoverResult | dict[str, Any]],
    ) -> mcp_types.DiscoverResult | dict[str, Any]:
        """Return the question that takes the handshake's place from 2026-07-28 on."""
        result = await call_next(context)
        return result if isinstance(result, dict) else await self._with_instructions(result)

    async def _with_instructions(self, result: OpeningT) -> OpeningT:
        return result.model_copy(update={"instructions": await self._join_instructions()})

    async def _join_instructions(self) -> str | None:
        words: list[str | None] = []
        waited_for = [u.connected_client() for u in self._upstreams if u.name not in self._before]
        with suppress(TimeoutError):
            left_s = self._first.left_s()
            async with asyncio.timeout(INSTRUCTIONS_WAIT_S if left_s is None else left_s / 2):
                if self._in_use is not None:
                    words.append(f"Aftercall is in front of these tools: {await self._in_use()}.")
                await asyncio.gather(*waited_for, return_exceptions=True)
        for upstream in self._upstreams:
            text = upstream.instructions or self._before.get(upstream.name)
            if text and len(self._upstreams) > 1:
                text = f"# {upstream.name}\n{text}"
            words.append(text)
        return "\n\n".join(filter(None, words)) or None
