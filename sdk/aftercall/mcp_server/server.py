"""The MCP server over the tools.

An answer is given twice, as the specification asks: structured, and as text, which is its JSON on
one line without what is at its default. What tools, users and agents said is data in it: with
control characters escaped, it cannot pass for ours. What goes wrong is a sentence for a model: what
it is, and what helps. Never a stack trace.
"""

import asyncio
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeAlias
from uuid import uuid4

import mcp_types as types
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from aftercall import errors
from aftercall.client import AsyncClient
from aftercall.explain import explain
from aftercall.json_values import JsonObject, bounded_text, printable_json
from aftercall.mcp_calls import Caller, name_or_none
from aftercall.mcp_server.tools import INSTRUCTIONS, TOOLS, KnownToolsText, ToolDefinition
from aftercall.process import ended_by_signals, exit_code, gated_stdin, log_to_stderr

_logger = logging.getLogger(__name__)
RequestContext: TypeAlias = ServerRequestContext[JsonObject]
WhoCalls: TypeAlias = Callable[[RequestContext], Caller]
MAX_MESSAGE = 1_000
"""Characters of a fault; the service's own messages have at most 500."""
_LIST_TTL_MS = 3_600_000
"""How long a client may keep the list of tools: it changes with the version only."""
_CONNECT_TIMEOUT_S = 1.0
"""A service that is away must not hold a model up for long."""
_RETRIES = 1
"""For a connection that the service closed meanwhile; what else helps is the model's own retry."""

_UNEXPECTED = (
    "something unexpected happened while this tool ran; nothing is known to be wrong with the "
    "arguments. Trying once more may help; the log of the MCP server has more"
)


def serve(service: str, *, agent: str | None = None, verbose: bool = False) -> int:
    """Serve on the standard streams until the input ends, or a signal comes; the exit code.

    The service need not be there yet, and may come and go. `agent` is the name of callers that give
    none; the MCP client's own name when None.
    """
    log_to_stderr(verbose=verbose)
    session_id = str(uuid4())  # the process is one client's, so it is a session

    def who_calls(context: RequestContext) -> Caller:
        return Caller(agent or client_name(context) or "unknown", session_id)

    async def run() -> int:
        client = AsyncClient(service, connect_timeout_s=_CONNECT_TIMEOUT_S, retries=_RETRIES)
        async with client:
            server = build_server(client, who_calls=who_calls)
            with gated_stdin() as end, ended_by_signals(end) as received:
                async with stdio_server() as (read, write):
                    await server.run(read, write, server.create_initialization_options())
                return exit_code(received)

    return asyncio.run(run())


def build_server(client: AsyncClient, *, who_calls: WhoCalls | None = None) -> "Server[JsonObject]":
    """An MCP server whose tools ask a service.

    Args:
        client: asks the service; the one who made it closes it. The trace that a request's `_meta`
            names goes on with it: the MCP SDK makes it the current one.
        who_calls: the caller as the connection has it; a request's `_meta` and a tool's
            arguments come before it. The name that the MCP client gives itself when None.
    """
    who = who_calls or (lambda context: Caller(agent=client_name(context) or "unknown"))
    listed = types.ListToolsResult(tools=[tool.listed for tool in TOOLS.values()])
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


async def _called(
    tool: ToolDefinition, arguments: JsonObject | None, client: AsyncClient, caller: Caller
) -> types.CallToolResult:
    structured = None
    try:
        answer = await tool.run(tool.takes.model_validate(arguments or {}), client, caller)
        structured = answer.model_dump(mode="json", by_alias=True)
        said = answer.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        text = answer.text if isinstance(answer, KnownToolsText) else printable_json(said)
    except ValidationError as error:
        wrong = explain(error, tool.takes)
        text = f"the arguments are wrong: {wrong}. Call again with these mended"
    except errors.AftercallError as error:
        text = bounded_text(_explained(error, client.base_url), MAX_MESSAGE)
        if isinstance(error, errors.NotFoundError) and tool.cure_not_found is not None:
            text = f"{text}; {tool.cure_not_found}"
    except Exception as error:  # noqa: BLE001  # a model gets a sentence, whatever it was
        # Its type alone: the text of an exception often quotes a value.
        _logger.error("%s failed with %s", tool.listed.name, type(error).__name__)  # noqa: TRY400
        text = _UNEXPECTED
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=structured,
        is_error=structured is None,
    )


def _explained(error: errors.AftercallError, url: str) -> str:
    if isinstance(error, errors.ServiceTimeoutError):
        return f"the service at {url} did not answer in time; try again shortly"
    if isinstance(error, errors.ServiceUnreachableError):
        return (
            f"there is no Aftercall service at {url}. Go on without it for now; the owner of this "
            "machine can start it with `aftercall serve`, or name another with --service URL or "
            "AFTERCALL_URL. This tool works again as soon as the service is there"
        )
    if isinstance(error, errors.ProtocolError):
        return f"what answers at {url} is no Aftercall service of this version; check the address"
    if isinstance(error, errors.ServiceFailedError) and error.retry_after_s is not None:
        return f"{error.message}; come back in {error.retry_after_s:g} s"
    return error.message if isinstance(error, errors.ApiError) else str(error)
