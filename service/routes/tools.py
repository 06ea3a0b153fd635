"""Registered tools: their schemas let proposals be verified before they are made."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from aftercall.models import MAX_TOOLS, NamedTool, Tool, ToolList, ToolSpec, ToolsReceipt, WireModel
from service import tools
from service.requests import Administering, JsonRoute, Reading, Recording, ToolId

router = APIRouter(tags=["tools"], route_class=JsonRoute)
_PATH = "/tools/{toolId:tool}"


_ToolsBody = Annotated[list[NamedTool], Body(max_length=MAX_TOOLS)]


class _ToolQuery(WireModel):
    use_evolved: bool = Field(
        default=False, description="The promoted version, where there is one, in its place."
    )


@router.get("/tools", summary="All registered tools, by id")
async def list_tools(space: Reading) -> ToolList:
    """Registering is optional; a tool is learned from its calls all the same.

    `negativeTags` are a tool's own and those that marks gave it.
    """
    return await tools.list_tools(*space)


@router.put("/tools", summary="Register a list of at most 1,000 tools, or replace them")
async def put_tools(body: _ToolsBody, space: Recording) -> ToolsReceipt:
    """Tools that are not in the list stay as they are.

    A list with a malformed tool is a 422 as a whole; a tool that makes no sense, such as a circle
    of `evolvedFrom`, is named in `rejected` and holds up no other.
    """
    return await tools.put_tools(*space, body)


@router.put(_PATH, summary="Register a tool, or replace it")
async def put_tool(tool_id: ToolId, spec: ToolSpec, space: Recording) -> Tool:
    """With its input schema, a suggestion for the tool is checked against it before it is made.

    `version` is up to three numbers, as in `1.2.0`. `evolvedFrom` must not lead back to the tool.
    """
    return await tools.put_tool(*space, tool_id, spec)


@router.get(_PATH, summary="A registered tool")
async def read_tool(tool_id: ToolId, query: Annotated[_ToolQuery, Query()], space: Reading) -> Tool:
    """As it was last put; with `useEvolved` the version that was promoted in its place.

    For that, the name of a namespace will do as well as an id.
    """
    return await tools.get_tool(*space, tool_id, use_evolved=query.use_evolved)


@router.delete(
    _PATH, summary="Forget that a tool is registered", status_code=204, response_class=Response
)
async def delete_tool(tool_id: ToolId, space: Administering) -> None:
    """What was learned from its calls stays."""
    await tools.delete_tool(*space, tool_id)
