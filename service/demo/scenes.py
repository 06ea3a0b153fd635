"""The second half of the demo: tools that degrade, and tools that say what is not their job.

Two real tools can list the latest changes of a project: a script that reads an exported list, and
git's own MCP server. The list is half-written for a while. Two more work on the pages of a small
site: one reads pages, one lists the films on a page; the reader is asked for films, and an empty
list of films is a success until a contract says otherwise. Who is chosen, the scores and the
advice come from the service; errors and results from the tools.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files

from fastmcp.client.transports import StdioTransport
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aftercall import (
    AsyncClient,
    Outcome,
    Recorder,
    ToolAnnotations,
    ToolSpec,
    call_with_reflection,
)
from aftercall.contracts import Deliverable, checked
from aftercall.executors import CommandExecutor, Executors, ToolFailedError
from aftercall.executors.mcp import McpExecutor
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Factors, Recommendation
from aftercall.toolbox import AsyncToolbox
from service.demo.stage import DemoStage, StageError, learned

NAMESPACE = "latest_changes"
SCENARIO = "list the latest changes of the project"
MOST_FAILURES = 5
"""The degraded tool must have lost its place by then."""
MOST_SUCCESSES = 30
"""The mended tool must have it back by then."""

READER, LISTER = "page_reader", "film_lister"
MOST_REFERRALS = 10
"""The warning must have come by then."""

_LEARNED_S = 30.0
_SCRIPT = ToolSpec(
    name=NAMESPACE, namespace=NAMESPACE, version="1.0.0",
    description="Lists the latest changes of the project, newest first.",
    annotations=ToolAnnotations(read_only_hint=True),
    implementation={
        "command": "python", "args_template": [f"{{tool_dir}}/{NAMESPACE}.py", "{input}"],
    },
)  # fmt: skip
_PAGES = {
    "cinema.html": "<h1>Tonight</h1><li class=film>Alien</li><li class=film>Solaris</li>",
    "menu.html": "<h1>The Regal</h1><nav><a>Start</a><a>Tickets</a><a>Contact</a></nav>",
}
_PAGE: JsonObject = {"type": "string", "description": "a page of the site"}
_SITE_TOOLS: dict[str, tuple[str, JsonObject]] = {
    READER: (
        "Reads a page of the site.",
        {"page": _PAGE, "want": {"type": "string", "enum": ["page", "films"]}},
    ),
    LISTER: ("Lists the films on a page of the site.", {"page": _PAGE}),
}
_FILMS = Deliverable.from_dict(
    {"type": "object", "required": ["titles"], "fields": {"titles": {"min_items": 1}}}
)


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
class BoundaryCall:
    """One call and how it ended, in the tool's own word; `lane` is what became of it."""

    tool: str
    asked: str
    said: str
    lane: str


@dataclass(frozen=True, slots=True)
class BoundaryScene:
    """What was called, and what a tool builder and the next agent are told."""

    calls: list[BoundaryCall]
    recommendations: list[Recommendation]
    known_tools: str


@dataclass(frozen=True, slots=True)
class _Scene:
    """A client and a recorder on a stage."""

    client: AsyncClient
    recorder: Recorder

    async def learned(self) -> None:
        """Wait until the service has learned from all that was recorded."""
        await asyncio.to_thread(self.recorder.flush)
        if not await learned(self.client, _LEARNED_S):
            raise StageError("the service did not learn from the last call in time")


@asynccontextmanager
async def _opened(stage: DemoStage) -> AsyncIterator[_Scene]:
    async with AsyncClient(stage.service_url) as client:
        with Recorder(base_url=stage.service_url, spool_dir=None) as recorder:
            yield _Scene(client, recorder)


