"""A real HTTP server on loopback that speaks the chat completions API with scripted answers.

Each request takes the next answer of the script; the last one is repeated. What came in is kept.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def facts(self) -> dict[str, Any]:
        """The JSON in the user's message, read as Markdown would: up to the fence's end."""
        _, _, rest = self.user.partition("\n```json\n")
        facts: dict[str, Any] = json.loads(rest.partition("\n```\n")[0])
        return facts


Answer = Callable[["Handler"], None]


class ScriptedChatServer:
    """The server; a context manager."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.asked: list[Asked] = []
        self.released = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.chat = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def says(self, *answers: Answer) -> None:
        """Answer so from now on."""
        self.script = list(answers)

    def next(self) -> Answer:
        with self._lock:
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Server(ThreadingHTTPServer):
    chat: ScriptedChatServer
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Connections break here on purpose."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.chat.asked.append(Asked(self.path, headers, body))
        self.server.chat.next()(self)

    def log_message(self, *_: object) -> None:
        """Silence."""

    @property
    def released(self) -> threading.Event:
        return self.server.chat.released

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.begin(status, len(body), headers)
        self.wfile.write(body)

    def begin(self, status: int, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(length))
        self.end_headers()


def completion(content: str | None, *, finish_reason: str = "stop", **message: Any) -> bytes:
    """A chat completion as these servers write it, with fields that nobody asked for."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish_reason,
        "logprobs": None,
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    return json.dumps({"id": "c-1", "model": "m", "choices": [choice], "usage": usage}).encode()


def says(content: str | None, *, finish_reason: str = "stop", **message: Any) -> Answer:
    """A completion with this content."""
    body = completion(content, finish_reason=finish_reason, **message)
    return lambda handler: handler.send(200, body)


def fenced(code: str, *, info: str = "python", before: str = "Here it is.") -> Answer:
    """A completion with one fenced code block."""
    return says(f"{before}\n\n```{info}\n{code}\n```\n")


def status(code: int, body: bytes = b"{}", **headers: str) -> Answer:
    """An answer of any status; header names with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.send(code, body, named)


def hangs(handler: Handler) -> None:
    """Takes the request, and never answers."""
    handler.released.wait()


def breaks_off(handler: Handler) -> None:
    """Closes the connection in the middle of the answer."""
    handler.begin(200, 1000)
    handler.wfile.write(b'{"choices"')
    handler.close_connection = True


def drips(handler: Handler) -> None:
    """Sends a byte every now and then, so that no read ever waits long."""
    handler.begin(200, 10**9)
    while not handler.released.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def floods(size: int) -> Answer:
    """An answer of `size` bytes."""

    def answer(handler: Handler) -> None:
        handler.begin(200, size)
        part = b" " * 65536
        for _ in range(size // len(part)):
            handler.wfile.write(part)

    return answer
