"""Seed 004's success criteria on one scenario, into `docs/figures/criteria.md`.

    python -m bench.criteria [--tasks N]

Agents of one owner (product defaults, no keys) do tasks with twelve tools, nine of which only read.
Three of ten tasks meet a failure, in the shares of seed 004: invalid parameters .35, timeouts .25,
refusals .20, outages .15, unknown .05. Of timeouts .80 and of outages .60 have passed when the same
call comes again; the others last. An agent whose call stays failed for its own mistake then sends
the right call, which others can learn from before the next six tasks begin. Eight tools declare
their parameters as their errors state them, four (`get_price`, `query_metrics`, `list_builds`,
`update_record`) nothing but an object. The scenario is played twice: through the gateway's
middleware, which knows those schemas, as every MCP client has it; and as plain functions, of which
the service knows nothing but what is called. The figures are the observer's own count: a call that
was repaired before it was made counts as a failure that was repaired. Next to them stands what the
service counts (`GET /stats/criteria`, the dashboard's page *Criteria*).
"""

import argparse
import asyncio
import json
import logging
import random
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError as McpToolError
from fastmcp.tools.base import Tool, ToolResult

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from aftercall import AsyncClient, Recorder  # noqa: E402  # after the path
from aftercall.adapters.fastmcp import ReflectionMiddleware  # noqa: E402
from aftercall.adapters.reflector import META_KEY  # noqa: E402
from aftercall.change_classes import reads_only  # noqa: E402
from aftercall.json_patch import same_json  # noqa: E402
from aftercall.json_values import JsonObject  # noqa: E402
from aftercall.models import Suggestion  # noqa: E402
from aftercall.reflection import call_with_reflection  # noqa: E402
from bench.figures import FOLDER, made_by  # noqa: E402
from service.settings import DataSettings, Settings  # noqa: E402
from tests.service.running_service import running  # noqa: E402

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


@dataclass(slots=True)
class Task:
    """One call that an agent wants to make, and what happens to it."""

    number: int
    tool: str
    error: str
    wrong: JsonObject
    right: JsonObject
    fault: str | None
    passes: bool
    came: list[JsonObject] = field(default_factory=list)
    """The calls that reached the tool of what its agent sent last."""

    def work(self, parameters: JsonObject) -> str:
        """The tool."""
        self.came.append(parameters)
        if self.fault == "parameters" and not same_json(parameters, self.right):
            raise ToolError(self.error)
        lasts = not self.passes or len(self.came) == 1
        if self.fault in ERRORS and lasts:
            raise ToolError(ERRORS[self.fault])
        return "done"

    @property
    def sends(self) -> JsonObject:
        """What its agent sends first."""
        return self.wrong if self.fault == "parameters" else self.right

    def seen(self, sent: JsonObject, *, worked: bool) -> "Sent":
        """What came of a call; forgets what reached the tool."""
        came, self.came = self.came, []
        is_changed = not same_json(came[0], sent)
        return Sent(worked and len(came) == 1 and not is_changed, worked, len(came), is_changed)

    @property
    def reads(self) -> bool:
        """Whether the tool only reads, by its name."""
        return reads_only(self.tool, None)

    @property
    def is_repairable(self) -> bool:
        """Whether a service that knew everything could repair it by the rules."""
        if self.fault == "parameters":
            return self.reads or self.tool != "update_record"  # its repair means something else
        return self.passes and self.reads


@dataclass(frozen=True, slots=True)
class Sent:
    """One call as an agent sent it, seen from the tool: what came of it, and how it ended."""

    as_sent: bool
    """Whether it works as it was sent."""
    worked: bool
    came: int
    is_changed: bool
    """Whether it was repaired before it was made."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a task went: whether it worked, and what was offered first."""

    task: Task
    succeeded: bool
    sent: Sequence[Sent]
    action: str | None = None
    offered: JsonObject | None = None

    @property
    def is_repaired(self) -> bool:
        """Whether it failed as it was sent, and worked in the end."""
        return self.task.fault is not None and self.succeeded

    @property
    def is_right(self) -> bool:
        """Whether the first advice is what helps: the right call, a wait, a look, a person."""
        if self.task.fault == "parameters":
            if self.offered is not None:
                return same_json(self.offered, self.task.right)
            return self.succeeded  # repaired before the call
        if self.task.fault == "unknown":
            return self.action is None
        wanted: tuple[str, ...] = ("escalate",)
        if self.task.fault in PASSES:
            wanted = ("retry_unchanged",) if self.task.reads else ("call_first", "escalate")
        return self.action in wanted


Act = Callable[[str, Task], Awaitable[Done]]
"""Has an agent do a task."""


def plan(count: int, seed: int = 4) -> list[Task]:
    """Return the tasks, the same for the same seed."""
    rng = random.Random(seed)  # a scenario
    return [_task(number, rng, _tools()) for number in range(count)]


def _tools() -> list[dict[str, str]]:
    tools: list[dict[str, str]]
    tools = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["tool"]
    return tools


