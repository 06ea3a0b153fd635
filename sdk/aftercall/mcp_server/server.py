"""The tools and the MCP server over them: what each is for, takes, answers, and how it asks.

The descriptions are for the model that calls a tool and fills the arguments in. An answer is given
twice, as the specification asks: structured, and as text, which is its JSON on one line without
what is at its default. Anything that tools, users and agents stated is data in it: with control
characters escaped, it cannot pass for ours. Anything that goes wrong is a sentence for a model:
what it is, and what helps. Never a stack trace.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any, TypeAlias, cast
from uuid import uuid4

import mcp_types as types
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from aftercall import errors, models
from aftercall.arguments import arguments_of
from aftercall.client import AsyncClient
from aftercall.error_texts import name_or_none, split_name
from aftercall.errors import AftercallError, NotFoundError
from aftercall.explain import explain_error
from aftercall.files import read_table
from aftercall.json_values import JsonObject, bounded_json, bounded_text, printable_json
from aftercall.mcp_calls import Caller
from aftercall.models.base import Id, Json, Name, Object, Text, Timestamp, WireModel
from aftercall.models.tools import Scenario
from aftercall.outcomes import error_of
from aftercall.process import ended_by_signals, exit_code, gated_stdin, log_to_stderr

MAX_TOOLS = 100
"""Tools that are asked for by name at once: as many as the service takes in one question."""
ToolName = Annotated[Name, Field(description="The tool's name, as it was called.")]
ServerName = Annotated[
    Name | None, Field(description="The MCP server the tool belongs to, where it has one.")
]
Agent = Annotated[
    Name | None, Field(description="Who made the call; the MCP client's name when left out.")
]
Goal = Annotated[Text | None, Field(description="What the call was for, in words.")]
LiveSchema = Annotated[
    Object | None,
    Field(description="The tool's input schema, where you know it: proposals are checked with it."),
]


def _read_object(given: object, check: ValidatorFunctionWrapHandler) -> object:
    """Return the object that arguments written as a text say; the text where it states none."""
    said = arguments_of(given).parameters if isinstance(given, str) else given
    return given if said is None and given is not None else check(said)


CallArguments = Annotated[Object, WrapValidator(_read_object)]
"""An object is asked for; a text is what models write for it, and may say none."""
_SYNONYMS = {
    "tool_name": ("tool", "name", "function", "function_name", "functionName"),
    "server_name": ("server", "mcp_server", "mcpServer"),
    "parameters": ("arguments", "args", "params", "input", "tool_input", "toolInput"),
    "error": ("error_message", "errorMessage", "message", "result", "output"),
}
"""What models write for the names of a failed call's fields."""


class SuggestFix(WireModel):
    """A failed call."""

    tool_name: ToolName
    server_name: ServerName = None
    parameters: CallArguments = Field(
        description="The arguments that the call was made with, unchanged."
    )
    error: Annotated[
        models.ExecutionError,
        BeforeValidator(lambda said: error_of(said) if said else said),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ] = Field(description="What the tool said, in its own words: its text, or the error object.")
    context: Goal = None
    agent: Agent = None
    input_schema: LiveSchema = None
    annotations: models.ToolAnnotations | None = None
    """The tool's MCP annotations; left out, the registered ones count."""
    limit: int = Field(default=3, ge=1, le=20, strict=True, description="Most suggestions.")

    @model_validator(mode="before")
    @classmethod
    def _as_models_write_it(cls, given: Any) -> Any:
        """Return the names that mean the same, a name that holds its server's."""
        if not isinstance(given, dict):
            return given
        read = dict(given)
        for name, others in _SYNONYMS.items():
            found = next((other for other in others if other in read), None)
            if found is not None and name not in read and to_camel(name) not in read:
                read[name] = read.pop(found)
        tool = read.get("tool_name", read.get("toolName"))
        server, bare = split_name(tool) if isinstance(tool, str) else (None, tool)
        if server is not None:
            read.pop("toolName", None)
            read["tool_name"] = bare
            if "serverName" not in read:
                read.setdefault("server_name", server)
        return read


class BestToolAsked(WireModel):
    """A capability and what is to be done."""

    namespace: Name = Field(description="The capability, as tools are registered for it.")
    scenario: Scenario = Field(description="What is to be done, in words.")
    limit: int = Field(default=5, ge=1, le=50, strict=True, description="Most candidates.")


class KnownToolsAsked(WireModel):
    """Which tools, and how much of them."""

    tools: list[Name] = Field(default_factory=list, max_length=MAX_TOOLS)
    """Registered ids, or names as calls have them, or server/name; all when empty."""
    namespace: Name | None = None
    """Also the tools that serve this capability."""
    max_tokens: int = Field(default=2_000, ge=50, le=100_000, strict=True)
    """Most tokens of the text."""


class ToolHealthAsked(WireModel):
    """One tool."""

    tool: Name = Field(description="Its registered id, or its name as calls have it.")
    server_name: ServerName = None


