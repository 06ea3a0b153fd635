"""The scripted demo: agents make mistakes with real tools through the gateway, and are repaired.

Only their calls are written down, in `data/scenario.toml`. Errors come from the tools, corrections
from `/suggest`, results from the retried calls. A scene comes after it: two real tools can list the
latest changes of a project, a script that reads an exported list and git's own MCP server. The list
is half-written for a while. Who is chosen comes from the service.
"""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp_types import TextContent
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aftercall import AsyncClient, Recorder, ToolAnnotations, ToolSpec
from aftercall.executors import CommandExecutor, Executors, ToolFailedError
from aftercall.executors.mcp import McpExecutor
from aftercall.json_patch import Operation, apply, same_json
from aftercall.json_values import JsonObject
from aftercall.toolbox import AsyncToolbox
from service.demo.simulated_tools import DemoTable, read_demo_table
from service.demo.stage import (
    DemoStage,
    StageError,
    open_stage,
    open_status,
    temporary_folder,
    wait_until_learned,
)

NAMESPACE = "latest_changes"
SCENARIO = "list the latest changes of the project"
MOST_FAILURES = 5
"""The degraded tool must have lost its place by then."""
MOST_SUCCESSES = 30
"""The repaired tool must have it back by then."""
_LEARNED_S = 30.0
_SCRIPT = ToolSpec(
    name=NAMESPACE, namespace=NAMESPACE, version="1.0.0",
    description="Lists the latest changes of the project, newest first.",
    annotations=ToolAnnotations(read_only_hint=True),
    implementation={
        "command": "python", "args_template": [f"{{tool_dir}}/{NAMESPACE}.py", "{input}"],
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SceneCall:
    """One call: its agent, the tool chosen, its end; `score` is the script's at that moment."""

    agent: str
    called: str
    succeeded: bool
    chosen: str
    score: float


@dataclass(frozen=True, slots=True)
class Scene:
    """A client and a recorder on a stage."""

    stage: DemoStage
    client: AsyncClient
    recorder: Recorder

    async def wait_until_learned(self) -> None:
        """Wait until the service has learned from all that was recorded."""
        await asyncio.to_thread(self.recorder.flush)
        if not await wait_until_learned(self.client, _LEARNED_S):
            raise StageError("the service did not learn from the last call in time")


async def play_scene(scene: Scene) -> list[SceneCall]:
    """Let a tool of a namespace degrade and recover, until it is chosen again."""
    played: list[SceneCall] = []
    stage = scene.stage
    parameters: JsonObject = {"repo_path": str(stage.repository), "max_count": 3}
    tools = stage.folder / "tools"
    tools.mkdir(exist_ok=True)
    script = files(__package__) / "data" / f"{NAMESPACE}.py"
    (tools / script.name).write_bytes(script.read_bytes())
    git = StdioTransport(
        sys.executable, ["-m", "mcp_server_git", "--repository", str(stage.repository)]
    )
    async with McpExecutor({"git": git}) as servers:
        executors = Executors(CommandExecutor(tools, commands={"python": sys.executable}), servers)
        dee, eve = (
            AsyncToolbox(scene.client, scene.recorder, executors, agent=name)
            for name in ("dee", "eve")
        )

        async def call_tool(*, by_name: bool = False) -> SceneCall:
            """Let the orchestrator call the fittest tool, or its neighbour the script by name."""
            best = await dee.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
            called, succeeded = NAMESPACE if by_name else best.tool.tool_id, True
            try:
                if by_name:
                    await eve.call_tool(NAMESPACE, parameters, scenario=SCENARIO)
                else:
                    await dee.run(best.tool, parameters, scenario=SCENARIO)
            except ToolFailedError:
                succeeded = False
            await scene.wait_until_learned()
            if by_name:
                best = await dee.get_best_tool_in_namespace(NAMESPACE, SCENARIO)
            own = next(each for each in best.candidates if each.tool.tool_id == NAMESPACE)
            played.append(
                SceneCall(
                    "eve" if by_name else "dee", called, succeeded, best.tool.tool_id, own.score
                )
            )
            return played[-1]

        # The script is new; git's tool is registered by the gateway and joins the namespace.
        await dee.register_tool(NAMESPACE, _SCRIPT)
        for tool in await scene.client.list_tools():
            if (tool.server_name, tool.name) == ("git", "git_log"):
                spec = {name: getattr(tool, name) for name in ToolSpec.model_fields}
                await scene.client.put_tool(
                    tool.tool_id, ToolSpec(**{**spec, "namespace": NAMESPACE})
                )
        await scene.wait_until_learned()
        _export_changes(stage, whole=True)
        for _ in range(2):
            await call_tool()
        _export_changes(stage, whole=False)
        while (await call_tool()).called == NAMESPACE:
            if len(played) > MOST_FAILURES:
                raise StageError("the degraded tool was chosen again and again")
        _export_changes(stage, whole=True)
        for _ in range(MOST_SUCCESSES):
            if (await call_tool(by_name=True)).chosen == NAMESPACE:
                break
        else:
            raise StageError("the mended tool was not chosen again")
        await call_tool()
    return played


def _export_changes(stage: DemoStage, *, whole: bool) -> None:
    log = subprocess.run(
        ["git", "log", "--format=%s"],  # noqa: S607 - git is needed anyway
        cwd=stage.repository, check=True, capture_output=True, text=True,
    )  # fmt: skip
    text = json.dumps(log.stdout.splitlines())
    file = stage.folder / "tools" / "changes.json"
    file.write_text(text if whole else text[: len(text) // 2], encoding="utf-8")


def show_scene(console: Console, played: Sequence[SceneCall]) -> None:
    """Show each call and its end, equal calls in one line; the score is the script's."""
    table = _make_table("caller", "called", "ended", "the script's score", "fittest then",
                   title=f'The fittest tool for "{SCENARIO}"')  # fmt: skip
    table.columns[3].justify = "right"
    for (agent, called, succeeded), run in groupby(
        played, key=lambda each: (each.agent, each.called, each.succeeded)
    ):
        calls = list(run)
        scores = dict.fromkeys(f"{each.score:.2f}" for each in (calls[0], calls[-1]))
        ended = "[green]ok[/]" if succeeded else "[red]failed[/]"
        times = f" x {len(calls)}" if len(calls) > 1 else ""
        table.add_row(
            agent, f"{escape(called)}{times}", ended, " to ".join(scores), calls[-1].chosen
        )
    console.print(table)
    failed = sum(not each.succeeded for each in played)
    mended = sum(each.agent == "eve" for each in played)
    console.print(f"  The script lost its place after {failed} and had it back after {mended}"
                  " calls by somebody else that worked; nobody changed a caller.")  # fmt: skip


def _make_table(*columns: str, title: str) -> Table:
    """Return a table of one line a row, cut where the terminal ends."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=True)
    for each in columns:
        made.add_column(each, no_wrap=True, header_style="dim")
    return made


Ending = Literal["fine", "repaired", "by itself", "failed"]
"""Right at once; repaired by Aftercall; repaired by the agent after reading the error; not
repaired."""
_SHOWN: dict[Ending, str] = {
    "fine": "[green]ok[/]", "repaired": "[bold green]repaired[/]",
    "by itself": "[yellow]by the agent[/]", "failed": "[red]failed[/]",
}  # fmt: skip
_WIDE = 120
"""Columns from which on each call is one line."""
_NEXT = """
Nothing above was canned: errors came from the tools, corrections from /suggest.
Next: [bold]make serve[/] runs the service and keeps what it learns;
[bold].venv/bin/aftercall gateway --config mcp.json[/] puts it in front of your own MCP servers."""


class ScriptedCall(DemoTable):
    """One call of an agent: what it sends first, and what it had in mind (None: the same)."""

    tool: str
    sends: JsonObject
    means: JsonObject | None = None
    mistake: str | None = None
    knows_better: bool = True


class ScriptedSession(DemoTable):
    """One session of one agent."""

    agent: str
    name: str
    purpose: str
    calls: list[ScriptedCall]


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """A planned call after it was played. `as_meant`: the final call is what the agent had in mind.

    `best` is the suggestion that was followed, or the first one.
    """

    session: ScriptedSession
    call: ScriptedCall
    ending: Ending
    error: str | None = None
    best: dict[str, Any] = field(default_factory=dict)
    as_meant: bool = True

    @property
    def attempts(self) -> int:
        """Return how often the tool was called."""
        if self.ending == "repaired":
            return int(self.best.get("attempts", 1))  # none where it was repaired before
        return 2 if self.ending == "by itself" else 1

    @property
    def repairs_known(self) -> int:
        """Repairs by others that the suggestion rests on."""
        return int(self.best.get("evidence", {}).get("repairs", 0))


@dataclass(frozen=True, slots=True)
class Played:
    """The played demo: the calls of its sessions, and those of the scene."""

    calls: list[PlayedCall]
    scene: list[SceneCall]


async def run_demo(console: Console) -> Played:
    """Play all sessions and the scene after them, and show what happened."""
    started = time.monotonic()
    calls: list[PlayedCall] = []
    with temporary_folder() as folder, open_status(console) as say:
        async with open_stage(folder, say) as stage:
            async with AsyncClient(stage.service_url) as client:
                tables = json.dumps(read_demo_table("scenario")["sessions"])
                filled = tables.replace("{repo}", json.dumps(str(stage.repository))[1:-1])
                for table in json.loads(filled):
                    session = ScriptedSession.model_validate(table)
                    say(f"{session.agent}: {session.purpose}")
                    async with Client(stage.gateway_url) as agent:
                        calls += [await _play_call(agent, session, e) for e in session.calls]
                    # The next session builds on all attempts so far.
                    await wait_until_learned(
                        client, _LEARNED_S, sum(each.attempts for each in calls)
                    )
                with Recorder(base_url=stage.service_url, spool_dir=None) as recorder:
                    scene = Scene(stage, client, recorder)
                    say("dee: what changed lately?")
                    changes = await play_scene(scene)
            say("stopping")
    show_calls(console, calls)
    show_summary(console, calls)
    show_scene(console, changes)
    console.print(f"[dim]{time.monotonic() - started:.0f} s in all[/]")
    console.print(_NEXT)
    return Played(calls, changes)


async def _play_call(
    client: Client[Any], session: ScriptedSession, call: ScriptedCall
) -> PlayedCall:
    meta = {
        "aftercall/agent": session.agent,
        "aftercall/session": session.name,
        "aftercall/context": session.purpose,
    }
    meant = call.sends if call.means is None else call.means
    result = await client.call_tool(call.tool, call.sends, meta=meta, raise_on_error=False)
    found: dict[str, Any] = (result.meta or {}).get("aftercall", {})
    if not result.is_error:
        changes = found.get("changes", [])
        operations = [Operation(each["op"], each["path"], each.get("value")) for each in changes]
        sent = apply(call.sends, operations)
        ending: Ending = "repaired" if found.get("repaired") else "fine"
        error = found.get("firstError") or found.get("note")
        best = found if ending == "repaired" else {}
        return PlayedCall(session, call, ending, error, best, as_meant=same_json(sent, meant))
    error = next((each.text for each in result.content if isinstance(each, TextContent)), "")
    ending = "failed"
    if call.knows_better:
        again = await client.call_tool(call.tool, meant, meta=meta, raise_on_error=False)
        ending = "failed" if again.is_error else "by itself"
    return PlayedCall(session, call, ending, error, next(iter(found.get("suggestions", [])), {}))


def show_calls(console: Console, played: Sequence[PlayedCall]) -> None:
    """Show each call that was not right at once: the error, the suggestion and its end.

    On a narrow terminal the action stands below the error, and nothing is cut.
    """
    wrong = [each for each in played if each.ending != "fine"]
    if console.width < _WIDE:
        _show_below(console, wrong)
        return
    table = _make_table("agent", "call", "the tool's own error", "suggestion", "sure", "ended",
                   title="Calls that were not right at once")  # fmt: skip
    for column in table.columns[2:4]:
        column.max_width = max(12, (console.width - 53) // 2)
    for each in wrong:
        table.add_row(
            each.session.agent, _show_tool(each), escape(_shorten_error(each.error)),
            escape(_show_suggestion(each)), _show_confidence(each), _show_ending(each),
        )  # fmt: skip
    console.print(table)


def _show_below(console: Console, wrong: Sequence[PlayedCall]) -> None:
    table = _make_table("agent", "call", "the tool's own error -> what was done",
                   title="Calls that were not right at once")  # fmt: skip
    table.columns[2].no_wrap = False
    for each in wrong:
        done = f"{_show_ending(each)} {_show_confidence(each)}".rstrip()
        said = escape(_show_suggestion(each))
        table.add_row(
            each.session.agent,
            _show_tool(each),
            f"{escape(_shorten_error(each.error))}\n-> {done}{': ' if said else ''}{said}",
        )
    console.print(table)


def _show_tool(each: PlayedCall) -> str:
    return escape(each.call.tool.split("_", 1)[1])


def _show_confidence(each: PlayedCall) -> str:
    return f"{each.best['confidence']:.2f}" if each.best else ""


def _show_ending(each: PlayedCall) -> str:
    return _SHOWN[each.ending] + ("" if each.as_meant else " [red]not as meant[/]")


def _show_suggestion(each: PlayedCall) -> str:
    parts = [
        f"-{name}" if change["op"] == "remove" else f"{name}={change['value']!r}"
        for change in each.best.get("changes", [])
        for name in [change["path"].removeprefix("/")]
    ]
    return ", ".join(sorted(parts, key=lambda part: part[0] == "-"))


def _shorten_error(error: str | None) -> str:
    """Return the tool's own words without the frames of its server and validator."""
    if error is None:
        return ""
    words = re.sub(r"^Error executing tool \w+: ", "", error)
    words = re.sub(r"^\d+ validation errors? for \w+\n", "", words)
    words = re.sub(r" \[type=[^\n]*|\n\s*For further information[^\n]*", "", words)
    return "; ".join(" ".join(part.split()) for part in re.split(r"\n(?=\S)", words))


def show_summary(console: Console, played: Sequence[PlayedCall]) -> None:
    """Show success before and after, and which agents profited from others."""
    after = [each for each in played if each.ending in ("fine", "repaired")]
    whole = len(played)
    first = sum(each.ending == "fine" for each in played)
    meant = sum(each.as_meant for each in after)
    console.print(
        f"  {whole} calls: [bold]{_format_share(first, whole)}[/] right at the first try, "
        f"[bold]{_format_share(len(after), whole)}[/] with Aftercall; "
        f"{meant} of these {len(after)} did what their agent meant."
    )
    for agent, run in groupby(played, key=lambda each: each.session.agent):
        repaired = [each for each in run if each.ending == "repaired"]
        mistakes = [str(each.call.mistake) for each in repaired if each.repairs_known]
        if mistakes:
            known = ", ".join(mistakes)
            console.print(f"  {agent} was repaired by what others had found out: {known}.")


def _format_share(part: int, whole: int) -> str:
    return f"{part} ({part / max(1, whole):.0%})"
