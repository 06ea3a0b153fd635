"""The second half of the demo: a tool of a namespace degrades, recovers, and is chosen again.

Two real tools can list the latest changes of a project: a script that reads an exported list, and
git's own MCP server. The list is half-written for a while. Who is chosen, and the scores, come from
the service; errors and results from the tools.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from fastmcp.client.transports import StdioTransport

from aftercall import AsyncClient, Recorder, ToolAnnotations, ToolSpec
from aftercall.executors import CommandExecutor, Executors, ToolFailedError
from aftercall.executors.mcp import McpExecutor
from aftercall.json_values import JsonObject
from aftercall.models import BestTool, Factors
from aftercall.toolbox import AsyncToolbox
from service.demo.stage import Stage, StageError

NAMESPACE = "latest_changes"
SCENARIO = "list the latest changes of the project"
_OTHER = "git_log"
_LEARNED_S = 30.0

MOST_FAILURES = 5
"""The degraded tool must have lost its place by then."""
MOST_SUCCESSES = 30
"""The mended tool must have it back by then."""


@dataclass(frozen=True, slots=True)
class SceneCall:
    """One call: who made it, what was chosen and why, and how it went.

    `factors` and `score` are the script's at that moment, whoever was called.
    """

    phase: str
    agent: str
    called: str
    succeeded: bool
    chosen: str
    score: float
    factors: Factors


@dataclass(frozen=True, slots=True)
class _Place:
    stage: Stage
    client: AsyncClient
    recorder: Recorder
    orchestrator: AsyncToolbox
    neighbour: AsyncToolbox
    tools: Path

    @property
    def list_file(self) -> Path:
        return self.tools / "changes.json"

    @property
    def parameters(self) -> JsonObject:
        return {"repo_path": str(self.stage.repository), "max_count": 3}


async def play_scene(stage: Stage, on_call: Callable[[SceneCall], None]) -> list[SceneCall]:
    """Play the scene on a stage whose gateway has registered its tools.

    Raises:
        StageError: something does not happen that must, such as the demotion.
    """
    played: list[SceneCall] = []

    def note(call: SceneCall) -> None:
        played.append(call)
        on_call(call)

    async with _open_place(stage) as place:
        _export(place, whole=True)
        for _ in range(2):
            note(await _call_best(place, "whole"))
        _export(place, whole=False)
        while (call := await _call_best(place, "half-written")).called == NAMESPACE:
            note(call)
            if len(played) > MOST_FAILURES:
                raise StageError("the degraded tool was chosen again and again")
        note(call)
        _export(place, whole=True)
        for _ in range(MOST_SUCCESSES):
            note(call := await _call_directly(place, "mended"))
            if call.chosen == NAMESPACE:
                break
        else:
            raise StageError("the mended tool was not chosen again")
        note(await _call_best(place, "mended"))
    return played


async def _call_best(place: _Place, phase: str) -> SceneCall:
    """An orchestrator takes whatever is the fittest."""
    best = await place.orchestrator.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
    succeeded = True
    try:
        await place.orchestrator.run(best.tool, place.parameters, scenario=SCENARIO)
    except ToolFailedError:
        succeeded = False
    await _until_learned(place)
    return _seen(phase, "dee", best.tool.tool_id, best, succeeded=succeeded)


async def _call_directly(place: _Place, phase: str) -> SceneCall:
    """Somebody who knows the script calls it by its name; then the orchestrator asks again."""
    await place.neighbour.call_tool(NAMESPACE, place.parameters, scenario=SCENARIO)
    await _until_learned(place)
    best = await place.orchestrator.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
    return _seen(phase, "eve", NAMESPACE, best, succeeded=True)


def _seen(phase: str, agent: str, called: str, best: BestTool, *, succeeded: bool) -> SceneCall:
    script = next(each for each in best.candidates if each.tool.tool_id == NAMESPACE)
    return SceneCall(
        phase, agent, called, succeeded, best.tool.tool_id, script.score, script.factors
    )


def _export(place: _Place, *, whole: bool) -> None:
    """Write the list of changes; half of it, when the exporter is killed in the middle."""
    log = subprocess.run(
        ["git", "log", "--format=%s"],  # noqa: S607 - git is needed anyway
        cwd=place.stage.repository,
        check=True,
        capture_output=True,
        text=True,
    )
    text = json.dumps(log.stdout.splitlines())
    place.list_file.write_text(text if whole else text[: len(text) // 2], encoding="utf-8")


async def _until_learned(place: _Place) -> None:
    deadline = time.monotonic() + _LEARNED_S
    await asyncio.to_thread(place.recorder.flush)
    while time.monotonic() < deadline:
        if (await place.client.status()).pending_indexing == 0:
            return
        await asyncio.sleep(0.05)
    raise StageError("the service did not learn from the last call in time; see its log")


@asynccontextmanager
async def _open_place(stage: Stage) -> AsyncIterator[_Place]:
    tools = stage.data_dir.parent / "tools"
    tools.mkdir(exist_ok=True)
    script = files("service.demo") / f"{NAMESPACE}.py"
    with as_file(script) as path:
        shutil.copy(path, tools)
    git = StdioTransport(
        sys.executable, ["-m", "mcp_server_git", "--repository", str(stage.repository)]
    )
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(AsyncClient(stage.service_url))
        recorder = stack.enter_context(Recorder(base_url=stage.service_url, spool_dir=None))
        servers = await stack.enter_async_context(McpExecutor({"git": git}))
        commands = CommandExecutor(tools, commands={"python": sys.executable})
        executors = Executors(commands, servers)
        place = _Place(
            stage, client, recorder,
            orchestrator=AsyncToolbox(client, recorder, executors, agent="dee"),
            neighbour=AsyncToolbox(client, recorder, executors, agent="eve"),
            tools=tools,
        )  # fmt: skip
        await _register(place)
        yield place


async def _register(place: _Place) -> None:
    """The script is new; git's tool is registered by the gateway and joins the namespace."""
    await place.orchestrator.register_tool(
        NAMESPACE,
        ToolSpec(
            name=NAMESPACE,
            namespace=NAMESPACE,
            version="1.0.0",
            description="Lists the latest changes of the project, newest first.",
            annotations=ToolAnnotations(read_only_hint=True),
            implementation={
                "command": "python",
                "args_template": [f"{{tool_dir}}/{NAMESPACE}.py", "{input}"],
            },
        ),
    )
    for tool in await place.client.list_tools():
        if (tool.server_name, tool.name) == ("git", _OTHER):
            spec = {name: getattr(tool, name) for name in ToolSpec.model_fields}
            await place.client.put_tool(tool.tool_id, ToolSpec(**{**spec, "namespace": NAMESPACE}))
    await _until_learned(place)
