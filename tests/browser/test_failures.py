"""The pages Failures and pattern in a browser."""

import re
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import rows
from tests.browser.story import Teller, tell_mending
from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real

TITLE = "search: topK out of range"
TOP_K = "Invalid parameter: topK must be <= <n>"


@pytest.fixture(scope="module", autouse=True)
def mended(story: ServeProcess) -> None:
    """Failures that agents mended by themselves."""
    tell_mending(story.url)


def met(story: ServeProcess, window: str = "7d") -> list[dict[str, Any]]:
    """What the API says of the patterns of a window."""
    answer = story.get(f"/stats/patterns?window={window}&limit=500")
    found: list[dict[str, Any]] = answer["patterns"]
    return found


def pattern_id(story: ServeProcess, signature: str) -> str:
    """The id of the pattern with such a wording."""
    patterns = story.get("/patterns")["patterns"]
    found: str = next(each["patternId"] for each in patterns if signature in each["signature"])
    return found


def test_the_page_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Every pattern of the window with its failures, and failures by category."""
    page.goto("/dashboard/failures?window=7d")
    expect(page.get_by_role("heading", level=1)).to_have_text("Failures")
    expected = met(story)
    assert expected
    told = rows(page, "Failure patterns")
    assert [row[0] for row in told] == [each["pattern"]["title"] for each in expected]
    assert [row[1] for row in told] == [each["pattern"]["signature"] for each in expected]
    assert [row[4] for row in told] == [f"{each['failures']:,}" for each in expected]
    usage = story.get("/stats/usage?window=7d")
    bars = page.get_by_role("list", name="Failures by category").get_by_role("listitem")
    for bar, counted in zip(bars.all(), usage["byCategory"], strict=True):
        expect(bar).to_contain_text(counted["category"])
        expect(bar).to_contain_text(f"{counted['failures']:,} (")


@pytest.mark.parametrize(("path", "most"), [("", 4), ("failures", 10)])
def test_what_to_fix_first_is_the_apis(
    page: Page, story: ServeProcess, path: str, most: int
) -> None:
    """By title, with who mended how many, lesson and, on the page Failures, agents and example."""
    page.goto(f"/dashboard/{path}?window=7d")
    cards = page.get_by_role("region", name="Fix first").locator("li.pattern")
    expected = story.get(f"/stats/fix-first?window=7d&limit={most}")["patterns"]
    expect(cards).to_have_count(len(expected))
    for card, each in zip(cards.all(), expected, strict=True):
        expect(card.get_by_role("heading")).to_have_text(each["pattern"]["title"])
        expect(card).to_contain_text(f"{each['failures']:,} failure")
        mended = f"{each['unmended']:,} not mended"
        if not each["mendedBySuggestion"] + each["mendedByAgents"]:
            mended = "none mended"
        expect(card).to_contain_text(mended)
        lesson = each["pattern"]["lesson"] or "Nobody has found a repair yet."
        expect(card).to_contain_text(lesson.replace("`", ""))
        if path:
            expect(card.get_by_role("link").last).to_have_text(each["pattern"]["agents"][-1])


def test_a_pattern_is_resolved_by_a_form_and_opens_again_when_it_comes_back(
    page: Page, story: ServeProcess
) -> None:
    """It leaves what is to be fixed first; its page says why, and that it came back."""
    which = pattern_id(story, "Access denied")
    page.goto(f"/dashboard/patterns/{which}?window=7d")
    form = page.get_by_role("region", name="State")
    form.get_by_role("combobox", name="State").select_option("resolved")
    form.get_by_role("textbox", name="Reason").fill("the scope is granted <b>")
    form.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile(f"/patterns/{which}\\?window=7d$"))
    expect(form).to_contain_text("the scope is granted <b>")
    costs = story.get("/stats/fix-first?window=7d")
    assert costs["resolved"] == 1
    assert which not in [each["pattern"]["patternId"] for each in costs["patterns"]]
    with httpx2.Client(base_url=story.url) as client:
        teller = Teller(client)
        error = {"type": "PermissionError", "message": "Access denied for note n-7"}
        note = {"note": "n-7"}
        teller.call("archive_note", hours_ago=0, agent="librarian", parameters=note, error=error)
        teller.send()
    expect(form).to_contain_text("came back")
    assert story.get("/stats/fix-first?window=7d")["resolved"] == 0


def test_an_example_shows_what_failed_and_what_the_repair_changed(page: Page) -> None:
    """The parameters that failed with the error, and beside them those that worked."""
    page.goto("/dashboard/failures?window=7d")
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=TITLE))
    expect(card).to_contain_text("replace /topK: 90 -> 10")
    summary = card.get_by_text("Example with its repair")
    summary.focus()
    page.keyboard.press("Enter")
    expect(card.get_by_role("heading", name="Failed")).to_be_visible()
    expect(card).to_contain_text('"topK": 90')
    expect(card).to_contain_text("ValidationError: Invalid parameter: topK must be <= 10")
    expect(card).to_contain_text("find what there is on reflection")
    expect(card.get_by_role("heading", name="Worked")).to_be_visible()
    expect(card).to_contain_text('"topK": 10')


def test_patterns_are_filtered_by_tool_and_category(page: Page, story: ServeProcess) -> None:
    """By the keyboard alone; the address says it, so that it can be shared."""
    page.goto("/dashboard/failures?window=7d")
    form = page.get_by_role("region", name="All patterns")
    form.get_by_role("searchbox", name="Tool", exact=True).fill("SEARCH")
    form.get_by_role("combobox", name="Category").select_option("invalid_parameters")
    form.get_by_role("searchbox", name="Tool", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("tool=SEARCH"))
    query = parse_qs(urlsplit(page.url).query)
    assert query["category"] == ["invalid_parameters"]
    assert query["window"] == ["7d"]
    expected = [
        each["pattern"]["title"]
        for each in met(story)
        if each["pattern"]["category"] == "invalid_parameters"
        and "search" in each["pattern"]["tool"]["toolName"]
    ]
    assert [row[0] for row in rows(page, "Failure patterns")] == expected
    page.reload()
    expect(page.get_by_role("searchbox", name="Tool", exact=True)).to_have_value("SEARCH")
    assert [row[0] for row in rows(page, "Failure patterns")] == expected


def test_a_pattern_s_page_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Its history, its counts, its wordings and whom it happened to."""
    which = pattern_id(story, TOP_K)
    told = story.get(f"/stats/patterns/{which}?window=7d")
    page.goto(f"/dashboard/patterns/{which}?window=7d")
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    in_window = sum(each["failures"] for each in told["points"])
    expect(page.get_by_text("Failures in the window").locator("..")).to_contain_text(
        f"{in_window:,}"
    )
    ever = page.get_by_text("Failures ever").locator("..")
    expect(ever).to_contain_text(f"{told['pattern']['count']:,}")
    page.get_by_role("region", name="History").get_by_text("Show as table").click()
    points = rows(page, "Failures of this pattern")
    assert [float(row[1]) for row in points] == [each["failures"] for each in told["points"]]
    for wording in told["pattern"]["wordings"]:
        expect(page.get_by_role("region", name="Wordings")).to_contain_text(wording)
    for agent in told["pattern"]["agents"]:
        link = page.get_by_role("region", name="What helps").get_by_role("link", name=agent)
        expect(link).to_be_visible()


