"""The page Suggestions in a browser."""

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.browser.reading import rows
from tests.browser.story import Teller
from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real


def share(counts: dict[str, int]) -> str:
    """A success rate and what it is made from, as a page writes them."""
    calls = counts["successes"] + counts["failures"]
    return f"{counts['successes'] / calls * 100:.1f} %{counts['successes']:,} of {calls:,}"


def test_it_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Before and after reflection, what followed a suggestion, and the answers."""
    told = story.get("/stats/reflection?window=7d")
    page.goto("/dashboard/suggestions?window=7d")
    card = page.get_by_role("region", name="Before and after reflection")
    expect(card).to_contain_text(f"Calls right as they were sent{share(told['firstAttempts'])}")
    expect(card).to_contain_text(f"Tasks that succeeded{share(told['tasks'])}")
    expect(card).to_contain_text(f"after a suggestion that succeeded{share(told['suggested'])}")
    answers = page.get_by_role("region", name="Answers", exact=True)
    expect(answers).to_contain_text(f"Asked{told['answers']['asked']:,}")
    repairs = page.get_by_role("region", name="Time to repair")
    assert told["withSuggestion"]["repairs"] > 0
    expect(repairs).to_contain_text("median of")


def test_calls_in_shadow_say_what_would_have_been_done(page: Page, story: ServeProcess) -> None:
    """Beside how the agents' own calls went, as the API says; and not where nothing was watched."""
    page.goto("/dashboard/suggestions?window=7d")
    expect(page.get_by_role("region", name="Answers", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="In shadow")).to_have_count(0)
    with httpx2.Client(base_url=story.url) as client:
        teller = Teller(client)
        late = {"type": "TimeoutError", "message": "no answer within 30 s"}
        teller.call("search", shadow={"before": "repair"}, error=late)
        teller.call("search", shadow={"before": "pass", "after": "same"})
        teller.send()
    told = story.get("/stats/reflection?window=7d")["shadow"]
    page.reload()
    shown = {row[0]: row[1:] for row in rows(page, "Calls in shadow")}
    assert shown["changed before the call"] == ["1", "0", "1"]
    assert shown["repaired after it failed, as the agent then did"] == ["1", "1", "0"]
    watched = told["watched"]["successes"] + told["watched"]["failures"]
    expect(page.get_by_role("region", name="In shadow")).to_contain_text(f"{watched} calls were")


def test_the_calibration_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Ten bins with counts, both errors, and that a success is not proof of being right."""
    told = story.get("/stats/confidence")
    page.goto("/dashboard/suggestions")
    card = page.get_by_role("region", name="Calibration", exact=True)
    table = card.get_by_role("table", name="Calibration by tenths")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(10)
    counts = [row.locator("td").first.inner_text() for row in rows.all()]
    assert counts == [f"{each['judged']:,}" for each in told["bins"]]
    expect(card).to_contain_text(f"error{told['expectedCalibrationError']:.3f}")
    expect(card).to_contain_text(f"score{told['brier']:.3f}")
    expect(card).to_contain_text("not whether it did what was meant")
    expect(card.get_by_role("img", name="Promised and kept")).to_be_visible()
