"""The frame around every page: landmarks, keyboard, theme, pickers, and staying up to date."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from mongo.sqlite.store import open_sqlite_store
from service.dashboard.routes import PAGES
from tests.browser.reading import Faults, looking_at
from tests.browser.story import Teller
from tests.mongo.store_samples import make_event
from tests.service.running_service import ServeProcess, serving

pytestmark = pytest.mark.real

NAV = [page.nav for page in PAGES if page.nav]


def test_every_page_of_the_navigation_renders(page: Page) -> None:
    """Without a complaint of the browser's, under its own heading and title."""
    page.goto("/dashboard/")
    pages = page.get_by_role("navigation", name="Pages")
    for name in NAV:
        pages.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page).to_have_title(f"{name} - Aftercall")
        expect(pages.locator("[aria-current=page]")).to_have_text(name)
        for landmark in ("banner", "main", "contentinfo"):
            expect(page.get_by_role(landmark)).to_have_count(1)
        assert page.locator("html").get_attribute("lang") == "en-GB"


def test_the_first_stop_of_the_keyboard_leads_to_the_content(page: Page) -> None:
    page.goto("/dashboard/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_every_control_of_the_head_is_reached_by_the_keyboard(page: Page) -> None:
    """In the order in which it is read."""
    page.goto("/dashboard/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    reached = []
    for _ in range(len(NAV) + 9):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
    assert reached == [
        "Skip to the content", "Aftercall", *NAV, "24h", "7d", "30d", "Dates",
        "Auto", "Light", "Dark",
    ]  # fmt: skip


def test_a_theme_is_chosen_and_remembered(page: Page, context: BrowserContext) -> None:
    """With the keyboard; the next page comes in it from its first byte on."""
    page.goto("/dashboard/")
    dark = page.get_by_role("button", name="Dark")
    expect(dark).to_have_attribute("aria-pressed", "false")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark.press("Enter")
    expect(dark).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    [cookie] = context.cookies()
    assert (cookie["name"], cookie["value"]) == ("aftercall_theme", "dark")
    answer = page.goto("/dashboard/tools")
    assert answer is not None
    assert 'data-theme="dark"' in answer.text()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")


def test_the_system_decides_unless_somebody_chose(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/dashboard/")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_windows_are_links_that_stay_and_can_be_shared(page: Page) -> None:
    page.goto("/dashboard/tools")
    windows = page.get_by_role("navigation", name="Time range")
    windows.get_by_role("link", name="Last 7 days").click()
    expect(page).to_have_url(re.compile(r"/dashboard/tools\?window=7d$"))
    expect(windows.locator("[aria-current]")).to_have_text("7d")
    page.get_by_role("link", name="Failures", exact=True).click()
    expect(page).to_have_url(re.compile(r"/dashboard/failures\?window=7d$"))
    windows.get_by_role("link", name="Last 24 hours").click()
    expect(page).to_have_url(re.compile(r"/dashboard/failures$"))


async def _recorded(folder: Path) -> None:
    store = await open_sqlite_store(folder)
    for workspace in ("default", "research <b>"):
        await store.events.append(workspace, [make_event(1)])
    await store.close()


@pytest.fixture(scope="module")
def two_workspaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A service whose log holds two workspaces."""
    folder = tmp_path_factory.mktemp("two") / "data"
    with ThreadPoolExecutor(1) as thread:  # a loop of its own beside Playwright's
        thread.submit(lambda: asyncio.run(_recorded(folder))).result(timeout=30)
    with serving(folder) as service:
        yield service
        assert service.stop() == 0


def test_a_workspace_is_picked_from_those_there_are(
    browser: Browser, two_workspaces: ServeProcess
) -> None:
    """With the keyboard; every link keeps it, and the window too."""
    with looking_at(browser, two_workspaces) as page:
        page.goto("/dashboard/?window=7d")
        picker = page.get_by_label("Workspace")
        expect(picker).to_have_value("default")
        picker.select_option("research <b>")
        page.get_by_role("button", name="Show").press("Enter")
        expect(page).to_have_url(re.compile(r"\?window=7d&workspace=research\+%3Cb%3E$"))
        expect(page.get_by_label("Workspace")).to_have_value("research <b>")
        page.get_by_role("link", name="Tools", exact=True).click()
        expect(page).to_have_url(re.compile(r"/tools\?window=7d&workspace=research\+%3Cb%3E$"))
        picker = page.get_by_label("Workspace")
        expect(picker).to_have_value("research <b>")
        expect(picker.locator("option").first).to_have_text("default")
        picker.select_option("default")
        page.get_by_role("button", name="Show").press("Enter")
        expect(page).to_have_url(re.compile(r"/tools\?window=7d&workspace=default$"))


def test_a_service_that_is_away_is_said_aloud_until_it_is_back(page: Page, faults: Faults) -> None:
    """What is shown stays, with the warning that it may be old."""
    faults.allow("ERR_FAILED")
    page.goto("/dashboard/")
    stale = page.get_by_role("alert")
    expect(stale).to_be_hidden()
    page.route("**/dashboard/", lambda route: route.abort())
    expect(stale).to_contain_text("could not be brought up to date")
    expect(page.get_by_role("region", name="Last 24 hours")).to_be_visible()
    page.unroute("**/dashboard/")
    expect(stale).to_be_hidden()


def test_what_its_reader_does_stays_when_a_page_changes(page: Page, story: ServeProcess) -> None:
    """What is opened stays open, a filter stays typed and in focus, an order stays."""
    page.goto("/dashboard/tools?window=7d")
    page.get_by_role("button", name="Calls", exact=True).click()
    field = page.get_by_role("searchbox", name="Filter Tools")
    field.press_sequentially("fetch")
    calls = page.get_by_role("row", name="fetch_page").get_by_role("cell").nth(1)
    before = int(calls.inner_text().replace(",", ""))
    with httpx2.Client(base_url=story.url, timeout=30) as client:
        teller = Teller(client)
        teller.call("fetch_page", serverName="web")
        teller.send()
    expect(calls).to_have_text(f"{before + 1:,}")
    expect(field).to_have_value("fetch")
    expect(field).to_be_focused()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Calls")
