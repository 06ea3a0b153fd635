"""A FastMCP server of one's own with `ReflectionMiddleware`, called by an MCP client."""

import asyncio
import os
from tempfile import TemporaryDirectory

from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError

from aftercall import AsyncClient, Recorder
from aftercall.adapters.fastmcp import ReflectionMiddleware

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")


def server_with(reflection: ReflectionMiddleware) -> FastMCP:
    """The server and its one tool."""
    server = FastMCP("commits")
    server.add_middleware(reflection)

    @server.tool(annotations={"readOnlyHint": True})  # only then is it called again
    def latest_commits(branch: str, count: int = 3) -> list[str]:
        """What was committed last."""
        if branch != "trunk":
            raise ToolError(f"unknown branch {branch!r}")
        return [f"commit {number} of {branch}" for number in range(count)]

    return server


async def main() -> None:
    """Two clients find the right branch by themselves; the third is helped."""
    with TemporaryDirectory() as spool, Recorder(base_url=URL, spool_dir=spool) as recorder:
        async with AsyncClient(URL) as aftercall:
            reflection = ReflectionMiddleware(
                client=aftercall, recorder=recorder, server_name="fastmcp-example"
            )
            server = server_with(reflection)
            for user in ("ada", "ben", "cyd"):
                meta = {"aftercall/agent": user, "aftercall/session": f"fastmcp-{user}"}
                async with Client(server) as client:
                    for branch in ("main", "trunk"):
                        result = await client.call_tool(
                            "latest_commits", {"branch": branch}, raise_on_error=False, meta=meta
                        )
                        note = ((result.meta or {}).get("aftercall") or {}).get("note", "")
                        print(f"{user}: {result.content[0].text.splitlines()[0]} ({note or 'ok'})")
                        if not result.is_error:
                            break
                await asyncio.to_thread(recorder.flush)
                while (await aftercall.status()).pending_indexing:  # learned from within a second
                    await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
