"""What an operator and an agent wait for at 70,000 tools: pages, statistics, rules, answers.

    python -m bench.many_tools [--data DIR] [--tools 70000] [--write]

Makes a data folder of so many tools (registered, called and failed; nothing repaired but by 100 of
them), unless `--data` names one that an earlier run has made there. A real `aftercall serve` on it
is asked cold, which is the first request after a start, and warm. `/healthz` is asked in the same
run, as a measure of the machine. Vectors are made by hashing: no answer here rests on the model.

`--write` puts `many_tools.md` into `docs/figures/`.
"""

import argparse
import asyncio
import itertools
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

from aftercall.json_values import content_hash
from aftercall.models import Tool
from bench import history
from bench.figures import FOLDER, made_by
from bench.service import Service, say, serving
from mongo.contents import tool_command
from mongo.sqlite.store import open_sqlite_store

TOOLS, REPAIRED = 70_000, 100
BATCH = 1_000
COLD, WARM = 3, 15
ENVIRONMENT = {"AFTERCALL_EMBEDDING_MODEL": "hashing"}
PATHS = {
    "/healthz": None,
    "/status": 20.0,
    "/stats/tools": 300.0,
    "/stats/tools?window=30d": 300.0,
    "/rules": None,
    "/rules?suspicious=true": None,
    "/dashboard/": 1_000.0,
    "/dashboard/tools": 1_000.0,
    "POST /suggest": None,
    "PUT /tools/{toolId}": None,
}
"""What is asked for, and the milliseconds that it may take cold."""

Json = dict[str, Any]
T = TypeVar("T")


def filled(data: Path, count: int) -> Path:
    """Return a data folder of so many tools, made unless it is there."""
    if data.exists():
        say(f"taking {data} as it is")
        return data
    say(f"registering {count:,} tools")
    asyncio.run(_register_tools(data, count))
    say("recording their calls")
    with serving(data, data.parent / "fill.log", ENVIRONMENT) as service:
        _record_calls(service, count)
        service.stop()
    return data


async def _register_tools(data: Path, count: int) -> None:
    store = await open_sqlite_store(data)
    try:
        for numbers in _batches(range(count)):
            commands = [tool_command("default", f"tool-{n}", None, _tool(n)) for n in numbers]
            events, state = zip(*commands, strict=True)
            await store.events.append("default", events, state)
    finally:
        await store.close()


def _tool(number: int) -> Tool:
    kind = _KINDS[number % len(_KINDS)]
    return Tool(
        tool_id=f"tool-{number}",
        name=f"{kind.name}_{number}",
        server_name=kind.server,
        description=f"To {kind.name.replace('_', ' ')} of the branch {number}",
        input_schema=kind.input_schema,
        schema_hash=content_hash(kind.input_schema),
        updated_at=datetime.now(UTC),
    )


_KINDS = history.tools()


def _record_calls(service: Service, count: int) -> None:
    with closing(service.connect()) as connection:
        for batch in _batches(_calls(count)):
            connection.request(
                "POST", "/executions", json.dumps(batch), {"content-type": "application/json"}
            )
            receipt = json.loads(connection.getresponse().read())
            if receipt.get("accepted") != len(batch):
                raise RuntimeError(str(receipt)[:500])
    while service.status()["pendingIndexing"]:
        time.sleep(1)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    return iter(lambda: list(islice(left, BATCH)), [])


