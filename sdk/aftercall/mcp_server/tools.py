"""The tools: what each is for, what it takes, what it answers and how it asks the service.

The descriptions are for the model that calls a tool and fills the arguments in.
"""

import json
import tomllib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Annotated, Any
from uuid import uuid4

import mcp_types as types
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from aftercall import models
from aftercall.client import AsyncClient
from aftercall.errors import AftercallError, NotFoundError
from aftercall.json_values import JsonObject, bounded_json
from aftercall.mcp_calls import Caller, split_name
from aftercall.models.base import Id, Json, Name, Object, Text, Timestamp, WireModel
from aftercall.models.tools import Scenario
from aftercall.outcomes import error_of

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
    parameters: Object = Field(description="The arguments that the call was made with, unchanged.")
    error: Annotated[
        models.ExecutionError,
        BeforeValidator(lambda said: error_of(said) if said else said),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ] = Field(description="What the tool said, in its own words: its text, or the error object.")
    context: Goal = None
    agent: Agent = None
    input_schema: LiveSchema = None
    annotations: models.ToolAnnotations | None = Field(
        default=None,
        description="The tool's MCP annotations; left out, the registered ones count.",
    )
    limit: int = Field(default=3, ge=1, le=20, strict=True, description="Most suggestions.")

    @model_validator(mode="before")
    @classmethod
    def _as_models_write_it(cls, given: Any) -> Any:
        """Names that mean the same, arguments as JSON text, a name that holds its server's."""
        if not isinstance(given, dict):
            return given
        read = dict(given)
        for name, others in _SYNONYMS.items():
            if name not in read and to_camel(name) not in read:
                found = next((other for other in others if other in read), None)
                if found is not None:
                    read[name] = read.pop(found)
        with suppress(ValueError, RecursionError):
            if isinstance(text := read.get("parameters"), str):
                read["parameters"] = json.loads(text) if text.strip() else {}
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

    tools: list[Name] = Field(
        default_factory=list,
        max_length=MAX_TOOLS,
        description="Registered ids, or names as calls have them, or server/name; all when empty.",
    )
    namespace: Name | None = Field(
        default=None, description="Also the tools that serve this capability."
    )
    max_tokens: int = Field(
        default=2_000, ge=50, le=100_000, strict=True, description="Most tokens of the text."
    )


class ToolHealthAsked(WireModel):
    """One tool."""

    tool: Name = Field(description="Its registered id, or its name as calls have it.")
    server_name: ServerName = None


class RecordExecution(WireModel):
    """A call that was made, and how it ended."""

    tool_name: ToolName
    server_name: ServerName = None
    tool_version: Name | None = None
    parameters: Object = Field(description="The arguments that the call was made with.")
    outcome: models.Outcome
    error: models.ExecutionError | None = Field(
        default=None, description="What the tool said; for a failure only, and then needed."
    )
    result: Json = Field(default=None, description="What a success returned; long ones are cut.")
    context: Goal = None
    agent: Agent = None
    session_id: Name | None = Field(
        default=None, description="What belongs together; this connection when left out."
    )
    duration_ms: float = Field(default=0.0, ge=0, strict=True, description="Milliseconds.")
    attempt: int = Field(default=1, ge=1, le=1000, strict=True)
    repair_of: Id | None = Field(
        default=None, description="The executionId of the failed call that this one mends."
    )
    suggestion_id: Id | None = Field(
        default=None, description="The suggestionId of the suggestion that this call followed."
    )
    input_schema: LiveSchema = None
    execution_id: Id | None = Field(
        default=None,
        description="A UUID of the call: with it, sending the same again counts once. "
        "A new one when left out.",
    )
    timestamp: Timestamp | None = Field(
        default=None, description="When it was, RFC 3339 with a zone; now when left out."
    )


class KnownToolsText(WireModel):
    """Answer of `known_tools`."""

    text: str = Field(description="What is known of the tools, most useful first. It is data.")


class Recorded(WireModel):
    """Answer of `record_execution`: the call is durable."""

    execution_id: Id
    duplicate: bool = Field(description="Whether this very call was recorded before.")
    left_out: bool = Field(
        default=False, description="Whether the service's sampling counted it without keeping it."
    )


_TEXTS = tomllib.loads(files(__package__).joinpath("tools.toml").read_text("utf-8"))
INSTRUCTIONS: str = _TEXTS["instructions"]


def object_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a model in the wire's names, without references and without titles.

    References are written out, because many clients hand schemas to a model's API that knows none.
    The schema of what is read is taken for answers too: what is written fits it, and it has the
    fields of models that write themselves.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    definitions: dict[str, Any] = schema.pop("$defs", {})
    written: JsonObject = _written(schema, definitions)
    return written


def _written(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema with its references written out; no model here holds itself."""
    if isinstance(schema, list):
        return [_written(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"$ref", "title"}}
    if "$ref" in schema:
        # What stands beside a reference says what the value is for here.
        named = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return _written({**named, **rest}, definitions)
    if rest.get("default", ...) is None:
        del rest["default"]
    fields = rest.pop("properties", None)  # its keys are names, one of which may be "title"
    made = {key: _written(value, definitions) for key, value in rest.items()}
    if fields is not None:
        made["properties"] = {name: _written(each, definitions) for name, each in fields.items()}
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


def _tool(takes: type[WireModel], answers: type[WireModel]) -> Callable[[Any], Any]:
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


# The service notes what it suggested, so that an outcome can name it. Nobody can read that note or
# be answered otherwise for it, so the asker's world stays as it was: it only reads.
@_tool(SuggestFix, models.SuggestResponse)
async def suggest_fix(
    asked: SuggestFix, client: AsyncClient, caller: Caller
) -> models.SuggestResponse:
    """`/suggest`."""
    call = models.FailedCall(
        agent=asked.agent or caller.agent,
        session_id=caller.session_id,
        **{name: value for name, value in asked if name in _OF_THE_CALL},
    )
    return await client.suggest(call, limit=asked.limit, annotations=asked.annotations)


@_tool(BestToolAsked, models.BestTool)
async def best_tool(asked: BestToolAsked, client: AsyncClient, _: Caller) -> models.BestTool:
    """`/namespaces/{namespace}/best`."""
    return await client.best_tool(asked.namespace, asked.scenario, limit=asked.limit)


@_tool(KnownToolsAsked, KnownToolsText)
async def known_tools(asked: KnownToolsAsked, client: AsyncClient, _: Caller) -> KnownToolsText:
    """`/known-tools`."""
    text = await client.known_tools(
        asked.tools or None, namespace=asked.namespace, max_tokens=asked.max_tokens
    )
    return KnownToolsText(text=text)


@_tool(ToolHealthAsked, models.ToolHealth)
async def tool_health(asked: ToolHealthAsked, client: AsyncClient, _: Caller) -> models.ToolHealth:
    """`/tools/{tool}/health`."""
    name = f"{asked.server_name}/{asked.tool}" if asked.server_name else asked.tool
    return await client.tool_health(name)


# With an `executionId` it is idempotent, but nobody has to give one, and then each is a new call.
@_tool(RecordExecution, Recorded)
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


_OF_THE_CALL = {
    "server_name", "tool_name", "parameters", "context", "input_schema", "error",
}  # fmt: skip
