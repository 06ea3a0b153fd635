"""The attributes that are read, by the names of the conventions that define them.

Only these are taken from a span: prompts, completions and what else spans carry is not even
decoded. GenAI and MCP: github.com/open-telemetry/semantic-conventions-genai (2026);
OpenInference: github.com/Arize-ai/openinference, `spec/`.
"""

from typing import Final

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
STRANDS_STATUS: Final = "gen_ai.tool.status"
STRANDS_INPUT_EVENT: Final = "gen_ai.tool.message"
STRANDS_INPUT: Final = "content"
STRANDS_OUTPUT_EVENT: Final = "gen_ai.choice"
STRANDS_OUTPUT: Final = "message"

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
OI_OUTPUT: Final = "output.value"
OI_OUTPUT_TYPE: Final = "output.mime_type"
OI_SESSION: Final = "session.id"
OI_AGENT: Final = "agent.name"

ERROR_TYPE: Final = "error.type"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACK: Final = "exception.stacktrace"

SERVICE_NAME: Final = "service.name"

RECORDED_AS: Final = "aftercall.execution_id"
"""On spans of calls that the SDK has recorded itself."""

OF_SPANS: Final = frozenset({
    OPERATION, TOOL_NAME, TOOL_CALL_ID, TOOL_ARGUMENTS, TOOL_RESULT, AGENT_NAME, CONVERSATION,
    PYDANTIC_AI_ARGUMENTS, PYDANTIC_AI_RESULT, GOOGLE_ADK_ARGUMENTS, GOOGLE_ADK_RESULT,
    STRANDS_STATUS, MCP_METHOD, MCP_SESSION, FASTMCP_SERVER, SERVER_ADDRESS, RPC_STATUS,
    RPC_ERROR_CODE, RPC_ERROR_MESSAGE, SPAN_KIND, OI_TOOL_NAME, OI_TOOL_ID, OI_SCHEMA,
    OI_JSON_SCHEMA, OI_INPUT, OI_OUTPUT, OI_OUTPUT_TYPE, OI_SESSION, OI_AGENT, ERROR_TYPE,
    RECORDED_AS,
})  # fmt: skip

CONTENT: Final = frozenset({
    TOOL_ARGUMENTS, TOOL_RESULT, PYDANTIC_AI_ARGUMENTS, PYDANTIC_AI_RESULT, GOOGLE_ADK_ARGUMENTS,
    GOOGLE_ADK_RESULT, OI_INPUT, OI_OUTPUT, OI_SCHEMA, OI_JSON_SCHEMA,
})  # fmt: skip
"""Of `OF_SPANS`, what may be large: decoded only where the span is a call of a tool."""

OF_EVENTS: Final = frozenset({
    EXCEPTION_TYPE, EXCEPTION_MESSAGE, EXCEPTION_STACK, STRANDS_INPUT, STRANDS_OUTPUT,
})  # fmt: skip

EVENTS: Final = frozenset({EXCEPTION_EVENT, STRANDS_INPUT_EVENT, STRANDS_OUTPUT_EVENT})

OF_RESOURCES: Final = frozenset({SERVICE_NAME})

MARKS: Final = frozenset({OPERATION, TOOL_NAME, MCP_METHOD, SPAN_KIND})
"""A span with none of these is no call of a tool in any convention."""