def _calls(count: int) -> Iterator[Json]:
    """Two calls of each tool, of a session of their own where one is to repair the other."""
    dice = random.Random(5)  # a repeatable history, no secret
    failures = [each for each in history.executions(4_000) if each["outcome"] == "failure"]
    begins = datetime.now(UTC) - timedelta(seconds=6 * count + 60)
    for number in range(count):
        kind = _KINDS[number % len(_KINDS)]
        failed = dice.choice(failures)
        is_repaired = number % (count // REPAIRED) == 0
        for place, wrong in enumerate((True, False)):
            yield {
                "executionId": str(UUID(int=dice.getrandbits(128), version=4)),
                "agent": dice.choice(history.AGENTS),
                "serverName": kind.server,
                "toolName": f"{kind.name}_{number}",
                "parameters": {"limit": 500 if wrong else 10, "query": f"branch {number}"},
                "outcome": "failure" if wrong else "success",
                "error": _error(failed["error"], is_repaired=is_repaired) if wrong else None,
                "durationMs": round(dice.lognormvariate(4.5, 0.8), 1),
                "sessionId": f"s-{number}" if is_repaired else f"s-{number}-{place}",
                "sequence": place,
                "timestamp": (begins + timedelta(seconds=6 * number + place)).isoformat(),
            }


def _error(error: Json, *, is_repaired: bool) -> Json:
    if is_repaired:
        return {"type": "ValidationError", "message": "limit must be at most 10, not 500"}
    return error


def measured(data: Path, log: Path, paths: Sequence[str]) -> dict[str, dict[str, float]]:
    """Milliseconds of each path: the first after a start of the service, and those after it."""
    cold: dict[str, list[float]] = {path: [] for path in paths}
    warm: dict[str, list[float]] = {path: [] for path in paths}
    for path in paths:
        for _ in range(COLD):
            with serving(data, log, ENVIRONMENT) as service:
                _ask(service, "/healthz")
                cold[path].append(_ask(service, path))
                warm[path] += [_ask(service, path) for _ in range(WARM // COLD)]
                service.stop()
        say(f"{path}: cold {statistics.median(cold[path]):,.0f} ms")
    return {
        path: {"cold": statistics.median(cold[path]), "warm": statistics.median(warm[path])}
        for path in paths
    }


def _ask(service: Service, path: str) -> float:
    method, _, address = path.rpartition(" ")
    body = _BODIES[path]() if method else None
    with closing(service.connect()) as connection:
        started = time.perf_counter()
        connection.request(
            method or "GET",
            address.replace("{toolId}", str(uuid4())),
            body and json.dumps(body),
            {"content-type": "application/json"} if body else {},
        )
        response = connection.getresponse()
        response.read()
        if response.status not in (200, 201):
            raise RuntimeError(f"{path}: {response.status}")
        return (time.perf_counter() - started) * 1000


def _failure() -> Json:
    """Return a question about one of the registered tools, another one each time."""
    tool = _tool(next(_NUMBERS))
    return {
        "execution": {
            "agent": history.AGENTS[0],
            "serverName": tool.server_name,
            "toolName": tool.name,
            "parameters": {"limit": 500, "query": "branch"},
            "error": _error({}, is_repaired=True),
        }
    }


def _new_tool() -> Json:
    """Return the body that registers a tool of a new name."""
    kind = _KINDS[0]
    name = f"{kind.name}_{uuid4().hex[:8]}"
    return {"name": name, "serverName": kind.server, "inputSchema": kind.input_schema}


_NUMBERS = itertools.count()
_BODIES = {"POST /suggest": _failure, "PUT /tools/{toolId}": _new_tool}


def page(figures: dict[str, dict[str, float]], count: int) -> str:
    """The Markdown page: asked and measured."""
    health = figures.get("/healthz", {"warm": math.nan})["warm"]
    lines = [
        f"# What an operator waits for at {count:,} tools",
        "",
        made_by("python -m bench.many_tools --write"),
        "",
        "Milliseconds, medians; cold is the first request after a start. Every tool is registered, "
        f"was called twice in the last five days and failed once; {REPAIRED} have a learned "
        "repair. The machine has two cores, which other work shares: the last column is the ratio "
        "of warm to "
        f"`/healthz` ({health:.1f} ms) in the same run.",
        "",
        "| path | asked, cold | cold | warm | warm to `/healthz` |",
        "|---|---|---|---|---|",
    ]
    for path, each in figures.items():
        asked = f"{bound:,.0f}" if (bound := PATHS[path]) else "-"
        lines.append(
            f"| `{path}` | {asked} | {each['cold']:,.0f} | {each['warm']:,.1f} | "
            f"{each['warm'] / health:.1f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, and write when told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder that is kept, made if it is missing")
    parser.add_argument("--tools", type=int, default=TOOLS)
    parser.add_argument("--only", nargs="*", help="some of the paths, for a look")
    parser.add_argument("--write", action="store_true", help="write docs/figures/many_tools.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-tools-") as name:
        folder = Path(name)
        data = filled(args.data or folder / "data", args.tools)
        figures = measured(data, folder / "service.log", args.only or [*PATHS])
    text = page(figures, args.tools)
    print(text)
    if args.write:
        (FOLDER / "many_tools.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
