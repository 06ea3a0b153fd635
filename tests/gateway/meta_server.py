"""A FastMCP server that says what `_meta` it was sent; run as a process by the tests."""

from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

mcp: FastMCP[Any] = FastMCP("echo")


@mcp.tool(annotations={"readOnlyHint": True})
async def sent_meta(ctx: Context, number: int = 1) -> dict[str, Any]:
    """The `_meta` of this request; refuses numbers above 10."""
    if number > 10:
        raise ToolError(f"number must be <= 10, not {number}")
    request = ctx.request_context
    return {"meta": dict(request.meta or {}) if request is not None else {}}


if __name__ == "__main__":
    mcp.run(show_banner=False)