async def play_scene(console: Console, stage: DemoStage) -> list[SceneCall]:
    """A tool of a namespace degrades, recovers, and is chosen again.

    Raises:
        StageError: something does not happen that must, such as the demotion.
    """
    played: list[SceneCall] = []
    parameters: JsonObject = {"repo_path": str(stage.repository), "max_count": 3}
    tools = stage.folder / "tools"
    tools.mkdir(exist_ok=True)
    script = files(__package__) / "data" / f"{NAMESPACE}.py"
    (tools / script.name).write_bytes(script.read_bytes())
    git = StdioTransport(
        sys.executable, ["-m", "mcp_server_git", "--repository", str(stage.repository)]
    )
    async with _opened(stage) as scene, McpExecutor({"git": git}) as servers:
        commands = CommandExecutor(tools, commands={"python": sys.executable})
        executors = Executors(commands, servers)
        dee, eve = (
            AsyncToolbox(scene.client, scene.recorder, executors, agent=name)
            for name in ("dee", "eve")
        )

        async def call(phase: str, *, by_name: bool = False) -> SceneCall:
            """The orchestrator calls the fittest; or its neighbour the script, by its name."""
            best = await dee.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
            called, succeeded = NAMESPACE if by_name else best.tool.tool_id, True
            try:
                if by_name:
                    await eve.call_tool(NAMESPACE, parameters, scenario=SCENARIO)
                else:
                    await dee.run(best.tool, parameters, scenario=SCENARIO)
            except ToolFailedError:
                succeeded = False
            await scene.learned()
            if by_name:
                best = await dee.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
            own = next(each for each in best.candidates if each.tool.tool_id == NAMESPACE)
            played.append(
                SceneCall(phase, "eve" if by_name else "dee", called, succeeded,
                          best.tool.tool_id, own.score, own.factors)
            )  # fmt: skip
            console.print(f"  {played[-1].agent}  {called}  {_mark(played[-1])}")
            return played[-1]

        # The script is new; git's tool is registered by the gateway and joins the namespace.
        await dee.register_tool(NAMESPACE, _SCRIPT)
        for tool in await scene.client.list_tools():
            if (tool.server_name, tool.name) == ("git", "git_log"):
                spec = {name: getattr(tool, name) for name in ToolSpec.model_fields}
                await scene.client.put_tool(
                    tool.tool_id, ToolSpec(**{**spec, "namespace": NAMESPACE})
                )
        await scene.learned()
        _export(stage, whole=True)
        for _ in range(2):
            await call("whole")
        _export(stage, whole=False)
        while (await call("half-written")).called == NAMESPACE:
            if len(played) > MOST_FAILURES:
                raise StageError("the degraded tool was chosen again and again")
        _export(stage, whole=True)
        for _ in range(MOST_SUCCESSES):
            if (await call("mended", by_name=True)).chosen == NAMESPACE:
                break
        else:
            raise StageError("the mended tool was not chosen again")
        await call("mended")
    return played


