"""A FastMCP server whose tools return typed outcomes; run as a process by the tests."""

import json
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult

from aftercall.adapters.fastmcp import outcome_result
from aftercall.outcomes import Outcome

mcp: FastMCP[Any] = FastMCP("films")

BOUNDARY: Outcome[Any] = Outcome.wrong_tool_boundary(
    "a page has to be fetched first", boundary_axes="transport, extraction",
    suggested_split="http_get -> read_titles", evidence="the url answers with HTML", page=3,
)  # fmt: skip
WEAK = {"status": "success_no_parse", "items": []}
_SCHEMA = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}


@mcp.tool
def returned() -> ToolResult:
    """A typed error as a result."""
    return outcome_result(BOUNDARY)


@mcp.tool(output_schema=_SCHEMA)
def returned_beside_a_schema() -> ToolResult:
    """The same, where the tool declares what a success looks like."""
    return outcome_result(BOUNDARY)


@mcp.tool
def as_json_text() -> str:
    """The same as the text of an error, as a server without structured content tells it."""
    raise ToolError(json.dumps(BOUNDARY.to_dict()))


@mcp.tool
def weak() -> dict[str, Any]:
    """A success that says itself that it found nothing."""
    return WEAK


@mcp.tool
def weak_outcome() -> ToolResult:
    """The same as an outcome, with a list as its value."""
    return outcome_result(Outcome.ok([], status="success_no_parse"))


@mcp.tool
def read_file() -> str:
    """A success whose text is somebody else's typed error."""
    return json.dumps(BOUNDARY.to_dict())


@mcp.tool
def job() -> dict[str, Any]:
    """A success that reports on a failure of something else."""
    return {"job": 7, "status": "error", "error": {"type": "Timeout", "message": "late"}}


if __name__ == "__main__":
    mcp.run(show_banner=False)