def test_a_pattern_s_page_shows_its_repairs_and_what_they_rest_on(
    page: Page, story: ServeProcess
) -> None:
    """The calls side by side with the changes between them, and the rule that they made."""
    page.goto(f"/dashboard/patterns/{pattern_id(story, TOP_K)}")
    repairs = page.get_by_role("region", name="Latest repairs")
    for title in ("Failed", "Mended by", "Worked"):
        expect(repairs.get_by_role("heading", name=title).first).to_be_visible()
    expect(repairs).to_contain_text("replace /topK:")
    [rule, *_] = rows(page, "Repair rules")
    assert "`topK` must be" in rule[0]
    assert int(rule[1]) >= 4
    examples = page.get_by_role("region", name="Latest examples")
    examples.locator("summary").first.click()
    expect(examples.get_by_text("ValidationError: Invalid parameter").first).to_be_visible()


def test_headings_leave_no_level_out(page: Page, story: ServeProcess) -> None:
    """Also of what is folded up."""
    for path in ("failures?window=7d", f"patterns/{pattern_id(story, TOP_K)}?window=7d"):
        page.goto(f"/dashboard/{path}")
        rows(page, "Failure patterns" if path.startswith("failures") else "Repair rules")
        levels = [
            int(each.evaluate("each => each.tagName[1]"))
            for each in page.locator("main").locator("h1, h2, h3, h4, h5, h6").all()
        ]
        assert max(levels) > 3
        assert all(below <= above + 1 for above, below in pairwise(levels))
