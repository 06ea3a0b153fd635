"""`--tools search`: three tools instead of hundreds.

`find_tools` names the tools that fit a task, with their schemas and what is known of them;
`call_tool` calls one; `known_tools` states what is known of tools. Tools whose name stands in the
question come first, then the service ranks (`POST /tools/find`); while it does not answer, words
that names and descriptions share decide.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastmcp.exceptions import ToolError
from fastmcp.server.context import Context
from fastmcp.server.transforms import GetToolNext
from fastmcp.server.transforms.catalog import CatalogTransform
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp_types import ToolAnnotations
from pydantic import Field, WithJsonSchema

from aftercall import AsyncClient
from aftercall.arguments import UnreadableArgumentsError, arguments_of
from aftercall.error_texts import ToolKey
from aftercall.errors import AftercallError
from aftercall.json_values import bounded_text

NAMES = frozenset({"find_tools", "call_tool", "known_tools"})
_ASKED = 50
"""Candidates asked for: the service may know other servers' tools too."""
_KNOWN_TOKENS = 800
"""Of what is stated of found tools next to their schemas."""
_MAX_DESCRIPTION = 1_000
_SERVICE_S = 2.0
_WORD = re.compile(r"[a-z]+|\d+")
_HUMPS = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_SHOWN_AS_OBJECT = WithJsonSchema(
    {"anyOf": [{"additionalProperties": True, "type": "object"}, {"type": "null"}]}
)
"""A text is taken too, and not asked for."""
_logger = logging.getLogger(__name__)


class ToolSearch(CatalogTransform):
    """Shows `find_tools`, `call_tool` and `known_tools`; the other tools stay callable.

    `locate` gives server and tool behind an exposed name.
    """

    def __init__(self, client: AsyncClient, locate: Callable[[str], ToolKey]) -> None:
        super().__init__()
        self._client = client
        self._locate = locate
        reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True)
        self._own = {
            "find_tools": Tool.from_function(self.find_tools, annotations=reads),
            "call_tool": Tool.from_function(self.call_tool),
            "known_tools": Tool.from_function(self.known_tools, annotations=reads),
        }

    async def transform_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the three."""
        del tools
        return list(self._own.values())

    async def get_tool(
        self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None
    ) -> Tool | None:
        """Return one of the three, or a tool of a server."""
        return self._own.get(name) or await call_next(name, version=version)

    async def find_tools(
        self,
        task: Annotated[str, Field(description="What is to be done in words, or a tool's name")],
        ctx: Context,
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> dict[str, Any]:
        """Find the tools for a task. Call them with `call_tool`, by their names."""
        catalog = {tool.name: tool for tool in await self.get_tool_catalog(ctx)}
        found = [catalog[name] for name in (await self._rank_tools(task, catalog))[:limit]]
        answer: dict[str, Any] = {"tools": [_show_tool(tool) for tool in found]}
        if known := await self._known_tools(found, _KNOWN_TOKENS):
            answer["known"] = known
        return answer

    async def call_tool(
        self,
        name: Annotated[str, Field(description="As `find_tools` says it")],
        ctx: Context,
        arguments: Annotated[
            dict[str, Any] | str | None, Field(description="By its schema"), _SHOWN_AS_OBJECT
        ] = None,
    ) -> ToolResult:
        """Call a tool that `find_tools` found."""
        if name in NAMES:
            raise _make_refusal(f"{name} is called by itself, not through call_tool")
        if await ctx.fastmcp.get_tool(name) is None:
            near = await self._rank_tools(
                name, {t.name: t for t in await self.get_tool_catalog(ctx)}
            )
            raise _make_refusal(
                f"there is no tool {name!r}; near are {', '.join(near[:3]) or 'none'}"
            )
        given = arguments_of(arguments or {})
        if given.parameters is None:
            raise _make_refusal(UnreadableArgumentsError().error.message)
        return await ctx.fastmcp.call_tool(name, given.parameters)

    async def known_tools(
        self,
        ctx: Context,
        tools: Annotated[list[str] | None, Field(description="Names; all without any")] = None,
    ) -> str:
        """Return what is known of tools from earlier calls.

        Pitfalls, limits, what to do if one fails.
        """
        catalog = await self.get_tool_catalog(ctx)
        wanted = [tool for tool in catalog if tools is None or tool.name in tools]
        return await self._known_tools(wanted, None) or "Nothing is known of these tools."

    async def _rank_tools(self, task: str, catalog: dict[str, Tool]) -> list[str]:
        exact = tools_named_in(task, list(catalog), lambda name: self._locate(name)[1])
        return list(dict.fromkeys([*exact, *await self._by_service(task, catalog)]))

    async def _by_service(self, task: str, catalog: dict[str, Tool]) -> list[str]:
        try:
            async with asyncio.timeout(_SERVICE_S):
                found = await self._client.find_tools(task, limit=_ASKED)
        except (AftercallError, TimeoutError) as error:
            _logger.debug("tools are found by their words: %s", type(error).__name__)
            return by_words(task, catalog)
        exposed = {self._locate(name): name for name in catalog}
        places = [(each.tool.server_name, each.tool.name) for each in found.candidates]
        return [exposed[place] for place in places if place in exposed] or by_words(task, catalog)

    async def _known_tools(self, tools: Sequence[Tool], max_tokens: int | None) -> str:
        ids = [f"{server}.{name}" for server, name in [self._locate(tool.name) for tool in tools]]
        try:
            async with asyncio.timeout(_SERVICE_S):
                if ids:
                    return await self._client.known_tools(ids, max_tokens=max_tokens)
                return ""
        except (AftercallError, TimeoutError) as error:
            _logger.debug("nothing is known of tools now: %s", type(error).__name__)
            return ""


def _make_refusal(message: str) -> ToolError:
    return ToolError(message, log_level=logging.DEBUG)


def _show_tool(tool: Tool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": tool.name,
        "description": bounded_text(tool.description or "", _MAX_DESCRIPTION),
        "inputSchema": tool.parameters,
    }
    if tool.annotations is not None:
        shown["annotations"] = tool.annotations.model_dump(by_alias=True, exclude_none=True)
    return shown


def tools_named_in(task: str, names: Sequence[str], own: Callable[[str], str]) -> list[str]:
    """Return the names that stand in a text, in whatever writing, the longest first.

    `own` gives a tool's own name behind an exposed one; one of a single word must be all the text.
    """
    asked = f" {' '.join(words_in(task))} "
    found = []
    for name in names:
        for each in (words_in(name), words_in(own(name))):
            text = f" {' '.join(each)} "
            if text == asked or (len(each) > 1 and text in asked):
                found.append((len(each), name))
                break
    return [name for _, name in sorted(found, key=lambda each: -each[0])]


def by_words(task: str, catalog: dict[str, Tool]) -> list[str]:
    """Return names of tools that share words with a text, those that share the most first."""
    asked = set(words_in(task))
    shared = {}
    for name, tool in catalog.items():
        about = bounded_text(tool.description or "", _MAX_DESCRIPTION)
        of_name = len(asked.intersection(words_in(name)))
        shared[name] = 2 * of_name + len(asked.intersection(words_in(about)))
    ranked = sorted(shared, key=lambda name: (-shared[name], name))
    return [name for name in ranked if shared[name]]


def words_in(text: str) -> list[str]:
    """Return the words of a text or a name, in lower case."""
    return _WORD.findall(_HUMPS.sub(" ", text).lower())
