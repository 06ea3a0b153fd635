"""Registered tools: their schemas let proposals be verified before they are made."""

from fastapi import APIRouter, Request, Response

from aftercall.models import Tool, ToolList, ToolSpec
from service.bodies import read_model
from service.openapi import answers, json_body
from service.routes import examples
from service.routes.fitness_examples import UNKNOWN_TOOL
from service.routes.parameters import (
    CurrentContext,
    CurrentWorkspace,
    NewToolId,
    ToolId,
    ToolQuery,
    answer,
)

router = APIRouter(tags=["tools"])

# `:path`, because a client percent-encodes a slash in an id and the server decodes it again.
_PATH = "/tools/{toolId:path}"


@router.get(
    "/tools",
    summary="All registered tools, by id",
    response_model=ToolList,
    responses=answers(200, {"tools": [examples.TOOL]}, errors=(503,)),
)
async def list_tools(context: CurrentContext, workspace: CurrentWorkspace) -> Response:
    """Registering is optional; a tool is learned from its calls all the same."""
    stored = await context.store.list_tools(workspace)
    return answer(ToolList(tools=[context.redactor.tool(entry.tool) for entry in stored]))


@router.put(
    _PATH,
    summary="Register a tool, or replace it",
    response_model=Tool,
    responses=answers(200, examples.TOOL, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(ToolSpec, examples.REGISTERING),
)
async def put_tool(
    tool_id: NewToolId, request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """With its input schema, a suggestion for the tool is checked against it before it is made.

    `version` is up to three numbers, as in `1.2.0`. `evolvedFrom` must not lead back to the tool.
    """
    spec = await read_model(request, ToolSpec, context.parsers)
    tool = await context.tools.put(workspace, tool_id, spec)
    context.metrics.tools.promise(tool.name, server_name=tool.server_name)
    return answer(tool)


@router.get(
    _PATH,
    summary="A registered tool",
    response_model=Tool,
    responses=answers(200, examples.TOOL, errors=(422, 503), own={404: UNKNOWN_TOOL}),
)
async def read_tool(
    tool_id: ToolId, query: ToolQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """As it was last put; with `useEvolved` the version that was promoted in its place.

    For that, the name of a namespace will do as well as an id.
    """
    return answer(await context.tools.get(workspace, tool_id, use_evolved=query.use_evolved))


@router.delete(
    _PATH,
    summary="Forget that a tool is registered",
    status_code=204,
    response_class=Response,
    responses=answers(204, None, errors=(422, 503), own={404: UNKNOWN_TOOL}),
)
async def delete_tool(
    tool_id: ToolId, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """What was learned from its calls stays."""
    await context.tools.delete(workspace, tool_id)
    return Response(status_code=204)
