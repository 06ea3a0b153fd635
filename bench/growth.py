"""What 10 million, 100 million and a billion executions a day would take: a simulation.

    python -m bench.growth [--write]

No such fleet is here, so this extrapolates: sizes of one execution and one document are measured on
the history of `bench/history.py` (as BSON, compressed in blocks as WiredTiger does), rates of one
process are read from `docs/figures/speed.json` and `scale.json`, which the other benchmarks wrote
on two cores, and the rest are the assumptions that the page lists. Days are simulated hour by hour
with a working day's ups and downs, since it is the busiest hour that must be borne.

`--write` puts `growth.md` and `growth.json` into `docs/figures/`, and the capacity table into
`docs/operations.md`.
"""

import argparse
import json
import math
import zlib
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import bson

from aftercall.models import Execution
from bench import history
from bench.figures import made_by, write_marked

ROOT = Path(__file__).parents[1]

FIGURES = ROOT / "docs" / "figures"
OPERATIONS = ROOT / "docs" / "operations.md"

Json = dict[str, Any]

DAILY = (10_000_000, 100_000_000, 1_000_000_000)
GIB, TIB = 2**30, 2**40
BLOCK = 32 * 1024
"""Bytes that WiredTiger compresses together, by its default."""


@dataclass(frozen=True)
class Assumptions:
    """What is not measured here."""

    retention_days: int = 90
    busiest_hour: float = 2.5
    """Executions of the busiest hour, in those of an average one."""
    tools_at_10m: int = 2_000
    tools_growth: float = 0.5
    """Exponent: tools grow with the executions to the power of this (Heaps' law)."""
    index_bytes: int = 220
    """Of MongoDB's five indexes, per execution, prefix-compressed."""
    copies: int = 3
    """Members of a replica set, and copies of a Qdrant shard, that each hold everything."""
    shard_data: int = 2 * TIB
    """Data that one MongoDB shard is let grow to."""
    shard_writes: int = 15_000
    """Executions a second that one shard's primary makes durable (majority, bulk writes)."""
    load: float = 0.6
    """How much of its measured rate a process is planned to be used."""
    night_h: float = 4.0
    """Hours in which the nightly run shall be done."""
    sampled: float = 0.1
    """Share of successes that is kept where sampling is on (`AFTERCALL_SAMPLING_*`)."""
    failing: float = 0.25
    """Share of executions that fail; all of them are kept."""


@dataclass(frozen=True)
class Costs:
    """What is measured: bytes of one record, and a process's executions a second."""

    execution_bson: float
    execution_compressed: float
    documents_per_tool: float
    vector_disk: float
    vector_memory: float
    record_per_s: float
    learn_per_s: float
    nightly_per_s: float
    embed_per_s: float


@dataclass(frozen=True)
class Fleet:
    """What one load takes."""

    daily: int
    sampled: bool
    kept_daily: int
    busiest_per_s: float
    log_tib: float
    shards: int
    documents: int
    vector_memory_gib: float
    services: int
    workers: int
    nightly_h_of_one: float
    nightlies: int
    reembed_h_of_one: float


def sizes(count: int = 20_000) -> tuple[float, float]:
    """Bytes of one execution as BSON, and compressed in blocks."""
    blocks: list[bytes] = []
    total, packed = 0, 0
    size = 0
    for number, record in enumerate(islice(history.executions(count), count)):
        execution = Execution.model_validate(record)
        document = bson.encode(
            {
                "_id": f"default\x1f{execution.execution_id}",
                "workspace": "default",
                "execution_id": execution.execution_id,
                "position": number,
                "agent": execution.agent,
                "server_name": execution.server_name or "",
                "tool_name": execution.tool_name,
                "session_id": execution.session_id,
                "sequence": execution.sequence,
                "outcome": execution.outcome,
                "timestamp": execution.timestamp,
                "received_at": execution.timestamp,
                "learned_since": execution.timestamp,
                "duration_ms": execution.duration_ms,
                "error_type": execution.error.type if execution.error else None,
                "content_hash": "0" * 64,
                "stands_for": 1,
                "data": execution.model_dump_json(),
            }
        )
        total += len(document)
        blocks.append(document)
        size += len(document)
        if size >= BLOCK:
            # zlib's fastest level packs about as well as the snappy-to-zstd range of WiredTiger.
            packed += len(zlib.compress(b"".join(blocks), 1))
            blocks, size = [], 0
    return total / count, packed / count


