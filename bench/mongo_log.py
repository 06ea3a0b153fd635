"""What readable entries of the log cost on MongoDB: bytes, and recorded executions a second.

    python -m bench.mongo_log [--executions 6000] [--mongo URI] [--json]

The same calls are recorded twice, in turns on one server: as fields, and as what is no JSON, which
the store keeps as one binary field. The server is `nx-27017` unless one is named.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from uuid import uuid4

import bson
from pymongo import AsyncMongoClient

from aftercall.models import Execution
from bench import history
from mongo.contents import execution_event
from mongo.mongodb.database import Record
from mongo.mongodb.store import MongoOptions, open_mongo_store
from mongo.records import Event
from tests.mongo.mongo_server import MongoServer

BATCH = 100
ROUNDS = 6
WORKSPACE = "default"


@dataclass(frozen=True)
class Cost:
    """Of an execution as fields, beside it as one binary field; bytes without indexes."""

    bytes_as_fields: float
    bytes_as_binary: float
    fields_per_second: float
    binary_per_second: float
    kept_twice: int
    """Executions whose content also stands beside the fields."""

    @property
    def bytes_ratio(self) -> float:
        """Above 1: the fields take more."""
        return self.bytes_as_fields / self.bytes_as_binary

    @property
    def speed_ratio(self) -> float:
        """Below 1: the fields are recorded more slowly."""
        return self.fields_per_second / self.binary_per_second


def events_of(count: int) -> list[Event]:
    """Executions of the made-up history, as the intake makes events of them."""
    events = []
    for each in islice(history.executions(count), count):
        each.pop("inputSchema", None)
        execution = Execution.model_validate(each)
        events.append(
            execution_event(
                WORKSPACE, execution, content_hash="0" * 64, schema_hash=None, input_schema=None
            )
        )
    return events


async def measure(uri: str, count: int) -> Cost:
    """Record them in turns, in a database of its own, which is dropped."""
    events = events_of(count)
    binary = [replace(each, data=b"\xff" + each.data[1:], id=str(uuid4())) for each in events]
    options = MongoOptions(uri, f"aftercall_bench_{uuid4().hex[:8]}", timeout_s=120)
    rates: dict[str, list[float]] = {"fields": [], "binary": []}
    async with AsyncMongoClient[Record](uri, tz_aware=True) as client:
        store = await open_mongo_store(options)
        try:
            step = count // ROUNDS
            for first in range(0, step * ROUNDS, step):
                for form, of in (("fields", events), ("binary", binary)):
                    began = time.perf_counter()
                    for start in range(first, first + step, BATCH):
                        await store.events.append(
                            WORKSPACE, of[start : min(start + BATCH, first + step)]
                        )
                    rates[form].append(step / (time.perf_counter() - began))
            log = client[options.database]["TOOL_EXECUTION_LOG"]
            found = await log.find({"workspace": WORKSPACE}).to_list()
        finally:
            await store.close()
            await client.drop_database(options.database)
    fields = [each for each in found if "executionId" in each]
    return Cost(
        bytes_as_fields=_bytes(fields),
        bytes_as_binary=_bytes([each for each in found if "executionId" not in each]),
        fields_per_second=statistics.median(rates["fields"]),
        binary_per_second=statistics.median(rates["binary"]),
        kept_twice=sum("data" in each for each in fields),
    )


def _bytes(records: Sequence[Record]) -> float:
    return statistics.fmean(len(bson.encode(each)) for each in records)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--executions", type=int, default=6_000, metavar="N")
    parser.add_argument("--mongo", metavar="URI", help="else nx-27017 is started")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-mongo-log-") as folder:
        server = None if args.mongo else MongoServer.start(Path(folder))
        try:
            cost = asyncio.run(
                measure(args.mongo or (server.uri if server else ""), args.executions)
            )
        finally:
            if server is not None:
                server.stop()
    if args.json:
        print(json.dumps(asdict(cost)))
        return
    twice = f"{cost.kept_twice} of them kept twice"
    rows = (
        ("bytes of a record", cost.bytes_as_fields, cost.bytes_as_binary, cost.bytes_ratio),
        ("recorded a second", cost.fields_per_second, cost.binary_per_second, cost.speed_ratio),
    )
    for name, fields, binary, ratio in rows:
        print(f"{name}: {fields:,.0f} as fields, {binary:,.0f} as one binary field: x {ratio:.2f}")
    print(f"{args.executions:,} executions, {twice}")


if __name__ == "__main__":
    main()
