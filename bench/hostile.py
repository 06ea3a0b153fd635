"""What one hostile `POST /executions` costs the service, against an ordinary one of the same size.

    python -m bench.hostile [--posts 200] [--write]

A real `aftercall serve` on a temporary folder gets failed calls whose errors are 5 kB of one kind
each, every one of another session, and learns from them. Counted is the processor time of its
process, until all is learned; the median of three rounds. `--write` puts the table into
`docs/figures/security.md`.
"""

import argparse
import base64
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import psutil

from bench.figures import write_marked
from bench.holdup import call
from bench.service import ROOT, serving

PAGE = ROOT / "docs" / "figures" / "security.md"
SIZE = 5_000
ROUNDS = 3
ASKED = 3.0


def begun(number: int) -> str:
    """Twenty words that no other error begins with: each is a kind of failure of its own."""
    rng = random.Random(number)  # the same words for the same number
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(20))


def of(text: str) -> Callable[[int], str]:
    """A beginning of its own, then the same text again and again."""
    return lambda number: f"{begun(number)} {text * (SIZE // len(text))}"[:SIZE]


def encoded(number: int) -> str:
    """Base64 in base64."""
    raw = base64.b64encode(f"password=hunter{number} ".encode() * (SIZE // 44))
    return f"{begun(number)} {base64.b64encode(raw).decode()}"[:SIZE]


KINDS: dict[str, Callable[[int], str]] = {
    "words (ordinary)": of("the connection to the server was closed while reading a row. "),
    "`key= `": of("key= "),
    "`password: x`": of("password: x "),
    "escapes of URLs": of("%2520token%253D"),
    "escapes of JSON": of("\\\\u0074oken\\\\u003d"),
    "base64 in base64": encoded,
    "brackets": of("{[("),
    "quotes": of("\"'`"),
    "pairs": of("a=b&"),
    "addresses": of("https://u:p@h/x?token=1 "),
    "one long word": of("a"),
    "paths of faults": of("a[0].b.c: Field required "),
}


def measure(posts: int) -> dict[str, float]:
    """Return the processor time of a post of each kind, in milliseconds."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            serving(folder / "data", folder / "log") as service,
            httpx2.Client(base_url=service.url, timeout=300) as client,
        ):
            process = psutil.Process(service.process.pid)
            _spent(process, client, KINDS["words (ordinary)"], 20, ROUNDS)
            for kind, text in KINDS.items():
                rounds = [_spent(process, client, text, posts, n) for n in range(ROUNDS)]
                found[kind] = 1_000 * statistics.median(rounds) / posts
    return found


def _spent(
    process: psutil.Process,
    client: httpx2.Client,
    text: Callable[[int], str],
    posts: int,
    number: int,
) -> float:
    before = sum(process.cpu_times()[:2])
    for each in range(posts):
        error = {"type": "ToolError", "message": text(number * posts + each)}
        body: dict[str, Any] = call(error=error, sessionId=f"s{number}-{each}")
        client.post("/executions", json=body).raise_for_status()
    while client.get("/status").json()["pendingIndexing"]:
        time.sleep(0.1)
    return float(sum(process.cpu_times()[:2]) - before)


def table(found: dict[str, float]) -> str:
    """Return the table."""
    usual = found["words (ordinary)"]
    rows = [f"| {kind} | {ms:.1f} ms | {ms / usual:.1f} |" for kind, ms in found.items()]
    head = ["| 5 kB of | processor time of a post | to an ordinary one |", "|---|---|---|"]
    return "\n".join([*head, *rows])


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--posts", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = measure(options.posts)
    sys.stdout.write(f"{table(found)}\n")
    if options.write:
        where = f"Asked: at most {ASKED:.0f} times. {os.cpu_count()} processors, shared."
        write_marked(PAGE, "hostile", f"{table(found)}\n\n{where}")


if __name__ == "__main__":
    main()