def _export(stage: DemoStage, *, whole: bool) -> None:
    """Write the list of changes; half of it, when the exporter is killed in the middle."""
    log = subprocess.run(
        ["git", "log", "--format=%s"],  # noqa: S607 - git is needed anyway
        cwd=stage.repository, check=True, capture_output=True, text=True,
    )  # fmt: skip
    text = json.dumps(log.stdout.splitlines())
    file = stage.folder / "tools" / "changes.json"
    file.write_text(text if whole else text[: len(text) // 2], encoding="utf-8")


async def play_boundaries(console: Console, stage: DemoStage) -> BoundaryScene:
    """A tool that is asked to do two jobs, and one whose answers are empty.

    Raises:
        StageError: something does not happen that must, such as the warning.
    """
    calls: list[BoundaryCall] = []
    async with _opened(stage) as scene:
        for name, (description, properties) in _SITE_TOOLS.items():
            schema: JsonObject = {
                "type": "object", "properties": properties, "required": [*properties],
            }  # fmt: skip
            spec = ToolSpec(name=name, description=description, input_schema=schema)
            await scene.client.put_tool(name, spec)
        await scene.learned()

        async def call(tool: str, *asked: str, contract: bool = False) -> None:
            run = _read_page if tool == READER else _list_films
            reflected = await call_with_reflection(
                checked(run, _FILMS) if contract else run, tool_name=tool,
                parameters=dict(zip(("page", "want"), asked, strict=False)), agent="fay",
                session_id="demo-films", context="which films are on tonight?",
                client=scene.client, recorder=scene.recorder,
            )  # fmt: skip
            await scene.learned()
            said, lane = "success", ""
            if reflected.error is not None:
                first = next(iter(reflected.suggestions), None)
                said, lane = reflected.error.type, "the caller is told at once"
                if first and first.split:
                    lane = f"{first.action}: {', then '.join(first.split)}"
            calls.append(BoundaryCall(tool, " ".join(asked), said, lane))
            console.print(f"  fay  {tool}  {_said(calls[-1])}")

        for _ in range(3):
            await call(READER, "cinema.html", "page")
        for _ in range(MOST_REFERRALS):
            await call(READER, "cinema.html", "films")
            if (await scene.client.tool_health(READER)).cohesion.warning:
                break
        else:
            raise StageError("a tool that was asked to do two jobs was never warned of")
        await call(LISTER, "cinema.html")
        for words in ("that doesn't look like a movie list", "this is a menu, not titles"):
            await call(LISTER, "menu.html")
            await scene.client.correct(words, session_id="demo-films", tool_name=LISTER)
        await call(LISTER, "menu.html", contract=True)
        return BoundaryScene(
            calls, await scene.client.recommendations(),
            await scene.client.known_tools([READER, LISTER], max_tokens=600),
        )  # fmt: skip


async def _read_page(parameters: JsonObject) -> Outcome[JsonValue]:
    text = _PAGES[str(parameters["page"])]
    if parameters["want"] == "page":
        return Outcome.ok(text)
    return Outcome.wrong_tool_boundary(
        "I read pages; what is on them is for a tool that knows films",
        boundary_axes=["page reading", "film extraction"],
        observed_task_shape="read a page and list the films on it",
        suggested_split=[READER, LISTER],
        evidence=f"asked for {parameters['want']} on a page of {len(text)} characters",
    )


async def _list_films(parameters: JsonObject) -> JsonValue:
    """A success also where there is none."""
    titles = re.findall("<li class=film>(.*?)</li>", _PAGES[str(parameters["page"])])
    return {"status": "success" if titles else "success_no_parse", "titles": titles}


def show_scene(console: Console, played: Sequence[SceneCall]) -> None:
    """Who was called and how it went; the factors and the score are the script's."""
    table = Table(title=f"The fittest of the namespace {NAMESPACE}", expand=True)
    for title in ("the script's list", "caller", "called", "ended"):
        table.add_column(title, no_wrap=title == "called")
    for title in ("base", "quality", "demotion", "score"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("fittest", no_wrap=True)
    for each in played:
        factors = each.factors
        numbers = (factors.base, factors.quality, factors.failure_demotion, each.score)
        table.add_row(
            each.phase, each.agent, escape(each.called), _mark(each),
            *(f"{number:.2f}" for number in numbers), escape(each.chosen),
        )  # fmt: skip
    console.print(table)
    failed = sum(not each.succeeded for each in played)
    mended = sum(each.agent == "eve" for each in played)
    console.print(
        f'  For "{SCENARIO}" the script lost its place after {failed} '
        f"{'failure' if failed == 1 else 'failures'} and had it back after {mended} "
        f"{'success' if mended == 1 else 'successes'}, without anybody changing a caller."
    )


def show_boundaries(console: Console, scene: BoundaryScene) -> None:
    """What the tools said of themselves, and what a tool builder and the next agent are told."""
    table = Table(title="What tools say of themselves", expand=True)
    for title in ("tool", "asked for", "it said", "what became of it"):
        table.add_column(title, no_wrap=title == "tool")
    for each in scene.calls:
        table.add_row(escape(each.tool), escape(each.asked), _said(each), escape(each.lane))
    console.print(table)
    console.print("  What a tool builder is recommended:")
    for advice in scene.recommendations:
        console.print(f"  - {escape(advice.message)}")
    console.print("  What the next agent is told, in a prompt:")
    console.print(scene.known_tools, markup=False, highlight=False)


def _mark(each: SceneCall) -> str:
    return "[green]ok[/]" if each.succeeded else "[red]failed[/]"


def _said(each: BoundaryCall) -> str:
    return f"[{'green' if each.said == 'success' else 'yellow'}]{escape(each.said)}[/]"
