"""Signing in with a key and out again, in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.service.running_service import ServeProcess, serving

KEY = "ac_00112233445566aa_" + "b" * 64


@pytest.fixture
def guarded(tmp_path: Path, browser: Browser) -> Iterator[ServeProcess]:
    with serving(tmp_path, environ={"AFTERCALL_KEYS_BOOTSTRAP": KEY}) as service:
        yield service


def test_a_key_opens_the_pages_until_somebody_signs_out(
    browser: Browser, guarded: ServeProcess
) -> None:
    """A wrong one says so; pages live on with the session, and are gone without it."""
    with browser.new_context(base_url=guarded.url) as context:
        page = context.new_page()
        page.goto("/dashboard/tools")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.get_by_label("Key").fill("ac_0_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert").filter(has_text="no key")).to_be_visible()
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.get_by_role("navigation").get_by_role("link", name="Failures").click()
        expect(page.get_by_role("heading", name="Failures", exact=True)).to_be_visible()
        made = page.request.post(
            "/keys",
            headers={"authorization": f"Bearer {KEY}"},
            data={"name": "reader", "workspace": "default", "scopes": ["read"]},
        ).json()
        page.get_by_role("navigation").get_by_role("link", name="Keys").click()
        expect(page.get_by_role("table", name="Keys")).to_contain_text("reader")
        expect(page.get_by_role("table", name="Audit")).to_contain_text("key")
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Key").fill(next(each for each in made.values() if "ac_" in str(each)))
        page.get_by_role("button", name="Sign in").click()
        page.goto("/dashboard/keys")
        expect(page.get_by_text("Keys are shown to keys with the scope admin.")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.goto("/dashboard/")
        expect(page.get_by_label("Key")).to_be_visible()