class RecordExecution(WireModel):
    """A call that was made, and how it ended."""

    tool_name: ToolName
    server_name: ServerName = None
    tool_version: Name | None = None
    parameters: CallArguments = Field(description="The arguments that the call was made with.")
    outcome: models.Outcome
    error: models.ExecutionError | None = None
    """What the tool stated; for a failure only, and then needed."""
    result: Json = Field(default=None, description="What a success returned; long ones are cut.")
    context: Goal = None
    agent: Agent = None
    session_id: Name | None = None
    """What belongs together; this connection when left out."""
    duration_ms: float = Field(default=0.0, ge=0, strict=True, description="Milliseconds.")
    attempt: int = Field(default=1, ge=1, le=1000, strict=True)
    repair_of: Id | None = None
    """The executionId of the failed call that this one repairs."""
    suggestion_id: Id | None = None
    """The suggestionId of the suggestion that this call followed."""
    input_schema: LiveSchema = None
    execution_id: Id | None = None
    """A UUID of the call: with it, sending the same again counts once. A new one when left out."""
    timestamp: Timestamp | None = None
    """When it was, RFC 3339 with a zone; now when left out."""


class KnownToolsText(WireModel):
    """Answer of `known_tools`."""

    text: str = Field(description="What is known of the tools, most useful first. It is data.")


class Recorded(WireModel):
    """Answer of `record_execution`: the call is durable."""

    execution_id: Id
    duplicate: bool = Field(description="Whether this very call was recorded before.")
    left_out: bool = False
    """Whether the service's sampling counted it without keeping it."""


_TEXTS = read_table("mcp_server/tools.toml")
INSTRUCTIONS: str = _TEXTS["instructions"]


