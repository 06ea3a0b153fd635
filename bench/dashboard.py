"""The dashboard at a million executions: its first paint, its live update, and what viewers cost.

    python -m bench.dashboard [--large DIR] [--executions N] [--quick] [--write]

Fills a data folder with the history of `bench/history.py`, ending now, through a real `aftercall
serve` (a million takes a quarter of an hour), unless a folder that is filled is named: it is copied
and stays as it is. After a nightly run over it, on a service of its own:

- each `GET /stats/...`: the first answer after a start, and the median of 30 after it;
- the first paint of Overview in Debian's Chromium (its `first-contentful-paint`), the time until
  the numbers stand there, in new browser contexts with empty caches; the very first look after a
  start is told apart;
- live update: from the answer to `POST /executions` to the number on the page, 20 times; a page
  asks every second, and one is made at most twice a second;
- `/suggest` without viewers and with 20 of them (`bench/viewers.py`), in turns, while ten calls a
  second are recorded: the ratio of the medians is the figure.

`--write` puts `dashboard.md` and `dashboard.json` into `docs/figures/`.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from playwright.sync_api import Browser, Page, sync_playwright

from bench import history
from bench.processes import run_watched
from bench.service import Service, ask, percentiles, say, serving

ROOT = Path(__file__).parents[1]

LARGE, BATCH = 1_000_000, 1_000
PAINTS, UPDATES, WARM = 10, 20, 30
ROUNDS, QUESTIONS, WARM_UP, VIEWERS = 4, 300, 20, 20
RECORDED_PER_S = 10
CALM_S = 3.0
"""Between two live updates, so that each is a first change and none rides with another."""

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
FIGURES = ROOT / "docs" / "figures"
STATS = (
    "totals", "usage?window=24h", "usage?window=30d", "trend?window=30d", "latency?window=30d",
    "reflection?window=30d", "patterns?window=30d", "tools?window=30d", "confidence",
)  # fmt: skip

_CALLS = ".stat .value >> nth=0"
"""The first figure of Overview: the calls of the last 24 hours."""

Json = dict[str, Any]


def filled(folder: Path, executions: int, given: Path | None) -> Path:
    """A data folder with so many learned executions of the last four weeks, and a night over it."""
    data = folder / "data"
    if given is not None:
        say(f"copying {given}")
        shutil.copytree(given, data)
    else:
        say(f"recording {executions:,} executions")
        with serving(data, folder / "fill.log") as service:
            _load(service, executions)
            service.stop()
    say("running the nightly ingest")
    run_watched("nightly", "--json", "--data-dir", str(data))
    return data


def _load(service: Service, executions: int) -> None:
    start = datetime.now(UTC) - timedelta(days=28)
    records = history.executions(executions, start=start)
    connection = service.connect()
    while batch := list(islice(records, BATCH)):
        _record(connection, batch)
    connection.close()
    while service.status()["pendingIndexing"]:
        time.sleep(1)


def _record(connection: Any, batch: Sequence[Json]) -> None:  # an http.client.HTTPConnection
    connection.request(
        "POST", "/executions", json.dumps(batch), {"content-type": "application/json"}
    )
    receipt = json.loads(connection.getresponse().read())
    if receipt.get("accepted") != len(batch):
        raise RuntimeError(str(receipt)[:500])


def _now(number: int) -> Json:
    """A success of the history's first tool, as of now."""
    tool = history.tools(1)[0]
    return {
        "executionId": str(uuid4()), "timestamp": datetime.now(UTC).isoformat(),
        "agent": history.AGENTS[number % len(history.AGENTS)], "serverName": tool.server,
        "toolName": tool.name, "parameters": {}, "outcome": "success", "durationMs": 20.0,
    }  # fmt: skip


def answering(service: Service) -> Json:
    """Milliseconds of each statistics endpoint: the first, and those after it."""
    connection = service.connect()
    found: Json = {}
    for path in STATS:
        times = []
        for _ in range(WARM + 1):
            started = time.perf_counter()
            connection.request("GET", f"/stats/{path}")
            response = connection.getresponse()
            response.read()
            times.append((time.perf_counter() - started) * 1000)
            if response.status != 200:
                raise RuntimeError(f"/stats/{path}: {response.status}")
        found[path] = {"first": times[0], **percentiles(times[1:])}
    connection.close()
    return found


