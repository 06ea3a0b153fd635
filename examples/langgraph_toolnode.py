"""A LangGraph graph of one's own: `ToolNode` with both wrappers, awaited."""

import asyncio
import os
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from aftercall import AsyncClient, Recorder
from aftercall.adapters.langgraph import ReflectionMiddleware

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")
os.environ["LANGSMITH_TRACING"] = "false"  # or LangChain sends traces where a key is set


@tool
async def latest_commits(branch: str, count: int = 3) -> list[str]:
    """What was committed last."""
    if branch != "trunk":
        raise LookupError(f"unknown branch {branch!r}")
    return [f"commit {number} of {branch}" for number in range(count)]


latest_commits.metadata = {"readOnlyHint": True}  # only then is it called again


def graph_with(reflection: ReflectionMiddleware) -> Any:
    """A graph of one node; a real one has a model before it."""
    tools = ToolNode(
        [latest_commits],
        wrap_tool_call=reflection.wrap_tool_call,
        awrap_tool_call=reflection.awrap_tool_call,
    )
    graph = StateGraph(MessagesState)
    graph.add_node("tools", tools)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile()


async def main() -> None:
    """Two agents find the right branch by themselves; the third is helped."""
    with TemporaryDirectory() as spool, Recorder(base_url=URL, spool_dir=spool) as recorder:
        async with AsyncClient(URL) as client:
            for colleague in ("ada", "ben", "cyd"):
                graph = graph_with(
                    ReflectionMiddleware(
                        client=client,
                        recorder=recorder,
                        agent=colleague,
                        server_name="langgraph-toolnode-example",
                    )
                )
                config = {"configurable": {"thread_id": f"langgraph-toolnode-{colleague}"}}
                for branch in ("main", "trunk"):
                    call = {"name": "latest_commits", "args": {"branch": branch}, "id": branch}
                    state = {"messages": [AIMessage(content="", tool_calls=[call])]}
                    answer = (await graph.ainvoke(state, config))["messages"][-1]
                    repaired = answer.response_metadata.get("aftercall", {}).get("note", "")
                    print(f"{colleague}: {answer.content.splitlines()[0]} {repaired}")
                    if answer.status == "success":
                        break
                await asyncio.to_thread(recorder.flush)
                while (await client.status()).pending_indexing:  # learned from within a second
                    await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
