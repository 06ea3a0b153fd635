"""How long a scrape of `/metrics` takes once very many tools were seen, and what it costs.

    python -m bench.metrics [--tools 10000] [--scrapes 100] [--json FILE]

The real service in this process with a real server, asked over HTTP on loopback as Prometheus does.
Calls of so many tools are counted, each three times at first, with the default bound of labels and
with one as large as the number of tools; `moving` calls every tool between two scrapes, so that no
line can be kept from the page before. Also what counting a call costs, and the memory of labels.
"""

import argparse
import asyncio
import gc
import json
import logging
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
import uvicorn
import uvloop

from aftercall.process import bind_socket, url_of
from bench.service import say
from service.context import (
    Context,
    Lifecycle,  # as above
    open_context,
)
from service.lifecycle import settle_memory
from service.server import create_app
from service.settings import DataSettings, EmbeddingSettings, MetricsSettings, Settings

MOST_MS = 20.0
CALLS_EACH = 3
WARM_UP = 3
_MIB = 1024 * 1024

Json = dict[str, Any]


@contextmanager
def serving(folder: Path, labels: int) -> Iterator[tuple[Context, str]]:
    """A service with so many labels, and its address; it runs on a thread of its own."""
    settings = Settings(
        data=DataSettings(dir=folder / "data"),
        embedding=EmbeddingSettings(model="hashing"),
        metrics=MetricsSettings(tools=labels),
    )
    lifecycle, listener, opened = Lifecycle(), bind_socket("127.0.0.1", 0), threading.Event()
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(settings, lifecycle), ws="none", lifespan="off",
            access_log=False, log_config=None,
        )
    )  # fmt: skip

    async def serve() -> None:
        async with open_context(settings) as context:
            lifecycle.context = context
            settle_memory()  # as `aftercall serve` does
            opened.set()
            await server.serve(sockets=[listener])

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        opened.wait(60)
        assert lifecycle.context is not None
        yield lifecycle.context, url_of(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def resident_mib() -> float:
    """Memory of this process after a collection."""
    gc.collect()
    return float(psutil.Process().memory_info().rss / _MIB)


def call_all(context: Context, tools: int, latency_ms: float = 12.5) -> float:
    """Count a call of every tool; microseconds for each."""
    started = time.perf_counter()
    for number in range(tools):
        context.metrics.tools.observe(
            f"tool_{number}", "ok", latency_ms, server_name=f"server_{number % 40}"
        )
    return (time.perf_counter() - started) / tools * 1e6


def scrape_ms(
    client: httpx2.Client, context: Context, tools: int, scrapes: int, *, moving: bool
) -> Json:
    """Median, 95th percentile and largest time of a scrape, to its last byte; and its size."""
    times, size = [], 0
    for _ in range(scrapes + WARM_UP):
        if moving:
            call_all(context, tools)
        started = time.perf_counter()
        response = client.get("/metrics")
        size = len(response.content)
        times.append((time.perf_counter() - started) * 1000)
        assert response.status_code == 200
    times = times[WARM_UP:]
    return {
        "median": statistics.median(times), "p95": statistics.quantiles(times, n=20)[-1],
        "max": max(times), "bytes": size,
    }  # fmt: skip


def measure(folder: Path, tools: int, labels: int, scrapes: int) -> Json:
    """All figures of one bound of labels."""
    with serving(folder, labels) as (context, url), httpx2.Client(base_url=url, timeout=60) as asks:
        before = resident_mib()
        cost = [call_all(context, tools) for _ in range(CALLS_EACH)]
        counted = resident_mib()
        given = context.metrics.tools.labels
        ways = {
            "moving" if moving else "still": scrape_ms(asks, context, tools, scrapes, moving=moving)
            for moving in (False, True)
        }
        after = resident_mib()
    return {
        "labels": labels, "given": given, "observe_us": statistics.median(cost),
        "counted_mib": counted - before, "scraped_mib": after - before, "ms": ways,
    }  # fmt: skip


def run(tools: int, scrapes: int) -> Json:
    """All figures; progress on stderr."""
    logging.disable(logging.INFO)
    figures: Json = {"tools": tools, "scrapes": scrapes, "bounds": []}
    for labels in dict.fromkeys((MetricsSettings().tools, tools)):
        say(f"{tools:,} tools, {labels:,} labels")
        with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
            figures["bounds"].append(measure(Path(name), tools, labels, scrapes))
    return figures


def table(figures: Json) -> str:
    """As Markdown."""
    lines = [
        f"{figures['tools']:,} tools seen; median of {figures['scrapes']} scrapes over HTTP, "
        f"asked: under {MOST_MS:.0f} ms.",
        "",
        "| labels | given | page | median | p95 | size |",
        "|---|---|---|---|---|---|",
    ]
    for bound in figures["bounds"]:
        lines += [
            f"| {bound['labels']:,} | {bound['given']:,} | {way} | {each['median']:.1f} ms | "
            f"{each['p95']:.1f} ms | {each['bytes'] / 1000:,.0f} kB |"
            for way, each in bound["ms"].items()
        ]
    lines.append("")
    lines += [
        f"{bound['labels']:,} labels: {bound['observe_us']:.1f} µs to count a call, "
        f"{bound['counted_mib']:.1f} MiB once counted, {bound['scraped_mib']:.1f} MiB once scraped."
        for bound in figures["bounds"]
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=100)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    figures = run(args.tools, args.scrapes)
    print(table(figures))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
