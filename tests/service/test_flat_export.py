"""`aftercall export --flat`: executions a line each, for notebooks and `aftercall import`."""

import gzip
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftercall.cli import main
from tests.service.running_service import (
    DAY,
    RunningService,
    execution,
    failure,
    hashing_settings,
    running,
)

pytestmark = pytest.mark.real

Json = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flat")


@pytest.fixture(scope="module")
def sent() -> list[Json]:
    """Calls of two tools on two days."""
    return [
        failure(sessionId="s-1", timestamp=f"{DAY}T14:00:00.123456Z", durationMs=7.5),
        execution(sessionId="s-1", result={"hits": [[1], [2**70]]}),
        execution(toolName="alone", serverName=None, timestamp="2026-01-02T00:00:00Z"),
        execution(inputSchema={"type": "object"}, tokens=None) | {"parameters": {"a.b": "ü"}},
    ]


@pytest.fixture(scope="module")
def service(folder: Path, sent: list[Json]) -> Iterator[RunningService]:
    """A service that has recorded them, and a mark."""
    for each in sent:
        each.pop("tokens", None)
    with running(hashing_settings(folder)) as service:
        assert service.record(sent).json()["accepted"] == len(sent)
        yield service


def exported(folder: Path, *arguments: str, name: str = "flat.jsonl") -> list[Json]:
    """The lines that the command writes, beside the service."""
    target = folder / name
    status = main(
        ["export", "--flat", "--force", "--data-dir", str(folder / "data"), *arguments, str(target)]
    )
    assert status == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    text = gzip.decompress(target.read_bytes()) if name.endswith(".gz") else target.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["flat.jsonl", "flat.jsonl.gz"])
def test_each_line_is_an_execution_as_the_service_answers_it(
    service: RunningService, folder: Path, sent: list[Json], name: str
) -> None:
    """In the order of the log, without input schemas; packed where the name says so."""
    found = exported(folder, name=name)
    assert [each["executionId"] for each in found] == [each["executionId"] for each in sent]
    for each in found:
        answer = service.client.get(f"/executions/{each['executionId']}").json()
        assert each == answer | {"inputSchema": None}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--outcome", "failure"], [0]), (["--tool", "rag_query"], [0, 1, 3]),
        (["--tool", "rag-server/rag_query", "--outcome", "success"], [1, 3]),
        (["--tool", "alone"], [2]), (["--since", f"{DAY}T00:00Z"], [0, 1, 3]),
        (["--until", f"{DAY}T14:00:00.123456Z"], [2]), (["--workspace", "other"], []),
        (["--since", f"{DAY}T14:00:00.123456Z", "--until", f"{DAY}T14:01:00Z"], [0]),
    ],
)  # fmt: skip
def test_filters_leave_what_they_name(
    service: RunningService, folder: Path, sent: list[Json], arguments: list[str], wanted: list[int]
) -> None:
    """By time, tool and outcome; `--since` is part of it, `--until` is not."""
    found = [each["executionId"] for each in exported(folder, *arguments)]
    assert found == [sent[number]["executionId"] for number in wanted]
    del service


def test_another_store_imports_the_lines(
    service: RunningService, folder: Path, sent: list[Json]
) -> None:
    """Every execution arrives as it was exported."""
    lines = exported(folder)
    del service
    with running(hashing_settings(folder / "other")) as other:
        assert main(["import", "--service", other.url, str(folder / "flat.jsonl")]) == 0
        for each in lines:
            assert other.client.get(f"/executions/{each['executionId']}").json() == each


def test_an_archive_takes_no_filter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would restore to another store than it was made of."""
    assert main(["export", "--tool", "x", str(tmp_path / "a.gz")]) != 0
    assert "--flat" in capsys.readouterr().err
