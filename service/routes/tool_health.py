"""How a tool fares: failures, usefulness, boundaries."""

from fastapi import APIRouter, Response

from aftercall.models import ToolHealth
from service.health import tool_health
from service.openapi import answers
from service.routes import health_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, NoQuery, ToolId, answer

router = APIRouter(tags=["boundaries"])


@router.get(
    "/tools/{toolId:path}/health",
    summary="The health of a tool",
    response_model=ToolHealth,
    responses=answers(
        200, examples.TOOL_HEALTH, errors=(422, 503), own={404: examples.UNKNOWN_TOOL}
    ),
)
async def read_health(
    tool_id: ToolId, _query: NoQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Counts are of all calls that are known, whatever their version; weights halve every 7 days.

    Registering is optional: besides an id, `toolName` or `serverName/toolName` will do. A success
    that is empty, or that the tool itself calls weak, is told as such and stays a success. The name
    of a method is told when the tool's schema has it or several sessions used it.
    """
    return answer(await tool_health(context, workspace, tool_id))
