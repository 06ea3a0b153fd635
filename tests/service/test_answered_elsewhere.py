"""What is recorded at one service is answered at another one, on the same server stores."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from tests.mongo.mongo_server import SharedMongo
from tests.service.running_service import (
    DAY,
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
)

pytestmark = pytest.mark.real


def settings(mongo: SharedMongo, folder: Path, name: str) -> Settings:
    """Of a service on the shared log, with an index of its own: rules need no vectors."""
    return hashing_settings(
        folder / name,
        mongo={"uri": mongo.uri(), "database": mongo.database(folder)},
        qdrant={"url": f"local:{folder / name / 'qdrant'}"},
    )


@pytest.fixture
def services(mongo: SharedMongo, tmp_path: Path) -> Iterator[list[RunningService]]:
    """Two services."""
    with ExitStack() as stack:
        yield [stack.enter_context(running(settings(mongo, tmp_path, name))) for name in ("a", "b")]


def wrong(tool: str, **fields: Any) -> dict[str, Any]:
    """A failure of which nothing but experience tells the cure."""
    error = {"type": "ToolError", "message": "Ref 'master' did not resolve to an object"}
    return failure(toolName=tool, error=error, parameters={"revision": "master"}, **fields)


def lesson(tool: str, session: str) -> list[dict[str, Any]]:
    """A failure, and the success that mended it."""
    right = execution(
        toolName=tool,
        parameters={"revision": "main"},
        sessionId=session,
        timestamp=f"{DAY}T14:31:00Z",
    )
    return [wrong(tool, sessionId=session), right]


def evidence(service: RunningService, tool: str) -> int:
    """Repairs behind the best answer to such a failure."""
    call = wrong(tool)
    for field in ("executionId", "timestamp"):
        del call[field]
    answer = service.client.post("/suggest", json={"execution": call})
    answer.raise_for_status()
    return max((each["evidence"]["repairs"] for each in answer.json()["suggestions"]), default=0)


def test_what_one_records_the_other_answers_with(services: list[RunningService]) -> None:
    """Though it had read before what was known; and the other way round."""
    one, other = services
    for tool, recording, answering in (("first", one, other), ("second", other, one)):
        assert evidence(answering, tool) == 0
        # One repair alone is not answered with.
        taught = [*lesson(tool, "s-1"), *lesson(tool, "s-2")]
        for count, calls in ((2, taught), (3, lesson(tool, "s-3"))):
            recording.record(calls).raise_for_status()
            eventually(lambda: evidence(answering, tool) == count)  # noqa: B023  # used at once
            eventually(lambda: evidence(recording, tool) == count)  # noqa: B023  # as above
