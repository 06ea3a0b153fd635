"""Reading tool results in assertions."""

from fastmcp.client.client import CallToolResult as ParsedResult
from mcp_types import CallToolResult, TextContent


def texts(result: CallToolResult | ParsedResult) -> list[str]:
    """The texts of a result, in order; other blocks are left out."""
    return [block.text for block in result.content if isinstance(block, TextContent)]
