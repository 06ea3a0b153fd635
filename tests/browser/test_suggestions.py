"""The page Suggestions in a browser."""

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.service.running_service import ServeProcess

pytestmark = pytest.mark.real


def share(counts: dict[str, int]) -> str:
    """A success rate and what it is made from, as a page writes them."""
    calls = counts["successes"] + counts["failures"]
    return f"{counts['successes'] / calls * 100:.1f} %{counts['successes']:,} of {calls:,}"


def test_it_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Before and after reflection, what followed a suggestion, and the answers."""
    told = httpx2.get(f"{story.url}/stats/reflection?window=7d").json()
    page.goto("/dashboard/suggestions?window=7d")
    card = page.get_by_role("region", name="Before and after reflection")
    expect(card).to_contain_text(f"First attempts that succeeded{share(told['firstAttempts'])}")
    expect(card).to_contain_text(f"Tasks that succeeded{share(told['tasks'])}")
    expect(card).to_contain_text(f"after a suggestion that succeeded{share(told['suggested'])}")
    answers = page.get_by_role("region", name="Answers", exact=True)
    expect(answers).to_contain_text(f"Asked{told['answers']['asked']:,}")
    repairs = page.get_by_role("region", name="Time to repair")
    assert told["withSuggestion"]["repairs"] > 0
    expect(repairs).to_contain_text("median of")


def test_the_calibration_says_what_the_api_says(page: Page, story: ServeProcess) -> None:
    """Ten bins with counts, both errors, and that a success is not proof of being right."""
    told = httpx2.get(f"{story.url}/stats/confidence").json()
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