def vector_sizes(dimension: int = 384, terms: int = 40, links: int = 16) -> tuple[float, float]:
    """Bytes of one document in Qdrant: on disk, and in memory.

    On disk the vector in half precision and as eight-bit integers, its links (`2 m` in the lowest
    layer, a little above), sparse terms (id and weight) and the payload; in memory the integers,
    the links and the indexes of payload and terms.
    """
    graph = 2 * links * 4 * 1.1
    sparse = terms * 8
    payload = 250
    return dimension * 2 + dimension + graph + sparse + payload, dimension + graph + sparse + 150


def simulate(daily: int, costs: Costs, given: Assumptions, *, sampled: bool) -> Fleet:
    """One load, hour by hour over the retention."""
    kept_share = given.failing + (1 - given.failing) * given.sampled if sampled else 1.0
    kept = daily * kept_share
    hours = [
        1 + (given.busiest_hour - 1) * math.cos((hour - 14) / 24 * 2 * math.pi)
        for hour in range(24)
    ]
    hours = [max(hour, 0.2) for hour in hours]
    busiest_per_s = daily / 3600 * max(hours) / sum(hours)
    kept_per_s = busiest_per_s * kept_share
    log_bytes = kept * given.retention_days * (costs.execution_compressed + given.index_bytes)
    tools = given.tools_at_10m * (daily / DAILY[0]) ** given.tools_growth
    documents = tools * costs.documents_per_tool
    nightly_h = kept / costs.nightly_per_s / 3600
    return Fleet(
        daily=daily,
        sampled=sampled,
        kept_daily=round(kept),
        busiest_per_s=busiest_per_s,
        log_tib=log_bytes / TIB,
        shards=max(
            math.ceil(log_bytes / given.shard_data), math.ceil(kept_per_s / given.shard_writes)
        ),
        documents=round(documents),
        vector_memory_gib=documents * costs.vector_memory / GIB,
        services=math.ceil(busiest_per_s / (costs.record_per_s * given.load)),
        workers=math.ceil(kept_per_s / (costs.learn_per_s * given.load)),
        nightly_h_of_one=nightly_h,
        nightlies=math.ceil(nightly_h / given.night_h),
        reembed_h_of_one=documents / costs.embed_per_s / 3600,
    )


