"""What a tool said is never a reason to lose its call: bytes that no store holds are replaced."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall import Client, Execution, Recorder
from tests.mongo.mongo_server import SharedMongo
from tests.service.running_service import (
    RunningService,
    execution,
    failure,
    finished,
    hashing_settings,
    running,
)


@pytest.fixture(params=["sqlite", pytest.param("mongodb", marks=pytest.mark.real)])
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service on each store."""
    folder = tmp_path_factory.mktemp("bytes")
    sections: dict[str, Any] = {}
    if request.param == "mongodb":
        mongo: SharedMongo = request.getfixturevalue("mongo")
        sections["mongo"] = {"uri": mongo.uri(), "database": mongo.database(folder)}
    with running(hashing_settings(folder, **sections)) as started:
        yield started


RESULT = '{"nul": "a\\u0000b", "half": "\\ud83d", "k\\u0000": [NaN, -Infinity], "big": 1e999}'
KEPT = {"nul": "a�b", "half": "�", "k�": ["NaN", "-Infinity"], "big": "Infinity"}
ERROR = (
    '{"type": "Bad\\u0000Type", "message": "cannot decode \\udcff in a\\u0000.txt", '
    '"code": "E\\u0000", "stack": "at \\ud800", "details": {"ratio": NaN, "rows": Infinity}}'
)
KEPT_ERROR = {
    "type": "Bad�Type", "message": "cannot decode � in a�.txt", "code": "E�", "stack": "at �",
    "details": {"ratio": "NaN", "rows": "Infinity"},
}  # fmt: skip


def raw(record: dict[str, Any], **pieces: str) -> str:
    """A record as text, with pieces of raw JSON in it."""
    members = "".join(f', "{name}": {text}' for name, text in pieces.items())
    return json.dumps({k: v for k, v in record.items() if k not in pieces})[:-1] + members + "}"


def stored(service: RunningService, record: dict[str, Any]) -> dict[str, Any]:
    response = service.client.get(f"/executions/{record['executionId']}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_alone_in_a_batch_and_again(service: RunningService) -> None:
    """The rest of the call is as it was sent; sending it again is a duplicate."""
    ok, bad, clean = execution(), failure(), execution(result={"rows": [1, 2.5]})
    texts = [raw(ok, result=RESULT), raw(bad, error=ERROR, result=RESULT), json.dumps(clean)]
    for text in texts[:2]:
        response = service.record_text(text)
        assert response.status_code == 202, response.text
    receipt = service.record_text(f"[{', '.join(texts)}]").json()
    assert (receipt["accepted"], receipt["duplicates"], receipt["rejected"]) == (1, 2, [])
    assert stored(service, ok)["result"] == stored(service, bad)["result"] == KEPT
    assert stored(service, bad)["error"] == KEPT_ERROR
    assert stored(service, bad)["parameters"] == bad["parameters"]
    assert stored(service, clean)["result"] == clean["result"]
    service.learned()
    assert service.client.get("/status").json()["problem"] is None


def test_a_question_with_such_an_error_is_answered(service: RunningService) -> None:
    """As one without."""
    failed = failure(error={"message": "@"})
    text = json.dumps({"execution": failed}).replace(
        '"@"', '"Invalid parameter: topK must be <= 10\\u0000\\ud800"'
    )
    response = service.client.post(
        "/suggest", content=text, headers={"content-type": "application/json"}
    )
    assert response.status_code == 200, response.text
    assert response.json()["suggestions"][0]["correctedParameters"]["topK"] == 10


def test_the_sdk_records_them(service: RunningService) -> None:
    """Its client and its recorder."""
    result = {"text": "a\x00b\ud83d", "ratio": float("nan"), "most": float("inf"), "id": 2**70}
    kept = {"text": "a�b�", "ratio": "NaN", "most": "Infinity", "id": str(2**70)}
    one = Execution.model_validate(execution(result=result))
    with Client(service.url) as client:
        assert client.record(one).accepted == 1
        assert client.get_execution(one.execution_id).result == kept
        other = Execution.model_validate(
            failure(error={"message": "no\x00pe", "details": {"x": float("-inf")}})
        )
        with Recorder(client) as recorder:
            recorder.record(other)
            assert recorder.flush()
        error = client.get_execution(other.execution_id).error
        assert error is not None
        assert (error.message, error.details) == ("no�pe", {"x": "-Infinity"})


def test_importers_take_them(service: RunningService, tmp_path: Path) -> None:
    """Executions, transcripts and logs of MCP, also what is no UTF-8."""
    ok, latin = execution(), execution(result="@")
    file = tmp_path / "calls.jsonl"
    content = raw(ok, result=RESULT).encode() + b"\n"
    file.write_bytes(content + json.dumps(latin).encode().replace(b"@", b"caf\xe9") + b"\n")
    status, out, err = finished("import", str(file), "--service", service.url)
    assert (status, out) == (0, "2 accepted, 0 duplicates, 0 rejected\n"), err
    assert stored(service, ok)["result"] == KEPT
    assert stored(service, latin)["result"] == "caf�"

    called = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": f"t_{uuid4().hex[:8]}", "arguments": {"q": "x"}},
    }  # fmt: skip
    answer = (
        '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", '
        '"text": "a\\u0000\\ud800"}], "structuredContent": {"ratio": NaN}}}'
    )
    log = tmp_path / "mcp.jsonl"
    log.write_text(json.dumps(called) + "\n" + answer + "\n")
    status, out, err = finished("import", str(log), "--format", "mcp", "--service", service.url)
    assert (status, out.split(",")[0]) == (0, "1 accepted"), err
