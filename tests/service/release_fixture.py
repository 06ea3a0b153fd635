"""A small store as the first release writes it: a data folder and an archive of it.

    PYTHONPATH=notebooks python -m tests.service.release_fixture

Makes both anew in `tests/service/release/`. Before the release this is run whenever a layout has
changed; from the tag on never again: what was released is opened by each later version
(`tests/service/test_release.py`).
"""

import asyncio
import json
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from aftercall import models as m
from service.archive import ArchiveWriter, open_written
from service.rules import find_rules
from workbench.in_process import InProcessClient, in_process

FOLDER = Path(__file__).parent / "release"
DATA, ARCHIVE = FOLDER / "data.tar.xz", FOLDER / "archive.jsonl.gz"
EXPECTED = FOLDER / "expected.json"
SCHEMA = {
    "type": "object",
    "properties": {"cityName": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["cityName"],
}
FAILED = m.FailedCall(
    agent="asker",
    server_name="weather",
    tool_name="forecast",
    parameters={"city": "Lisbon", "days": 3},
    error=m.ExecutionError(type="E", message="Bad request"),
    context="Will it rain?",
)
"""A question whose answer was taught: `city` is called `cityName`."""


def taught_calls() -> list[m.Execution]:
    """Calls of three agents that repair one mistake alike, one that has another fault, a success.

    They end an hour ago: a service refuses what is older than it keeps.
    """
    begins = datetime.now(UTC) - timedelta(hours=1)
    error = {"type": "E", "message": "Bad request"}
    calls: list[dict[str, Any]] = []
    for number, city in enumerate(("Porto", "Faro", "Braga")):
        common = {
            "agent": f"agent-{number}",
            "sessionId": f"s-{number}",
            "context": f"Rain: {city}",
        }
        calls.append(common | {"parameters": {"city": city}, "outcome": "failure", "error": error})
        calls.append(common | {"parameters": {"cityName": city}, "outcome": "success"})
    calls.append(
        {
            "agent": "agent-0", "sessionId": "s-3", "parameters": {"cityName": "Évora", "days": 90},
            "outcome": "failure",
            "error": {"type": "ValidationError", "message": "days must be at most 7"},
        }
    )  # fmt: skip
    return [
        m.Execution.model_validate(
            {
                "executionId": str(UUID(int=number + 1, version=4)),
                "timestamp": (begins + timedelta(minutes=number)).isoformat(),
                "serverName": "weather",
                "toolName": "forecast",
                "durationMs": 20.0 + number,
                "sequence": number,
                **call,
            }
        )
        for number, call in enumerate(calls)
    ]


async def fill(service: InProcessClient) -> None:
    """Have an event of each kind in the log, and all of it learned."""
    spec = m.ToolSpec(
        name="forecast", server_name="weather", version="1.0.0", namespace="weather",
        description="Forecast for a city", input_schema=SCHEMA,
    )  # fmt: skip
    await service.put_tool("weather.forecast", spec)
    later = spec.model_copy(update={"version": "1.1.0", "evolved_from": "weather.forecast"})
    await service.put_tool("weather.forecast_2", later.model_copy(update={"name": "forecast_2"}))
    calls = taught_calls()
    await service.context.intake.accept_executions("default", calls)
    await service.context.indexer.catch_up()
    await service.mark_failure("weather.forecast", "rain on an island", "no such city")
    await service.correct(
        "it was of another day", execution_id=calls[1].execution_id, boundary_axes=["day"]
    )
    promotion = m.Promotion(
        original_version="1.0.0", evolved_version="1.1.0", promoted_at=datetime.now(UTC)
    )
    await service.promote("weather", promotion)
    answer = await service.suggest(FAILED)
    [first, *_] = answer.suggestions
    await service.report_outcome(
        first.suggestion_id, outcome="success", execution_id=calls[1].execution_id
    )
    await service.context.indexer.catch_up()
    await service.run_night()


async def described(service: InProcessClient) -> dict[str, Any]:
    """Return what the store answers, as each later version has to answer it."""
    store = service.context.store
    answer, status = await service.suggest(FAILED), await service.status()
    return {
        "repaired": answer.suggestions[0].corrected_parameters,
        "lessons": [each.told.lesson async for each in find_rules(store, "default")],
        "executions": status.executions,
        "tools": [each.tool_id for each in await service.list_tools()],
        "promoted": (await service.get_promotion("weather")).evolved_version,
        "marked": len(await service.tool_failures("weather.forecast")),
        "patterns": [each.title for each in await service.patterns()],
    }  # fmt: skip


async def make() -> None:
    """Write the folder, the archive, and what they are asked about."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        async with in_process(data, embedder="hashing") as service:
            await fill(service)
            EXPECTED.write_text(json.dumps(await described(service), indent=1) + "\n")
            with open_written(str(ARCHIVE)) as stream:
                async for line in ArchiveWriter(service.context.store).write_lines():
                    stream.write(line)
        with tarfile.open(DATA, "w:xz") as packed:
            packed.add(data, "data", filter=_of_nobody)


def _of_nobody(file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return it without what it says of who made it."""
    return file.replace(uid=0, gid=0, uname="", gname="", deep=False)


if __name__ == "__main__":
    asyncio.run(make())
