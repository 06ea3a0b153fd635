"""The attributes that are read: their names in the conventions, and what their values mean.

Only these are taken from a span: prompts, completions and what else spans carry is not even
decoded. GenAI and MCP: github.com/open-telemetry/semantic-conventions-genai (2026);
OpenInference: github.com/Arize-ai/openinference, `spec/`.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from aftercall.arguments import read_arguments
from aftercall.json_values import (
    MAX_INTEGER,
    MAX_RESULT_CHARS,
    JsonValue,
    bounded_json,
    bounded_text,
    clean_text,
    read_json,
)
from ingest.formats.calls import python_literal

OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"

# Before the convention had arguments and results, instrumentations named them themselves.
PYDANTIC_AI_ARGUMENTS: Final = "tool_arguments"
PYDANTIC_AI_RESULT: Final = "tool_response"
GOOGLE_ADK_ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
GOOGLE_ADK_RESULT: Final = "gcp.vertex.agent.tool_response"
MCP_METHOD: Final = "mcp.method.name"
TOOLS_CALL: Final = "tools/call"
MCP_SESSION: Final = "mcp.session.id"
FASTMCP_SERVER: Final = "fastmcp.server.name"
SERVER_ADDRESS: Final = "server.address"
RPC_STATUS: Final = "rpc.response.status_code"
RPC_ERROR_CODE: Final = "rpc.jsonrpc.error_code"
RPC_ERROR_MESSAGE: Final = "rpc.jsonrpc.error_message"
SPAN_KIND: Final = "openinference.span.kind"
OI_TOOL_NAME: Final = "tool.name"
OI_TOOL_ID: Final = "tool.id"
OI_SCHEMA: Final = "tool.parameters"
OI_JSON_SCHEMA: Final = "tool.json_schema"
OI_INPUT: Final = "input.value"
OI_ARGUMENTS: Final = "tool_call.function.arguments"
OI_OUTPUT: Final = "output.value"
OI_SESSION: Final = "session.id"
OI_AGENT: Final = "agent.name"
FAILED: Final = {
    "tool.status": "error",
    "gen_ai.tool.status": "error",
    "langfuse.observation.level": "ERROR",
}
"""What states that a call failed, whatever the span's status is: Strands Agents, and Langfuse."""
LANGFUSE_MESSAGE: Final = "langfuse.observation.status_message"
TOOL_MESSAGE: Final = "gen_ai.tool.message"
TOOL_CHOICE: Final = "gen_ai.choice"
"""Events with the arguments (`content`) and the result (`message`), as Strands Agents writes."""
EVENT_CONTENT: Final = "content"
EVENT_MESSAGE: Final = "message"
ERROR_TYPE: Final = "error.type"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACK: Final = "exception.stacktrace"
SERVICE_NAME: Final = "service.name"


@dataclass(frozen=True, slots=True)
class Vendor:
    """How a vendor's spans say a call, where they keep none of the conventions."""

    mark: str
    said: str
    """What `mark` is on the span of a tool."""
    arguments: str
    result: str
    name: str | None = None
    """None where the span's name is the tool's."""
    call_id: str | None = None
    wrapped: tuple[str, ...] = ()
    """Members of the arguments' object that may hold the arguments themselves."""


