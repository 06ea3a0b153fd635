"""The path of one `/suggest`: which modules of the product it enters, in order.

    python -m bench.path [--write]

Starts the service in this process (embedded stores, no model), records a few calls of a tool, waits
until they are learned, and traces one `POST /suggest` from the application to its answer. Prints
each module with the function by which it is entered first; `--write` puts that into `docs/path.md`.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

from service.context import Lifecycle, open_context
from service.server import create_app
from service.settings import DataSettings, EmbeddingSettings, Settings

ROOT = Path(__file__).parents[1]
ROOMS = ("service", "ingest", "retrieval", "embeddings", "mongo", "sdk/aftercall")
PAGE = ROOT / "docs" / "path.md"
KEPT = "## Where the time goes"
"""The section of the page that is written by hand, and stays."""
SCHEMA = {
    "type": "object",
    "properties": {"source_timezone": {"type": "string"}, "time": {"type": "string"}},
    "required": ["source_timezone", "time"],
}
ERROR = {"type": "ToolError", "message": "'source_timezone' is a required property"}
WRONG = {"tz": "Europe/Berlin", "time": "14:30"}
RIGHT = {"source_timezone": "Europe/Berlin", "time": "14:30"}


class Trace:
    """The modules of the product that are entered, each with the first function of it."""

    def __init__(self) -> None:
        self.entered: dict[str, str] = {}
        self._files: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """What `sys.setprofile` calls."""
        if event != "call":
            return
        file = frame.f_code.co_filename
        if file not in self._files:
            self._files[file] = _module_of(file)
        module = self._files[file]
        if module is not None:
            self.entered.setdefault(module, frame.f_code.co_qualname)

    def __enter__(self) -> "Trace":
        threading.setprofile_all_threads(self) if hasattr(
            threading, "setprofile_all_threads"
        ) else threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def _module_of(file: str) -> str | None:
    for room in ROOMS:
        folder = ROOT / room
        if Path(file).is_relative_to(folder):
            inside = Path(file).relative_to(folder.parent)
            return ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
    return None


async def traced() -> dict[str, str]:
    """The modules that one `/suggest` enters, in order."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data=DataSettings(dir=Path(folder) / "data"),
            embedding=EmbeddingSettings(model="hashing"),
        )
        lifecycle = Lifecycle()
        transport = httpx2.ASGITransport(app=create_app(settings, lifecycle))
        async with (
            open_context(settings) as context,
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            lifecycle.context = context
            await _teach(client)
            with Trace() as trace:
                response = await client.post("/suggest", json=_question())
            answered = response.json()
            assert answered["suggestions"][0]["correctedParameters"] == RIGHT, answered
            return trace.entered


async def _teach(client: httpx2.AsyncClient) -> None:
    calls = [
        _call(f"session {number // 2}", number, WRONG if number % 2 == 0 else RIGHT)
        for number in range(8)
    ]
    response = await client.post("/executions", json=calls)
    assert response.status_code == 202, response.text
    for _ in range(200):
        answered = (await client.post("/suggest", json=_question())).json()
        if any("repairs" in each["evidence"]["sources"] for each in answered["suggestions"]):
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the calls were not learned within 10 s")


def _call(session: str, number: int, parameters: dict[str, Any]) -> dict[str, Any]:
    failed = parameters is WRONG
    return {
        "executionId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session}/{number}")),
        "timestamp": (datetime.now(UTC) + timedelta(seconds=number - 60)).isoformat(),
        "agent": f"agent {number % 4 // 2}", "sessionId": session, "sequence": number,
        "toolName": "convert_time", "serverName": "time", "parameters": parameters,
        "inputSchema": SCHEMA, "outcome": "failure" if failed else "success",
        "error": ERROR if failed else None,
    }  # fmt: skip


def _question() -> dict[str, Any]:
    return {
        "execution": {
            "agent": "asker", "toolName": "convert_time", "serverName": "time",
            "parameters": WRONG, "inputSchema": SCHEMA, "error": ERROR,
        }
    }  # fmt: skip


_WHY_NOT_FEWER = """## Why not 35

35 were asked. What stands between, and why it stays:

- Nobody waits for the log (`mongo.records`, `mongo.sqlite.events`, `mongo.sqlite.files`,
  `ingest.indexer`): what was answered is stored by another task, while this one goes on. The path
  that the caller waits for is shorter by them.
- Models, JSON values, redaction, patches and classes of change are the SDK's, which answers for the
  same rules on the caller's side: to merge them into a room of the service would write them twice.
- Each proposer is a topic of 150 to 550 lines (`shape`, `faults`, `experience`, `values`,
  `compose`). Two of them in one module would be more than a reader can hold, and
  more than the 600 lines that a module may have. The same holds for `edits` and `edit_effects`,
  and for the readers of errors.
- Index and embedder are protocol, choice and adapter each, because there are two adapters.
- Middleware, requests, metrics and log lines are entered once by every request.""".splitlines()


def page(entered: dict[str, str]) -> str:
    """The list as Markdown."""
    lines = [f"{at}. `{module}`: `{name}`" for at, (module, name) in enumerate(entered.items(), 1)]
    return "\n".join([
        "# The path of one `/suggest`", "",
        f"A failed call of a tool that was seen before enters {len(entered)} modules of the "
        "product, in this order. Each stands with the function by which it is entered first. Made "
        "by `python -m bench.path --write`.", "", *lines, "", *_WHY_NOT_FEWER, "",
    ])  # fmt: skip


def main() -> None:
    """Trace, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    options = parser.parse_args()
    text = page(asyncio.run(traced()))
    print(text)
    if options.write:
        _, _, kept = PAGE.read_text(encoding="utf-8").partition(KEPT)
        PAGE.write_text(f"{text.rstrip()}\n\n{KEPT}{kept}" if kept else text, encoding="utf-8")


if __name__ == "__main__":
    main()
