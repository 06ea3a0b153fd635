"""Seed 004's criteria: what the dashboard shows is what somebody who looks on counts."""

import asyncio
from pathlib import Path

import pytest

from bench.criteria import observed, plan, play
from service.dashboard import words as w
from service.settings import DataSettings, Settings
from tests.service.running_service import running

pytestmark = pytest.mark.real


@pytest.mark.parametrize("way", ["gateway", "functions"])
def test_the_dashboard_counts_what_an_observer_of_the_tools_counts(
    way: str, tmp_path: Path
) -> None:
    """48 calls with failures of each kind: each number is equal, in the API and on the page."""
    with running(Settings(data=DataSettings(dir=tmp_path / "data"))) as service:
        done = asyncio.run(play(service.url, plan(48), tmp_path / "spool", way))
        service.learned()
        answered = service.client.get("/stats/criteria?window=24h").json()["criteria"]
        page = service.client.get("/dashboard/criteria").text
    counted = observed(done)
    shown = {each["name"]: (each["met"], each["of"]) for each in answered}
    assert {name: shown[name] for name in counted} == counted
    assert counted["repaired"][0] > 0
    for met, of in counted.values():
        assert f">{met} of {of}" in page
        assert f">{w.format_percent(met / of)}<" in page
