"""Registered tools: their schemas let proposals be verified before they are made."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from aftercall.json_values import content_hash
from aftercall.wire import Tool, ToolList, ToolSpec
from mongo.records import StoredTool
from service.http import examples
from service.http.dependencies import CurrentWorkspace, OpenServices
from service.http.openapi import answers, json_body
from service.http.parameters import NewToolId, ToolId
from service.http.problems import NotFoundError
from service.http.requests import read_model
from service.http.responses import answer

router = APIRouter(tags=["tools"])

# `:path`, because a client percent-encodes a slash in an id and the server decodes it again.
_PATH = "/tools/{toolId:path}"


@router.get(
    "/tools",
    summary="All registered tools, by id",
    response_model=ToolList,
    responses=answers(200, {"tools": [examples.TOOL]}, errors=(503,)),
)
async def list_tools(services: OpenServices, workspace: CurrentWorkspace) -> Response:
    """Registering is optional; a tool is learned from its calls all the same."""
    stored = await services.store.list_tools(workspace)
    return answer(ToolList(tools=[services.redactor.tool(entry.tool) for entry in stored]))


@router.put(
    _PATH,
    summary="Register a tool, or replace it",
    response_model=Tool,
    responses=answers(200, examples.TOOL, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(ToolSpec, examples.REGISTERING),
)
async def put_tool(
    tool_id: NewToolId, request: Request, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """With its input schema, a suggestion for the tool is checked against it before it is made."""
    spec = services.redactor.tool(await read_model(request, ToolSpec, services.parsers))
    schema = spec.input_schema
    tool = Tool(
        **{name: getattr(spec, name) for name in ToolSpec.model_fields},
        tool_id=tool_id,
        schema_hash=None if schema is None else content_hash(schema),
        updated_at=datetime.now(UTC),
    )
    stored = StoredTool(workspace=workspace, tool=tool)
    before = await services.store.get_tool(workspace, tool_id)
    await services.store.put_tool(stored)
    for changed in (before, stored):  # the id may have stood for another name until now
        if changed is not None:
            services.memory.forget_tool(changed.tool_key)
    return answer(tool)


@router.get(
    _PATH,
    summary="A registered tool",
    response_model=Tool,
    responses=answers(200, examples.TOOL, errors=(404, 422, 503)),
)
async def read_tool(
    tool_id: ToolId, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """As it was last put."""
    stored = await services.store.get_tool(workspace, tool_id)
    if stored is None:
        raise NotFoundError("there is no tool of that id")
    return answer(services.redactor.tool(stored.tool))


@router.delete(
    _PATH,
    summary="Forget that a tool is registered",
    status_code=204,
    response_class=Response,
    responses=answers(204, None, errors=(404, 422, 503)),
)
async def delete_tool(
    tool_id: ToolId, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """What was learned from its calls stays."""
    before = await services.store.get_tool(workspace, tool_id)
    if not await services.store.delete_tool(workspace, tool_id):
        raise NotFoundError("there is no tool of that id")
    if before is not None:
        services.memory.forget_tool(before.tool_key)
    return Response(status_code=204)
