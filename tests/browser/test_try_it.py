"""The page Try it in a browser."""

import json
import re
from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import grave_findings
from tests.browser.story import HOSTILE_TOOL, IMAGE, SCRIPT
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
    told = httpx2.get(f"{story.url}/stats/reflection?window=30d").json()
    return int(told["answers"]["asked"])


def fill(page: Page, **fields: str) -> None:
    """Type into fields by their labels, whatever was in them."""
    tool = page.get_by_label("Tool", exact=True)
    tool.fill(fields.get("tool", "search"))
    tool.blur()  # fills the server in
    page.get_by_label("Server (optional)").fill(fields.get("server", "library"))
    page.get_by_label("Error message").fill(fields.get("message", TOO_MANY))
    page.get_by_label("Parameters, a JSON object").fill(
        fields.get("parameters", '{"query": "subject", "topK": 50}')
    )


def ask(page: Page) -> None:
    page.get_by_role("button", name="Ask", exact=True).click()


def test_it_answers_as_the_api_does_and_counts_nothing(page: Page, story: ServeProcess) -> None:
    """The same reading, confidence, changes and corrected parameters; nothing is recorded."""
    before = asked(story)
    executions = httpx2.get(f"{story.url}/status").json()["executions"]
    page.goto("/dashboard/try")
    fill(page)
    ask(page)
    best = page.get_by_role("region", name="Suggestion 1")
    expect(best).to_contain_text("Change the parameters: 1 change")
    assert asked(story) == before
    assert httpx2.get(f"{story.url}/status").json()["executions"] == executions
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


def test_the_body_to_copy_asks_the_same(page: Page, story: ServeProcess) -> None:
    """Sent as it stands it gets the same suggestion."""
    page.goto("/dashboard/try")
    fill(page)
    ask(page)
    card = page.get_by_role("region", name="The same question to the service")
    body = card.locator("pre").inner_text()
    answer = httpx2.post(f"{story.url}/suggest", json=json.loads(body)).json()
    assert answer["suggestions"][0]["correctedParameters"]["topK"] == 10


@pytest.mark.parametrize("keys", ["Control+Enter", "Meta+Enter"])
def test_it_works_by_keyboard_alone(page: Page, keys: str) -> None:
    """From field to field with Tab, and asked from within one of several lines."""
    page.goto("/dashboard/try")
    page.get_by_label("Tool", exact=True).focus()
    page.keyboard.type("search")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Server (optional)")).to_be_focused()
    expect(page.get_by_label("Server (optional)")).to_have_value("library")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type(TOO_MANY)
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.type('{"query": "subject", "topK": 50}')
    page.keyboard.press(keys)
    expect(page.get_by_role("region", name="Suggestion 1")).to_be_visible()


def test_what_is_wrong_is_told_at_its_field(page: Page) -> None:
    """In plain words, with the place in the JSON; the first such field is gone to."""
    page.goto("/dashboard/try")
    fill(page, parameters='{"topK": 50,\n oops}', message=" ")
    ask(page)
    message = page.get_by_label("Error message")
    expect(message).to_be_focused()
    expect(message).to_have_accessible_description(re.compile("is missing"))
    fill(page, parameters='{"topK": 50,\n oops}')
    ask(page)
    parameters = page.get_by_label("Parameters, a JSON object")
    expect(parameters).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("malformed JSON at line 2, column 2")).to_be_visible()
    expect(message).not_to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("region", name="Suggestion 1")).to_have_count(0)
    assert grave_findings(page) == []


def test_a_pasted_call_is_asked_about(page: Page) -> None:
    """And what is wrong with it is told with its path."""
    page.goto("/dashboard/try")
    page.get_by_text("Or paste a whole call").click()
    field = page.get_by_label("A recorded execution, a failed call")
    field.fill(json.dumps({**CALL, "tool_nam": "x"}))
    field.press("Control+Enter")
    expect(page.get_by_text("unknown field `tool_nam`; did you mean `toolName`?")).to_be_visible()
    field.fill(json.dumps({"execution": CALL, "limit": 1}))
    page.get_by_role("button", name="Ask about what is pasted").click()
    expect(page.get_by_role("region", name="Suggestion 1")).to_contain_text("1 change")


def test_an_example_fills_a_failure_of_the_workspace_in(page: Page) -> None:
    """It only fills in; asking is the reader's."""
    page.goto("/dashboard/try")
    page.get_by_role("link", name="library/search: Invalid parameter").click()
    expect(page.get_by_label("Tool", exact=True)).to_have_value("search")
    expect(page.get_by_label("Error message")).to_have_value(TOO_MANY)
    expect(page.get_by_role("region", name="How the error is read")).to_have_count(0)
    ask(page)
    expect(page.get_by_role("region", name="Suggestion 1")).to_be_visible()
    page.get_by_role("link", name="failed so").click()
    expect(page).to_have_url(re.compile("/dashboard/patterns/"))


def test_a_link_fills_fields_in_and_asks_nothing(page: Page) -> None:
    """Whatever it holds is text in a field."""
    query = {"tool": HOSTILE_TOOL, "error": f"{IMAGE}{SCRIPT}", "parameters": "javascript:1"}
    page.goto(f"/dashboard/try?{urlencode(query)}")
    expect(page.get_by_label("Tool", exact=True)).to_have_value(HOSTILE_TOOL)
    expect(page.get_by_label("Error message")).to_have_value(f"{IMAGE}{SCRIPT}")
    expect(page.get_by_label("Parameters, a JSON object")).to_have_value("javascript:1")
    expect(page.get_by_role("region", name="How the error is read")).to_have_count(0)


def test_an_answer_is_accessible_and_hostile_text_in_it_is_text(page: Page) -> None:
    """In both themes; the page fixture sees what was run."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.goto("/dashboard/try")
        hostile = json.dumps({"query": SCRIPT, "topK": 50, "__proto__": {"x": "{{7*7}}"}})
        fill(page, parameters=hostile)
        ask(page)
        expect(page.get_by_role("region", name="Suggestion 1")).to_contain_text(SCRIPT)
        assert grave_findings(page) == []
