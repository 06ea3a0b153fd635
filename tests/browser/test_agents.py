"""The pages Agents and agent in a browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import rows
from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real


def counted(successes: int, failures: int) -> list[str]:
    """Calls, successes, failures and rate as a page writes them."""
    calls = successes + failures
    rate = f"{successes / calls * 100:.1f} %"
    return [f"{calls:,}", f"{successes:,}", f"{failures:,}", rate]


def test_the_table_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Every agent with its calls, most first."""
    usage = story.get("/stats/usage?window=30d&limit=500")
    page.goto("/dashboard/agents?window=30d")
    expect(page.get_by_role("heading", level=1)).to_have_text("Agents")
    told = rows(page, "Agents")
    assert [row[1:] for row in told] == [
        [
            *counted(each["successes"], each["failures"]),
            f"{100 * each['repaired'] / each['successes']:.1f} %" if each["successes"] else "-",
        ]
        for each in usage["byAgent"]
    ]
    assert {row[0] for row in told} == {each["agent"] for each in usage["byAgent"]}
    totals = usage["totals"]
    share = usage["withContext"] / (totals["successes"] + totals["failures"])
    assert 0 < share < 1
    stats = page.get_by_role("region", name="In this window")
    expect(stats).to_contain_text(f"Said what they are for{100 * share:.1f} %")
    bars = page.get_by_role("list", name="Success rates of the busiest agents")
    expect(bars.get_by_role("listitem").first).to_contain_text(told[0][0] + told[0][4])


def test_an_agent_s_page_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Its numbers, its tools, and the patterns that name it, with links to both."""
    told = story.get("/stats/agents/planner?window=7d")
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
    patterns = story.get("/patterns")["patterns"]
    mine = [each["title"] for each in patterns if "planner" in each["agents"]]
    assert [row[0] for row in rows(page, "Patterns of an agent")] == mine
    page.get_by_role("link", name=mine[0], exact=True).first.click()
    expect(page).to_have_url(re.compile("/dashboard/patterns/"))
