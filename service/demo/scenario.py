"""The scripted demo: agents make mistakes with real tools through the gateway, and are repaired.

Only their calls are written down, in `data/scenario.toml`. Errors come from the tools, corrections
from `/suggest`, results from the retried calls.
"""

import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fastmcp import Client
from mcp_types import TextContent
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aftercall import AsyncClient
from aftercall.json_patch import Operation, apply, same_json
from aftercall.json_values import JsonObject
from service.demo.scenes import (
    BoundaryScene,
    SceneCall,
    play_boundaries,
    play_scene,
    show_boundaries,
    show_scene,
)
from service.demo.simulated_tools import DemoTable, read_table
from service.demo.stage import empty_folder, learned, open_stage

_LEARNED_S = 30.0

Ending = Literal["fine", "repaired", "by itself", "failed"]
"""Right at once; mended by Aftercall; mended by the agent after reading the error; not mended."""


_SHOWN: dict[Ending, str] = {
    "fine": "[green]ok[/]", "repaired": "[bold green]repaired[/]",
    "by itself": "[yellow]by itself[/]", "failed": "[red]failed[/]",
}  # fmt: skip

_NEXT = """
Nothing above was canned: errors came from the tools, corrections from /suggest.
Next:
  [bold]make serve[/]
      run the service and keep what it learns
  [bold].venv/bin/aftercall gateway --config mcp.json[/]
      put it in front of your own MCP servers
  README.md, "Use it from Python"
      the SDK in ten lines"""


class ScriptedCall(DemoTable):
    """One call of an agent: what it sends at first, and what it had in mind (None: the same).

    After a failure that nothing mends, an agent that knows better sends what it meant itself.
    """

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
    """How a planned call went. `as_meant`: what finally ran is what the agent had in mind.

    `best` is the suggestion that was followed, or the first one.
    """

    session: ScriptedSession
    call: ScriptedCall
    ending: Ending
    error: str | None = None
    best: dict[str, Any] = field(default_factory=dict)
    as_meant: bool = True

    @property
    def repairs_known(self) -> int:
        """Repairs by others that the suggestion rests on."""
        return int(self.best.get("evidence", {}).get("repairs", 0))


@dataclass(frozen=True, slots=True)
class Played:
    """What happened: calls that were repaired, who was chosen, what tools said of themselves."""

    calls: list[PlayedCall]
    scene: list[SceneCall]
    boundaries: BoundaryScene


async def run_demo(console: Console, *, keep: Path | None = None) -> Played:
    """Play all sessions and the scenes after them, and show what happened.

    Args:
        console: where it is shown.
        keep: a folder to leave the data and logs in; a temporary one that is removed when None.

    Raises:
        StageError: `keep` cannot be made or holds something, a process does not come up, or what
            must happen does not.
    """
    folder = empty_folder(keep)
    started = time.monotonic()
    calls: list[PlayedCall] = []
    try:
        with console.status("getting ready") as status:
            async with open_stage(folder, lambda words: status.update(f"{words} ...")) as stage:
                async with AsyncClient(stage.service_url) as client:
                    for session in _sessions(str(stage.repository)):
                        status.update(f"{session.agent}: {session.purpose} ...")
                        calls += await _play(console, session, stage.gateway_url)
                        # The next session builds on all attempts so far.
                        tried = sum(1 if c.ending in ("fine", "failed") else 2 for c in calls)
                        await learned(client, _LEARNED_S, tried)
                status.update("dee: what changed lately? ...")
                scene = await play_scene(console, stage)
                status.update("fay: which films are on tonight? ...")
                boundaries = await play_boundaries(console, stage)
                status.update("stopping ...")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    show_calls(console, calls)
    show_summary(console, calls)
    show_scene(console, scene)
    show_boundaries(console, boundaries)
    console.print(f"[dim]{time.monotonic() - started:.0f} s in all[/]")
    if keep:
        console.print(f"Data and logs are in {keep}")
    console.print(_NEXT)
    return Played(calls, scene, boundaries)


def _sessions(repository: str) -> list[ScriptedSession]:
    tables = json.dumps(read_table("scenario")["sessions"])
    filled = json.loads(tables.replace("{repo}", json.dumps(repository)[1:-1]))
    return [ScriptedSession.model_validate(each) for each in filled]


