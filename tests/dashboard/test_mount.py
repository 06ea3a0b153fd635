"""The way to `/dashboard`: when it is opened, who is let in, and what is said of it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from service.app import create_app, dashboard_of
from service.context import Context, Lifecycle
from service.dashboard import mount
from service.logs import _fields
from service.settings import Settings
from tests.service.running_service import hashing_settings

SOCKET = "/dashboard/_nicegui_ws/socket.io/"


@dataclass
class FakeDashboard:
    """In NiceGUI's place: answers everything, and remembers what it was asked."""

    viewing: int = 0
    opened: int = 0
    closed: int = 0
    fails: bool = False
    scopes: list[Scope] = field(default_factory=list)

    def viewers(self) -> int:
        return self.viewing

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            return
        headers = [(b"content-type", b"text/html"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"a page"})

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeDashboard"]:
        if self.fails:
            raise RuntimeError("nothing to open it with")
        self.opened += 1
        yield self
        self.closed += 1


@dataclass
class House:
    """A service's app in this process."""

    client: httpx2.AsyncClient
    inside: FakeDashboard
    app: Any
    lifecycle: Lifecycle

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(path, headers=headers)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> FakeDashboard:
    fake = FakeDashboard()

    def importing() -> Callable[[], Any]:
        return fake.open

    monkeypatch.setattr(mount, "_import_opening", importing)
    return fake


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return hashing_settings(tmp_path)


@asynccontextmanager
async def housed(settings: Settings, inside: FakeDashboard) -> AsyncIterator[House]:
    lifecycle = Lifecycle(context=cast("Context", object()))
    app = create_app(settings, lifecycle)
    transport = httpx2.ASGITransport(app=app)
    async with (
        dashboard_of(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost:8799") as client,
    ):
        yield House(client, inside, app, lifecycle)


@pytest.fixture
async def house(settings: Settings, inside: FakeDashboard) -> AsyncIterator[House]:
    async with housed(settings, inside) as opened:
        yield opened


class _Lines(logging.Handler):
    """Keeps level and fields."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, object]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append((record.levelname, dict(_fields(record))))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[tuple[str, dict[str, object]]]]:
    """Level and fields of the log's request lines."""
    kept, spoken = _Lines(), logging.getLogger("service.middleware")
    with caplog.at_level(logging.DEBUG, logger=spoken.name):
        spoken.addHandler(kept)
        yield kept.found
        spoken.removeHandler(kept)


async def socket(house: House, path: str = SOCKET, **headers: str) -> list[str]:
    """What a WebSocket is answered, by type of message."""
    sent: list[str] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    given = {"host": "localhost:8799", **headers}
    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "scheme": "ws",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    await house.app(scope, receive, send)
    return sent


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/"], ids=["bare", "slash"])
async def test_it_answers_with_and_without_a_slash(house: House, path: str) -> None:
    answer = await house.get(path)
    assert answer.status_code == 200
    assert answer.text == "a page"
    assert house.inside.scopes[0]["path"] == "/dashboard/"


async def test_it_is_opened_once_by_whoever_asks_first_and_closed_at_the_end(
    settings: Settings, inside: FakeDashboard
) -> None:
    """Twenty at a time wait for one opening; nothing is opened before."""
    async with housed(settings, inside) as house:
        await house.get("/healthz")
        assert inside.opened == 0
        await asyncio.gather(*(house.get("/dashboard/") for _ in range(20)))
        assert (inside.opened, inside.closed) == (1, 0)
    assert inside.closed == 1


async def test_an_opening_that_fails_is_told_and_tried_again(house: House) -> None:
    """In the house's form, without what went wrong inside; all else works."""
    house.inside.fails = True
    answer = await house.get("/dashboard/")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "dashboard_unavailable"
    assert "nothing to open it with" not in answer.text
    assert (await house.get("/healthz")).status_code == 200
    house.inside.fails = False
    assert (await house.get("/dashboard/")).status_code == 200


async def test_until_services_are_open_it_says_so(house: House) -> None:
    """A browser gets a page that loads itself again; a program gets the house's form."""
    house.lifecycle.context = None
    house.lifecycle.phase = "loading its <model>"
    answer = await house.get("/dashboard/", accept="text/html")
    assert answer.status_code == 503
    assert "loading its &lt;model&gt;" in answer.text
    assert 'http-equiv="refresh"' in answer.text
    assert (await house.get("/dashboard/")).json()["error"]["code"] == "not_ready"
    assert house.inside.opened == 0


async def test_viewers_are_bounded(house: House) -> None:
    """Files are still given to those who are in."""
    await house.get("/dashboard/")
    house.inside.viewing = mount.MAX_VIEWERS
    answer = await house.get("/dashboard/tools", accept="text/html")
    assert answer.status_code == 503
    assert f"{mount.MAX_VIEWERS} pages of the dashboard are open" in answer.text
    assert (await house.get("/dashboard/_nicegui/3/static/x.js")).status_code == 200


async def test_turned_off_there_is_nothing(tmp_path: Path, inside: FakeDashboard) -> None:
    settings = hashing_settings(tmp_path, server={"dashboard": False})
    async with housed(settings, inside) as house:
        for path in ("/dashboard", "/dashboard/", SOCKET):
            assert (await house.get(path)).json()["error"]["code"] == "not_found"
        assert await socket(house) == ["websocket.close"]
    assert inside.opened == 0


async def test_every_answer_keeps_the_page_to_itself(house: House) -> None:
    """Nothing of elsewhere is loaded, and no page may frame it; errors too."""
    house.inside.viewing = mount.MAX_VIEWERS
    for path in ("/dashboard/", "/dashboard/_nicegui/3/x.js", f"{SOCKET}?EIO=4"):
        headers = (await house.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "connect-src 'self' ws://localhost:8799 wss://localhost:8799;" in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


async def test_a_host_header_puts_nothing_into_the_policy(
    tmp_path: Path, inside: FakeDashboard
) -> None:
    """Where any name is answered, too."""
    settings = hashing_settings(tmp_path, server={"allowed_hosts": ["*"]})
    async with housed(settings, inside) as house:
        answer = await house.get("/dashboard/", host="a; script-src *")
        assert "script-src *" not in answer.headers["content-security-policy"]
        assert "connect-src 'self';" in answer.headers["content-security-policy"]


async def test_files_may_be_kept_and_pages_may_not(house: House) -> None:
    assert "immutable" in (await house.get("/dashboard/_nicegui/3/x.js")).headers["cache-control"]
    assert (await house.get("/dashboard/tools")).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost:3000", "http://localhost", "null", "http://[", "x"],
    ids=["foreign", "other port", "default port", "sandboxed", "half an address", "no address"],
)
async def test_a_foreign_page_opens_no_socket(house: House, origin: str) -> None:
    """Neither a WebSocket nor by polling."""
    assert await socket(house, origin=origin) == ["websocket.close"]
    answer = await house.get(f"{SOCKET}?EIO=4&transport=polling", origin=origin)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin_not_allowed"
    assert house.inside.scopes == []


async def test_a_page_of_the_service_opens_its_socket(house: House) -> None:
    assert await socket(house, origin="http://localhost:8799") == ["websocket.accept"]
    answer = await house.get(f"{SOCKET}?EIO=4", origin="http://localhost:8799")
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


async def test_behind_a_proxy_the_public_address_is_its_own(
    tmp_path: Path, inside: FakeDashboard
) -> None:
    settings = hashing_settings(
        tmp_path, server={"public_url": "https://calls.example.org", "allowed_hosts": ["inner"]}
    )
    async with housed(settings, inside) as house:
        for origin in ("https://calls.example.org", "https://calls.example.org:443"):
            assert await socket(house, host="inner:8799", origin=origin) == ["websocket.accept"]
        assert await socket(house, host="inner:8799", origin="https://example.org") == [
            "websocket.close"
        ]


async def test_a_socket_under_a_foreign_host_is_refused(house: House) -> None:
    """A name that a web page lets resolve to this machine."""
    rebound = "evil.example:8799"
    assert await socket(house, host=rebound, origin=f"http://{rebound}") == ["websocket.close"]


@pytest.mark.parametrize("path", ["/", "/status", "/dashboard/", "/dashboard/_nicegui_ws"])
async def test_there_is_no_socket_elsewhere(house: House, path: str) -> None:
    assert await socket(house, path) == ["websocket.close"]


async def test_sockets_are_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount, "_MAX_SOCKETS", 0)
    assert await socket(house) == ["websocket.close"]


