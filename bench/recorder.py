"""How long a hand-over to the recorder takes, for the program that records.

A service on loopback, in a process of its own, acknowledges everything; the recorder's thread
redacts, encodes and sends all the while. Executions come in bursts at a steady rate that the
recorder keeps up with. Beside it stands what one would do without a recorder: `Client.record`.

    python -m bench.recorder [--json] [--hand-overs 100000] [--rate 4000] [--repeats 5]
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection

from aftercall import Client, Execution, Recorder

BURST = 10
"""Executions handed over in a row: what an agent's parallel tool calls may give."""

DIRECT_CALLS = 500


@dataclass(frozen=True)
class Percentiles:
    """Microseconds."""

    p50: float
    p99: float
    p999: float
    largest: float


def percentiles(nanoseconds: list[int]) -> Percentiles:
    ordered = sorted(nanoseconds)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1000

    return Percentiles(at(0.5), at(0.99), at(0.999), ordered[-1] / 1000)


def executions(number: int) -> list[Execution]:
    """Some 600 bytes of JSON each; one in four is a failure, one in four holds a secret."""
    made = []
    for index in range(number):
        failed = index % 4 == 0
        parameters = {"query": "reflection on tool calls", "topK": index % 60, "offset": index}
        made.append(
            Execution.model_validate(
                {
                    "executionId": str(uuid.uuid4()),
                    "timestamp": "2026-02-20T14:30:00Z",
                    "agent": "librarian",
                    "serverName": "rag-server",
                    "toolName": "rag_query",
                    "parameters": parameters | ({"apiKey": "k" * 32} if index % 4 == 1 else {}),
                    "context": "researching papers on reflection and retrieval",
                    "outcome": "failure" if failed else "success",
                    "error": {"message": "topK must be <= 10"} if failed else None,
                    "result": None if failed else {"hits": [{"id": 1, "score": 0.5}] * 3},
                    "durationMs": 245.0,
                    "sessionId": "s-1",
                    "sequence": index,
                }
            )
        )
    return made


async def _serve(ready: Connection) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(size)
                receipt = b'{"accepted":%d}' % body.count(b'"executionId":')
                head = b"HTTP/1.1 202 Accepted\r\ncontent-length: %d\r\n\r\n" % len(receipt)
                writer.write(head + receipt)
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def serve(ready: Connection) -> None:
    asyncio.run(_serve(ready))


@contextmanager
def service() -> Iterator[str]:
    """The address of a service in another process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def hand_over(recorder: Recorder, batch: list[Execution], hand_overs: int, rate: int) -> list[int]:
    """Nanoseconds of each hand-over, at `rate` a second."""
    took = []
    clock = time.perf_counter_ns
    start = time.perf_counter()
    for first in range(0, hand_overs, BURST):
        ahead = start + first / rate - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        for number in range(first, first + BURST):
            execution = batch[number % len(batch)]
            before = clock()
            recorder.record(execution)
            took.append(clock() - before)
    return took


def measure(hand_overs: int, rate: int, repeats: int) -> dict[str, object]:
    batch = executions(2000)
    runs = []
    with service() as url, tempfile.TemporaryDirectory() as spool:
        for _ in range(repeats):
            with Recorder(base_url=url, spool_dir=spool) as recorder:
                runs.append(percentiles(hand_over(recorder, batch, hand_overs, rate)))
                if not recorder.flush(30) or recorder.stats().sent != hand_overs:
                    raise SystemExit(
                        f"not all arrived, the run counts for nothing: {recorder.stats()}"
                    )
        with Client(url) as client:
            direct = []
            for execution in batch[:DIRECT_CALLS]:
                before = time.perf_counter_ns()
                client.record(execution)
                direct.append(time.perf_counter_ns() - before)
    p99 = statistics.median(run.p99 for run in runs)
    baseline = percentiles(direct)
    return {
        "hand_over_us": {
            "p50": statistics.median(run.p50 for run in runs),
            "p99": p99,
            "p999": statistics.median(run.p999 for run in runs),
        },
        "runs_us": [asdict(run) for run in runs],
        "client_record_us": asdict(baseline),
        "p99_ratio_to_client_record": p99 / baseline.p99,
        "hand_overs": hand_overs,
        "rate_per_s": rate,
        "repeats": repeats,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {multiprocessing.cpu_count()} cores",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--hand-overs", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=4_000, help="hand-overs a second")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    result = measure(options.hand_overs, options.rate, options.repeats)
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        print()
        return
    for name in ("hand_over_us", "client_record_us"):
        row = result[name]
        assert isinstance(row, dict)
        print(name.ljust(20), *(f"{key} {value:9.2f}" for key, value in row.items()))
    print("p99 of the runs     ", *(f"{run['p99']:.2f}" for run in result["runs_us"]))  # type: ignore[attr-defined]  # a list


if __name__ == "__main__":
    main()
