"""A server whose tool posts to a channel or to a user, and keeps what it posted in a file."""

import sys
from pathlib import Path
from typing import Annotated

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import Field

server = FastMCP("posting")


@server.tool(annotations={"destructiveHint": False})
def post(
    text: str,
    channelName: Annotated[str | None, Field(description="where all read it")] = None,  # noqa: N803
    user: Annotated[str | None, Field(description="who alone reads it")] = None,
) -> str:
    """Post a text to one channel or one user."""
    if (channelName is None) == (user is None):
        raise ToolError("Missing required parameter: one of channelName, user")
    with Path(sys.argv[1]).open("a") as posted:
        posted.write(f"{channelName or '-'} {user or '-'} {text}\n")
    return f"posted to {channelName or user}"


if __name__ == "__main__":
    server.run(show_banner=False)