async def test_other_methods_are_refused_in_the_contracts_form(house: House) -> None:
    answer = await house.client.post("/dashboard/tools", content=b"x")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert (await house.client.post(f"{SOCKET}?EIO=4", content=b"x")).status_code == 200


async def test_a_line_break_in_a_path_is_refused(house: House) -> None:
    """As everywhere in the service."""
    assert (await house.get("/dashboard/tools/a%0Ab")).status_code == 422


async def test_nobody_says_where_the_dashboard_stands(house: House) -> None:
    """NiceGUI would put that header into the page, and it is the caller's."""
    await house.get("/dashboard/", **{"x-forwarded-prefix": "/evil"})
    [scope] = house.inside.scopes
    assert b"x-forwarded-prefix" not in dict(scope["headers"])


async def test_the_log_has_four_routes_and_no_words_of_the_caller(
    house: House, lines: list[tuple[str, dict[str, object]]]
) -> None:
    """Pages are told; what a page asks for by itself is for debugging."""
    for path in (
        "/dashboard",
        "/dashboard/tools/secret-tool?q=secret",
        "/dashboard/_nicegui/3/secret.js",
        "/dashboard/static/secret.css",
        f"{SOCKET}?secret=1",
    ):
        await house.get(path)
    assert [(level, fields["route"]) for level, fields in lines] == [
        ("INFO", "/dashboard/{page}"),
        ("INFO", "/dashboard/{page}"),
        ("DEBUG", "/dashboard/_nicegui/{file}"),
        ("DEBUG", "/dashboard/static/{file}"),
        ("DEBUG", "/dashboard/_nicegui_ws"),
    ]
    assert "secret" not in str(lines)


@pytest.mark.parametrize("destination", ["image", "iframe", "script", "empty", ""])
async def test_another_site_may_link_to_a_page_and_not_embed_it(
    house: House, destination: str
) -> None:
    """Else pictures on any page of the web would have pages built until the memory is full."""
    there = {"sec-fetch-site": "cross-site", "sec-fetch-dest": destination}
    for path in ("/dashboard/", f"{SOCKET}?EIO=4&transport=polling"):
        refused = await house.get(path, **there)
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "embedding_not_allowed"
        assert refused.headers["cross-origin-resource-policy"] == "same-origin"
    assert house.inside.scopes == []
    followed = await house.get("/dashboard/", **there | {"sec-fetch-dest": "document"})
    assert followed.status_code == 200
    own = await house.get("/dashboard/", **there | {"sec-fetch-site": "same-origin"})
    assert own.status_code == 200
