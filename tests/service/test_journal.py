"""Suggestions that were answered and not stored yet outlive a kill."""

from pathlib import Path
from uuid import uuid4

import httpx2

from tests.service.running_service import failure, serving


def test_an_outcome_of_a_suggestion_is_taken_though_the_process_was_killed_meanwhile(
    tmp_path: Path,
) -> None:
    """All of ten that were answered at the moment of the kill; nothing is left of the file."""
    ids = []
    with serving(tmp_path) as service, httpx2.Client(base_url=service.url, timeout=60) as client:
        for _ in range(10):
            failed = failure()
            question = {n: failed[n] for n in failed if n not in ("executionId", "timestamp")}
            answer = client.post("/suggest", json={"execution": question}).json()
            ids.append(answer["suggestions"][0]["suggestionId"])
        service.process.kill()
        service.process.wait(timeout=60)
    assert list(tmp_path.glob("suggestions-*.jsonl"))
    [path] = tmp_path.glob("suggestions-*.jsonl")
    with path.open("ab") as file:
        file.write(b'["half')
    with serving(tmp_path) as service, httpx2.Client(base_url=service.url, timeout=60) as client:
        for name in ids:
            outcome = {"outcome": "success", "executionId": str(uuid4())}
            assert client.post(f"/suggestions/{name}/outcome", json=outcome).status_code == 204
        assert len(list(tmp_path.glob("suggestions-*.jsonl"))) == 1
        assert path not in tmp_path.glob("suggestions-*.jsonl")
