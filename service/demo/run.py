"""Running the demo from beginning to end."""

import asyncio
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from aftercall import AsyncClient
from service.demo.agents import PlayedCall, play
from service.demo.boundary_scene import BoundaryCall, BoundaryScene, play_boundaries
from service.demo.fitness_scene import SceneCall, play_scene
from service.demo.report import (
    show_boundaries,
    show_calls,
    show_next_steps,
    show_scene,
    show_summary,
)
from service.demo.scenario import sessions
from service.demo.stage import empty_folder, open_stage

_LEARNED_S = 30.0


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
    played: list[PlayedCall] = []
    scene: list[SceneCall] = []
    try:
        with console.status("getting ready") as status:
            async with open_stage(folder, lambda words: status.update(f"{words} ...")) as stage:
                async with AsyncClient(stage.service_url) as client:
                    for session in sessions(str(stage.repository)):
                        status.update(f"{session.agent}: {session.purpose} ...")
                        played += await play(
                            session, stage.gateway_url, lambda each: console.print(_line(each))
                        )
                        await _until_learned(client, played)
                status.update("dee: what changed lately? ...")
                scene = await play_scene(stage, lambda each: console.print(_scene_line(each)))
                status.update("fay: which films are on tonight? ...")
                boundaries = await play_boundaries(
                    stage, lambda each: console.print(_boundary_line(each))
                )
                status.update("stopping ...")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    show_calls(console, played)
    show_summary(console, played)
    show_scene(console, scene)
    show_boundaries(console, boundaries)
    console.print(f"[dim]{time.monotonic() - started:.0f} s in all[/]")
    if keep:
        console.print(f"Data and logs are in {keep}")
    show_next_steps(console)
    return Played(played, scene, boundaries)


async def _until_learned(client: AsyncClient, played: list[PlayedCall]) -> None:
    """Wait until all attempts so far are recorded and usable; the next session builds on them."""
    attempts = sum(1 if each.ending in ("fine", "failed") else 2 for each in played)
    deadline = time.monotonic() + _LEARNED_S
    while time.monotonic() < deadline:
        status = await client.status()
        if status.executions >= attempts and status.pending_indexing == 0:
            return
        await asyncio.sleep(0.1)


def _line(each: PlayedCall) -> str:
    mark = {"fine": "[green]✓[/]", "repaired": "[green]✓ repaired[/]",
            "by itself": "[yellow]✗ then right by itself[/]", "failed": "[red]✗[/]"}  # fmt: skip
    return f"  {each.session.name}  {each.call.tool}  {mark[each.ending]}"


def _scene_line(each: SceneCall) -> str:
    mark = "[green]✓[/]" if each.succeeded else "[red]✗[/]"
    return f"  {each.agent}  {each.called}  {mark}"


def _boundary_line(each: BoundaryCall) -> str:
    mark = "[green]✓[/]" if each.said == "success" else f"[yellow]{each.said}[/]"
    return f"  fay  {each.tool}  {mark}"
