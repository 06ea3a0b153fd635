"""OpenAI Agents SDK: a reflecting tool, and hooks for the rest; the model is scripted."""

import asyncio
import os
from tempfile import TemporaryDirectory

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from aftercall import AsyncClient, Recorder, ToolAnnotations
from aftercall.adapters.openai_agents import ToolReflection

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")
set_tracing_disabled(True)  # or the SDK exports traces to OpenAI


async def main() -> None:
    """Two agents find the right branch by themselves; the third is helped."""
    with TemporaryDirectory() as spool, Recorder(base_url=URL, spool_dir=spool) as recorder:
        async with AsyncClient(URL) as client:
            reflection = ToolReflection(
                client=client,
                recorder=recorder,
                server_name="openai-agents-example",
                # only then is it called again:
                annotations={"latest_commits": ToolAnnotations(read_only_hint=True)},
            )

            @function_tool
            def latest_commits(branch: str, count: int) -> list[str]:
                """What was committed last."""
                if branch != "trunk":
                    raise LookupError(f"unknown branch {branch!r}")
                return [f"commit {number} of {branch}" for number in range(count)]

            @function_tool(failure_error_function=reflection.failure)
            def whole_commit(name: str) -> str:
                """Everything about one commit; recorded and advised on, never called again."""
                return f"the whole of {name}"

            for colleague in ("ada", "ben", "cyd"):
                branches = ["main"] if colleague == "cyd" else ["main", "trunk"]
                calls = [
                    function_call("latest_commits", {"branch": branch, "count": 2}, call_id=branch)
                    for branch in branches
                ]
                calls.append(function_call("whole_commit", {"name": "commit 0"}, call_id="whole"))
                steps = [[call] for call in calls]
                agent = Agent(
                    name=colleague,
                    model=ScriptedModel([*steps, [assistant_message("That is it.")]]),
                    tools=[reflection.reflecting(latest_commits), whole_commit],
                )
                run = await Runner.run(agent, "What is new?", hooks=reflection.run_hooks)
                for item in run.new_items:
                    if item.type == "tool_call_output_item":
                        print(f"{colleague}: {str(item.output).splitlines()[0]}")
                await asyncio.to_thread(recorder.flush)
                while (await client.status()).pending_indexing:  # learned from within a second
                    await asyncio.sleep(0.05)
            print(f"{recorder.stats().sent} attempts recorded")


if __name__ == "__main__":
    asyncio.run(main())
