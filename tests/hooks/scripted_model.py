"""A model on loopback that answers with what a test scripted, and keeps what it was asked.

It speaks as much as the clients need of OpenAI's responses and chat completions, and of Gemini's
`streamGenerateContent`. A turn is a list of calls `(name, arguments)`; after the last one it says
that all is done.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Turn = Sequence[tuple[str, Json | str]]
USAGE = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}


@dataclass
class ScriptedModel:
    """The model: its turns, and what it was asked."""

    turns: list[Turn]
    url: str = ""
    asked: list[Json] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, body: Json) -> Turn:
        """The next turn."""
        with self._lock:
            self.asked.append(body)
            place = len(self.asked) - 1
            return self.turns[place] if place < len(self.turns) else ()

    def texts(self) -> str:
        """All that it was asked, as one text in which quotes are plain."""
        return (
            json.dumps(self.asked, ensure_ascii=False).replace('\\\\\\"', '"').replace('\\"', '"')
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedModel

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [], "models": []}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if ":streamGenerateContent" in self.path:
            self._stream([_gemini(self.model.next(body))])
        elif ":generateContent" in self.path:
            self._send("application/json", json.dumps(_gemini(())))
        elif self.path.endswith("/responses"):
            self._stream(_responses(self.model.next(body), len(self.model.asked)), named=True)
        elif self.path.endswith("/chat/completions"):
            turn = self.model.next(body) if body.get("tools") else ()  # titles come without tools
            self._stream([*_completions(turn, len(self.model.asked)), "[DONE]"])
        else:
            self._send("application/json", "{}")

    def _stream(self, events: Sequence[Json | str], *, named: bool = False) -> None:
        lines = []
        for event in events:
            name = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
            lines.append(
                f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
            )
        self._send("text/event-stream", "".join(lines))

    def _send(self, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _gemini(turn: Turn) -> Json:
    parts: list[Json] = [{"functionCall": {"name": name, "args": args}} for name, args in turn]
    content = {"role": "model", "parts": parts or [{"text": "All done."}]}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1, "totalTokenCount": 10}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


def _responses(turn: Turn, number: int) -> list[Json]:
    events: list[Json] = [{"type": "response.created", "response": {"id": f"r{number}"}}]
    items: list[Json] = []
    for place, (name, arguments) in enumerate(turn):
        named = {"id": f"i{number}_{place}", "call_id": f"call_{number}_{place}"}
        if isinstance(arguments, str):
            items.append(named | {"type": "custom_tool_call", "name": name, "input": arguments})
            continue
        server, _, tool = name.rpartition("/")
        called = named | {"type": "function_call", "name": tool, "arguments": json.dumps(arguments)}
        items.append(called | ({"namespace": f"mcp__{server}"} if server else {}))
    said = [{"type": "output_text", "text": "All done."}]
    done = {"type": "message", "id": f"m{number}", "role": "assistant", "content": said}
    for place, item in enumerate(items or [done]):
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    usage = USAGE | {"input_tokens_details": None, "output_tokens_details": None}
    ended = {"id": f"r{number}", "usage": usage}
    return [*events, {"type": "response.completed", "response": ended}]


def _completions(turn: Turn, number: int) -> list[Json]:
    calls = [
        {
            "index": place,
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(turn)
    ]
    delta: Json = {"role": "assistant", "content": "" if calls else "All done."}
    ended = {"delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    said = {"delta": delta | ({"tool_calls": calls} if calls else {}), "finish_reason": None}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    chunk = {
        "id": f"c{number}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
    }
    return [
        chunk | {"choices": [{"index": 0, **said}]},
        chunk | {"choices": [{"index": 0, **ended}]},
        chunk | {"choices": [], "usage": usage},
    ]


@contextmanager
def scripted_model(*turns: Turn) -> Iterator[ScriptedModel]:
    """A model that takes these turns, until the block ends."""
    model = ScriptedModel(list(turns))
    handler = type("Handler", (_Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
