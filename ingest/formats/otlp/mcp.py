"""Calls by the MCP conventions: `mcp.method.name` is `tools/call`, on a client's or server's span.

An MCP span is a GenAI span as well: name, arguments and result are in the same attributes, for
`genai` to read. Here is what only MCP has.
"""

from ingest.formats.otlp import keys
from ingest.formats.otlp.call import ToolCall
from ingest.formats.otlp.span import ERROR_STATUS, SERVER_KIND, Span
from ingest.formats.otlp.values import loose_text, text_of

_SENDS = "MCP send "
"""How the MCP SDK for Python (2.x) names the spans of its client."""


def is_blind(span: Span) -> bool:
    """Whether the span cannot tell success from failure, and so is no record of a call.

    The MCP SDK's client notes errors of the protocol; a tool's own failure (`isError`) it does not
    look at, and leaves its span as if all were well. The server's span, and FastMCP's around it,
    tell of both.
    """
    return span.name.startswith(_SENDS) and span.status != ERROR_STATUS


def tool_call(span: Span) -> ToolCall | None:
    """The call, when the span is one of `tools/call`.

    Raises:
        BadSpanError: it is one, and what it says of it is of wrong types.
    """
    attributes = span.attributes
    if attributes.get(keys.MCP_METHOD) != keys.TOOLS_CALL:
        return None
    _, _, target = span.name.partition(f"{keys.TOOLS_CALL} ")
    error_type = loose_text(attributes.get(keys.ERROR_TYPE))
    code = loose_text(attributes.get(keys.RPC_STATUS)) or loose_text(
        attributes.get(keys.RPC_ERROR_CODE)
    )
    return ToolCall(
        name=text_of(attributes.get(keys.TOOL_NAME), keys.TOOL_NAME) or (target.strip() or None),
        named_arguments=True,
        server_name=_server_name(span),
        # A JSON-RPC error's code is its `error.type`, too; some write it only there.
        error_code=code or (error_type if _is_number(error_type) else None),
        error_message=loose_text(attributes.get(keys.RPC_ERROR_MESSAGE)),
    )


def _server_name(span: Span) -> str | None:
    """FastMCP names its server; else where it was reached; a server's own span is its service's."""
    return (
        loose_text(span.attributes.get(keys.FASTMCP_SERVER))
        or loose_text(span.attributes.get(keys.SERVER_ADDRESS))
        or (loose_text(span.resource.get(keys.SERVICE_NAME)) if span.kind == SERVER_KIND else None)
    )


def _is_number(text: str | None) -> bool:
    return text is not None and text.removeprefix("-").isdecimal()
