"""LangChain's `create_agent` with `ReflectionMiddleware`; only the model is scripted."""

import os
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from aftercall import Client, Recorder
from aftercall.adapters.langgraph import ReflectionMiddleware

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")
os.environ["LANGSMITH_TRACING"] = "false"  # or LangChain sends traces where a key is set


@tool
def latest_commits(branch: str, count: int = 3) -> list[str]:
    """What was committed last."""
    if branch != "trunk":
        raise LookupError(f"unknown branch {branch!r}")
    return [f"commit {number} of {branch}" for number in range(count)]


latest_commits.metadata = {"readOnlyHint": True}  # only then is it called again


class ScriptedModel(GenericFakeChatModel):
    """Says what it was told to say; a real one is bound to the tools."""

    def bind_tools(self, *_: Any, **__: Any) -> "ScriptedModel":
        """Takes the tools and does not look at them."""
        return self


def asks_for(branch: str) -> AIMessage:
    """The model's call of the tool."""
    call = {"name": "latest_commits", "args": {"branch": branch}, "id": f"call-{branch}"}
    return AIMessage(content="", tool_calls=[call])


def main() -> None:
    """Two runs find the right branch by themselves; the third is helped."""
    with (
        TemporaryDirectory() as spool,
        Client(URL) as client,
        Recorder(base_url=URL, spool_dir=spool) as recorder,
    ):
        reflection = ReflectionMiddleware(
            client=client, recorder=recorder, server_name="langgraph-agent-example"
        )
        for colleague in ("ada", "ben", "cyd"):
            turns = ["main"] if colleague == "cyd" else ["main", "trunk"]
            model = ScriptedModel(messages=iter([*map(asks_for, turns), AIMessage("That is it.")]))
            agent = create_agent(model, [latest_commits], middleware=[reflection], name=colleague)
            config = {"configurable": {"thread_id": f"langgraph-agent-{colleague}"}}
            state = agent.invoke({"messages": [("human", "What is new?")]}, config)
            for message in state["messages"]:
                if message.type == "tool":
                    repaired = message.response_metadata.get("aftercall", {}).get("note", "")
                    print(f"{colleague}: {message.content.splitlines()[0]} {repaired}")
            recorder.flush()
            while client.status().pending_indexing:  # learned from within a second
                sleep(0.05)


if __name__ == "__main__":
    main()
