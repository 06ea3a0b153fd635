"""`/dashboard` over HTTP: who is let in, what is sent, and what is said when it cannot be."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mongo.errors import StoreError
from service.context import Lifecycle, open_context
from service.dashboard import tools
from service.server import create_app
from service.settings import Settings
from tests.service.running_service import failure, hashing_settings

LIVE_S = 0.6
"""A page that was asked for is another one after that."""


@dataclass
class House:
    """A service's app in this process."""

    client: httpx2.AsyncClient
    lifecycle: Lifecycle

    async def get(self, path: str = "/", **headers: str) -> httpx2.Response:
        return await self.client.get(f"/dashboard{path}", headers=headers)

    @property
    def context(self) -> Any:
        """To be taken apart."""
        return self.lifecycle.context


@asynccontextmanager
async def housed(settings: Settings) -> AsyncIterator[House]:
    async with open_context(settings) as context:
        lifecycle = Lifecycle(context=context)
        transport = httpx2.ASGITransport(app=create_app(settings, lifecycle))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost:8799"
        ) as client:
            yield House(client, lifecycle)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with housed(hashing_settings(tmp_path)) as opened:
        yield opened


async def recorded(house: House) -> None:
    """A failure, now, learned from."""
    call = failure(timestamp=datetime.now(UTC).isoformat())
    (await house.client.post("/executions", json=call)).raise_for_status()
    async with asyncio.timeout(200):
        while (await house.client.get("/status")).json()["pendingIndexing"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def away(*_: object, **__: object) -> None:
    raise StoreError("cannot open /somewhere/secret.db")


async def test_a_page_is_a_whole_document(house: House) -> None:
    """Its script and its style are files of the service, which may be kept for good."""
    for path in ("", "/", "/tools", "/try"):
        answer = await house.get(path)
        assert answer.text.startswith("<!doctype html><html"), path
        files = re.findall(r'(?:src|href)="/dashboard(/static/[^"]+)"', answer.text)
        assert len(files) == 2
    for each in files:
        kept = await house.get(each)
        assert "immutable" in kept.headers["cache-control"]
        assert kept.content
    assert (await house.get("/static/other.js")).status_code == 404


async def test_what_has_not_changed_is_not_sent_again(house: House) -> None:
    """Who has it gets 304 until something was recorded; nobody may keep it unasked."""
    first = await house.get("/tools")
    assert first.headers["cache-control"] == "no-cache, private"
    again = await house.get("/tools", **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    await recorded(house)
    await asyncio.sleep(LIVE_S)
    changed = await house.get("/tools", **{"if-none-match": first.headers["etag"]})
    assert "rag_query" in changed.text


async def test_a_page_is_made_once_for_all_who_ask_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = 0, tools.list_tool_statistics

    async def counted(*args: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(*args)

    monkeypatch.setattr(tools, "list_tool_statistics", counted)
    await asyncio.gather(*(house.get("/tools") for _ in range(20)))
    assert reads == 1


async def test_a_chosen_theme_is_in_the_first_byte(house: House) -> None:
    """Any other is the system's: a cookie is what anybody made it."""
    for cookie, theme in {
        "dark": "dark", "light": "light", "DARK": "auto", '"><script>': "auto", "": "auto",
    }.items():  # fmt: skip
        answer = await house.get("/", cookie=f"aftercall_theme={cookie}")
        assert f'<html lang="en-GB" data-theme="{theme}">' in answer.text


async def test_every_answer_keeps_the_page_to_itself(house: House) -> None:
    """Nothing of elsewhere is loaded, no script stands in a page, and no page may frame it."""
    await recorded(house)
    for path in ("/", "/nowhere", "/tools?table=Tools&as=csv"):
        headers = (await house.get(path)).headers
        policy = headers["content-security-policy"]
        said = {each.strip() for each in policy.split(";")}
        assert said >= {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"}
        assert not re.search("script|http", policy)  # by default: from the service alone
        assert headers.items() >= {
            ("x-content-type-options", "nosniff"), ("referrer-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        }  # fmt: skip


async def test_a_table_is_taken_along_as_it_is_shown(house: House) -> None:
    """Under a plain name; one that there is none of is the page."""
    await recorded(house)
    csv = await house.get("/tools?table=Tools&as=csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="aftercall-tools.csv"'
    assert csv.content.decode("utf-8-sig").startswith("Tool,Server,Calls")
    json = await house.get("/tools?table=Tools&as=json")
    assert [each["tool"] for each in json.json()] == ["rag_query"]
    assert "<!doctype" in (await house.get("/tools?table=None&as=csv")).text


async def test_until_the_context_is_open_it_says_so(house: House) -> None:
    """On a page that loads itself again, with what the service is doing as text."""
    context, house.lifecycle.context = house.lifecycle.context, None
    house.lifecycle.phase = "loading its <model>"
    answer = await house.get("/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "loading its &lt;model&gt;" in answer.text
    assert "data-live" in answer.text
    house.lifecycle.context = context


@pytest.mark.parametrize("what", ["read_heads", "list_tool_statistics"])
async def test_a_store_that_is_away_is_no_empty_page(
    house: House, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, and not a word of the store's own; it is tried again for who comes later."""
    target = house.context.store.events if what == "read_heads" else tools
    monkeypatch.setattr(target, what, away)
    answer = await house.get("/tools")
    assert answer.status_code == 503
    assert "This page cannot be shown at the moment." in answer.text
    assert "secret" not in answer.text
    monkeypatch.undo()
    await asyncio.sleep(LIVE_S)
    assert (await house.get("/tools")).status_code == 200


async def test_while_it_still_counts_it_does_not_say_that_there_is_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty state is one only once it is known to be."""
    paths = ("/", "/failures", "/tools", "/agents")
    for path in paths:
        assert 'class="what">No ' in (await house.get(path)).text
    monkeypatch.setattr(type(house.context.suggester), "is_settled", lambda _: False)
    for path in paths:
        async with asyncio.timeout(60):  # until what was shared is read anew
            while "Still counting" not in (text := (await house.get(path)).text):  # noqa: ASYNC110
                await asyncio.sleep(LIVE_S / 4)
        assert re.findall(r'class="what">([^<]*)', text) == ["Still counting what was recorded."]
        assert "still counting what came in lately" in text


async def test_turned_off_there_is_nothing(tmp_path: Path) -> None:
    async with housed(hashing_settings(tmp_path, server={"dashboard": False})) as house:
        for path in ("", "/", "/tools"):
            assert (await house.get(path)).json()["error"]["code"] == "not_found"


ASKED = {"call": '{"toolName": "t", "parameters": {}, "error": "too many <b>"}'}


@pytest.mark.parametrize(
    ("origin", "status"),
    [(None, 200), ("http://localhost:8799", 200), ("https://evil.example", 403)],
    ids=["program", "own", "foreign"],
)
async def test_only_the_service_s_own_pages_may_ask(
    house: House, origin: str | None, status: int
) -> None:
    """The answer is a page, with what was typed."""
    headers = {} if origin is None else {"origin": origin}
    answer = await house.client.post("/dashboard/try", data=ASKED, headers=headers)
    assert answer.status_code == status
    if status == 200:
        assert "How the error is read" in answer.text
        assert "too many &lt;b&gt;" in answer.text
    else:
        assert answer.json()["error"]["code"] == "origin_not_allowed"


async def test_what_is_done_about_a_pattern_is_said_by_own_pages_alone(house: House) -> None:
    """What nobody knows is told, and no page of another host may say anything."""
    said = {"pattern": "none", "state": "ignored", "back": "//evil.example/"}
    for origin, status in (("https://evil.example", 403), ("http://localhost:8799", 422)):
        answer = await house.client.post("/dashboard/review", data=said, headers={"origin": origin})
        assert answer.status_code == status
    answer = await house.client.post("/dashboard/review", data=said | {"state": "<b>"})
    assert (answer.status_code, "That is no state." in answer.text) == (422, True)


async def test_behind_a_proxy_the_public_address_is_its_own(tmp_path: Path) -> None:
    server = {"public_url": "https://calls.example.org", "allowed_hosts": ["inner"]}
    async with housed(hashing_settings(tmp_path, server=server)) as house:
        for origin, status in (("https://calls.example.org", 200), ("https://example.org", 403)):
            headers = {"host": "inner:8799", "origin": origin}
            answer = await house.client.post("/dashboard/try", data=ASKED, headers=headers)
            assert answer.status_code == status


async def test_the_log_has_routes_and_no_words_of_the_caller(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """For debugging only, for an open page asks every second."""
    with caplog.at_level(logging.DEBUG, logger="service.middleware"):
        await house.get("/tools/secret-tool?q=secret")
    [line] = [each for each in caplog.records if each.name == "service.middleware"]
    assert line.levelname == "DEBUG"
    assert "/dashboard/tools/{tool_id}" in str(vars(line))
    assert "secret" not in str(vars(line))
