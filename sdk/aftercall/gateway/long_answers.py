"""Answers of megabytes, taken in steps: one server's must not hold up the calls of the others.

The gateway has one event loop for all servers. The MCP SDK handles an answer at
once: it joins and parts all that has come of a line with each piece, reads the line as each kind of
message, and validates a list whole, twice. For 20,000 tools that was 8 s. Here a line is joined
once, a long one is read as the answer that it is, and a long list of tools is validated page by
page, as if the server had paged it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import mcp_types
from anyio.abc import ByteReceiveStream
from mcp.client import stdio
from mcp.shared.message import SessionMessage

MOST_TOOLS = 2_000
"""Tools of one server that are offered: no client shows more."""
PAGE = 20
"""Tools that are looked at together: some milliseconds."""
PAUSE_S = 0.001
"""Between two steps: long enough for calls of other servers to go on, and not by one turn alone."""
LONG_LINE = 200_000
"""Characters from which on a line is read in our way; others are as fast in the SDK's."""
_CURSOR = "aftercall:"
SendRaw: TypeAlias = Callable[..., Awaitable[dict[str, Any]]]


class WholeLines:
    """The text of a stream, in pieces that end with a line; the last one may not."""

    def __init__(
        self, stream: ByteReceiveStream, encoding: str = "utf-8", errors: str = "strict"
    ) -> None:
        self._stream = stream
        self._encoding = encoding
        self._errors = errors

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the pieces."""
        parts: list[bytes] = []
        async for chunk in self._stream:
            whole, newline, rest = chunk.rpartition(b"\n")
            if not newline:
                parts.append(rest)
                continue
            lines = b"".join((*parts, whole, newline))
            parts = [rest] if rest else []
            yield lines.decode(self._encoding, self._errors)
        if parts:
            yield b"".join(parts).decode(self._encoding, self._errors)


def install_reader() -> None:
    """Have the MCP SDK read the output of servers so; it has no setting for it."""
    usual = stdio._parse_line  # noqa: SLF001  # as said

    def parse_line(line: str) -> SessionMessage | Exception:
        if len(line) >= LONG_LINE and (answer := read_long_line(line)) is not None:
            return SessionMessage(answer)
        return usual(line)

    setattr(stdio, "TextReceiveStream", WholeLines)  # noqa: B010  # mypy knows it as a class
    setattr(stdio, "_parse_line", parse_line)  # noqa: B010  # as above


def read_long_line(line: str) -> mcp_types.JSONRPCResponse | None:
    """Return a line as an answer with a result; None for another message, and for no JSON."""
    try:
        message = json.loads(line)
        if isinstance(message, dict) and isinstance(message.get("result"), dict):
            return mcp_types.JSONRPCResponse.model_validate(message)
    except (ValueError, RecursionError):
        return None
    return None


class PagedLists:
    """Parts lists of tools of a session into pages, and cuts what is over `MOST_TOOLS`."""

    def __init__(self, send: SendRaw) -> None:
        self._send = send
        self._left: list[Any] = []
        self._rest: dict[str, Any] = {}
        self.listed = 0
        """Tools of the last list as it came, also those that are not offered."""

    async def send(
        self, method: str, params: Mapping[str, Any] | None, *more: Any, **options: Any
    ) -> dict[str, Any]:
        """Send a request, or answer it with the next page of what came."""
        if method != "tools/list":
            return await self._send(method, params, *more, **options)
        cursor = (params or {}).get("cursor")
        if not (isinstance(cursor, str) and cursor.startswith(_CURSOR)):
            answer = await self._send(method, params, *more, **options)
            tools = answer.get("tools")
            if not isinstance(tools, list) or len(tools) <= PAGE:
                self.listed = len(tools) if isinstance(tools, list) and not cursor else self.listed
                return answer
            self.listed = len(tools)
            self._rest = {key: value for key, value in answer.items() if key != "tools"}
            self._left = tools[:MOST_TOOLS]
        # The calls of other servers have their turn between two pages.
        await asyncio.sleep(PAUSE_S)
        page, self._left = self._left[:PAGE], self._left[PAGE:]
        made = {**self._rest, "tools": page}
        if self._left:
            made["nextCursor"] = f"{_CURSOR}{len(self._left)}"
        return made
