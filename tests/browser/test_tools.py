"""The pages Tools and tool in a browser."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.reading import Faults, looking_at, rows, same
from tests.browser.story import TWIN, Teller, tell_mending, tell_referrals
from tests.service.running_service import ServeProcess, serving

pytestmark = pytest.mark.real

SEARCH = "/dashboard/tools/library/search?window=7d"


@pytest.fixture(scope="module", autouse=True)
def more(story: ServeProcess) -> None:
    """Referrals, repairs, a tool that was never called, one on two servers, a marked failure."""
    tell_mending(story.url)
    tell_referrals(story.url)
    mark = {"scenario": "find a paper", "errorMessage": "<b>wrong</b> paper", "severity": "high"}
    httpx2.post(
        f"{story.url}/tools/library%2Fsearch/failures", json=mark, timeout=30
    ).raise_for_status()


def told(story: ServeProcess, window: str = "7d") -> list[dict[str, Any]]:
    """What the API says of the tools of a window."""
    answer = story.get(f"/stats/tools?window={window}&limit=500")
    found: list[dict[str, Any]] = answer["tools"]
    return found


def stat(page: Page, label: str) -> str:
    """What stands below a label."""
    found = page.locator(".stat").filter(has=page.get_by_text(label, exact=True))
    return found.locator(".value").inner_text()


def test_the_table_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Every called tool with its calls, success rate and scores; then those never called."""
    page.goto("/dashboard/tools?window=7d")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools")

    def expected() -> list[list[str]]:
        never = ["never_called", "library", "0", "-", "-", "-"]
        return [*(_row(each) for each in told(story)), never]

    same(lambda: [[*row[:4], *row[7:9]] for row in rows(page, "Tools")], expected)


def _row(each: dict[str, Any]) -> list[str]:
    calls = each["successes"] + each["failures"]
    return [
        each["tool"]["toolName"],
        each["tool"]["serverName"] or "",
        f"{calls:,}",
        f"{100 * each['successes'] / calls:.1f} %",
        *("-" if it is None else f"{it:.2f}" for it in (each["quality"], each["cohesion"])),
    ]


def test_the_table_sorts_and_filters_by_the_keyboard(page: Page) -> None:
    """What is not known stands last, whichever way."""
    page.goto("/dashboard/tools?window=7d")
    rows(page, "Tools")
    for is_descending in (True, False):
        page.get_by_role("button", name="Success", exact=True).focus()
        page.keyboard.press("Enter")
        rates = [row[3] for row in rows(page, "Tools")]
        known = [float(each.split()[0]) for each in rates if each.endswith("%")]
        assert known == sorted(known, reverse=is_descending)
        assert not rates[-1].endswith("%")
    page.keyboard.press("Shift+Tab")
    page.get_by_role("searchbox", name="Filter Tools").press_sequentially("fetch web")
    assert [row[0] for row in rows(page, "Tools")] == ["fetch_page"]


