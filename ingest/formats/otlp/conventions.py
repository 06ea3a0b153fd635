"""The call of a tool that a span tells, by each convention that sees one.

- GenAI: spans of the operation `execute_tool`, and those from before it. Arguments and results are
  in `gen_ai.tool.call.arguments` and `.result`, as structured values or as JSON text; where these
  are missing, in what instrumentations wrote before they were agreed on: Pydantic AI
  `tool_arguments`, `tool_response`; Google ADK `gcp.vertex.agent.*`; Strands the span events
  `gen_ai.tool.message` and `gen_ai.choice`.
- MCP: `mcp.method.name` is `tools/call`, on a client's or server's span. Such a span is a GenAI
  span as well: name, arguments and result are in the same attributes.
- OpenInference: spans of the kind TOOL. `tool.parameters` is a schema there. Some write arguments
  into it; what is no JSON schema of an object is left alone, and arguments are never taken from it.
"""

from ingest.formats.otlp import keys
from ingest.formats.otlp.span import (
    ERROR_STATUS,
    NONE,
    SERVER_KIND,
    Attributes,
    Span,
    ToolCall,
    may_be_call,
)
from ingest.formats.otlp.values import loose_text, schema_of, text_of

_ARGUMENTS = (keys.TOOL_ARGUMENTS, keys.PYDANTIC_AI_ARGUMENTS, keys.GOOGLE_ADK_ARGUMENTS)
_RESULTS = (keys.TOOL_RESULT, keys.PYDANTIC_AI_RESULT, keys.GOOGLE_ADK_RESULT)

_PREFIXES = ("execute_tool ", "running tool: ")
"""How the names of spans begin that hold the tool's name: the convention, and Pydantic AI's."""

_SIGNS = frozenset({keys.OPERATION, keys.MCP_METHOD, keys.TOOL_NAME})

_MERGED = "(merged tools)"
"""Google ADK tells parallel calls once more together, under this name."""

_SENDS = "MCP send "
"""How the MCP SDK for Python (2.x) names the spans of its client."""


def call_of(span: Span) -> ToolCall | None:
    """The call that a span tells, by all conventions that see one; None of a span that tells none.

    MCP comes first, since it knows the server and the protocol's codes, then GenAI, then
    OpenInference; what the first does not say is taken from the next.

    The MCP SDK's client notes errors of the protocol; a tool's own failure (`isError`) it does not
    look at, and leaves its span as if all were well. Such a span cannot tell success from failure,
    and so is no record of a call. The server's span, and FastMCP's around it, tell of both.

    Raises:
        BadSpanError: it is a call, and what it says of it is of wrong types.
    """
    is_blind = span.name.startswith(_SENDS) and span.status != ERROR_STATUS
    if not may_be_call(span.attributes) or is_blind:
        return None
    call: ToolCall | None = None
    for convention in (_mcp_call, _genai_call, _openinference_call):
        found = convention(span)
        if found is not None:
            call = found if call is None else call.completed_by(found)
    return call


def _mcp_call(span: Span) -> ToolCall | None:
    attributes = span.attributes
    if attributes.get(keys.MCP_METHOD) != keys.TOOLS_CALL:
        return None
    _, _, target = span.name.partition(f"{keys.TOOLS_CALL} ")
    error_type = loose_text(attributes.get(keys.ERROR_TYPE)) or ""
    code = _first_text(attributes, keys.RPC_STATUS, keys.RPC_ERROR_CODE)
    if code is None and error_type.removeprefix("-").isdecimal():
        code = error_type  # a JSON-RPC error's code is its `error.type`; some write it only there
    # FastMCP names its server; else where it was reached; a server's own span is its service's.
    server = _first_text(attributes, keys.FASTMCP_SERVER, keys.SERVER_ADDRESS)
    if server is None and span.kind == SERVER_KIND:
        server = loose_text(span.resource.get(keys.SERVICE_NAME))
    return ToolCall(
        name=text_of(attributes.get(keys.TOOL_NAME), keys.TOOL_NAME) or (target.strip() or None),
        named_arguments=True,
        server_name=server,
        error_code=code,
        error_message=loose_text(attributes.get(keys.RPC_ERROR_MESSAGE)),
    )


def _genai_call(span: Span) -> ToolCall | None:
    """`gen_ai.tool.name` alone makes it one, unless the span names another operation or method."""
    attributes = span.attributes
    operation = attributes.get(keys.OPERATION, keys.EXECUTE_TOOL)
    method = attributes.get(keys.MCP_METHOD, keys.TOOLS_CALL)
    is_other = operation != keys.EXECUTE_TOOL or method != keys.TOOLS_CALL
    if is_other or attributes.keys().isdisjoint(_SIGNS):
        return None
    name = text_of(attributes.get(keys.TOOL_NAME), keys.TOOL_NAME)
    for prefix in _PREFIXES:
        if name is None and span.name.startswith(prefix):
            name = span.name.removeprefix(prefix).strip() or None
    if name == _MERGED:
        return None
    said = span.events.get(keys.STRANDS_INPUT_EVENT, NONE).get(keys.STRANDS_INPUT)
    if not (isinstance(said, str) and said.lstrip().startswith("{")):
        said = None  # others used an event of this name for a tool's answer
    answered = span.events.get(keys.STRANDS_OUTPUT_EVENT, NONE).get(keys.STRANDS_OUTPUT)
    return ToolCall(
        name=name,
        call_id=loose_text(attributes.get(keys.TOOL_CALL_ID)),
        arguments=_first(attributes, _ARGUMENTS, said),
        result=_first(attributes, _RESULTS, answered),
        failed=True if attributes.get(keys.STRANDS_STATUS) == "error" else None,
    )


def _openinference_call(span: Span) -> ToolCall | None:
    attributes = span.attributes
    kind = attributes.get(keys.SPAN_KIND)
    if not isinstance(kind, str) or kind.upper() != "TOOL":
        return None
    return ToolCall(
        name=text_of(attributes.get(keys.OI_TOOL_NAME), keys.OI_TOOL_NAME) or span.name or None,
        call_id=loose_text(attributes.get(keys.OI_TOOL_ID)),
        arguments=attributes.get(keys.OI_INPUT),
        result=attributes.get(keys.OI_OUTPUT),
        input_schema=schema_of(attributes.get(keys.OI_SCHEMA))
        or schema_of(attributes.get(keys.OI_JSON_SCHEMA)),
    )


def _first(attributes: Attributes, names: tuple[str, ...], otherwise: object) -> object:
    found = (value for name in names if (value := attributes.get(name)) is not None)
    return next(found, otherwise)


def _first_text(attributes: Attributes, *names: str) -> str | None:
    found = (text for name in names if (text := loose_text(attributes.get(name))))
    return next(found, None)
