"""The pages Agents and agent in a browser."""

import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import Faults, rows
from tests.browser.story import HOSTILE_AGENT
from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real


def counted(successes: int, failures: int) -> list[str]:
    """Calls, successes, failures and rate as a page writes them."""
    calls = successes + failures
    rate = f"{successes / calls * 100:.1f} %"
    return [f"{calls:,}", f"{successes:,}", f"{failures:,}", rate]


def test_the_table_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Every agent with its calls, most first."""
    usage = httpx2.get(f"{story.url}/stats/usage?window=30d&limit=500").json()
    page.goto("/dashboard/agents?window=30d")
    expect(page.get_by_role("heading", level=1)).to_have_text("Agents")
    told = rows(page, "Agents")
    assert [row[1:] for row in told] == [
        counted(each["successes"], each["failures"]) for each in usage["byAgent"]
    ]
    assert {row[0] for row in told} == {each["agent"] for each in usage["byAgent"]}
    bars = page.get_by_role("list", name="Success rates of the busiest agents")
    expect(bars.get_by_role("listitem").first).to_contain_text(told[0][0] + told[0][4])


def test_the_table_can_be_taken_along(page: Page, tmp_path: Path) -> None:
    """As JSON and as CSV, in which no name is a formula."""
    page.goto("/dashboard/agents?window=30d")
    for kind in ("JSON", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("link", name=f"Download Agents as {kind}").click()
        download.value.save_as(tmp_path / kind)
    told = {each["name"]: each for each in json.loads((tmp_path / "JSON").read_text("utf-8"))}
    assert {"planner", "librarian", HOSTILE_AGENT, "@sum"} <= told.keys()
    table = csv.reader(io.StringIO((tmp_path / "CSV").read_text("utf-8-sig")))
    names = [row[0] for row in table]
    assert "'@sum" in names
    assert not any(name.startswith(("=", "+", "-", "@")) for name in names)


def test_an_agent_s_page_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Its numbers, its tools, and the patterns that name it, with links to both."""
    told = httpx2.get(f"{story.url}/stats/agents/planner?window=7d").json()
    page.goto("/dashboard/agents?window=7d")
    page.get_by_role("link", name="planner", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("planner")
    assert "window=7d" in page.url
    calls = told["usage"]["successes"] + told["usage"]["failures"]
    stats = page.get_by_role("region", name="In this window")
    expect(stats).to_contain_text(f"Calls{calls:,}")
    assert [row[2:] for row in rows(page, "Tools of an agent")] == [
        counted(each["successes"], each["failures"]) for each in told["tools"]
    ]
    patterns = httpx2.get(f"{story.url}/patterns").json()["patterns"]
    mine = [each["signature"] for each in patterns if "planner" in each["agents"]]
    assert [row[0] for row in rows(page, "Patterns of an agent")] == mine
    page.get_by_role("link", name="no answer within <n> s").click()
    expect(page).to_have_url(re.compile("/dashboard/patterns/"))


def test_an_agent_that_nobody_knows_gets_a_clear_page(page: Page, faults: Faults) -> None:
    """With those that may have been meant."""
    faults.allow("404")
    answer = page.goto(f"/dashboard/agents/{quote('planer <b>', safe='')}")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_text("There is no agent 'planer <b>'")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("planner")


def test_without_calls_it_says_what_to_do(empty_page: Page) -> None:
    """A command that fills the store."""
    empty_page.goto("/dashboard/agents")
    expect(empty_page.get_by_text("No agent called a tool in this window.")).to_be_visible()
    expect(empty_page.get_by_text("aftercall demo --history")).to_be_visible()