def _task(number: int, rng: random.Random, tools: Sequence[dict[str, str]]) -> Task:
    tool = rng.choice(tools)
    wrong, right = (json.loads(tool[key].replace("$w", f"s{number}")) for key in ("wrong", "right"))
    fault = None
    if rng.random() < FAILING:
        [fault] = rng.choices(list(SHARES), list(SHARES.values()))
    passes = rng.random() < PASSES.get(fault or "", 0.0)
    return Task(number, tool["name"], tool["error"], wrong, right, fault, passes)


async def play(url: str, tasks: Sequence[Task], folder: Path, way: str) -> list[Done]:
    """Do the tasks, a round of one by each agent after the other, by `functions` or `gateway`."""
    done: list[Done] = []
    with Recorder(base_url=url, spool_dir=folder, flush_interval_s=0.05) as recorder:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(AsyncClient(url, timeout_s=60))
            act = _by_functions(client, recorder)
            if way == "gateway":
                server = _server(client, recorder, tasks)
                act = _by_gateway(await stack.enter_async_context(Client(server)))

            for at in range(0, len(tasks), len(AGENTS)):
                turn = zip(AGENTS, tasks[at : at + len(AGENTS)], strict=False)
                done += await asyncio.gather(*(act(agent, task) for agent, task in turn))
                await asyncio.to_thread(recorder.flush)
                while (await client.status()).pending_indexing:  # noqa: ASYNC110  # a server's
                    await asyncio.sleep(0.02)
    return sorted(done, key=lambda each: each.task.number)


def _by_functions(client: AsyncClient, recorder: Recorder) -> Act:
    async def act(agent: str, task: Task) -> Done:
        async def call(sent: JsonObject) -> str:
            return task.work(sent)

        facts: dict[str, Any] = {
            "tool_name": task.tool, "agent": agent, "client": client, "recorder": recorder,
            "session_id": f"{agent} {task.number}", "context": _purpose(task),
        }  # fmt: skip
        sent = task.sends
        result = await call_with_reflection(call, parameters=sent, **facts)
        seen = [task.seen(sent, worked=result.succeeded)]
        followed = [each.suggestion for each in result.attempts if each.suggestion]
        offers = [*followed, *result.suggestions]
        if task.fault == "parameters" and not result.succeeded:
            again = await call_with_reflection(call, parameters=task.right, **facts)
            seen.append(task.seen(task.right, worked=again.succeeded))
        return _done(task, offers, seen)

    return act


def _by_gateway(client: Client[Any]) -> Act:
    async def act(agent: str, task: Task) -> Done:
        meta = {
            "aftercall/agent": agent,
            "aftercall/session": f"{agent} {task.number}",
            "aftercall/context": _purpose(task),
        }
        result = await client.call_tool_mcp(task.tool, task.sends, meta=meta)
        waited = task.fault in PASSES and len(task.came) > 1
        seen = [task.seen(task.sends, worked=not result.is_error)]
        facts = (result.meta or {}).get(META_KEY, {})
        offers = [Suggestion.model_validate(each) for each in facts.get("suggestions", ())]
        if task.fault == "parameters" and result.is_error:
            again = await client.call_tool_mcp(task.tool, task.right, meta=meta)
            seen.append(task.seen(task.right, worked=not again.is_error))
        return _done(task, offers, seen, action="retry_unchanged" if waited else None)

    return act


def _purpose(task: Task) -> str:
    return f"task {task.number} about s{task.number}"


def _done(
    task: Task, offers: Sequence[Suggestion], seen: Sequence[Sent], *, action: str | None = None
) -> Done:
    if not offers:
        return Done(task, seen[0].worked, seen, action)
    first = offers[0]
    offered = first.corrected_parameters if first.action == "change_parameters" else None
    return Done(task, seen[0].worked, seen, action or first.action, offered)


class _Declared(Tool):
    """A tool that declares its parameters, and whose own code says what is wrong with a call."""

    tasks: Any = None

    async def run(self, arguments: JsonObject) -> ToolResult:
        """Do the task that the call is about."""
        found = re.search(r"\bs(\d+)\b", json.dumps(arguments))
        try:
            said = self.tasks[int(found[1]) if found else 0].work(arguments)
        except ToolError as error:
            raise McpToolError(str(error)) from error
        return ToolResult(content=said)


def _server(client: AsyncClient, recorder: Recorder, tasks: Sequence[Task]) -> FastMCP[Any]:
    """Return the tools behind the middleware that the gateway has."""
    middleware = ReflectionMiddleware(
        client=client, recorder=recorder, server_name="office", check=client
    )
    server: FastMCP[Any] = FastMCP("office", middleware=[middleware])
    for tool in _tools():
        schema = json.loads(tool.get("schema", '{"type": "object"}'))
        server.add_tool(_Declared(name=tool["name"], parameters=schema, tasks=tasks))
    return server


def share(of: Sequence[bool]) -> float:
    """Return the share of what is true; of nothing 0."""
    return sum(of) / len(of) if of else 0.0