def test_a_tool_s_page_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Its numbers, its charts, and the block that agents get."""
    page.goto(SEARCH)
    expect(page.get_by_role("heading", level=1)).to_have_text("library/search")
    [own] = [each for each in told(story) if each["tool"]["toolId"] == "library/search"]
    calls = own["successes"] + own["failures"]
    assert stat(page, "Calls") == f"{calls:,}"
    assert stat(page, "Success") == f"{100 * own['successes'] / calls:.1f} %"
    assert stat(page, "Quality") == f"{own['quality']:.2f}"
    where = "window=7d&serverName=library&toolName=search"
    trend = story.get(f"/stats/trend?{where}")
    page.get_by_role("region", name="Success over time").get_by_text("Show as table").click()
    shown = [row[1] for row in rows(page, "Success rate of this tool")]
    assert shown == [_rate(each) for each in trend["points"]]
    block = httpx2.get(f"{story.url}/known-tools?tool=library/search").text
    expect(page.get_by_role("region", name="What agents are told").locator("pre")).to_have_text(
        block
    )


def test_days_are_chosen_and_compared_with_those_before(page: Page, story: ServeProcess) -> None:
    """By the form of the head; the link to the days before is a window like any other."""
    page.goto("/dashboard/tools/library/search?window=30d")
    today = datetime.now(UTC).date()
    window = f"{today - timedelta(days=3)}..{today - timedelta(days=1)}"
    before = f"{today - timedelta(days=6)}..{today - timedelta(days=4)}"
    page.get_by_text("Dates", exact=True).click()
    for label, day in zip(("From", "To"), window.split(".."), strict=True):
        page.get_by_label(label, exact=True).fill(day)
    page.get_by_role("button", name="Show").press("Enter")
    expect(page.locator(".dates summary")).to_have_text(window.replace("..", " to "))
    trends = [
        story.get(f"/stats/trend?window={each}&serverName=library&toolName=search")
        for each in (window, before)
    ]
    now, earlier = (sum(p["successes"] + p["failures"] for p in t["points"]) for t in trends)
    assert now > 0
    assert earlier > 0
    assert stat(page, "Calls") == f"{now:,}"
    expect(page.get_by_text(re.compile(rf"before: [\d.]+ % of {earlier}$"))).to_be_visible()
    chart = page.get_by_role("region", name="Versions and fitness")
    chart.get_by_text("Show as table").click()
    named = {each["version"]: each["points"] for each in trends[0]["versions"]}
    shown = rows(page, "Success rate by version")
    assert {tuple(row[1:]) for row in shown} == {
        tuple(_rate(named[name][place]) for name in ("2.0", "1.0")) for place in range(3)
    }
    page.locator(".dates summary").click()
    page.get_by_role("link", name="The same span before").click()
    assert stat(page, "Calls") == f"{earlier:,}"


def _rate(point: dict[str, Any]) -> str:
    calls = point["successes"] + point["failures"]
    return f"{100 * point['successes'] / calls:.2f}" if calls else "-"


def test_a_tool_s_page_tells_parameters_versions_and_fitness(page: Page) -> None:
    """What its schema states, what its calls showed, and what its fitness is made of."""
    page.goto(SEARCH)
    parameters = {row[0]: row for row in rows(page, "Parameters of this tool")}
    assert parameters["query"][1:4] == ["yes", "string", "100.0 %"]
    assert parameters["topK"][2] == "integer, from 1, up to 10"
    assert int(parameters["topK"][8]) >= 1
    assert rows(page, "Versions of this tool")[0][1] == "library/search"
    [factors] = rows(page, "Fitness of this tool")
    assert factors[3:6] == ["original", "0.90", "n/a"]
    base, quality, demotion, score = (float(factors[place]) for place in (4, 6, 7, 8))
    assert score == pytest.approx(base * quality * demotion, abs=0.01)


def test_the_pages_of_a_table_keep_the_focus(browser: Browser, tmp_path: Path) -> None:
    """On the last page too, where there is no next one; and a filter that takes nothing says so."""
    with serving(tmp_path / "data") as service, looking_at(browser, service) as page:
        with httpx2.Client(base_url=service.url, timeout=30) as client:
            teller = Teller(client)
            for number in range(26):
                teller.call(f"of_many_{number}")
            teller.send()
        page.goto("/dashboard/tools")
        following = page.get_by_role("button", name="Next")
        for _ in range(2):
            following.press("Enter")
            expect(page.get_by_text("Page 2 of 2")).to_be_visible()
            expect(following).to_be_focused()
            expect(following).to_have_attribute("aria-disabled", "true")
        page.get_by_label("Filter Tools").fill("nothing is called like that")
        expect(page.get_by_text("Nothing here matches the filter.")).to_be_visible()


def test_a_tool_s_page_tells_its_failures_and_marks(page: Page) -> None:
    """Patterns with links to their pages, and what somebody marked, as text."""
    page.goto(SEARCH)
    assert rows(page, "Marked failures of this tool")[0][1:] == [
        "high", "1.00", "find a paper", "<b>wrong</b> paper",
    ]  # fmt: skip
    page.get_by_role("table", name="Failure patterns of this tool").get_by_role(
        "link", name="topK out of range"
    ).click()
    expect(page).to_have_url(re.compile("/dashboard/patterns/"))


def test_a_tool_that_is_asked_for_several_jobs_is_told_so(page: Page) -> None:
    """Its axes, the warning in words, what is recommended, and what it said itself."""
    page.goto("/dashboard/tool?server=web&name=page_reader")
    expect(page.get_by_text("! asked for several jobs").first).to_be_visible()
    axes = {row[0] for row in rows(page, "Axes of this tool's boundary failures")}
    assert "extraction" in axes
    expect(page.get_by_role("region", name="Recommendations")).to_contain_text("Split")
    said = rows(page, "Said of this tool")
    assert said[0][1] == "referral: wrong_tool_boundary"
    assert "at once" in said[0][2]


def test_the_block_for_agents_can_be_copied(
    page: Page, context: BrowserContext, story: ServeProcess
) -> None:
    """By the keyboard; it is what `GET /known-tools` answers."""
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=story.url)
    page.goto(SEARCH)
    page.get_by_role("button", name="Copy").press("Enter")
    expect(page.get_by_text("Copied.")).to_be_visible()
    block = httpx2.get(f"{story.url}/known-tools?tool=library/search").text
    assert page.evaluate("navigator.clipboard.readText()") == block


def test_an_unknown_tool_gets_a_clear_page_with_near_names(page: Page, faults: Faults) -> None:
    """Status 404; the near names are links."""
    faults.allow("404")
    answer = page.goto("/dashboard/tools/library/serch")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_have_text("No such tool")
    page.get_by_role("link", name="library/search", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("library/search")


def test_a_name_on_two_servers_lists_both(page: Page, faults: Faults) -> None:
    """Each leads to its own page."""
    faults.allow("404")
    page.goto(f"/dashboard/tools/{TWIN}")
    expect(page.get_by_text(f"Several servers have a tool '{TWIN}'.")).to_be_visible()
    for server in ("east", "west"):
        expect(page.get_by_role("link", name=f"{server}/{TWIN}", exact=True)).to_be_visible()
    page.get_by_role("link", name=f"west/{TWIN}", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"west/{TWIN}")
