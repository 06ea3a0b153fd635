"""Seed 004's success criteria on one scenario, into `docs/figures/criteria.md`.

    python -m bench.criteria [--tasks N]

Agents of one owner (product defaults, no keys) do tasks with twelve tools, nine of which only read.
Three of ten tasks meet a failure, in the shares of seed 004: invalid parameters .35, timeouts .25,
refusals .20, outages .15, unknown .05. Of timeouts .80 and of outages .60 have passed when the same
call comes again; the others last. An agent whose call stays failed for its own mistake then sends
the right call, which others can learn from. The figures are the observer's own count; those of the
service, which the dashboard shows, stand next to them.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from aftercall import AsyncClient, Recorder  # noqa: E402  # after the path
from aftercall.change_classes import reads_only  # noqa: E402
from aftercall.json_patch import same_json  # noqa: E402
from aftercall.json_values import JsonObject  # noqa: E402
from aftercall.reflection import ReflectedResult, call_with_reflection  # noqa: E402
from bench.figures import FOLDER, made_by  # noqa: E402
from mongo.contents import execution_of  # noqa: E402
from service.settings import DataSettings, Settings  # noqa: E402
from tests.service.running_service import RunningService, on_loop, running  # noqa: E402

PAGE = FOLDER / "criteria.md"
FAILING = 0.30
SHARES = {"parameters": 0.35, "timeout": 0.25, "refused": 0.20, "outage": 0.15, "unknown": 0.05}
PASSES = {"timeout": 0.80, "outage": 0.60}
ERRORS = {
    "timeout": "Request timed out after 30 s",
    "refused": "403 Forbidden: missing scope `read`",
    "outage": "HTTP 503: Service Unavailable",
    "unknown": "Segmentation fault in worker 3",
}
AGENTS = ("ada", "ben", "cyd", "dee", "eve", "fay")
PARTS = 5


class ToolError(Exception):
    """What a tool says when it fails."""


@dataclass(frozen=True, slots=True)
class Task:
    """One call that an agent wants to make, and what happens to it."""

    number: int
    tool: str
    error: str
    wrong: JsonObject
    right: JsonObject
    fault: str | None
    passes: bool

    async def work(self, called: list[JsonObject], parameters: JsonObject) -> str:
        """The tool; `called` are the calls of this task so far."""
        called.append(parameters)
        if self.fault == "parameters" and not same_json(parameters, self.right):
            raise ToolError(self.error)
        lasts = not self.passes or len(called) == 1
        if self.fault in ERRORS and lasts:
            raise ToolError(ERRORS[self.fault])
        return "done"


@dataclass(frozen=True, slots=True)
class Done:
    """How a task went."""

    task: Task
    result: ReflectedResult[str]

    @property
    def failed_first(self) -> bool:
        """Whether the first attempt failed."""
        return self.result.attempts[0].outcome == "failure"

    @property
    def is_right(self) -> bool:
        """Whether the first advice is what helps: the right call, a wait, a look, a person."""
        followed = [each.suggestion for each in self.result.attempts if each.suggestion]
        offers = [*followed, *self.result.suggestions]
        reads = reads_only(self.task.tool, None)
        if self.task.fault == "parameters":
            return bool(offers) and same_json(offers[0].corrected_parameters, self.task.right)
        if self.task.fault == "unknown":
            return not offers
        wanted: tuple[str, ...] = ("escalate",)
        if self.task.fault in PASSES:
            wanted = ("retry_unchanged",) if reads else ("call_first", "escalate")
        return bool(offers) and offers[0].action in wanted


def plan(count: int, seed: int = 4) -> list[Task]:
    """Return the tasks, the same for the same seed."""
    rng = random.Random(seed)  # a scenario
    tools = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["tool"]
    return [_task(number, rng, tools) for number in range(count)]


def _task(number: int, rng: random.Random, tools: Sequence[dict[str, str]]) -> Task:
    tool = rng.choice(tools)
    wrong, right = (json.loads(tool[key].replace("$w", f"s{number}")) for key in ("wrong", "right"))
    fault = None
    if rng.random() < FAILING:
        [fault] = rng.choices(list(SHARES), list(SHARES.values()))
    passes = rng.random() < PASSES.get(fault or "", 0.0)
    return Task(number, tool["name"], tool["error"], wrong, right, fault, passes)


async def play(url: str, tasks: Sequence[Task], folder: Path) -> list[Done]:
    """Do the tasks: each agent its own, one after the other."""
    done: list[Done] = []
    with Recorder(base_url=url, spool_dir=folder, flush_interval_s=0.05) as recorder:
        async with AsyncClient(url, timeout_s=60) as client:

            async def act(agent: str, mine: Sequence[Task]) -> None:
                for task in mine:
                    called: list[JsonObject] = []

                    async def call(sent: JsonObject, task: Task = task, c: Any = called) -> str:
                        return await task.work(c, sent)

                    facts: dict[str, Any] = {
                        "tool_name": task.tool, "agent": agent, "client": client,
                        "recorder": recorder, "session_id": f"{agent} {task.number}",
                        "context": f"task {task.number} about s{task.number}",
                    }  # fmt: skip
                    sent = task.wrong if task.fault == "parameters" else task.right
                    result = await call_with_reflection(call, parameters=sent, **facts)
                    done.append(Done(task, result))
                    if task.fault == "parameters" and not result.succeeded:
                        await call_with_reflection(call, parameters=task.right, **facts)

            size = -(-len(tasks) // PARTS)
            stages = [tasks[at : at + size] for at in range(0, len(tasks), size)]
            for stage in stages:
                await asyncio.gather(
                    *(act(agent, stage[at :: len(AGENTS)]) for at, agent in enumerate(AGENTS))
                )
                await asyncio.to_thread(recorder.flush)
                while (await client.status()).pending_indexing:  # noqa: ASYNC110  # a server's
                    await asyncio.sleep(0.05)
    return sorted(done, key=lambda each: each.task.number)


def share(of: Sequence[bool]) -> float:
    """Return the share of what is true; of nothing 0."""
    return sum(of) / len(of) if of else 0.0


def recorded(service: RunningService) -> dict[str, int]:
    """Return how many executions are in the log, and how many of them say what they were for."""
    log = service.context.store.events
    events = on_loop(service, log.after("default", 0, 100_000))
    calls = [execution_of(each).execution for each in events if each.kind == "execution"]
    return {"all": len(calls), "with": sum(bool(each.context) for each in calls)}


def measure(count: int) -> dict[str, Any]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(Settings(data=DataSettings(dir=folder / "data"))) as service:
            done = asyncio.run(play(service.url, plan(count), folder / "spool"))
            service.learned()
            contexts = recorded(service)
            seen = service.client.get("/stats/reflection?window=24h").json()
    failed = [each for each in done if each.failed_first]
    unrefused = [each for each in failed if each.task.fault != "refused"]
    size = -(-len(done) // PARTS)
    parts = [done[at : at + size] for at in range(0, len(done), size)]
    by_fault = Counter(each.task.fault for each in failed)
    repaired = Counter(each.task.fault for each in failed if each.result.repaired)
    right = Counter(each.task.fault for each in failed if each.is_right)
    return {
        "tasks": len(done),
        "context": contexts["with"] / contexts["all"],
        "failed": len(failed),
        "right": share([each.is_right for each in failed]),
        "repaired": share([each.result.repaired for each in failed]),
        "repaired of unrefused": share([each.result.repaired for each in unrefused]),
        "gained": sum(each.result.repaired for each in failed),
        "before": share([not each.failed_first for each in done]),
        "after": share([each.result.succeeded for each in done]),
        "trend": [share([each.result.succeeded for each in part]) for part in parts],
        "faults": {str(f): (n, right[f], repaired[f]) for f, n in by_fault.items()},
        "service": seen,
    }


def page(figures: dict[str, Any]) -> str:
    """Return the page."""
    rows = [
        ("calls recorded with their context", figures["context"], "0.80"),
        ("first advice right, of failures", figures["right"], "0.70"),
        ("repaired automatically, of all failures", figures["repaired"], "0.50"),
        ("the same, of those not refused by permission", figures["repaired of unrefused"], "0.70"),
        ("success, points gained", figures["after"] - figures["before"], "0.15"),
    ]
    seen = figures["service"]
    before, after = seen["firstAttempts"], seen["tasks"]
    gained = (after["successes"] - before["successes"], figures["gained"])
    lines = [
        "# Seed 004's criteria",
        "",
        made_by("python -m bench.criteria"), "",
        " ".join((__doc__ or "").split("\n\n")[2].split()),
        "",
        "| | measured | asked |",
        "|---|---|---|",
        *(f"| {what} | {value:.2f} | {asked} |" for what, value, asked in rows),
        "",
        f"Success was {figures['before']:.3f} at the first attempt and {figures['after']:.3f} with "
        f"Aftercall; by fifths of the tasks {', '.join(f'{x:.2f}' for x in figures['trend'])}.",
        f"Calls that were repaired: {gained[1]} by the observer's count, {gained[0]} by the "
        "service's (`/stats/reflection`, which the dashboard shows; it counts the agents' own "
        "second calls as first attempts, too).",
        "",
        "| failure | met | first advice right | repaired |",
        "|---|---|---|---|",
        *(f"| {fault} | {met} | {right} | {repaired} |"
          for fault, (met, right, repaired) in sorted(figures["faults"].items())),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=450)
    PAGE.write_text(page(measure(parser.parse_args().tasks)), encoding="utf-8")


if __name__ == "__main__":
    main()