def observed(done: Sequence[Done]) -> dict[str, tuple[int, int]]:
    """Return what the calls meet of each criterion of `GET /stats/criteria`: how many of how many.

    Tools and agents alone are looked at. Lessons are not among them: nobody sees those from
    outside.
    """
    sent = [one for each in done for one in each.sent]
    refused = sum(each.task.fault == "refused" for each in done)
    failed = [each for each in sent if not each.as_sent]
    gained = sum(each.worked for each in failed)
    followed = sum(each.came - 1 + each.is_changed for each in sent)
    came = sum(each.came for each in sent)
    return {
        "context": (came, came),
        "right_fix": (gained, followed),
        "repaired": (gained, len(failed)),
        "repaired_of_not_refused": (gained, len(failed) - refused),
        "lift": (gained, len(sent)),
    }


def measure(count: int, way: str) -> dict[str, Any]:
    """Return the figures of the scenario, played through `functions` or the `gateway`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(Settings(data=DataSettings(dir=folder / "data"))) as service:
            done = asyncio.run(play(service.url, plan(count), folder / "spool", way))
            service.learned()
            seen = service.client.get("/stats/criteria?window=24h").json()["criteria"]
    shown = {each["name"]: (each["met"], each["of"]) for each in seen}
    failed = [each for each in done if each.task.fault]
    unrefused = [each for each in failed if each.task.fault != "refused"]
    size = -(-len(done) // PARTS)
    parts = [done[at : at + size] for at in range(0, len(done), size)]
    by_fault = Counter(each.task.fault for each in failed)
    repaired = Counter(each.task.fault for each in failed if each.is_repaired)
    right = Counter(each.task.fault for each in failed if each.is_right)
    return {
        "tasks": len(done),
        "context": shown["context"][0] / shown["context"][1],
        "right": share([each.is_right for each in failed]),
        "repaired": share([each.is_repaired for each in failed]),
        "repaired of unrefused": share([each.is_repaired for each in unrefused]),
        "most": share([each.task.is_repairable for each in failed]),
        "most of unrefused": share([each.task.is_repairable for each in unrefused]),
        "before": 1 - len(failed) / len(done),
        "after": share([each.succeeded for each in done]),
        "trend": [share([each.succeeded for each in part]) for part in parts],
        "faults": {str(f): (n, right[f], repaired[f]) for f, n in by_fault.items()},
        "observed": observed(done),
        "service": shown,
    }


def page(gateway: dict[str, Any], functions: dict[str, Any]) -> str:
    """Return the page."""
    most = gateway["most"], gateway["most of unrefused"]
    rows = [
        ("calls recorded with their context", "context", "0.80"),
        ("first advice right, of failures", "right", "0.70"),
        (f"repaired automatically, of all failures (at most {most[0]:.3f})", "repaired", "0.50"),
        (
            f"the same, of those not refused by permission (at most {most[1]:.3f})",
            "repaired of unrefused",
            "0.70",
        ),
    ]
    ways = (gateway, functions)
    lifts = [each["after"] - each["before"] for each in ways]
    lines = [
        "# Seed 004's criteria",
        "",
        made_by("python -m bench.criteria"),
        "",
        " ".join((__doc__ or "").split("\n\n")[2].split()),
        "",
        "| | gateway | functions | asked |",
        "|---|---|---|---|",
        *(f"| {what} | {gateway[key]:.3f} | {functions[key]:.3f} | {asked} |"
          for what, key, asked in rows),
        f"| success, points gained | {lifts[0]:.3f} | {lifts[1]:.3f} | 0.15 |",
        "",
        "*At most* is what a service that knew everything could repair: what lasts, what a person "
        "has to allow, a lost answer of a tool that writes, and another value for one that writes "
        "are never repaired automatically.",
        "",
        *_account("Through the gateway", gateway),
        *_account("As functions", functions),
    ]  # fmt: skip
    return "\n".join(lines)


def _account(title: str, figures: dict[str, Any]) -> list[str]:
    service, counted = figures["service"], figures["observed"]
    trend = ", ".join(f"{each:.2f}" for each in figures["trend"])
    return [
        f"## {title}",
        "",
        f"Success was {figures['before']:.3f} as the calls were sent and {figures['after']:.3f} "
        f"with Aftercall; by fifths of the tasks {trend}.",
        "",
        "| of the calls that agents sent, their own second ones too | observer | dashboard |",
        "|---|---|---|",
        *(f"| {name} | {met} of {of} | {service[name][0]} of {service[name][1]} |"
          for name, (met, of) in counted.items()),
        "",
        "| failure | met | first advice right | repaired |",
        "|---|---|---|---|",
        *(f"| {fault} | {met} | {right} | {repaired} |"
          for fault, (met, right, repaired) in sorted(figures["faults"].items())),
        "",
    ]  # fmt: skip


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=450)
    count = parser.parse_args().tasks
    logging.getLogger("fastmcp").setLevel(logging.CRITICAL)  # tools that fail are the scenario
    text = page(measure(count, "gateway"), measure(count, "functions"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
