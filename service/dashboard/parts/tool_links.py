"""Where a tool's page is."""

from aftercall.models import ToolName
from service.dashboard.look import Look


def tool_href(look: Look, tool: ToolName) -> str:
    """The page of a tool: by its registered id, else by its server and its name."""
    if tool.tool_id is not None:
        return look.link(f"/tools/{tool.tool_id}")
    server = {} if tool.server_name is None else {"server": tool.server_name}
    return look.link("/tool", name=tool.tool_name, **server)
