"""Looks: addresses that lead where they say, and pages that say when they are out of date."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import UsageWindow
from service.dashboard import live
from service.dashboard.look import Look, State
from service.dashboard.policy import guarded_headers
from service.dashboard.theme import theme_of
from service.dashboard.viewing import Viewing
from service.dashboard.widgets import is_local
from service.statistics.news import News


@dataclass
class FakeClient(nullcontext[None]):
    """A page of nobody."""

    is_deleted: bool = False
    request: Any = field(default_factory=lambda: SimpleNamespace(query_params={}))

    def __post_init__(self) -> None:
        super().__init__()

    def on_delete(self, handler: object) -> None:
        """It is never deleted."""


def look(
    window: UsageWindow = "24h",
    workspace: str = "default",
    query: dict[str, str] | None = None,
    news: News | None = None,
    viewing: Viewing | None = None,
) -> Look:
    client = FakeClient(request=SimpleNamespace(query_params=query or {}))
    return Look(
        services=cast("Any", SimpleNamespace(statistics=SimpleNamespace(news=news))),
        workspace=workspace,
        window=window,
        params={},
        viewing=viewing or Viewing(cast("Any", None)),
        client=cast("Any", client),
        path="/tools",
    )


def test_a_link_keeps_window_and_workspace() -> None:
    """What is not said is not repeated, so that addresses stay short."""
    assert look().link("/tools") == "/dashboard/tools"
    assert look("7d").link("/tools") == "/dashboard/tools?window=7d"
    assert look("7d", "a b").link("/") == "/dashboard/?window=7d&workspace=a+b"
    assert look("7d").link("/tools", window="24h") == "/dashboard/tools"
    assert look("7d").link("/tools", workspace="other") == (
        "/dashboard/tools?window=7d&workspace=other"
    )


def test_the_same_page_with_another_window_keeps_what_was_asked() -> None:
    asked = look("7d", query={"window": "7d", "tool": "a&b"})
    assert asked.again(window="30d") == "/dashboard/tools?window=30d&tool=a%26b"


@given(st.text(min_size=1))
def test_a_link_holds_any_id(tool_id: str) -> None:
    """As one path below the dashboard, or beside it where a browser would change the path."""
    href = look().link(f"/tools/{tool_id}")
    parts = urlsplit(href)
    assert href.isascii()
    assert is_local(href)
    assert not set(href) & set("<>\"'\\ \n")
    assert not {".", ".."} & set(unquote(parts.path).split("/"))
    moved = parse_qs(parts.query, keep_blank_values=True).get("at")
    at = moved[0] if moved else unquote(parts.path).removeprefix("/dashboard/tools/")
    assert at == tool_id.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("tool_id", ["..", "../../executions", "a/../b", ".", "a\nb", "a\u2028b"])
def test_what_would_leave_the_page_goes_beside_the_path(tool_id: str) -> None:
    assert urlsplit(look().link(f"/tools/{tool_id}")).path == "/dashboard/tools/-"


@pytest.mark.parametrize(
    ("href", "local"),
    [
        ("/dashboard/", True),
        ("#main", True),
        ("//evil.example", False),
        ("/\\evil.example", False),
        ("/\t/evil.example", False),
        ("javascript:alert(1)", False),
        ("https://evil.example", False),
        ("", False),
    ],
)
def test_only_paths_of_the_service_are_links(href: str, local: bool) -> None:
    assert is_local(href) is local


@pytest.mark.parametrize("cookie", ["auto", "light", "dark"])
def test_a_chosen_theme_is_read(cookie: str) -> None:
    assert theme_of({"aftercall_theme": cookie}) == cookie


@pytest.mark.parametrize("cookie", ["", "DARK", 'dark"; alert(1)//', "<script>"])
def test_any_other_theme_is_the_systems(cookie: str) -> None:
    assert theme_of({"aftercall_theme": cookie}) == "auto"


@pytest.mark.parametrize("host", ["", "a b", "a;b", "a'", "*", "a:123456", "[::1", "a,b", "a\nb"])
def test_a_host_that_is_none_is_not_in_the_policy(host: str) -> None:
    assert "ws:" not in guarded_headers(host)["content-security-policy"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8799", "[::1]:8799", "a-b.example.org"])
def test_a_host_is_in_the_policy(host: str) -> None:
    assert f" ws://{host} wss://{host};" in guarded_headers(host)["content-security-policy"]


async def _same(_: str) -> object:
    return None


@pytest.fixture
async def news() -> AsyncIterator[News]:
    opened = News(_same)
    yield opened
    await opened.close()


@pytest.fixture
async def viewing(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Viewing]:
    monkeypatch.setattr(live, "_PAUSE_S", 0.01)
    opened = Viewing(cast("Any", None))
    yield opened
    await opened.close()


async def test_an_update_that_fails_is_said_until_one_succeeds(
    news: News, viewing: Viewing
) -> None:
    """The figures stay, with the time from which they are."""
    states: asyncio.Queue[State] = asyncio.Queue()
    failing = True
    shown = look(news=news, viewing=viewing)
    shown.on_state = states.put_nowait
    then = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)

    async def update() -> None:
        if failing:
            raise ValueError("the store is away")

    shown.begin()
    shown.as_of(then, is_complete=False)
    assert await states.get() == State(then, is_complete=False)
    shown.live(update)
    news.tell("default")
    async with asyncio.timeout(10):
        assert await states.get() == State(then, is_complete=False, is_stale=True)
        failing = False
        news.tell("default")
        again = await states.get()
    assert not again.is_stale
    assert again.at > then


async def test_what_changed_while_a_page_was_built_from_shared_figures_is_shown(
    news: News, viewing: Viewing
) -> None:
    """Another viewer's figures may be older than this page is."""
    reads = 0

    async def read() -> int:
        nonlocal reads
        reads += 1
        return reads

    first = look(news=news, viewing=viewing)
    first.begin()
    assert await first.shared("figures", read) == 1
    news.tell("default")
    second = look(news=news, viewing=viewing)
    second.begin()
    assert await second.shared("figures", read) == 1
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def update() -> None:
        told.set_result(await second.shared("figures", read))

    second.live(update)
    async with asyncio.timeout(10):
        assert await told == 2
