"""How the embedded service grows: `/suggest` from 10 k to 1 M executions, nightly, rebuild.

    python -m bench.scale [--small DIR --large DIR] [--quick] [--write | --only near|rebuild]

Fills a small and a large data folder with the history of `bench/history.py` through a real
`aftercall serve` (the large one takes a quarter of an hour), unless folders that are filled are
named: those are copied and stay as they are. Then

- both are served at once, and asked in turns about the same failures, so that what else the
  machine does meets both: the ratio of the medians is the figure;
- `aftercall nightly` runs over the large one, in a process of its own whose memory is watched;
- `aftercall rebuild` runs over a store of many distinct documents, and the embedder is timed over
  the very texts that it had to embed, by itself, in the same run;
- `aftercall nightly` runs over failures of one tool in a hundred wordings that are alike.

`--only` measures one of the last two and prints it as JSON. `--write` puts `scale.md` and
`scale.json` into `docs/figures/`.
"""

import argparse
import asyncio
import json
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import history
from bench.processes import run_watched
from bench.service import Service, ask, load, percentiles, say, serving
from embeddings.embedders import open_embedder
from ingest.pacing import EMBED_BATCH
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import DOCUMENT
from retrieval.knowledge.rows.log import count_rows

ROOT = Path(__file__).parents[1]

SMALL, LARGE = 10_000, 1_000_000
ROUNDS, QUESTIONS, WARM_UP = 8, 50, 400
"""Questions a round; and before, until each of 200 tools was asked about: the first time that is
asked about one, what is known of it is read and decoded, which is not what is compared here."""
FIGURES = ROOT / "docs" / "figures"
WHO = ("the worker", "the scheduler", "the database", "the cache", "the index", "the gateway",
       "the proxy", "the mailbox", "the calendar", "the upstream service")  # fmt: skip
WHAT = ("could not be reached", "refused the connection", "closed the stream", "has no leader",
        "returned an empty page", "rejected the certificate", "lost the lock", "ran out of slots",
        "is being migrated", "dropped the request")  # fmt: skip
"""Of the failures whose wordings are near one another."""

Json = dict[str, Any]


def filled(folder: Path, executions: int, given: Path | None) -> Path:
    """A data folder with so many learned executions: a copy of a given one, or a new one."""
    data = folder / f"data-{executions}"
    if given is not None:
        say(f"copying {given}")
        shutil.copytree(given, data)
        return data
    say(f"recording {executions:,} executions")
    with serving(data, folder / "fill.log") as service:
        load(service, executions)
        service.stop()
    return data


def growth(small: Path, large: Path, folder: Path, rounds: int) -> Json:
    """Milliseconds of `/suggest` on both, asked in turns."""
    count = rounds * QUESTIONS + WARM_UP
    kinds = {
        "new": list(history.new_failures(count)),
        "repeated": list(history.repeated_failures(count)),
    }
    with ExitStack() as stack:
        services: dict[str, Service] = {
            name: stack.enter_context(serving(data, folder / f"{name}.log"))
            for name, data in (("small", small), ("large", large))
        }
        found: Json = {"executions": {}, "documents": {}, "ms": {}, "ratios": {}}
        for name, service in services.items():
            status = service.status()
            found["executions"][name] = status["executions"]
            found["documents"][name] = status["documents"]
        for kind, failures in kinds.items():
            times: dict[str, list[float]] = {name: [] for name in services}
            for service in services.values():
                ask(service, failures[:WARM_UP], 0)
            for number in range(rounds):
                start = WARM_UP + number * QUESTIONS
                for name, service in services.items():
                    times[name] += ask(service, failures[start : start + QUESTIONS], 0)
            found["ms"][kind] = {name: percentiles(each) for name, each in times.items()}
            found["ratios"][kind] = statistics.median(times["large"]) / statistics.median(
                times["small"]
            )
        found["memoryMiB"] = {name: service.rss_mib() for name, service in services.items()}
        for service in services.values():
            service.stop()
    return found


def nightly(large: Path, executions: int) -> Json:
    """A nightly run over the whole log, from the beginning, and one that finds nothing new."""
    say("running the nightly ingest, twice")
    done, again = (run_watched("nightly", "--json", "--data-dir", str(large)) for _ in range(2))
    return {
        "executions": executions,
        "seconds": done.seconds,
        "perSecond": executions / done.seconds,
        "peakMiB": done.peak_mib,
        "report": json.loads(done.output),
        "again": {
            "seconds": again.seconds,
            "peakMiB": again.peak_mib,
            "report": json.loads(again.output),
        },
    }


