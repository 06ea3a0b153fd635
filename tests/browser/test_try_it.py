"""The page Try it in a browser."""

import json
import re
from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.reading import grave_findings
from tests.browser.story import SCRIPT
from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real

TOO_MANY = "Invalid parameter: topK must be <= 10"

CALL = {
    "agent": "planner",
    "serverName": "library",
    "toolName": "search",
    "parameters": {"query": "subject", "topK": 50},
    "error": {"type": "ValidationError", "message": TOO_MANY},
}


def asked(story: ServeProcess) -> int:
    """How many answers were counted."""
    told = story.get("/stats/reflection?window=30d")
    return int(told["answers"]["asked"])


def fill(page: Page, text: str = json.dumps(CALL)) -> Locator:
    """Put a call into the form."""
    field = page.get_by_label("A recorded execution, a failed call")
    field.fill(text)
    return field


def ask(page: Page) -> None:
    page.get_by_role("button", name="Ask", exact=True).click()


def test_it_answers_as_the_api_does_and_counts_nothing(page: Page, story: ServeProcess) -> None:
    """The same reading, confidence, changes and corrected parameters; nothing is recorded."""
    before = asked(story)
    executions = story.get("/status")["executions"]
    page.goto("/dashboard/try")
    fill(page)
    ask(page)
    best = page.get_by_role("region", name="Suggestion 1")
    expect(best).to_contain_text("Change the parameters: 1 change")
    assert asked(story) == before
    assert story.get("/status")["executions"] == executions
    answer = httpx2.post(f"{story.url}/suggest", json={"execution": CALL}).json()
    suggestion = answer["suggestions"][0]
    [change] = suggestion["changes"]
    cells = best.get_by_role("table").locator("tbody tr").locator("th, td").all_inner_texts()
    assert cells == [change["op"], change["path"], "50", "10", change["reason"]]
    expect(best).to_contain_text(f"{suggestion['confidence'] * 100:.1f} %")
    expect(best).to_contain_text('"topK": 10')
    reading = page.get_by_role("region", name="How the error is read")
    expect(reading).to_contain_text(answer["pattern"]["signature"])
    expect(reading).to_contain_text(answer["retry"]["reason"])


@pytest.mark.parametrize("keys", ["Control+Enter", "Meta+Enter"])
def test_it_works_by_keyboard_alone(page: Page, keys: str) -> None:
    """Asked from within the text."""
    page.goto("/dashboard/try")
    fill(page).press(keys)
    expect(page.get_by_role("region", name="Suggestion 1")).to_be_visible()


def test_what_is_wrong_is_told_at_the_field(page: Page) -> None:
    """In plain words, with the place in the JSON or the path; the field is gone to."""
    page.goto("/dashboard/try")
    field = fill(page, '{"topK": 50,\n oops}')
    ask(page)
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("malformed JSON at line 2, column 2"))
    assert grave_findings(page) == []
    fill(page, json.dumps({**CALL, "tool_nam": "x"}))
    ask(page)
    expect(field).to_have_accessible_description(re.compile("did you mean `toolName`"))
    expect(page.get_by_role("region", name="Suggestion 1")).to_have_count(0)


def test_a_link_may_fill_a_call_in(page: Page) -> None:
    """It only fills in; asking is the reader's."""
    page.goto(f"/dashboard/try?{urlencode({'call': json.dumps(CALL)})}")
    field = page.get_by_label("A recorded execution, a failed call")
    expect(field).to_have_value(re.compile(re.escape(TOO_MANY)))
    expect(page.get_by_role("region", name="How the error is read")).to_have_count(0)
    ask(page)
    expect(page.get_by_role("region", name="Suggestion 1")).to_be_visible()


def test_an_answer_is_accessible_and_hostile_text_in_it_is_text(page: Page) -> None:
    """In both themes; the page fixture sees what was run."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.goto("/dashboard/try")
        hostile = {"query": SCRIPT, "topK": 50, "__proto__": "7*7"}
        fill(page, json.dumps({**CALL, "parameters": hostile}))
        ask(page)
        expect(page.get_by_role("region", name="Suggestion 1")).to_contain_text(SCRIPT)
        assert grave_findings(page) == []
