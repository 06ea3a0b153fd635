"""The pages Sessions, session and Recommendations in a browser."""

import re
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import rows
from tests.browser.story import AXES, tell_mending, tell_referrals
from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def told(story: ServeProcess) -> None:
    tell_referrals(story.url)
    tell_mending(story.url)


def test_calls_are_found_by_what_is_known_of_them(page: Page) -> None:
    """By tool, agent, parameter and text together, with the keyboard; the address says it."""
    page.goto("/dashboard/sessions")
    form = page.get_by_role("region", name="Search")
    for name, value in (
        ("Tool", "LIBRARY/search"), ("Agent", "mail"), ("Parameter", "topK"),
        ("Text", "must be <= 10"),
    ):  # fmt: skip
        form.get_by_role("searchbox", name=name, exact=True).fill(value)
    form.get_by_role("searchbox", name="Text", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("parameter=topK"))
    found = rows(page, "Calls")
    assert {(row[1], row[2], row[4]) for row in found} == {("library/search", "failure", "mailer")}
    assert {row[5] for row in found} == {"mended-1", "mended-3"}
    page.goto("/dashboard/sessions?until=2020-01-01")
    expect(page.get_by_text("No call is like that.")).to_be_visible()


def test_a_session_shows_its_calls_in_order_with_the_repair(page: Page) -> None:
    """From the search; the failed call leads to the one that mended it, and what it changed."""
    page.goto("/dashboard/sessions?tool=search&parameter=topK&agent=mailer")
    page.get_by_role("table", name="Sessions").get_by_role("link", name="mended-1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Session mended-1")
    calls = page.get_by_role("region", name="Calls in their order").locator("li.pattern")
    expect(calls.first.get_by_role("link", name="mended by a later call")).to_be_visible()
    expect(calls.last).to_contain_text("replace /topK: 90 -> 10")
    calls.last.get_by_text("The call").click()
    expect(calls.last.get_by_role("heading", name="Success")).to_be_visible()
    expect(calls.last.get_by_role("link", name="its trace")).to_have_attribute(
        "href", f"https://traces.example.org/?q=x&id={2:032x}"
    )


def test_a_recommendation_is_dismissed_with_a_reason(page: Page, story: ServeProcess) -> None:
    """What the page says is the API's; without a reason it says what is missing."""
    queue = story.get("/recommendations")["recommendations"]
    page.goto("/dashboard/recommendations")
    cards = page.get_by_role("region", name="What makers of tools can do")
    expect(cards.locator(".recommendation")).to_have_count(len(queue))
    tool = AXES[0][0]
    [each] = [one for one in queue if one["tool"]["toolName"] == tool]
    card = cards.locator(f"#r-{each['recommendationId']}")
    card.get_by_text("As an issue, in Markdown").click()
    expect(card.locator("pre")).to_contain_text(f": `web/{tool}`")
    card.get_by_role("combobox", name="State").select_option("dismissed")
    card.get_by_role("textbox", name="Reason").fill("it is one job")
    card.get_by_role("button", name="Save").click()
    expect(page.locator(f"#r-{each['recommendationId']}")).to_have_count(0)
    path = f"{story.url}/recommendations?state=dismissed&toolId={quote('web/' + tool)}"
    [dismissed] = httpx2.get(path).json()["recommendations"]
    assert dismissed["stateReason"] == "it is one job"
    page.get_by_role("link", name=re.compile("^dismissed")).click()
    expect(page.locator(f"#r-{each['recommendationId']}")).to_contain_text("it is one job")
    httpx2.put(f"{story.url}/recommendations/{each['recommendationId']}", json={"state": "open"})


def test_what_agents_learned_is_what_a_description_should_say(
    page: Page, story: ServeProcess
) -> None:
    """The lessons of the window's patterns of wrong parameters, each with its tool."""
    page.goto("/dashboard/recommendations?window=7d")
    told = {(row[0], row[1]) for row in rows(page, "Descriptions to mend")}
    met = [each["pattern"] for each in story.get("/stats/patterns?window=7d")["patterns"]]
    meant = {
        (f"{each['tool']['serverName']}/{each['tool']['toolName']}", each["lesson"])
        for each in met
        if each["lesson"] and each["category"] == "invalid_parameters"
    }
    assert meant
    assert meant <= told
