"""Viewers of the dashboard without a browser: each asks for the page every second, as its script.

    python -m bench.viewers --url http://127.0.0.1:8799/dashboard/ --viewers 20

Prints `open` once all have the page, and the number of changed pages that they got when its input
ends. What a browser would do with them is left out, so that only the service is loaded.
"""

import argparse
import asyncio
import json
import sys

import httpx2

EVERY_S = 1.0


async def look(client: httpx2.AsyncClient, url: str, etag: str) -> tuple[str, bool]:
    """Ask once; the ETag of what is shown now, and whether that is another page."""
    answer = await client.get(url, headers={"if-none-match": etag} if etag else {})
    if answer.status_code not in (200, 304):
        answer.raise_for_status()
    return answer.headers["etag"], answer.status_code == 200


async def view(url: str, count: int) -> None:
    """Open so many, and hold them until standard input ends."""
    updates = [0] * count

    async def hold(client: httpx2.AsyncClient, viewer: int, etag: str) -> None:
        await asyncio.sleep(EVERY_S * viewer / count)  # they did not come at one moment
        while True:
            etag, has_changed = await look(client, url, etag)
            updates[viewer] += has_changed
            await asyncio.sleep(EVERY_S)

    async with httpx2.AsyncClient(timeout=60) as client:
        etags = [(await look(client, url, ""))[0] for _ in range(count)]
        print("open", flush=True)
        holding = [
            asyncio.create_task(hold(client, viewer, etag)) for viewer, etag in enumerate(etags)
        ]
        await asyncio.to_thread(sys.stdin.read)
        for each in holding:
            each.cancel()
        ended = await asyncio.gather(*holding, return_exceptions=True)
    for error in ended:
        if not isinstance(error, asyncio.CancelledError):
            print(f"a viewer was sent away: {error!r}", file=sys.stderr)
    print(json.dumps(updates), flush=True)


def main() -> None:
    """Read the options, and view."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--viewers", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(view(options.url, options.viewers))


if __name__ == "__main__":
    main()
