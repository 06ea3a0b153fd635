"""A real HTTP server on loopback that speaks the chat completions API with scripted answers.

Each request takes the next answer of the script; the last one is repeated. What came in is kept.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.sdk.loopback import Fault, Handler, Loopback, Received

Answer = Fault


class Asked:
    """A request that came in."""

    def __init__(self, request: Received) -> None:
        self.path, self.headers, self.body = request.path, request.headers, request.json
        system, user = self.body["messages"]
        self.system, self.user = str(system["content"]), str(user["content"])

    @property
    def facts(self) -> dict[str, Any]:
        """The JSON in the user's message, read as Markdown would: up to the fence's end."""
        _, _, rest = self.user.partition("\n```json\n")
        facts: dict[str, Any] = json.loads(rest.partition("\n```\n")[0])
        return facts


@dataclass
class ScriptedChatServer(Loopback):
    """The server; a context manager."""

    script: list[Answer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    @property
    def asked(self) -> list[Asked]:
        return [Asked(request) for request in self.requests]

    def says(self, *answers: Answer) -> None:
        """Answer so from now on."""
        self.script = list(answers)

    def next_fault(self) -> Answer:
        with self.lock:
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


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
    return lambda handler: handler.send_raw(200, body)


def fenced(code: str, *, info: str = "python", before: str = "Here it is.") -> Answer:
    """A completion with one fenced code block."""
    return says(f"{before}\n\n```{info}\n{code}\n```\n")


def status(code: int, body: bytes = b"{}", **headers: str) -> Answer:
    """An answer of any status; header names with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.send_raw(code, body, named)


def drips(handler: Handler) -> None:
    """Sends a byte every now and then, so that no read ever waits long."""
    _begin(handler, 10**9)
    while not handler.service.released.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def _begin(handler: Handler, length: int) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(length))
    handler.end_headers()
