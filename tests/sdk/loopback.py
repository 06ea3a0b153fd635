"""A small real HTTP service on loopback, for what a real service cannot be told to do: go wrong.

It keeps the executions and tools it gets by id, and speaks the contract as far as the SDK calls it.
A fault makes it answer something else or nothing. It remembers no repairs and suggests nothing.
"""

import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

Record = dict[str, Any]
Fault = Callable[["Handler"], None]
"""Answers a request its own way."""


@dataclass(frozen=True)
class Received:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Loopback:
    """The service; a context manager."""

    executions: dict[str, Record] = field(default_factory=dict)
    tools: dict[str, Record] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    refuses: Callable[[Record], bool] = lambda _: False
    """Records that make it refuse the whole batch with `refusal_status`."""
    refusal_status: int = 422
    rejects: Callable[[Record], bool] = lambda _: False
    """Records that it names in the receipt."""
    suggest: Callable[[Record], Record] = lambda _: ABSTENTION
    """What it answers to a question."""

    def __enter__(self) -> Self:
        self._faults: list[tuple[Fault, int | None]] = []
        self._connections: set[socket.socket] = set()
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.start(port=0)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, port: int) -> None:
        self._server = _Server(("127.0.0.1", port), Handler)
        self._server.service = self
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        """Be gone: the port refuses connections, what is open breaks off."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections):
            connection.close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def batches(self) -> list[list[Record]]:
        """The bodies of `POST /executions`."""
        return [r.json for r in self.requests if (r.method, r.path) == ("POST", "/executions")]

    def fail(self, fault: Fault, *, times: int | None = None) -> None:
        """Meet the next requests with a fault; without `times` until `heal`."""
        self._faults.append((fault, times))

    def answers(self, body: Any) -> None:
        """The next answer: text as it is, None as 204, all else as JSON."""
        is_raw = body is None or isinstance(body, bytes)
        content = (body or b"") if is_raw else json.dumps(body).encode()
        self.fail(answer(content, status=204 if body is None else 200), times=1)

    @property
    def last(self) -> tuple[str, Any]:
        """The last request: its line, and its body as JSON."""
        last = self.requests[-1]
        return f"{last.method} {last.path}", json.loads(last.body) if last.body else None

    def heal(self) -> None:
        """Answer again, and let go of what hangs."""
        self._faults.clear()
        self.released.set()
        self.released = threading.Event()

    def next_fault(self) -> Fault | None:
        with self.lock:
            if not self._faults:
                return None
            fault, times = self._faults[0]
            if times is not None:
                self._faults[0] = (fault, times - 1)
                if times == 1:
                    del self._faults[0]
            return fault


class _Server(ThreadingHTTPServer):
    service: Loopback
    daemon_threads = True
    request_queue_size = 128  # connections that may come at once

    def handle_error(self, *_: object) -> None:
        """Connections break here on purpose."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is two writes
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.service._connections.add(self.connection)

    def finish(self) -> None:
        self.service._connections.discard(self.connection)
        super().finish()

    @property
    def service(self) -> Loopback:
        return self.server.service

    def log_message(self, *_: object) -> None:
        """Silence."""

    def _handle(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.service.requests.append(Received(self.command, self.path, headers, self.body))
        if fault := self.service.next_fault():
            fault(self)
            return
        with self.service.lock:
            self._answer()

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  # the names http.server looks for

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match (self.command, *parts):
            case ("POST", "executions"):
                self._record(json.loads(self.body))
            case ("GET", "executions", execution_id):
                self._stored(self.service.executions, execution_id)
            case ("GET", "status"):
                self.send_json(200, self._status())
            case ("POST", "suggest"):
                self.send_json(200, self.service.suggest(json.loads(self.body)))
            case ("POST", "suggestions", _, "outcome"):
                self.send_json(200, {})
            case ("POST", "similar"):
                self.send_json(200, {"executions": []})
            case ("POST", "tools", "find"):
                self.send_json(200, self._found())
            case (_, "tools", *tool_id):
                self._tools(*tool_id)
            case ("GET", "healthz" | "readyz"):
                self.send_json(200, {"status": "ok"})
            case _:
                self.send_error_json(404, "not_found")

    def _record(self, body: Any) -> None:
        batch = body if isinstance(body, list) else [body]
        if any(self.service.refuses(record) for record in batch):
            self.send_error_json(self.service.refusal_status, "invalid_request")
            return
        accepted = duplicates = 0
        rejected = []
        for index, record in enumerate(batch):
            if self.service.rejects(record):
                rejected.append({"index": index, "message": "refused"})
            elif record["executionId"] in self.service.executions:
                duplicates += 1
            else:
                self.service.executions[record["executionId"]] = record
                accepted += 1
        receipt = {"accepted": accepted, "duplicates": duplicates, "rejected": rejected}
        self.send_json(202, receipt)

    def _tools(self, tool_id: str = "") -> None:
        tools = self.service.tools
        match self.command:
            case "GET" if not tool_id:
                self.send_json(200, {"tools": list(tools.values())})
            case "PUT":
                registered = {"schemaHash": None, "updatedAt": "2026-02-20T14:30:00Z"}
                tools[tool_id] = json.loads(self.body) | {"toolId": tool_id} | registered
                self.send_json(200, tools[tool_id])
            case "DELETE" if tools.pop(tool_id, None):
                self.send_raw(204, b"")
            case _:
                self._stored(tools, tool_id)

    def _found(self) -> Record:
        """All tools, unranked: choosing is tested with the true service."""
        factors = {"base": 0.8, "quality": 1.0, "failureDemotion": 1.0}
        ranked = [
            {"tool": tool, "score": 0.8, "source": "semantic", "factors": factors}
            for tool in self.service.tools.values()
        ]
        return {"candidates": ranked, "threshold": 0.2, "mode": "fitness"}

    def _stored(self, records: dict[str, Record], key: str) -> None:
        if key in records:
            self.send_json(200, records[key])
        else:
            self.send_error_json(404, "not_found")

    def _status(self) -> Record:
        return {
            "version": "0.1.0", "ready": True, "executions": len(self.service.executions),
            "tools": len(self.service.tools), "pendingIndexing": 0, "documents": 0,
            "seedPatterns": 0, "embedder": "none", "logStore": "memory", "vectorIndex": "none",
            "uptimeS": 1.0, "aFieldOfALaterVersion": {"nested": True},
        }  # fmt: skip

    def send_json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self.send_raw(
            status,
            json.dumps(value).encode(),
            {"content-type": "application/json"} | (headers or {}),
        )

    def send_error_json(
        self, status: int, code: str, headers: dict[str, str] | None = None, details: Any = None
    ) -> None:
        body = {"error": {"code": code, "message": f"told to say {status}", "details": details}}
        self.send_json(status, body, headers)

    def send_raw(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ABSTENTION = {
    "pattern": {"category": "unknown", "signature": "", "confidence": 0.0},
    "suggestions": [], "retry": {"safe": False, "reason": "not known"},
    "abstained": True, "reason": "this service has no memory", "tookMs": 0.1,
}  # fmt: skip


def error(
    status: int, code: str = "told_to_fail", *, retry_after: str | None = None, details: Any = None
) -> Fault:
    """An error in the contract's form."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return lambda handler: handler.send_error_json(status, code, headers, details)


def page(status: int) -> Fault:
    """What a proxy or another program answers: HTML."""
    return lambda handler: handler.send_raw(
        status, b"<h1>Hello</h1>", {"content-type": "text/html"}
    )


def answer(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> Fault:
    """Any answer."""
    return lambda handler: handler.send_raw(status, body, headers)


def reset(handler: Handler) -> None:
    """Break the connection off without an answer (RST)."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True


def disconnect(handler: Handler) -> None:
    """Close the connection without an answer (FIN)."""
    handler.close_connection = True


def cut_off(handler: Handler) -> None:
    """Close the connection in the middle of an answer."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
    handler.wfile.flush()
    handler.close_connection = True


def garbage(handler: Handler) -> None:
    """Answer in another protocol."""
    handler.wfile.write(b"220 mail.example.org ESMTP\r\n\r\n")
    handler.wfile.flush()
    handler.close_connection = True


def hang(handler: Handler) -> None:
    """Give no answer until the service is healed or stopped."""
    handler.service.released.wait(30)
    handler.close_connection = True
