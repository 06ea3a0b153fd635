"""What the socket of a page may be sent: nothing that piles up, and nothing that the log says."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.service.running_service import aftercall, eventually

pytestmark = pytest.mark.real

PATH = "/dashboard/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@dataclass
class Told:
    """A service, and what it has said so far."""

    url: str
    lines: list[str]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("socket") / "data"
    environ = {"AFTERCALL_LOG_FORMAT": "json"}
    with aftercall("serve", "--port", "0", "--data-dir", str(folder), environ=environ) as process:
        lines: list[str] = []
        drain = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
        drain.start()
        try:
            ready = process.stdout.readline() if process.stdout else ""
            yield Told(ready.split(" ready at ")[1].split()[0], lines)
        finally:
            process.terminate()
            process.wait(timeout=30)
            drain.join(timeout=5)


def _opened(told: Told) -> Connection:
    own = connect(f"{told.url.replace('http', 'ws')}{PATH}", origin=told.url)  # type: ignore[arg-type]
    own.recv(timeout=20)
    own.send("40")
    own.recv(timeout=20)
    return own


def _is_answered(own: Connection) -> bool:
    """Whether a question is heard: one about a page that there is not."""
    own.send('427["handshake",{"client_id":"none"}]')
    for _ in range(2):
        said = own.recv(timeout=10)
        if said != "2":  # else it asks whether we are there, as it does every few seconds
            return said == "437[false]"
        own.send("3")
    return False


def _hear_all(own: Connection) -> None:
    for _ in range(2):
        own.recv(timeout=10)


def test_a_message_in_parts_is_not_waited_for(told: Told) -> None:
    """What comes after it would be kept until its last part, of which it may name a milliard."""
    with _opened(told) as own:
        own.send('45999999999-["event",{"_placeholder":true,"num":0}]')
        assert _is_answered(own)


def test_the_log_repeats_no_word_that_a_socket_was_sent(told: Told) -> None:
    """Whatever is no message, or names what there is not, is heard out and not told."""
    with _opened(told) as own:
        page = {"client_id": "SECRET", "id": "SECRET", "listener_id": "SECRET"}
        sent: tuple[object, ...] = (
            "SECRET", '2{"SECRET', '2["event"]', '2["SECRET", 1]', '2["event", "SECRET"]',
            "2" + json.dumps(["event", {}]), "2" + json.dumps(["event", page]),
            "2" + json.dumps(["log", {"level": "SECRET"}]), "2" + json.dumps(["handshake", {}]),
        )  # fmt: skip
        for each in sent:
            own.send(f"4{each}")
        assert _is_answered(own)
    assert httpx2.get(f"{told.url}/status").status_code == 200
    eventually(lambda: any("/status" in line for line in told.lines))
    assert not any("SECRET" in line for line in told.lines)
    assert [line for line in told.lines if not line.startswith("{")] == []


def test_what_is_no_message_at_all_ends_its_socket_alone(told: Told) -> None:
    with _opened(told) as own, _opened(told) as other:
        own.send(b"")
        own.send("x")
        with pytest.raises(ConnectionClosed):
            _hear_all(own)
        assert _is_answered(other)
    assert not any("Exception in ASGI application" in line for line in told.lines)


@pytest.mark.parametrize(
    "path", ["/dashboard/_nicegui/x", "/dashboard/static/x.css", "/dashboard/static/x/y"]
)
def test_where_there_is_no_file_no_page_is_built(told: Told, path: str) -> None:
    """A page is kept for a while; those that stand for files were not counted as viewers."""
    answer = httpx2.get(f"{told.url}{path}", timeout=30)
    assert (answer.status_code, answer.content) == (404, b"")
