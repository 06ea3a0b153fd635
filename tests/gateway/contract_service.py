"""A real loopback server that speaks the contract, with scripted suggestions.

It drives the gateway's retries; what a suggestion should be is tested with the true service.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

Json = dict[str, Any]


def suggestion(*changes: Json, confidence: float = 0.95, **more: Any) -> Json:
    """A suggestion in the wire's form."""
    return {
        "suggestionId": str(uuid4()),
        "action": "change_parameters",
        "changes": [{"reason": "the error says so", **change} for change in changes],
        "confidence": confidence,
        "evidence": {"repairs": 3},
        "lesson": "names of zones are IANA names",
    } | more


def answer(*suggestions: Json, safe: bool = True) -> Json:
    """An answer of `/suggest` in the wire's form."""
    return {
        "pattern": {"category": "invalid_parameters", "signature": "<s>", "confidence": 0.9},
        "suggestions": list(suggestions),
        "retry": {"safe": safe, "reason": "scripted"},
        "abstained": not suggestions,
        "tookMs": 1.0,
    }


class ContractService:
    """A context manager. `suggest` decides each answer and may be replaced at any time."""

    def __init__(self, port: int = 0) -> None:
        self.suggest: Callable[[Json], Json] = lambda _: answer()
        self.questions: list[Json] = []
        self.executions: list[Json] = []
        self.tools: dict[str, Json] = {}
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.service = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/executions":
            batch = body if isinstance(body, list) else [body]
            self.executions += batch
            return 202, {"accepted": len(batch), "duplicates": 0, "rejected": []}
        if path == "/suggest":
            self.questions.append(body)
            return 200, self.suggest(body)
        if method == "PUT" and path.startswith("/tools/"):
            tool_id = path.removeprefix("/tools/")
            self.tools[tool_id] = body
            return 200, body | {"toolId": tool_id, "updatedAt": "2026-02-20T14:30:00Z"}
        if path == "/readyz":
            return 200, {"ready": True}
        if path == "/status":
            return 200, _STATUS
        return 404, {"error": {"code": "not_found", "message": f"no {path} in this test"}}


_STATUS = {
    "version": "0.1.0",
    "ready": True,
    "executions": 12345,
    "tools": 14,
    "pendingIndexing": 37,
    "documents": 1204,
    "seedPatterns": 52,
    "embedder": "all-MiniLM-L6-v2",
    "logStore": "sqlite",
    "vectorIndex": "qdrant-edge",
    "uptimeS": 11525.0,
}


class _Server(ThreadingHTTPServer):
    service: ContractService
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Tests are silent."""

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, content = self.server.service.handle(self.command, self.path, body)
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