def measured() -> Costs:
    """Sizes measured now, rates as the other benchmarks wrote them.

    Raises:
        SystemExit: when they did not run yet.
    """
    try:
        speed = json.loads((FIGURES / "speed.json").read_text(encoding="utf-8"))
        scale = json.loads((FIGURES / "scale.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise SystemExit(
            f"{error.filename} is missing: run `python -m bench` and "
            "`python -m bench.scale --write` first"
        ) from None
    plain, packed = sizes()
    disk, memory = vector_sizes()
    service = speed["service"]
    return Costs(
        execution_bson=plain,
        execution_compressed=packed,
        documents_per_tool=scale["growth"]["documents"]["large"] / service["tools"],
        vector_disk=disk,
        vector_memory=memory,
        record_per_s=service["record"]["perSecond"],
        learn_per_s=service["record"]["indexedPerSecond"],
        nightly_per_s=scale["nightly"]["perSecond"],
        embed_per_s=scale["rebuild"]["embedderPerSecond"],
    )


def capacity_table(fleets: list[Fleet]) -> str:
    """The fleets as a Markdown table."""
    lines = [
        "| executions a day | kept of them | busiest second | log of 90 days, one copy | MongoDB "
        "shards | distinct documents | vectors in memory, one copy | services | workers | nightly: "
        "one process, processes for 4 h |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in fleets:
        kept = "sampled: " if each.sampled else ""
        lines.append(
            f"| {each.daily / 1e6:,.0f} M | {kept}{each.kept_daily / 1e6:,.1f} M | "
            f"{each.busiest_per_s:,.0f} | {each.log_tib:,.1f} TiB | {each.shards} | "
            f"{each.documents:,} | {each.vector_memory_gib:,.2f} GiB | {each.services} | "
            f"{each.workers} | {each.nightly_h_of_one:,.1f} h, {each.nightlies} |"
        )
    return "\n".join(lines)


def page(fleets: list[Fleet], costs: Costs, given: Assumptions) -> str:
    """The Markdown page: the table, what was measured, what was assumed."""
    measured_rows = {
        "one execution as BSON": f"{costs.execution_bson:,.0f} bytes",
        "  compressed in blocks of 32 KiB": f"{costs.execution_compressed:,.0f} bytes",
        "distinct documents of one tool": f"{costs.documents_per_tool:,.0f}",
        "one document in Qdrant (by its layout)": f"{costs.vector_disk:,.0f} bytes on disk, "
        f"{costs.vector_memory:,.0f} in memory",
        "one service, two cores": f"records {costs.record_per_s:,.0f} executions/s",
        "one worker, two cores": f"learns from {costs.learn_per_s:,.0f} executions/s, embeds "
        f"{costs.embed_per_s:,.0f} documents/s",
        "one nightly run, two cores": f"{costs.nightly_per_s:,.0f} executions/s",
    }
    assumed = {
        "retention": f"{given.retention_days} days",
        "the busiest hour": f"{given.busiest_hour} average ones",
        "tools": f"{given.tools_at_10m:,} at 10 M a day, growing with the power "
        f"{given.tools_growth} of the executions",
        "indexes of one execution in MongoDB": f"{given.index_bytes} bytes",
        "one shard": f"{given.shard_data / TIB:.0f} TiB of data, {given.shard_writes:,} durable "
        "executions/s (not measured: no such server is here)",
        "copies": f"{given.copies} (multiply what is said of one)",
        "planned load of a process": f"{given.load:.0%} of its measured rate",
        "sampling, where on": f"{given.sampled:.0%} of the successes, all failures "
        f"({given.failing:.0%} of the calls)",
    }
    return "\n".join(
        [
            "# Growth",
            "",
            made_by("python -m bench.growth --write"),
            "",
            "A simulation, no measurement: what is measured on two cores with the embedded stores "
            "is multiplied.",
            "",
            capacity_table(fleets),
            "",
            "Learning is parallel over workspaces: one workspace is learned by one worker at a "
            "time, so a fleet of many workers needs as many workspaces that share the load. So is "
            "the nightly run's counting; `aftercall nightly` itself runs one at a time, and the "
            "processes of the last column are what it would have to be cut into by workspace. "
            "Where that column says more than one, cut the fleet into several deployments, or "
            "sample.",
            "",
            "| measured | |",
            "|---|---|",
            *(f"| {what} | {value} |" for what, value in measured_rows.items()),
            "",
            "| assumed | |",
            "|---|---|",
            *(f"| {what} | {value} |" for what, value in assumed.items()),
            "",
        ]
    )


def main() -> None:
    """Simulate, print, and write when told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/figures/growth.*")
    args = parser.parse_args()
    costs, given = measured(), Assumptions()
    fleets = [
        simulate(daily, costs, given, sampled=sampled)
        for daily in DAILY
        for sampled in (False, True)
    ]
    text = page(fleets, costs, given)
    print(text)
    if args.write:
        (FIGURES / "growth.md").write_text(text, encoding="utf-8")
        figures = {
            "fleets": [asdict(each) for each in fleets],
            "costs": asdict(costs),
            "assumptions": asdict(given),
        }
        (FIGURES / "growth.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
        write_marked(OPERATIONS, "capacity", capacity_table(fleets))


if __name__ == "__main__":
    main()