async def _play(console: Console, session: ScriptedSession, gateway: str) -> list[PlayedCall]:
    """Let an agent make its calls, one after the other, over a connection of its own."""
    played = []
    async with Client(gateway) as client:
        for call in session.calls:
            each = await _play_call(client, session, call)
            console.print(f"  {session.name}  {call.tool}  {_SHOWN[each.ending]}")
            played.append(each)
    return played


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
        sent, error = apply(call.sends, _operations(found)), found.get("firstError")
        ending: Ending = "repaired" if found.get("repaired") else "fine"
        best = found if ending == "repaired" else {}
        return PlayedCall(session, call, ending, error, best, as_meant=same_json(sent, meant))
    error = next((each.text for each in result.content if isinstance(each, TextContent)), "")
    ending = "failed"
    if call.knows_better:
        again = await client.call_tool(call.tool, meant, meta=meta, raise_on_error=False)
        ending = "failed" if again.is_error else "by itself"
    return PlayedCall(session, call, ending, error, next(iter(found.get("suggestions", [])), {}))


def _operations(found: dict[str, Any]) -> list[Operation]:
    return [
        Operation(op=each["op"], path=each["path"], value=each.get("value"))
        for each in found.get("changes", [])
    ]


def show_calls(console: Console, played: Sequence[PlayedCall]) -> None:
    """Each call with its error, the suggestion and how the retry ended."""
    table = Table(title="What the agents did", show_lines=True, expand=True)
    table.add_column("call", ratio=3)
    table.add_column("the tool's own error", ratio=4)
    table.add_column("suggestion, confidence, evidence", ratio=5)
    table.add_column("ended", no_wrap=True)
    for each in played:
        mistake = f"\n[dim]{each.call.mistake}[/]" if each.call.mistake else ""
        table.add_row(
            f"[bold]{each.session.name}[/] {escape(each.call.tool.split('_', 1)[1])}{mistake}",
            escape(_essence(each.error)),
            _suggestion(each),
            _SHOWN[each.ending] + ("" if each.as_meant else "\n[red]not as meant[/]"),
        )
    console.print(table)


def _suggestion(each: PlayedCall) -> str:
    if each.error is None:
        return ""
    parts = []
    for change in each.best.get("changes", []):
        name = change["path"].removeprefix("/")
        parts.append(f"-{name}" if change["op"] == "remove" else f"{name}={change['value']!r}")
    if not parts:
        return "[dim]none: nothing known that would be more than a guess[/]"
    evidence = each.best.get("evidence", {})
    counts = [
        f"{evidence[many]} {one if evidence[many] == 1 else many}"
        for one, many in (("repair", "repairs"), ("success", "successes"))
        if evidence.get(many)
    ]
    rests = ", ".join([*evidence.get("sources", []), *counts])
    words = f"{escape(', '.join(parts))}\n[bold]{each.best['confidence']:.2f}[/]"
    return f"{words} [dim]from {escape(rests)}[/]" if rests else words


def _essence(error: str | None) -> str:
    """The tool's own words without the frames that its server and validator put around them."""
    if error is None:
        return ""
    words = re.sub(r"^Error executing tool \w+: ", "", error)
    words = re.sub(r"^\d+ validation errors? for \w+\n", "", words)
    words = re.sub(r" \[type=[^\n]*|\n\s*For further information[^\n]*", "", words)
    text = "; ".join(" ".join(part.split()) for part in re.split(r"\n(?=\S)", words))
    return text if len(text) <= 160 else f"{text[:157]}..."


def show_summary(console: Console, played: Sequence[PlayedCall]) -> None:
    """Success before and after, over all and per session, and who profited from whom."""
    table = Table(title="Calls that succeeded")
    for title in ("session", "calls", "at the first try", "with Aftercall", "as meant"):
        table.add_column(title, justify="left" if title == "session" else "right")
    for name in dict.fromkeys([*(each.session.name for each in played), "all"]):
        rows = [each for each in played if name in ("all", each.session.name)]
        fine = [each for each in rows if each.ending == "fine"]
        after = [each for each in rows if each.ending in ("fine", "repaired")]
        meant = [each for each in after if each.as_meant]
        table.add_row(
            name, str(len(rows)), _share(fine, rows), _share(after, rows), _share(meant, after)
        )
    console.print(table)
    for each in played:
        if each.ending == "repaired" and each.repairs_known:
            times = "once" if each.repairs_known == 1 else f"{each.repairs_known} times"
            console.print(
                f"  [bold]{each.session.agent}[/] made a mistake that others had mended {times} "
                f"before ({each.call.mistake}, {escape(each.call.tool)}): it was repaired at once."
            )


def _share(part: Sequence[PlayedCall], whole: Sequence[PlayedCall]) -> str:
    return f"{len(part)} ({len(part) / max(1, len(whole)):.0%})"
