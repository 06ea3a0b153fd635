"""A gateway with hooks, in the manner of IBM's ContextForge: `CallHooks` in a plugin.

ContextForge is not installed here, so its objects are stood in for by plain ones with the same
members. There, derive from `cpex.framework.Plugin` (before 1.0: `mcpgateway.plugins.framework`),
and return `ToolPostInvokeResult(modified_payload=payload.model_copy(update={"result": ...}))`.
Where a tool raises, ContextForge calls no second hook: such calls are not recorded.
"""

import asyncio
import os
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from aftercall import AsyncClient, Recorder
from aftercall.adapters.hooks import CallHooks

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")


class AftercallPlugin:
    """Records what passes the gateway, and adds advice to the errors of tools."""

    def __init__(self, hooks: CallHooks) -> None:
        self.hooks = hooks

    async def tool_pre_invoke(self, payload: Any, context: Any) -> None:
        """Only here are the arguments; what stands in `context.state` is there again afterwards."""
        context.state["aftercall"] = self.hooks.pre(
            payload.name,
            payload.args,
            agent=context.global_context.user,
            session_id=context.global_context.user,
        )

    async def tool_post_invoke(self, payload: Any, context: Any) -> Any:
        """The result as a mapping of MCP's; the advice becomes one more block of it."""
        ended = await self.hooks.post(payload.result, key=context.state.get("aftercall", ""))
        if ended is None or not ended.advice:
            return payload.result
        advice = {"type": "text", "text": ended.advice}
        return {**payload.result, "content": [*payload.result["content"], advice]}


def latest_commits(branch: str) -> dict[str, Any]:
    """A tool behind the gateway: what was committed last, as MCP has it."""
    found = branch == "trunk"
    text = f"commit 0 of {branch}" if found else f"unknown branch {branch!r}"
    return {"content": [{"type": "text", "text": text}], "isError": not found}


async def gateway_calls(plugin: AftercallPlugin, user: str, branch: str) -> list[str]:
    """What the gateway does with one call; the lines of the answer."""
    context = SimpleNamespace(state={}, global_context=SimpleNamespace(user=user))
    asked = SimpleNamespace(name="latest_commits", args={"branch": branch})
    await plugin.tool_pre_invoke(asked, context)
    answered = SimpleNamespace(name=asked.name, result=latest_commits(**asked.args))
    result = await plugin.tool_post_invoke(answered, context)
    return [line for block in result["content"] for line in block["text"].splitlines()]


async def main() -> None:
    """Two users find the right branch by themselves; the third is told."""
    with TemporaryDirectory() as spool, Recorder(base_url=URL, spool_dir=spool) as recorder:
        async with AsyncClient(URL) as client:
            hooks = CallHooks(client=client, recorder=recorder, server_name="gateway-example")
            plugin = AftercallPlugin(hooks)
            for user in ("ada", "ben", "cyd"):
                for branch in ["main"] if user == "cyd" else ["main", "trunk"]:
                    for line in await gateway_calls(plugin, user, branch):
                        print(f"{user}: {line}")
                await asyncio.to_thread(recorder.flush)
                while (await client.status()).pending_indexing:  # learned from within a second
                    await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