@contextmanager
def browsing() -> Iterator[Browser]:
    """Chromium, without a screen."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def look(browser: Browser, url: str) -> dict[str, float]:
    """Milliseconds until Overview is painted first, and until its numbers stand there."""
    context = browser.new_context()
    page = context.new_page()
    started = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(_CALLS)
    shown = (time.perf_counter() - started) * 1000
    paint = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint').map(each => each.startTime)[0]"
    )
    context.close()
    return {"paint": float(paint), "numbers": shown}


def updating(service: Service, browser: Browser, url: str) -> list[float]:
    """Milliseconds from the receipt of one more call to the page that counts it."""
    page = browser.new_page()
    page.goto(url)
    page.wait_for_selector(_CALLS)
    connection = service.connect()
    times = []
    for number in range(UPDATES):
        time.sleep(CALM_S)
        before = page.inner_text(_CALLS)
        _record(connection, [_now(number)])
        started = time.perf_counter()
        _wait_for_other(page, before)
        times.append((time.perf_counter() - started) * 1000)
    page.close()
    connection.close()
    return times


def _wait_for_other(page: Page, before: str) -> None:
    page.wait_for_function(
        "before => document.querySelector('.stat .value').innerText !== before",
        arg=before,
        timeout=20_000,
    )


class _Recording(threading.Thread):
    """Records some calls a second until it is told to end."""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._over = threading.Event()

    def run(self) -> None:
        connection = self._service.connect()
        number = 0
        while not self._over.wait(1 / RECORDED_PER_S):
            _record(connection, [_now(number)])
            number += 1
        connection.close()

    def stop(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def viewing(url: str) -> Iterator[list[int]]:
    """Viewers that hold Overview open; afterwards the updates that each got."""
    updates: list[int] = []
    command = [sys.executable, "-m", "bench.viewers", "--url", url, "--viewers", str(VIEWERS)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline().strip() != "open":
            raise RuntimeError("the viewers did not come in")
        yield updates
        process.stdin.close()
        updates += json.loads(process.stdout.readline())


def disturbing(service: Service, url: str, rounds: int) -> Json:
    """Milliseconds of `/suggest` with and without viewers, in turns."""
    failures = list(history.new_failures(WARM_UP + 2 * rounds * QUESTIONS))
    ask(service, failures[:WARM_UP], 0)
    rest = iter(failures[WARM_UP:])
    times: dict[str, list[float]] = {"alone": [], "viewed": []}
    seen: list[int] = []
    recording = _Recording(service)
    recording.start()
    for _ in range(rounds):
        times["alone"] += ask(service, list(islice(rest, QUESTIONS)), 0)
        with viewing(url) as updates:
            times["viewed"] += ask(service, list(islice(rest, QUESTIONS)), 0)
        seen += updates
    recording.stop()
    return {
        "viewers": VIEWERS,
        "recordedPerSecond": RECORDED_PER_S,
        "updatesSeen": sum(seen),
        "ms": {name: percentiles(each) for name, each in times.items()},
        "ratio": statistics.median(times["viewed"]) / statistics.median(times["alone"]),
    }


def run(data: Path, folder: Path, *, quick: bool) -> Json:
    """All figures; progress on stderr."""
    with serving(data, folder / "serve.log") as service, browsing() as browser:
        url = f"{service.url}/dashboard/"
        memory = {"before the first look": service.rss_mib()}
        say("looking for the first time")
        first = look(browser, url)
        memory["after it"] = service.rss_mib()
        looks = [look(browser, url) for _ in range(3 if quick else PAINTS)]
        say("updating")
        updates = updating(service, browser, url)
        browser.close()
        say("asking with and without viewers")
        disturbed = disturbing(service, url, 1 if quick else ROUNDS)
        memory["after viewers"] = service.rss_mib()
        executions = service.status()["executions"]
        service.stop()
    with serving(data, folder / "serve.log") as service:
        say("asking for statistics")
        stats = answering(service)
        service.stop()
    return {
        "executions": executions,
        "tools": len(history.tools()),
        "firstLookMs": first,
        "paintMs": _spread([each["paint"] for each in looks]),
        "numbersMs": _spread([each["numbers"] for each in looks]),
        "updateMs": _spread(updates),
        "suggest": disturbed,
        "statsMs": stats,
        "memoryMiB": memory,
    }


def _spread(times: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(times), "least": min(times), "most": max(times)}


def page_of(found: Json) -> str:
    """The Markdown page."""
    paint, numbers, update = found["paintMs"], found["numbersMs"], found["updateMs"]
    suggest, stats, memory = found["suggest"], found["statsMs"], found["memoryMiB"]
    slowest = max(stats, key=lambda path: stats[path]["p95"])
    rows = [
        ("first paint of Overview", "under 1.5 s",
         f"{paint['median'] / 1000:.2f} s (at most {paint['most'] / 1000:.2f} s)"),
        ("live update: from the receipt to the page", "under 1.5 s",
         f"{update['median']:.0f} ms (at most {update['most']:.0f} ms)"),
        (f"`/suggest`, new failure, {suggest['viewers']} viewers: p50 to that without viewers",
         "at most 1.20", f"{suggest['ratio']:.2f} ({suggest['ms']['viewed']['p50']:.1f} ms to "
         f"{suggest['ms']['alone']['p50']:.1f} ms)"),
        ("slowest `GET /stats/...`: p95", "under 100 ms",
         f"{stats[slowest]['p95']:.0f} ms (`/stats/{slowest}`)"),
        ("slowest first answer of a `GET /stats/...` after a start", "under 100 ms",
         f"{max(each['first'] for each in stats.values()):.0f} ms"),
    ]  # fmt: skip
    return "\n".join([
        "# Dashboard",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} shared cores, "
        f"Python {platform.python_version()}, Debian's Chromium. Made by "
        "`python -m bench.dashboard --write`; everything measured is in `dashboard.json`.",
        f"{found['executions']:,} executions over {found['tools']} tools on the embedded store.",
        "",
        "| figure | asked | measured |",
        "|---|---|---|",
        *(f"| {what} | {asked} | {measured} |" for what, asked, measured in rows),
        "",
        "Beside them:",
        "",
        f"- the numbers of Overview stand on the page after {numbers['median'] / 1000:.2f} s "
        f"(at most {numbers['most'] / 1000:.2f} s), with an empty cache; after a start, the very "
        f"first look took {found['firstLookMs']['numbers'] / 1000:.2f} s (paint "
        f"{found['firstLookMs']['paint'] / 1000:.2f} s): it reads what the night counted.",
        f"- memory: {memory['before the first look']:.0f} MiB before the first look, "
        f"{memory['after it']:.0f} MiB after it, {memory['after viewers']:.0f} MiB after "
        f"{suggest['viewers']} viewers came and went.",
        f"- the viewers got {suggest['updatesSeen']:,} updates while "
        f"{suggest['recordedPerSecond']} calls a second were recorded; the p95 of `/suggest` was "
        f"{suggest['ms']['viewed']['p95']:.1f} ms with them and "
        f"{suggest['ms']['alone']['p95']:.1f} ms without.",
        "",
        "| endpoint | first after a start, ms | median, ms | p95, ms |",
        "|---|---|---|---|",
        *(f"| `/stats/{path}` | {each['first']:.1f} | {each['p50']:.1f} | {each['p95']:.1f} |"
          for path, each in stats.items()),
        "",
    ])  # fmt: skip


def main() -> None:
    """Read the options, measure, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=Path, help="a filled data folder; it is copied")
    parser.add_argument("--executions", type=int, default=LARGE)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--write", action="store_true", help="write into docs/figures/")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = filled(folder, options.executions, options.large)
        found = run(data, folder, quick=options.quick)
    text = page_of(found)
    print(text)
    if options.write:
        FIGURES.mkdir(parents=True, exist_ok=True)
        (FIGURES / "dashboard.md").write_text(text, encoding="utf-8")
        file = FIGURES / "dashboard.json"
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
