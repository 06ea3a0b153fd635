"""The MCP server over the tools: all that knows the MCP SDK, but for the transports."""

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeAlias

import mcp_types as types
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from aftercall.bounded import bounded_text
from aftercall.client import AsyncClient
from aftercall.errors import AftercallError, NotFoundError
from aftercall.json_values import JsonObject
from aftercall.mcp_server.caller import Caller, name_or_none
from aftercall.mcp_server.faults import UNEXPECTED, explain, explain_arguments
from aftercall.mcp_server.schemas import object_schema
from aftercall.mcp_server.tools import INSTRUCTIONS, TOOLS, Answer, ToolDefinition

_logger = logging.getLogger(__name__)

RequestContext: TypeAlias = ServerRequestContext[JsonObject]

WhoCalls: TypeAlias = Callable[[RequestContext], Caller]

_LIST_TTL_MS = 3_600_000
"""How long a client may keep the list of tools: it changes with the version only."""


def build_server(client: AsyncClient, *, who_calls: WhoCalls | None = None) -> "Server[JsonObject]":
    """An MCP server whose tools ask a service.

    Args:
        client: asks the service; whoever made it closes it. The trace that a request's `_meta`
            names goes on with it: the MCP SDK makes it the current one.
        who_calls: the caller as the connection tells it; a request's `_meta` and a tool's
            arguments come before it. The name that the MCP client gives itself when None.
    """
    who = who_calls or (lambda context: Caller(agent=client_name(context) or "unknown"))
    listed = types.ListToolsResult(tools=[_listed(tool) for tool in TOOLS.values()])
    schemas = {tool.name: tool.input_schema for tool in listed.tools}

    async def list_tools(
        context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return listed

    async def call_tool(
        context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            name = bounded_text(params.name, 60)
            cure = f"there is no tool {name!r}; there are {', '.join(TOOLS)}"
            raise MCPError(code=types.INVALID_PARAMS, message=cure)
        caller = who(context).with_meta(context.meta or {})
        return await _called(tool, params.arguments, client, caller)

    return Server(
        "aftercall",
        title="Aftercall",
        version=version("aftercall"),
        description="The institutional memory of tool calls.",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_TTL_MS, scope="public")},
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def client_name(context: RequestContext) -> str | None:
    """The name that the MCP client gives itself; None where the connection does not tell it."""
    params = context.session.client_params
    return name_or_none(params.client_info.name) if params is not None else None


def _listed(tool: ToolDefinition) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=object_schema(tool.takes),
        output_schema=object_schema(tool.answers),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=False,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


async def _called(
    tool: ToolDefinition, arguments: JsonObject | None, client: AsyncClient, caller: Caller
) -> types.CallToolResult:
    try:
        asked = tool.takes.model_validate(arguments or {})
        return _result(await tool.run(asked, client, caller))
    except ValidationError as error:
        return _failed(explain_arguments(error, tool.takes))
    except AftercallError as error:
        text = explain(error, client.base_url)
        if isinstance(error, NotFoundError) and tool.cure_not_found is not None:
            text = f"{text}; {tool.cure_not_found}"
        return _failed(text)
    except Exception as error:  # noqa: BLE001  # a model gets a sentence, whatever it was
        # Its type alone: the text of an exception often quotes a value.
        _logger.error("%s failed with %s", tool.name, type(error).__name__)  # noqa: TRY400
        return _failed(UNEXPECTED)


def _result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured.model_dump(mode="json", by_alias=True),
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
