"""A page under watch: what went wrong in the browser while a test looked at it."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Page, Request, Response


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

    def watch(self, page: Page) -> None:
        """Listen from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", self._asked)
        page.on("response", self._answered)

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
