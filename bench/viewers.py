"""Viewers of the dashboard without a browser: each opens the page and holds its socket.

    python bench/viewers.py --url http://127.0.0.1:8799/dashboard/ --viewers 20

Prints `open` once all are there, and the number of updates that they got when its input ends. What
a browser would do with the page and the updates is left out, so that only the service is loaded.
"""

import argparse
import ast
import asyncio
import json
import re
import sys
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import httpx2
import socketio

_QUERY = re.compile(r"query: (\{.*?\}),\n")


@dataclass
class Viewer:
    """One page held open."""

    socket: socketio.AsyncClient = field(default_factory=socketio.AsyncClient)
    updates: int = 0

    async def open(self, page: httpx2.AsyncClient, url: str) -> None:
        """Load the page and do what its script does: connect, and say who it is."""
        answer = await page.get(url)
        answer.raise_for_status()
        found = _QUERY.search(answer.text)
        if found is None:
            raise RuntimeError("the page does not say how to connect")
        query = ast.literal_eval(found[1])  # NiceGUI writes Python's own form
        given = {name: json.dumps(v) if isinstance(v, bool) else v for name, v in query.items()}
        ids = {"document_id": str(uuid4()), "tab_id": str(uuid4()), "old_tab_id": ""}
        self.socket.on("update", self._updated)
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        await self.socket.connect(
            f"{origin}?{urlencode(given | ids)}",
            headers={"Origin": origin},
            transports=["websocket"],
            socketio_path="/dashboard/_nicegui_ws/socket.io",
        )

    def _updated(self, _: object) -> None:
        self.updates += 1


async def view(url: str, count: int) -> None:
    """Open so many, and hold them until standard input ends."""
    viewers = [Viewer() for _ in range(count)]
    async with httpx2.AsyncClient(timeout=60) as page:
        for viewer in viewers:
            await viewer.open(page, url)
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps([viewer.updates for viewer in viewers]), flush=True)
    for viewer in viewers:
        await viewer.socket.disconnect()


def main() -> None:
    """Read the options, and view."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--viewers", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(view(options.url, options.viewers))


if __name__ == "__main__":
    main()
