"""Two tenants who ask whatever they like, at every endpoint of today."""

from pathlib import Path

import pytest

from tests.proof.fuzz import prove
from tests.service.running_service import hashing_settings, running

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    "requests", [1_500, pytest.param(100_000, marks=pytest.mark.prove)], ids=["share", "whole"]
)
def test_no_answer_is_a_500_or_the_other_tenants(tmp_path: Path, requests: int) -> None:
    """A share of it here; `python -m tests.proof.fuzz` asks 100,000 times."""
    with running(hashing_settings(tmp_path)) as service:
        found = prove(service, requests, seed=3)
    assert found.faults == []
    assert found.crossings == []
    assert found.answers["200"] > requests / 10
