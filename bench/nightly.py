"""How long a night takes and how large it grows: time, rate and peak memory of every step.

    python bench/nightly.py [--executions 10000,100000,1000000] [--data DIR] [--quick] [--json FILE]

For each size a store is filled with the history of `bench/history.py` and learned from, through the
rooms themselves and without HTTP. With `--data DIR` a copy of that folder is taken instead. Then a
process of its own does what `aftercall nightly` does: the first night counts everything, the second
one finds nothing new, and at the end about a tenth of the log is made to expire. The night's clock
stands at the history's end, so that the windows are full.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, the folder of this file stands first

from aftercall.wire import Execution  # noqa: E402  # needs the line above
from bench import history  # noqa: E402  # as above
from embeddings.factory import open_embedder  # noqa: E402  # as above
from ingest.nightly.expiry import expire  # noqa: E402  # as above
from ingest.nightly.night import Night  # noqa: E402  # as above
from ingest.nightly.run import run_night, take_night  # noqa: E402  # as above
from mongo.protocol import LogStore  # noqa: E402  # as above
from mongo.sqlite import open_sqlite_store  # noqa: E402  # as above
from retrieval.memory import Memory  # noqa: E402  # as above
from service.config.environment import read_settings  # noqa: E402  # as above
from service.container import open_services  # noqa: E402  # as above

HISTORY_END = datetime(2026, 2, 2, tzinfo=UTC)
BATCH = 1_000
WORKSPACE = "default"
MIB = 1024 * 1024
ASKED_S, ASKED_MIB = 600, 1536
"""For 1 million executions on two cores."""


async def fill(folder: Path, count: int) -> None:
    """Record the history and learn from all of it."""
    settings = read_settings().with_values(data={"dir": folder}, nightly={"every_h": 0})
    async with open_services(settings) as services:
        records = history.executions(count)
        done = 0
        while batch := [Execution.model_validate(each) for each in islice(records, BATCH)]:
            await services.intake.accept(WORKSPACE, batch)
            done += len(batch)
            await _learned(services.store, but=20 * BATCH)
            if done % (50 * BATCH) == 0:
                say(f"  {done:,} recorded")
        await _learned(services.store)


async def _learned(store: LogStore, but: int = 0) -> None:
    while (await store.counts()).pending > but:  # noqa: ASYNC110 - it is asked; nobody tells
        await asyncio.sleep(0.2)


async def nights(folder: Path) -> dict[str, Any]:
    """Two nights and an expiry over a filled store, in this process."""
    store = await open_sqlite_store(folder)
    counts = await store.counts()
    keeper = await take_night(store, 15.0)
    embedder = await open_embedder()

    def a_night() -> Night:
        async def open_model() -> Any:
            return embedder

        return Night(
            store=store, memory=Memory(store), open_model=open_model, keeper=keeper,
            clock=lambda: HISTORY_END,
        )  # fmt: skip

    base = peak_mib()
    first = await run_night(a_night())
    peak = peak_mib()
    second = await run_night(a_night())
    # All arrived within the filling: a tenth of that time is about a tenth of the log.
    [eldest] = await store.scan_executions(WORKSPACE, 0, 1)
    arrived = (await store.scan_executions(WORKSPACE, counts.executions // 10, 1))[0].received_at
    night = a_night()
    night.retention = HISTORY_END - max(arrived, eldest.received_at)
    started = time.perf_counter()
    expired = (await expire(night))["executions"]
    expiry_s = time.perf_counter() - started
    await keeper.close()
    await embedder.close()
    await store.close()
    return {
        "executions": counts.executions,
        "documents": counts.documents,
        "first": first.model_dump(mode="json"),
        "second": second.model_dump(mode="json"),
        "expiry": {"executions": expired, "seconds": round(expiry_s, 2)},
        "memoryMiB": {"before": round(base), "peak": round(peak)},
    }


def measure(source: Path | None, count: int) -> dict[str, Any]:
    """One size, each part in a process of its own so that memory is that of the part."""
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name) / "data"
        if source is None:
            say(f"filling a store with {count:,} executions")
            child("--fill", str(folder), "--executions", str(count))
        else:
            say(f"copying {source}")
            shutil.copytree(source, folder)
        say("two nights")
        figures: dict[str, Any] = json.loads(child("--nights", str(folder)))
        return figures


def child(*arguments: str) -> str:
    """This program in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("AFTERCALL_")},
    )  # fmt: skip
    return done.stdout


def table(runs: list[dict[str, Any]]) -> str:
    """Steps by size, with what was asked for."""
    names = [step["name"] for step in runs[0]["first"]["steps"]]
    head = f"{'':<26}" + "".join(f"{run['executions']:>16,}" for run in runs)
    lines = [head]

    def row(name: str, texts: list[str], asked: str = "") -> None:
        lines.append(f"{name:<26}" + "".join(f"{text:>16}" for text in texts) + f"  {asked}")

    for place, name in enumerate(names):
        row(f"{name}, s", [f"{run['first']['steps'][place]['seconds']:.1f}" for run in runs])
    row("first night, s", [f"{run['first']['seconds']:.1f}" for run in runs],
        f"< {ASKED_S} s at 1,000,000")  # fmt: skip
    row("executions a second", [f"{run['executions'] / seconds(run, 0):,.0f}" for run in runs])
    row("second night, s", [f"{run['second']['seconds']:.1f}" for run in runs])
    row("patterns", [f"{run['first']['steps'][1]['counts']['patterns']:,}" for run in runs])
    row("expired a second",
        [f"{run['expiry']['executions'] / max(run['expiry']['seconds'], 0.01):,.0f}"
         for run in runs])  # fmt: skip
    row("peak memory, MiB", [f"{run['memoryMiB']['peak']:,}" for run in runs],
        f"< {ASKED_MIB} MiB")  # fmt: skip
    return "\n".join(line.rstrip() for line in lines)


def seconds(run: dict[str, Any], place: int) -> float:
    """Of a step of the first night, never 0."""
    return max(float(run["first"]["steps"][place]["seconds"]), 0.001)


def peak_mib() -> float:
    """Largest resident memory of this process so far; Linux says it in KiB, macOS in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB


def say(line: str) -> None:
    """Progress."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", default="10000,100000,1000000", help="sizes, by commas")
    parser.add_argument("--data", type=Path, metavar="DIR", help="a filled data folder to copy")
    parser.add_argument("--quick", action="store_true", help="5,000 executions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--nights", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fill:
        asyncio.run(fill(args.fill, int(args.executions)))
        return
    if args.nights:
        print(json.dumps(asyncio.run(nights(args.nights))))
        return
    sizes = [5_000] if args.quick else [int(each) for each in args.executions.split(",")]
    runs = [measure(args.data, 0)] if args.data else [measure(None, each) for each in sizes]
    figures = {
        "machine": {
            "cpus": os.cpu_count(),
            "platform": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "runs": runs,
    }
    print(table(runs))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