def many_documents(folder: Path, documents: int) -> Path:
    """A data folder of executions that share as little as executions can."""
    say(f"recording executions of about {documents:,} distinct documents")
    return recorded(folder / "data-documents", _distinct(documents // 2))


def recorded(data: Path, executions: Iterator[Json]) -> Path:
    """A data folder of executions that are learned from, and have their vectors."""
    with serving(data, data.with_suffix(".log")) as service:
        connection = service.connect()
        for batch in batches(executions, 500):
            connection.request(
                "POST", "/executions", json.dumps(batch), {"content-type": "application/json"}
            )
            response = connection.getresponse()
            receipt = json.loads(response.read())
            if receipt.get("accepted") != len(batch):
                raise RuntimeError(str(receipt)[:500])
        connection.close()
        while service.status()["pendingIndexing"]:
            time.sleep(0.5)
        service.stop()
    return data


def rebuilding(data: Path) -> Json:
    """Documents a second of a whole rebuild, and of the embedder alone on their texts."""
    say("rebuilding")
    done = run_watched("rebuild", "--data-dir", str(data))
    texts, executions = asyncio.run(_texts(data))
    say(f"embedding {len(texts):,} texts by themselves")
    alone = asyncio.run(_embedding_alone(texts))
    return {
        "executions": executions,
        "documents": len(texts),
        "seconds": done.seconds,
        "perSecond": len(texts) / done.seconds,
        "executionsPerSecond": executions / done.seconds,
        "peakMiB": done.peak_mib,
        "embedderPerSecond": alone,
        "share": len(texts) / done.seconds / alone,
    }


async def _texts(data: Path) -> tuple[list[str], int]:
    store = await open_sqlite_store(data)
    try:
        texts: list[str] = []
        after = ""
        while rows := await store.knowledge.scan_rows("default", DOCUMENT.name, 1_000, after=after):
            texts += [DOCUMENT.decode_row(row).text for row in rows]
            after = rows[-1].key
        return texts, (await count_rows(store)).executions
    finally:
        await store.close()


async def _embedding_alone(texts: list[str]) -> float:
    """Texts a second, in the batches of the indexer, over a sample of them."""
    embedder = await open_embedder("all-MiniLM-L6-v2", cache_size=0, threads=2)
    sample = texts[:: max(1, len(texts) // 4_000)]
    await embedder.embed(sample[:EMBED_BATCH], "document")
    started = time.perf_counter()
    for start in range(0, len(sample), EMBED_BATCH):
        await embedder.embed(sample[start : start + EMBED_BATCH], "document")
    seconds = time.perf_counter() - started
    await embedder.close()
    return len(sample) / seconds


def _distinct(count: int) -> Iterator[Json]:
    """Executions of the history, each of a tool of its own: nothing is shared but the words."""
    for number, execution in enumerate(history.executions(count, seed=23)):
        yield execution | {"toolName": f"{execution['toolName']}_{number}"}


def near_patterns(folder: Path) -> Json:
    """Seconds of two nightly runs over failures of one tool that many causes word alike."""
    say("recording failures in wordings that are near one another")
    data = recorded(folder / "data-near", _near_failures(30 * len(WHO) * len(WHAT)))
    done, again = (run_watched("nightly", "--json", "--data-dir", str(data)) for _ in range(2))
    return {
        "wordings": len(WHO) * len(WHAT),
        "seconds": done.seconds,
        "report": json.loads(done.output),
        "again": {"seconds": again.seconds, "report": json.loads(again.output)},
    }


def _near_failures(count: int) -> Iterator[Json]:
    called = history.executions(count, seed=29)
    for number, execution in enumerate(called):
        who, what = WHO[number % len(WHO)], WHAT[number // len(WHO) % len(WHAT)]
        error = {"type": "RuntimeError", "message": f"{who} {what} while the page was loaded"}
        rest = {name: each for name, each in execution.items() if name != "result"}
        yield rest | {"serverName": "pages", "toolName": "fetch", "outcome": "failure",
                      "error": error}  # fmt: skip


def batches(records: Iterator[Json], size: int) -> Iterator[list[Json]]:
    """Yield the records in lists of a size; the last may be shorter."""
    batch: list[Json] = []
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def page(figures: Json) -> str:
    """The Markdown page: asked and measured."""
    grown, night, again = figures["growth"], figures["nightly"], figures["rebuild"]
    ms, near = grown["ms"], figures["near"]

    def both(kind: str) -> str:
        small, large = ms[kind]["small"]["p50"], ms[kind]["large"]["p50"]
        return f"{grown['ratios'][kind]:.2f} ({small:.1f} ms to {large:.1f} ms)"

    small, large = grown["executions"]["small"], grown["executions"]["large"]
    limit = min(3_000.0, again["embedderPerSecond"])
    rows = [
        (f"`/suggest`, new failure: p50 at {large:,} to {small:,} executions", "at most 1.2",
         both("new")),
        ("`/suggest`, repeated failure: the same", "at most 1.2", both("repeated")),
        (f"nightly over {night['executions']:,} executions", "at most 1 min",
         f"{night['seconds'] / 60:.1f} min ({night['perSecond']:,.0f} executions/s)"),
        ("  its memory, largest seen", "under 1.5 GiB", f"{night['peakMiB'] / 1024:.2f} GiB"),
        (f"rebuild of {again['documents']:,} distinct documents from {again['executions']:,} "
         "executions", f"{limit:,.0f}/s (3,000 or the embedder's limit)",
         f"{again['perSecond']:,.0f}/s ({again['share']:.0%} of the embedder alone)"),
        (f"nightly over {near['wordings']} near wordings of one tool's failures; the night after",
         "at most 2 s", f"{near['seconds']:.1f} s; {near['again']['seconds']:.1f} s"),
    ]  # fmt: skip
    nights = [night["report"]["steps"], night["again"]["report"]["steps"]]
    lines = [
        "# Scale",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, 2 shared cores, Python "
        f"{platform.python_version()}, embedded stores. Made by `python -m bench.scale --write`; "
        "everything measured is in `scale.json`.",
        f"The history of `bench/history.py`: {grown['documents']['small']:,} distinct documents at "
        f"{small:,} executions, {grown['documents']['large']:,} at {large:,}.",
        "",
        "| figure | asked | measured |",
        "|---|---|---|",
        *(f"| {what} | {asked} | {measured} |" for what, asked, measured in rows),
        "",
        f"Memory of the service that was asked: {grown['memoryMiB']['small']:,.0f} MiB with "
        f"{small:,} executions, {grown['memoryMiB']['large']:,.0f} MiB with {large:,}.",
        "",
    ]
    lines += [
        f"The second night, which finds nothing new, takes {night['again']['seconds']:.0f} s.",
        "",
        "| step of the nightly run | seconds | the night after |",
        "|---|---|---|",
        *(
            f"| {first['name']} | {first['seconds']:.1f} | {second['seconds']:.1f} |"
            for first, second in zip(*nights, strict=True)
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write when told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=Path, help=f"a data folder with {SMALL:,} executions")
    parser.add_argument("--large", type=Path, help=f"a data folder with {LARGE:,} executions")
    parser.add_argument("--quick", action="store_true", help="a fiftieth, for trying it out")
    parser.add_argument("--only", choices=("near", "rebuild"), help="measure nothing else")
    parser.add_argument("--write", action="store_true", help="write docs/figures/scale.*")
    args = parser.parse_args()
    scale = 50 if args.quick else 1
    with tempfile.TemporaryDirectory(prefix="aftercall-scale-") as name:
        folder = Path(name)
        if args.only == "near":
            print(json.dumps(near_patterns(folder), indent=1))
            return
        if args.only == "rebuild":
            print(json.dumps(rebuilding(many_documents(folder, 20_000 // scale)), indent=1))
            return
        small = filled(folder, SMALL // scale, args.small)
        large = filled(folder, LARGE // scale, args.large)
        say("asking both in turns")
        grown = growth(small, large, folder, ROUNDS // (4 if args.quick else 1))
        figures = {
            "growth": grown,
            "nightly": nightly(large, grown["executions"]["large"]),
            "rebuild": rebuilding(many_documents(folder, 20_000 // scale)),
            "near": near_patterns(folder),
        }
    text = page(figures)
    print(text)
    if args.write:
        (FIGURES / "scale.md").write_text(text, encoding="utf-8")
        (FIGURES / "scale.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