VENDORS: Final = (
    Vendor(
        "ai.operationId", "ai.toolCall", "ai.toolCall.args", "ai.toolCall.result",
        name="ai.toolCall.name", call_id="ai.toolCall.id",
    ),
    Vendor(
        "traceloop.span.kind", "tool", "traceloop.entity.input", "traceloop.entity.output",
        name="traceloop.entity.name", wrapped=("inputs", "input_str"),
    ),
    Vendor(
        "langsmith.span.kind", "tool", "gen_ai.prompt", "gen_ai.completion", wrapped=("input",)
    ),
    Vendor(
        "langfuse.observation.type", "tool", "langfuse.observation.input",
        "langfuse.observation.output",
    ),
    # MLflow writes each attribute as JSON, also a word.
    Vendor("mlflow.spanType", '"TOOL"', "mlflow.spanInputs", "mlflow.spanOutputs"),
    Vendor("mlflow.spanType", "TOOL", "mlflow.spanInputs", "mlflow.spanOutputs"),
)  # fmt: skip
"""The Vercel AI SDK, Traceloop's OpenLLMetry, LangSmith's exporter, Langfuse and MLflow. Strands
Agents keep the GenAI convention, CrewAI's instrumentation OpenInference's; CrewAI's own telemetry
(`Tool Usage`) has neither arguments nor results and is passed over."""
RECORDED_AS: Final = "aftercall.execution_id"
"""On spans of calls that the SDK has recorded itself."""
CONTENT: Final = frozenset({
    TOOL_ARGUMENTS, TOOL_RESULT, PYDANTIC_AI_ARGUMENTS, PYDANTIC_AI_RESULT, GOOGLE_ADK_ARGUMENTS,
    GOOGLE_ADK_RESULT, OI_INPUT, OI_ARGUMENTS, OI_OUTPUT, OI_SCHEMA, OI_JSON_SCHEMA,
    *(each.arguments for each in VENDORS), *(each.result for each in VENDORS),
})  # fmt: skip
"""What may be large: decoded only where the span is a call of a tool."""
PLAIN: Final = frozenset({
    OPERATION, TOOL_NAME, TOOL_CALL_ID, AGENT_NAME, CONVERSATION, MCP_METHOD, MCP_SESSION,
    FASTMCP_SERVER, SERVER_ADDRESS, RPC_STATUS, RPC_ERROR_CODE, RPC_ERROR_MESSAGE, SPAN_KIND,
    OI_TOOL_NAME, OI_TOOL_ID, OI_SESSION, OI_AGENT, ERROR_TYPE, RECORDED_AS,
    LANGFUSE_MESSAGE, *FAILED,
    *(each.mark for each in VENDORS), *(each.name for each in VENDORS if each.name),
    *(each.call_id for each in VENDORS if each.call_id),
})  # fmt: skip
OF_SPANS: Final = CONTENT | PLAIN
OF_EVENTS: Final = frozenset({
    EXCEPTION_TYPE, EXCEPTION_MESSAGE, EXCEPTION_STACK, EVENT_CONTENT, EVENT_MESSAGE,
})  # fmt: skip
OF_RESOURCES: Final = frozenset({SERVICE_NAME})
MARKS: Final = frozenset({
    OPERATION, TOOL_NAME, MCP_METHOD, SPAN_KIND, *(each.mark for each in VENDORS),
})  # fmt: skip
"""A span with none of these is no call of a tool in any convention."""
MAX_NAME: Final = 256
"""As on the wire (`aftercall.models.base.Name`)."""
UNNAMED: Final = "input"
"""The parameter that a tool's one unnamed argument is recorded under, as LangChain calls it."""
_MAX_PARSED_RESULT = 16 * MAX_RESULT_CHARS
"""Longer results in JSON are kept as text: they are cut to a fraction anyway."""
_MAX_TEXT = 4 * 1024 * 1024
_MAX_BRACKETS = 100_000
"""Of arguments and schemas in JSON text: three bytes of it may be 72 in memory."""
_KINDS: Final = {str: "text", bytes: "bytes", bool: "a boolean", list: "a list", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Unusable:
    """Stands for the value of an attribute that cannot be held."""

    problem: str


class BadSpanError(Exception):
    """The span is a call of a tool and cannot be read; the message states why and what to do."""


class UnreadArgumentsError(BadSpanError):
    """The arguments are a text that begins as an object and states none; the call itself counts."""

    def __init__(self, text: str) -> None:
        super().__init__("the arguments begin as a JSON object and are none")
        self.text = text


def span_kind(value: object) -> str:
    """Return what a value is, in words for people."""
    return _KINDS.get(type(value), "a number")


def span_text(value: object, key: str) -> str | None:
    """Return a value that has to be text; None for nothing, and for the empty text."""
    if value is None or isinstance(value, str):
        return clean_text(value) if value else None
    if isinstance(value, Unusable):
        raise BadSpanError(f"{key} {value.problem}")
    raise BadSpanError(f"{key} is {span_kind(value)}; it must be text")


def loose_text(value: object) -> str | None:
    """Return a value that may be of any type and had better be text.

    A whole number will do, too.
    """
    if isinstance(value, str):
        return clean_text(value) or None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_INTEGER:
        return None  # Python does not even write integers of thousands of digits
    return str(value)


def span_name(value: str) -> str:
    """Return a name that the wire takes."""
    return bounded_text(value, MAX_NAME)


def span_arguments(value: object, *, named: bool) -> dict[str, Any]:
    """Return the arguments of a call.

    An object, its text in (loose) JSON, or (from Python) its `repr`.

    Where they are not always `named`, any other text is the tool's one argument, called `input`.
    """
    if isinstance(value, bytes):
        value = _decode_bytes(value)
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        text = value.strip()
        if text in {"", "null"}:
            return {}
        if text.startswith("{"):
            return _object_in(text)
        if not named:
            return {UNNAMED: value}
    if isinstance(value, Unusable):
        raise BadSpanError(f"the arguments: the attribute {value.problem}")
    raise BadSpanError(f"the arguments are {span_kind(value)}; they must be a JSON object")


def unwrap_member(value: object, members: tuple[str, ...]) -> object:
    """Return what the first of the members holds, of an object or its JSON.

    Else the value itself.
    """
    held = value
    if isinstance(value, str) and value[:1] == "{" and _is_bounded(value):
        with suppress(ValueError):
            held = from_json(value)
    if isinstance(held, dict):
        return next((held[key] for key in members if held.get(key) is not None), value)
    return value


def _is_bounded(text: str) -> bool:
    return len(text) <= _MAX_TEXT and text.count("{") + text.count("[") <= _MAX_BRACKETS


def _object_in(text: str) -> dict[str, Any]:
    if not _is_bounded(text):
        raise BadSpanError(
            f"the arguments are larger than {_MAX_TEXT:,} characters, or hold more than "
            f"{_MAX_BRACKETS:,} objects and lists"
        )
    for read in (from_json, read_json, python_literal):
        try:
            value = read(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    if (found := read_arguments(text)) is not None:
        return found
    raise UnreadArgumentsError(text)


def span_result(value: object) -> JsonValue:
    """Return a result, bounded: objects and lists in JSON as such, all other text as it is."""
    if isinstance(value, bytes):
        value = _decode_bytes(value)
    if isinstance(value, Unusable | bytes):
        return f"<{span_kind(value) if isinstance(value, bytes) else value.problem}>"
    if isinstance(value, str) and value[:1] in {"{", "["} and len(value) <= _MAX_PARSED_RESULT:
        with suppress(ValueError):
            value = from_json(value)
    return bounded_json(value)


def schema_of(value: object) -> dict[str, Any] | None:
    """Return a JSON schema of an object.

    None for everything else, such as arguments in its place.
    """
    found = _read_object(value)
    if found is not None and found.get("type") == "object":
        return found if isinstance(found.get("properties"), dict) else None
    return None


def arguments_for_schema(value: object) -> dict[str, Any] | None:
    """Return the arguments that stand where a schema is due.

    None for schemas, and for types by name.
    """
    found = _read_object(value)
    if found is None or found.get("type") in _TYPES or "properties" in found:
        return None
    names_types = all(isinstance(each, dict) and "type" in each for each in found.values())
    return None if names_types else found


_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")


def _read_object(value: object) -> dict[str, Any] | None:
    if isinstance(value, str) and value[:1] == "{" and _is_bounded(value):
        try:
            value = from_json(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def span_words(result: JsonValue) -> str | None:
    """Return the words in a failed call's result: MCP's text contents, or the text that it is."""
    content = result.get("content") if isinstance(result, dict) else result
    if isinstance(content, str):
        return content or None
    listed = content if isinstance(content, list) else []
    texts = [item.get("text") for item in listed if isinstance(item, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _decode_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
