"""Overview in a browser: its numbers are the API's, it stays up to date, and text stays text."""

import re
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.reading import grave_findings, looking_at, rows
from tests.service.running_service import ServeProcess, execution, failure, serving

pytestmark = pytest.mark.real


def card(page: Page, title: str) -> Locator:
    return page.locator("section", has=page.get_by_role("heading", level=2, name=title, exact=True))


def stat(page: Page, title: str, label: str) -> Locator:
    """The value of one number of a card."""
    block = card(page, title).locator(".stat", has=page.get_by_text(label, exact=True))
    return block.locator(".value")


def test_totals_are_the_apis(page: Page, story: ServeProcess) -> None:
    page.goto("/dashboard/")
    windows = story.get("/stats/totals")["windows"]
    titles = ("Last 24 hours", "Last 7 days", "Last 30 days")
    for title, totals in zip(titles, [each["totals"] for each in windows], strict=True):
        calls = totals["successes"] + totals["failures"]
        expect(stat(page, title, "Calls")).to_have_text(f"{calls:,}")
        expect(stat(page, title, "Failures")).to_have_text(f"{totals['failures']:,}")
        rate = f"{100 * totals['successes'] / calls:.1f} %"
        expect(stat(page, title, "Succeeded")).to_have_text(rate)


def test_reflection_and_answers_are_the_apis(page: Page, story: ServeProcess) -> None:
    page.goto("/dashboard/?window=7d")
    said = story.get("/stats/reflection?window=7d")
    title = "Before and after reflection, 7 days"
    for label, name in (
        ("Calls right as they were sent", "firstAttempts"),
        ("Tasks that succeeded", "tasks"),
        ("Calls that followed a suggestion", "suggested"),
    ):
        counts = said[name]
        share = counts["successes"] / (counts["successes"] + counts["failures"])
        expect(stat(page, title, label)).to_have_text(f"{100 * share:.1f} %")
    expect(stat(page, "Suggestions, 7 days", "Asked")).to_have_text(f"{said['answers']['asked']:,}")
    assert said["answers"]["asked"] > 0


def test_tools_in_trouble_are_the_apis(page: Page, story: ServeProcess) -> None:
    """Most failures first, five of them."""
    page.goto("/dashboard/?window=7d")
    tools = [each for each in story.get("/stats/tools?window=7d")["tools"] if each["failures"]]
    tools.sort(key=lambda each: -each["failures"])
    shown = rows(page, "Tools in trouble")
    assert [int(cells[1]) for cells in shown] == [each["failures"] for each in tools[:5]]


def test_links_lead_to_tools_and_patterns_in_the_same_window(page: Page) -> None:
    page.goto("/dashboard/?window=7d")
    for title in ("Fix first", "Tools in trouble"):
        for each in card(page, title).locator("li a, tbody a").all():
            assert "window=7d" in (each.get_attribute("href") or "")
    card(page, "Tools in trouble").get_by_role("link", name="library/search").click()
    expect(page).to_have_url(re.compile(r"/dashboard/tools/library/search\?window=7d$"))


def test_an_empty_page_says_how_to_begin_and_fills_by_itself(
    browser: Browser, tmp_path: Path
) -> None:
    """Failures that are there before the first night wait for the command that groups them."""
    with serving(tmp_path / "data") as filling, looking_at(browser, filling) as page:
        page.goto("/dashboard/")
        expect(page.get_by_text("No call was recorded yet.")).to_be_visible()
        expect(page.get_by_role("region", name="Last 24 hours")).to_have_count(0)
        now = datetime.now(UTC).isoformat()
        httpx2.post(f"{filling.url}/executions", json=execution(timestamp=now)).raise_for_status()
        expect(stat(page, "Last 24 hours", "Calls")).to_have_text("1")
        expect(page.get_by_text("No call was recorded yet.")).to_be_hidden()
        httpx2.post(f"{filling.url}/executions", json=failure(timestamp=now)).raise_for_status()
        page.goto("/dashboard/failures")
        expect(page.get_by_text("Failures are not grouped into patterns yet.")).to_be_visible()
        expect(page.get_by_text("aftercall nightly", exact=True)).to_be_visible()
        assert grave_findings(page) == []
