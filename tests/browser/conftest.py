"""Debian's Chromium on a real service with a story in it.

Playwright's synchronous API runs an event loop of its own, so it is closed at the end of this
package: left open, it would break asynchronous tests that come later in the same process.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.reading import Faults, looking_at
from tests.browser.story import tell_story
from tests.conftest import NO_CHROMIUM
from tests.service.running_service import ServeProcess, serving

# A machine that runs many tests at a time may take its time; a claim that is false fails anyway.
expect.set_options(timeout=15_000)

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def chromium() -> str:
    """Where Chromium is: CHROMIUM in the environment, as CI has it, or where the system has it."""
    named = os.environ.get("CHROMIUM")
    found = shutil.which(named or "chromium")
    if found is None and named:
        pytest.fail(f"Chromium is not at {named}, as CHROMIUM says", pytrace=False)
    if found is None:
        pytest.skip(NO_CHROMIUM)
    return found


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, for all these tests."""
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A service with a story in it; tests may add calls, and must not count on there being none."""
    chromium()  # before a minute is spent on what cannot be looked at
    folder: Path = tmp_path_factory.mktemp("browser") / "data"
    environ = {
        "AFTERCALL_LOG_FORMAT": "json",
        "AFTERCALL_SERVER_TRACE_URL": "https://traces.example.org/?q=x&id={trace_id}",
    }
    with serving(folder, environ=environ) as service:
        tell_story(service, str(folder))
        yield service
        assert service.stop() == 0


@pytest.fixture(scope="session")
def nothing_yet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A service in which nothing was recorded, and nothing may be."""
    chromium()
    with serving(tmp_path_factory.mktemp("empty") / "data") as service:
        yield service
        assert service.stop() == 0


@pytest.fixture(scope="package")
def context(browser: Browser, story: ServeProcess) -> Iterator[BrowserContext]:
    """One for all; its base is the service with the story."""
    context = browser.new_context(base_url=story.url)
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture(scope="package")
def only_page(context: BrowserContext) -> Page:
    """One for all: to open another takes longer than most tests."""
    return context.new_page()


@pytest.fixture
def faults(only_page: Page, story: ServeProcess) -> Iterator[Faults]:
    """What the browser complains of; `faults.allow(pattern)` expects some of it."""
    faults = Faults(home=story.url.removeprefix("http://"))
    with faults.watching(only_page):
        yield faults


@pytest.fixture
def page(only_page: Page, context: BrowserContext, faults: Faults) -> Iterator[Page]:
    """A page that fails its test when the browser complains, or anything is asked of elsewhere.

    Nothing is in it, and nothing was chosen or allowed.
    """
    only_page.set_viewport_size({"width": 1280, "height": 900})
    only_page.emulate_media(color_scheme="light")
    context.clear_cookies()
    context.clear_permissions()
    yield only_page
    assert only_page.evaluate("window.pwned") is None, "what a tool said was run"
    only_page.goto("about:blank")
    assert faults.remaining() == []


@pytest.fixture(scope="package")
def empty_page(browser: Browser, nothing_yet: ServeProcess) -> Iterator[Page]:
    """As `page`, on a service without any call; nothing of it is reset."""
    with looking_at(browser, nothing_yet) as page:
        yield page