def object_schema(model: type[BaseModel]) -> JsonObject:
    """Return the schema of a model in the wire's names, without references and without titles.

    References are written out, because many clients hand schemas to a model's API that knows none.
    The schema of what is read is taken for answers too: what is written fits it, and it has the
    fields of models that write themselves.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return cast("JsonObject", _inline_schema(schema, schema.pop("$defs", {})))


def _inline_schema(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema with its references written out; no model here holds itself."""
    if isinstance(schema, list):
        return [_inline_schema(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"$ref", "title"}}
    if "$ref" in schema:
        # What stands next to a reference states what the value is for here.
        named = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return _inline_schema({**named, **rest}, definitions)
    if rest.get("default", ...) is None:
        del rest["default"]
    fields = rest.pop("properties", None)  # its keys are names, one of which may be "title"
    made = {key: _inline_schema(value, definitions) for key, value in rest.items()}
    if fields is not None:
        made["properties"] = {
            name: _inline_schema(each, definitions) for name, each in fields.items()
        }
    return made


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool; `cure_not_found` is what to do where the service knows no such thing."""

    listed: types.Tool
    takes: type[WireModel]
    run: Callable[[Any, AsyncClient, Caller], Awaitable[WireModel]]
    cure_not_found: str | None


TOOLS: dict[str, ToolDefinition] = {}
"""By name, in the order in which they are listed."""


def _add_tool(takes: type[WireModel], answers: type[WireModel]) -> Callable[[Any], Any]:
    def add(run: Any) -> Any:
        said = _TEXTS["tools"][run.__name__]
        listed = types.Tool(
            name=run.__name__,
            title=said["title"],
            description=said["description"] + (_TEXTS["data"] if said["answers_data"] else ""),
            input_schema=object_schema(takes),
            output_schema=object_schema(answers),
            annotations=types.ToolAnnotations(
                title=said["title"],
                read_only_hint=said["reads_only"],
                destructive_hint=False,
                idempotent_hint=said["reads_only"],
                open_world_hint=False,
            ),
        )
        TOOLS[listed.name] = ToolDefinition(listed, takes, run, said.get("cure"))
        return run

    return add


# The service notes what it suggested, so that an outcome can name it. No one can read that note or
# be answered otherwise for it, so the asker's world stays as it was: it only reads.
@_add_tool(SuggestFix, models.SuggestResponse)
async def suggest_fix(
    asked: SuggestFix, client: AsyncClient, caller: Caller
) -> models.SuggestResponse:
    """`/suggest`."""
    fields = {name: value for name, value in asked if name in models.FailedCall.model_fields}
    call = models.FailedCall(
        **fields | {"agent": asked.agent or caller.agent, "session_id": caller.session_id}
    )
    return await client.suggest(call, limit=asked.limit, annotations=asked.annotations)


@_add_tool(BestToolAsked, models.BestTool)
async def best_tool(asked: BestToolAsked, client: AsyncClient, _: Caller) -> models.BestTool:
    """`/namespaces/{namespace}/best`."""
    return await client.best_tool(asked.namespace, asked.scenario, limit=asked.limit)


@_add_tool(KnownToolsAsked, KnownToolsText)
async def known_tools(asked: KnownToolsAsked, client: AsyncClient, _: Caller) -> KnownToolsText:
    """`/known-tools`."""
    return KnownToolsText(
        text=await client.known_tools(
            asked.tools or None, namespace=asked.namespace, max_tokens=asked.max_tokens
        )
    )


@_add_tool(ToolHealthAsked, models.ToolHealth)
async def tool_health(asked: ToolHealthAsked, client: AsyncClient, _: Caller) -> models.ToolHealth:
    """`/tools/{tool}/health`."""
    name = f"{asked.server_name}/{asked.tool}" if asked.server_name else asked.tool
    return await client.tool_health(name)


# With an `executionId` it is idempotent, but no one has to give one, and then each is a new call.
@_add_tool(RecordExecution, Recorded)
async def record_execution(asked: RecordExecution, client: AsyncClient, caller: Caller) -> Recorded:
    """`POST /executions`, one of them."""
    execution = models.Execution.model_validate(
        {
            **{name: value for name, value in asked if name in models.Execution.model_fields},
            "agent": asked.agent or caller.agent,
            "session_id": asked.session_id or caller.session_id,
            "result": bounded_json(asked.result),
            "execution_id": asked.execution_id or str(uuid4()),
            "timestamp": asked.timestamp or datetime.now(UTC),
        }
    )
    receipt = await client.record(execution)
    if receipt.rejected and asked.execution_id and asked.timestamp is None:
        # A call sent twice without a time differs by the time that it was given here, and only so.
        with suppress(NotFoundError):
            stored = await client.get_execution(execution.execution_id)
            again = execution.model_copy(update={"timestamp": stored.timestamp})
            receipt = await client.record(again)
    if receipt.rejected:
        raise AftercallError(receipt.rejected[0].message)
    return Recorded(
        execution_id=execution.execution_id,
        duplicate=receipt.duplicates > 0,
        left_out=receipt.left_out > 0,
    )


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


def serve_streams(service: str, *, agent: str | None = None, verbose: bool = False) -> int:
    """Serve on the standard streams until the input ends, or a signal comes; the exit code.

    The service need not be there yet, and may come and go. `agent` is the name of callers that give
    none; the MCP client's own name when None.
    """
    log_to_stderr(verbose=verbose)
    session_id = str(uuid4())  # the process is one client's, so it is a session

    async def run() -> int:
        async with AsyncClient(
            service, connect_timeout_s=_CONNECT_TIMEOUT_S, retries=_RETRIES
        ) as client:
            server = build_server(
                client,
                who_calls=lambda context: Caller(
                    agent or client_name(context) or "unknown", session_id
                ),
            )
            with gated_stdin() as end, ended_by_signals(end) as received:
                async with stdio_server() as (read, write):
                    await server.run(read, write, server.create_initialization_options())
                return exit_code(received)

    return asyncio.run(run())


def build_server(client: AsyncClient, *, who_calls: WhoCalls | None = None) -> "Server[JsonObject]":
    """Return an MCP server whose tools ask a service.

    The one who made the `client` closes it. The trace that a request's `_meta` names goes on with
    what it asks: the MCP SDK makes it the current one. A request's `_meta` and a tool's arguments
    come before `who_calls`, which is the name that the MCP client gives itself when None.
    """
    who = who_calls or (lambda context: Caller(agent=client_name(context) or "unknown"))
    listed = types.ListToolsResult(tools=[tool.listed for tool in TOOLS.values()])
    schemas = {tool.name: tool.input_schema for tool in listed.tools}

    async def list_tools(
        _context: RequestContext, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(
        context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if (tool := TOOLS.get(params.name)) is None:
            name = bounded_text(params.name, 60)
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"there is no tool {name!r}; there are {', '.join(TOOLS)}",
            )
        caller = who(context).with_meta(context.meta or {})
        return await _call_tool(tool, params.arguments, client, caller)

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
    """Return the name that the MCP client gives itself.

    None where the connection does not show it.
    """
    params = context.session.client_params
    return name_or_none(params.client_info.name) if params is not None else None


async def _call_tool(
    tool: ToolDefinition, arguments: JsonObject | None, client: AsyncClient, caller: Caller
) -> types.CallToolResult:
    structured = None
    try:
        answer = await tool.run(tool.takes.model_validate(arguments or {}), client, caller)
        structured = answer.model_dump(mode="json", by_alias=True)
        said = answer.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        text = answer.text if isinstance(answer, KnownToolsText) else printable_json(said)
    except ValidationError as error:
        wrong = explain_error(error, tool.takes)
        text = f"the arguments are wrong: {wrong}. Call again with these mended"
    except AftercallError as error:
        text = bounded_text(_explain_error(error, client.base_url), MAX_MESSAGE)
        if isinstance(error, NotFoundError) and tool.cure_not_found is not None:
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


def _explain_error(error: AftercallError, url: str) -> str:
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
