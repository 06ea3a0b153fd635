"""The page Boundaries in a browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import rows
from tests.browser.story import tell_referrals
from tests.service.running_service import ServeProcess, eventually

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def told(story: ServeProcess) -> None:
    """Referrals, in clusters."""
    tell_referrals(story.url)

    def is_clustered() -> bool:
        report = story.get("/boundaries")
        return report["clusteredAt"] is not None and report["unclustered"] == 0

    eventually(is_clustered)


def test_the_tables_say_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Clusters, what co-occurs, and the tools with their cohesion."""
    report = story.get("/boundaries?limit=200")
    page.goto("/dashboard/boundaries")
    clusters = rows(page, "Clusters of axes")
    assert [row[0] for row in clusters] == [each["name"] for each in report["clusters"]]
    assert [row[3] for row in clusters] == [f"{each['count']:,}" for each in report["clusters"]]
    pairs = rows(page, "Clusters that co-occur")
    assert [row[:3] for row in pairs] == [
        [*each["names"], f"{each['count']:,}"] for each in report["coOccurrences"]
    ]
    tools = rows(page, "Tools with boundary failures")
    assert [row[3] for row in tools] == [
        f"{each['cohesion']['failures']:,}" for each in report["tools"]
    ]
    expect(page.get_by_text("Wordings were last gathered into clusters at")).to_be_visible()


def test_the_map_has_every_cluster(page: Page, story: ServeProcess) -> None:
    """By the names that the service answers."""
    names = [each["name"] for each in story.get("/boundaries")["clusters"]]
    page.goto("/dashboard/boundaries")
    drawn = page.get_by_role("list", name="Map of").locator(".bar-label")
    expect(drawn).to_contain_text(names)


def test_a_warning_is_told_with_its_reason_and_leads_to_the_tool(page: Page) -> None:
    """What was seen, how sure it is, and what is recommended."""
    page.goto("/dashboard/boundaries")
    card = page.get_by_role("region", name="Tools that are asked for several jobs")
    expect(card.get_by_role("heading", name="web/page_reader")).to_be_visible()
    expect(card).to_contain_text("boundary failures are about more than one job")
    expect(card).to_contain_text("Recommended")
    card.get_by_role("link", name="Its page").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("page_reader")
