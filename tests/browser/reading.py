"""Reading a page: its tables and numbers, and what the browser complained of meanwhile."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect

from tests.service.running_service import ServeProcess, eventually


def rows(page: Page, table: str) -> list[list[str]]:
    """The texts of a table's rows, once it has some."""
    found = page.get_by_role("table", name=table, exact=True).locator("tbody tr")
    expect(found.first).to_be_visible()
    return [row.locator("th, td").all_inner_texts() for row in found.all()]


def same(shown: Callable[[], object], told: Callable[[], object]) -> None:
    """What a page shows comes to be what the API tells; both may still be learning."""
    eventually(lambda: shown() == told())


def grave_findings(page: Page, *rules: str) -> list[str]:
    """Serious and critical findings of axe-core: the rule (of these), and where it is broken."""
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    violations = Axe().run(page, options={**DEFAULT_OPTIONS, **only}).response["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@dataclass
class Faults:
    """Everything that a browser complained about, and every request to elsewhere."""

    home: str
    found: list[str] = field(default_factory=list)
    allowed: list[re.Pattern[str]] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """Expect complaints of this form in this test."""
        self.allowed.append(re.compile(pattern))

    def remaining(self) -> list[str]:
        """Complaints that nobody expected."""
        return [each for each in self.found if not any(it.search(each) for it in self.allowed)]

    @contextmanager
    def watching(self, page: Page) -> Iterator[None]:
        """Listen meanwhile."""
        listeners: dict[str, Callable[..., None]] = {
            "console": self._console,
            "pageerror": lambda error: self.found.append(f"error: {error}"),
            "requestfailed": self._failed,
            "request": self._asked,
            "response": self._answered,
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        yield
        for event, listener in listeners.items():
            page.remove_listener(event, listener)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"console {message.type}: {message.text}")

    def _failed(self, request: Request) -> None:
        failure = request.failure or ""
        if "ERR_ABORTED" not in failure:  # a page that is left asks no further
            self.found.append(f"failed: {request.url} {failure}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self.home:
            self.found.append(f"foreign: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.found.append(f"status {response.status}: {response.url}")


@contextmanager
def looking_at(browser: Browser, service: ServeProcess) -> Iterator[Page]:
    """A page on a service, which fails its test when the browser complains of anything."""
    faults = Faults(home=service.url.removeprefix("http://"))
    with browser.new_context(base_url=service.url) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        with faults.watching(page):
            yield page
    assert faults.remaining() == []
