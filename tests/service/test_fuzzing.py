"""Requests made from the OpenAPI document get the answers that it promises, by Schemathesis.

What the document allows is accepted (or does not fit what is stored), what it forbids is refused;
every status, content type and method is one that it declares.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.running_service import RunningService

_REFUSED = """[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 414, 415, 422, 429]

[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 414, 429]

[[operations]]
include-path-regex = "^/stats/"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 404, 409, 414, 422, 429]
"""
"""Schemathesis has no 414 in its list: an address that is too long is refused before it is read.

No schema says that the first day of a window comes before its last.
"""


def fuzz(service: RunningService, folder: Path, *arguments: str) -> None:
    (folder / "schemathesis.toml").write_text(_REFUSED)
    command = (
        sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json",
        "--continue-on-failure", "--no-color", *arguments,
    )  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10_000:]


def test_the_service_answers_as_its_document_says(service: RunningService, tmp_path: Path) -> None:
    """Each example."""
    fuzz(service, tmp_path, "--phases=examples", "--seed=1")


@pytest.mark.prove
def test_it_answers_so_at_the_bounds_of_its_schemas(
    service: RunningService, tmp_path: Path
) -> None:
    fuzz(service, tmp_path, "--phases=coverage", "--seed=1")


@pytest.mark.prove
@pytest.mark.parametrize("seed", [0, 2])
def test_it_does_whatever_is_asked(service: RunningService, tmp_path: Path, seed: int) -> None:
    """A few thousand requests that Hypothesis draws."""
    fuzz(service, tmp_path, "--phases=fuzzing", "--max-examples=100", f"--seed={seed}")
