"""The second half of the demo: tools that degrade, and tools that say what is not their job.

Two real tools can list the latest changes of a project: a script that reads an exported list, and
git's own MCP server. The list is half-written for a while. Two more work on the pages of a small
site: one reads pages, one lists the films on a page; the reader is asked for films, and an empty
list of films is a success until a contract says otherwise. Who is chosen, the scores and the
advice come from the service; errors and results from the tools.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.resources import as_file, files
from pathlib import Path

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
from aftercall.models import BestTool, Factors, Recommendation
from aftercall.toolbox import AsyncToolbox
from service.demo.stage import DemoStage, StageError

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
_PAGES = {
    "cinema.html": "<h1>Tonight</h1><li class=film>Alien</li><li class=film>Solaris</li>",
    "menu.html": "<h1>The Regal</h1><nav><a>Start</a><a>Tickets</a><a>Contact</a></nav>",
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


class _Scene:
    """A client and a recorder on a stage."""

    def __init__(self, stage: DemoStage, client: AsyncClient, recorder: Recorder) -> None:
        self.stage = stage
        self.client = client
        self.recorder = recorder

    async def learned(self) -> None:
        deadline = time.monotonic() + _LEARNED_S
        await asyncio.to_thread(self.recorder.flush)
        while (await self.client.status()).pending_indexing:
            if time.monotonic() > deadline:
                raise StageError("the service did not learn from the last call in time")
            await asyncio.sleep(0.05)


@asynccontextmanager
async def _opened(stage: DemoStage) -> AsyncIterator[_Scene]:
    async with AsyncClient(stage.service_url) as client:
        with Recorder(base_url=stage.service_url, spool_dir=None) as recorder:
            yield _Scene(stage, client, recorder)


async def play_scene(console: Console, stage: DemoStage) -> list[SceneCall]:
    """A tool of a namespace degrades, recovers, and is chosen again.

    Raises:
        StageError: something does not happen that must, such as the demotion.
    """
    played: list[SceneCall] = []

    def note(call: SceneCall) -> SceneCall:
        played.append(call)
        console.print(f"  {call.agent}  {call.called}  {_mark(call)}")
        return call

    tools = stage.folder / "tools"
    tools.mkdir(exist_ok=True)
    with as_file(files(__package__) / "data" / f"{NAMESPACE}.py") as script:
        shutil.copy(script, tools)
    git = StdioTransport(
        sys.executable, ["-m", "mcp_server_git", "--repository", str(stage.repository)]
    )
    async with _opened(stage) as scene, McpExecutor({"git": git}) as servers:
        commands = CommandExecutor(tools, commands={"python": sys.executable})
        changes = _Changes(scene, tools / "changes.json", Executors(commands, servers))
        await changes.register()
        changes.export(whole=True)
        for _ in range(2):
            note(await changes.call_best("whole"))
        changes.export(whole=False)
        while note(await changes.call_best("half-written")).called == NAMESPACE:
            if len(played) > MOST_FAILURES:
                raise StageError("the degraded tool was chosen again and again")
        changes.export(whole=True)
        for _ in range(MOST_SUCCESSES):
            if note(await changes.call_directly("mended")).chosen == NAMESPACE:
                break
        else:
            raise StageError("the mended tool was not chosen again")
        note(await changes.call_best("mended"))
    return played


class _Changes:
    """The list of changes, an orchestrator that takes whatever is fittest, and its neighbour."""

    def __init__(self, scene: _Scene, file: Path, executors: Executors) -> None:
        client, recorder = scene.client, scene.recorder
        self._scene = scene
        self._file = file
        self._orchestrator = AsyncToolbox(client, recorder, executors, agent="dee")
        self._neighbour = AsyncToolbox(client, recorder, executors, agent="eve")
        self._parameters: JsonObject = {"repo_path": str(scene.stage.repository), "max_count": 3}

    async def register(self) -> None:
        """The script is new; git's tool is registered by the gateway and joins the namespace."""
        command: JsonObject = {
            "command": "python",
            "args_template": [f"{{tool_dir}}/{NAMESPACE}.py", "{input}"],
        }
        script = ToolSpec(
            name=NAMESPACE, namespace=NAMESPACE, version="1.0.0",
            description="Lists the latest changes of the project, newest first.",
            annotations=ToolAnnotations(read_only_hint=True), implementation=command,
        )  # fmt: skip
        await self._orchestrator.register_tool(NAMESPACE, script)
        for tool in await self._scene.client.list_tools():
            if (tool.server_name, tool.name) == ("git", "git_log"):
                spec = {name: getattr(tool, name) for name in ToolSpec.model_fields}
                joined = ToolSpec(**{**spec, "namespace": NAMESPACE})
                await self._scene.client.put_tool(tool.tool_id, joined)
        await self._scene.learned()

    def export(self, *, whole: bool) -> None:
        """Write the list of changes; half of it, when the exporter is killed in the middle."""
        log = subprocess.run(
            ["git", "log", "--format=%s"],  # noqa: S607 - git is needed anyway
            cwd=self._scene.stage.repository, check=True, capture_output=True, text=True,
        )  # fmt: skip
        text = json.dumps(log.stdout.splitlines())
        self._file.write_text(text if whole else text[: len(text) // 2], encoding="utf-8")

    async def call_best(self, phase: str) -> SceneCall:
        """The orchestrator calls the fittest."""
        best = await self._orchestrator.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
        succeeded = True
        try:
            await self._orchestrator.run(best.tool, self._parameters, scenario=SCENARIO)
        except ToolFailedError:
            succeeded = False
        await self._scene.learned()
        return _seen(phase, "dee", best.tool.tool_id, best, succeeded=succeeded)

    async def call_directly(self, phase: str) -> SceneCall:
        """Somebody who knows the script calls it by its name; then the orchestrator asks again."""
        await self._neighbour.call_tool(NAMESPACE, self._parameters, scenario=SCENARIO)
        await self._scene.learned()
        best = await self._orchestrator.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
        return _seen(phase, "eve", NAMESPACE, best, succeeded=True)


def _seen(phase: str, agent: str, called: str, best: BestTool, *, succeeded: bool) -> SceneCall:
    script = next(each for each in best.candidates if each.tool.tool_id == NAMESPACE)
    return SceneCall(
        phase, agent, called, succeeded, best.tool.tool_id, script.score, script.factors
    )


async def play_boundaries(console: Console, stage: DemoStage) -> BoundaryScene:
    """A tool that is asked to do two jobs, and one whose answers are empty.

    Raises:
        StageError: something does not happen that must, such as the warning.
    """
    calls: list[BoundaryCall] = []
    async with _opened(stage) as scene:
        site = _Site(scene)
        await site.register()

        async def call(tool: str, page: str, want: str = "", *, contract: bool = False) -> None:
            calls.append(await site.call(tool, page, want, contract=contract))
            console.print(f"  fay  {tool}  {_said(calls[-1])}")

        for _ in range(3):
            await call(READER, "cinema.html", "page")
        for _ in range(MOST_REFERRALS):
            await call(READER, "cinema.html", "films")
            health = await scene.client.tool_health(READER)
            if health.cohesion.warning:
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


class _Site:
    """A few pages, a tool that reads them, and one that lists what they mark as films."""

    def __init__(self, scene: _Scene) -> None:
        self._scene = scene
        self._pages = scene.stage.folder / "pages"
        self._pages.mkdir(exist_ok=True)
        for name, content in _PAGES.items():
            (self._pages / name).write_text(content, encoding="utf-8")

    async def register(self) -> None:
        page: JsonObject = {"type": "string", "description": "a page of the site"}
        want: JsonObject = {"type": "string", "enum": ["page", "films"]}
        for name, description, properties in (
            (READER, "Reads a page of the site.", {"page": page, "want": want}),
            (LISTER, "Lists the films on a page of the site.", {"page": page}),
        ):
            schema: JsonObject = {
                "type": "object", "properties": {**properties}, "required": [*properties],
            }  # fmt: skip
            spec = ToolSpec(name=name, description=description, input_schema=schema)
            await self._scene.client.put_tool(name, spec)
        await self._scene.learned()

    async def call(self, tool: str, page: str, want: str, *, contract: bool) -> BoundaryCall:
        run = self._read_page if tool == READER else self._list_films
        parameters: JsonObject = {"page": page}
        if want:
            parameters["want"] = want
        reflected = await call_with_reflection(
            checked(run, _FILMS) if contract else run, tool_name=tool, parameters=parameters,
            agent="fay", session_id="demo-films", context="which films are on tonight?",
            client=self._scene.client, recorder=self._scene.recorder,
        )  # fmt: skip
        await self._scene.learned()
        asked = " ".join(map(str, parameters.values()))
        if reflected.error is None:
            return BoundaryCall(tool, asked, "success", "")
        first = next(iter(reflected.suggestions), None)
        lane = f"{first.action}: {', then '.join(first.split)}" if first and first.split else ""
        return BoundaryCall(tool, asked, reflected.error.type, lane or "the caller is told at once")

    async def _read_page(self, parameters: JsonObject) -> Outcome[JsonValue]:
        text = (self._pages / str(parameters["page"])).read_text(encoding="utf-8")
        if parameters["want"] == "page":
            return Outcome.ok(text)
        return Outcome.wrong_tool_boundary(
            "I read pages; what is on them is for a tool that knows films",
            boundary_axes=["page reading", "film extraction"],
            observed_task_shape="read a page and list the films on it",
            suggested_split=[READER, LISTER],
            evidence=f"asked for {parameters['want']} on a page of {len(text)} characters",
        )

    async def _list_films(self, parameters: JsonObject) -> JsonValue:
        """A success also where there is none."""
        found = _Films()
        found.feed((self._pages / str(parameters["page"])).read_text(encoding="utf-8"))
        titles: list[JsonValue] = [*found.titles]
        return {"status": "success" if titles else "success_no_parse", "titles": titles}


class _Films(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.titles: list[str] = []
        self._in_film = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_film = tag == "li" and ("class", "film") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_film:
            self.titles.append(data)


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
