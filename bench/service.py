"""How fast and how large the service is, through HTTP, on a history of its own making.

    python -m bench.service [--executions 100000] [--quick] [--json FILE]

A real `aftercall serve` with the default model on a temporary folder. It records the history of
`bench/history.py` in batches of 100 over two connections and says how fast they became durable and
when the last was learned from. Then it is started again three times, and `/suggest` is asked about
failures that the history does not have and about one that repeats, over one connection, while
nothing else happens, and `/check` about calls; then `/suggest` again while 1,000 executions are
recorded each second. The floor (`bench/floor.py`) is measured before and after in the same run over
a copy of the same vectors. At last a service on an empty folder is sent 3,000 executions a second:
how many of them were learned meanwhile is said.
"""

import argparse
import http.client
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from bench import history

ROOT = Path(__file__).parents[1]

BATCH = 100
CONNECTIONS = 2
MIB = 1024 * 1024
MAX_INDEXING_S = 3600
AT_ONCE, AT_ONCE_S = 3_000, 20
"""Executions a second that are to be recorded and learned at once, and for how long."""
BESIDE, BESIDE_S = 1_000, 60
"""Executions a second that are recorded while `/suggest` is asked, and for how long at most."""
IDLE_S = 15
"""After all is learned, until it is looked what memory a service takes that nobody asks."""


@dataclass(frozen=True)
class Service:
    """A running `aftercall serve`."""

    process: "subprocess.Popen[str]"
    url: str
    ready_s: float

    def connect(self) -> http.client.HTTPConnection:
        """A connection of one's own; it stays open."""
        parts = urlsplit(self.url)
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)

    def status(self) -> dict[str, Any]:
        """What `/status` says."""
        connection = self.connect()
        try:
            connection.request("GET", "/status")
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer

    def unlearned(self) -> float:
        """Events that nothing was learned from yet."""
        connection = self.connect()
        try:
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        finally:
            connection.close()
        pending, vectors = (
            page.partition(f"\naftercall_pending_{name} ")[2].partition("\n")[0]
            for name in ("indexing", "vectors")
        )
        # Neither is there where the store was too busy to answer in time.
        return float(pending) - float(vectors) if pending and vectors else math.inf

    def rss_mib(self) -> float:
        """Resident memory of the process and its children, in MiB."""
        parent = psutil.Process(self.process.pid)
        total = 0
        for process in (parent, *parent.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total / MIB

    def stop(self) -> None:
        """Gracefully; raises when it did not end well."""
        self.process.terminate()
        if self.process.wait(timeout=60) != 0:
            raise RuntimeError(f"the service ended with {self.process.returncode}")


@contextmanager
def serving(
    folder: Path, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Start the service and wait until it is ready; seconds from the start of the process."""
    with log.open("a") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "aftercall.cli", "serve", "--port", "0",
             "--data-dir", str(folder), "--log-format", "json"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True,
            # Compiled, as pip installs it, also where Python is told to write no bytecode.
            env={k: v for k, v in os.environ.items() if not k.startswith("AFTERCALL_")}
            | {"AFTERCALL_NIGHTLY_EVERY_H": "0", "PYTHONDONTWRITEBYTECODE": "",
               "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode")}
            | dict(environment or {}),
        )  # fmt: skip
        try:
            line = process.stdout.readline() if process.stdout else ""
            ready_s = time.perf_counter() - started
            if " ready at " not in line:
                raise RuntimeError(f"the service did not start: {log.read_text()[-2000:]}")
            yield Service(process, line.split(" ready at ")[1].split()[0], ready_s)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(timeout=60)
            if process.stdout:
                process.stdout.close()


@dataclass
class Loaded:
    """What recording the history came to."""

    executions: int
    seconds: float
    learning_s: float
    """From the first call on, until all were learned from; vectors come later."""
    lag_s: float
    peak_mib: float
    idle_mib: float = 0.0
    """A while after all was learned."""
    batch_ms: list[float] = field(default_factory=list)


def load(service: Service, executions: int) -> Loaded:
    """Record the history and wait until all of it is learned from."""
    records = history.executions(executions)
    bodies = iter([json.dumps(b).encode() for b in iter(lambda: list(islice(records, BATCH)), [])])
    lock = threading.Lock()
    batch_ms: list[float] = []
    faults: list[str] = []

    def send() -> None:
        connection = service.connect()
        while True:
            with lock:
                body = next(bodies, None)
            if body is None:
                connection.close()
                return
            started = time.perf_counter()
            connection.request("POST", "/executions", body, {"content-type": "application/json"})
            response = connection.getresponse()
            receipt = json.loads(response.read())
            batch_ms.append((time.perf_counter() - started) * 1000)
            if response.status != 202 or receipt["rejected"]:
                faults.append(str(receipt)[:500])

    threads = [threading.Thread(target=send) for _ in range(CONNECTIONS)]
    peak = 0.0
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        peak = max(peak, service.rss_mib())
        threads[0].join(timeout=0.5)
        threads[-1].join(timeout=0.01)
    seconds = time.perf_counter() - started
    if faults:
        raise RuntimeError(f"{len(faults)} batches were not taken whole: {faults[0]}")
    learning_s = 0.0
    while service.status()["pendingIndexing"]:
        if not learning_s and not service.unlearned():
            learning_s = time.perf_counter() - started
        if time.perf_counter() - started > MAX_INDEXING_S:
            raise RuntimeError("indexing did not finish")
        peak = max(peak, service.rss_mib())
        time.sleep(0.5)  # asked more often, the page of metrics took a twelfth of the processor
    lag_s = time.perf_counter() - started - seconds
    learning_s = learning_s or seconds + lag_s
    peak = max(peak, service.rss_mib())
    time.sleep(IDLE_S)
    return Loaded(executions, seconds, learning_s, lag_s, peak, service.rss_mib(), batch_ms)


def bodies(known: int, count: int) -> list[bytes]:
    """Batches of the history behind the first `known` executions, `count` in all, as JSON.

    Made before anything is measured: this process asks as well, and would wait for itself.
    """
    records = islice(history.executions(1_000_000), known, known + count)
    return [json.dumps(each).encode() for each in iter(lambda: list(islice(records, BATCH)), [])]


def record_steadily(
    service: Service, per_second: int, stop: threading.Event, batches: Sequence[bytes]
) -> int:
    """Record batches at a pace, or as near to it as the service lets, until told to stop."""
    sent, started = 0, time.perf_counter()
    with closing(service.connect()) as connection:
        for body in batches:
            if stop.wait(max(0.0, started + sent / per_second - time.perf_counter())):
                return sent
            connection.request("POST", "/executions", body, {"content-type": "application/json"})
            response = connection.getresponse()
            if json.loads(response.read()).get("accepted") != BATCH:
                raise RuntimeError("a batch was not taken whole")
            sent += BATCH
    if stop.wait(2 * BATCH / per_second):  # the last one may just have been the last
        return sent
    raise RuntimeError("the history ended before the measuring did")


def at_once(folder: Path, log: Path) -> dict[str, float]:
    """Recorded and learned a second, of a service that is sent `AT_ONCE` a second."""
    stop, batches = threading.Event(), bodies(0, AT_ONCE * AT_ONCE_S)
    with serving(folder, log) as service:
        started = time.perf_counter()
        threading.Timer(AT_ONCE_S, stop.set).start()
        sent = record_steadily(service, AT_ONCE, stop, batches)
        seconds, left = time.perf_counter() - started, service.unlearned()
        service.stop()
    return {"recorded": sent / seconds, "learned": (sent - left) / seconds}


def ask_beside(
    service: Service, failures: Sequence[dict[str, Any]], warm_up: int, known: int
) -> list[float]:
    """As `ask`, while `BESIDE` executions a second are recorded."""
    stop, batches = threading.Event(), bodies(known, BESIDE * BESIDE_S)
    beside = threading.Thread(target=record_steadily, args=(service, BESIDE, stop, batches))
    beside.start()
    time.sleep(1)
    try:
        return ask(service, failures, warm_up)
    finally:
        stop.set()
        beside.join()


def check(service: Service, calls: Sequence[dict[str, Any]]) -> list[float]:
    """What `/check` says that it took, in milliseconds, of calls as the history has them."""
    names = ("agent", "serverName", "toolName", "parameters", "context", "sessionId")
    took = []
    with closing(service.connect()) as connection:
        for call in calls:
            body = json.dumps({"call": {name: call[name] for name in names}}).encode()
            connection.request("POST", "/check", body, {"content-type": "application/json"})
            took.append(json.loads(connection.getresponse().read())["tookMs"])
    return took


def ask(service: Service, failures: Sequence[dict[str, Any]], warm_up: int) -> list[float]:
    """Milliseconds of each `/suggest` over one connection; the first `warm_up` are left out."""
    bodies = [json.dumps({"execution": each}).encode() for each in failures]
    connection = service.connect()
    times: list[float] = []
    for body in bodies:
        started = time.perf_counter()
        connection.request("POST", "/suggest", body, {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        times.append((time.perf_counter() - started) * 1000)
        if response.status != 200:
            raise RuntimeError(answer.decode()[:500])
    connection.close()
    return times[warm_up:]


def floor(
    vectors: Path, failures: Sequence[dict[str, Any]], folder: Path
) -> dict[str, list[float]]:
    """Run `bench/floor.py` over these failures."""
    file = folder / "failures.json"
    file.write_text(json.dumps(failures))
    done = subprocess.run(
        [sys.executable, "-m", "bench.floor", "--vectors", str(vectors),
         "--failures", str(file)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}


def run(executions: int, questions: int) -> dict[str, Any]:
    """All figures; progress on stderr."""
    warm_up = 20
    new = list(history.new_failures(2 * questions + warm_up))
    repeated = list(history.repeated_failures(questions + warm_up))
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name)
        data, log = folder / "data", folder / "service.log"
        say(f"recording {executions:,} executions")
        with serving(data, log) as service:
            loaded = load(service, executions)
            status = service.status()
            service.stop()
        shutil.copytree(data / "vectors", folder / "vectors")
        say("starting again, three times")
        starts = []
        for _ in range(2):
            with serving(data, log) as service:
                starts.append(service.ready_s)
                service.stop()
        with serving(data, log) as service:
            starts.append(service.ready_s)
            time.sleep(IDLE_S)
            opened_mib = service.rss_mib()
            say("measuring the floor, /suggest, /check, and the floor again")
            floors = [floor(folder / "vectors", new[warm_up : warm_up + questions], folder)]
            new_ms = ask(service, new[: warm_up + questions], warm_up)
            repeated_ms = ask(service, repeated, warm_up)
            calls = list(islice(history.executions(executions + questions), executions, None))
            check(service, calls)
            check_ms = check(service, calls)
            floors.append(floor(folder / "vectors", new[warm_up : warm_up + questions], folder))
            rss_mib = service.rss_mib()
            say(f"asking while {BESIDE:,} executions a second are recorded")
            beside_ms = ask_beside(service, new[questions:], warm_up, executions)
            service.stop()
        say(f"recording {AT_ONCE:,} a second for {AT_ONCE_S} s")
        together = at_once(folder / "at-once", log)
    bare = {name: percentiles([*floors[0][name], *floors[1][name]]) for name in floors[0]}
    return {
        "machine": {
            "cpus": os.cpu_count(),
            "platform": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "executions": executions,
        "tools": 200,
        "documents": status["documents"],
        "questions": questions,
        "record": {
            "perSecond": loaded.executions / loaded.seconds,
            "batchMs": percentiles(loaded.batch_ms),
            "learnedPerSecond": loaded.executions / loaded.learning_s,
            "indexingLagS": loaded.lag_s,
            "indexedPerSecond": loaded.executions / (loaded.seconds + loaded.lag_s),
            "atOnce": together,
        },
        "startS": statistics.median(starts),
        "floorMs": bare,
        "suggestNewMs": percentiles(new_ms),
        "suggestRepeatedMs": percentiles(repeated_ms),
        "suggestBesideMs": percentiles(beside_ms),
        "checkMs": percentiles(check_ms),
        "ratios": {
            "newToEmbedding": percentiles(new_ms)["p50"] / bare["embedding"]["p50"],
            "newToFloor": percentiles(new_ms)["p50"] / bare["both"]["p50"],
            "repeatedToEmbedding": percentiles(repeated_ms)["p50"] / bare["embedding"]["p50"],
            "checkToEmbedding": percentiles(check_ms)["p50"] / bare["embedding"]["p50"],
            "besideP99ToP50": percentiles(beside_ms)["p99"] / percentiles(beside_ms)["p50"],
        },
        "memoryMiB": {
            "peakRecording": loaded.peak_mib,
            "afterRecording": loaded.idle_mib,
            "opened": opened_mib,
            "afterSuggest": rss_mib,
        },
    }


def table(figures: dict[str, Any]) -> str:
    """The figures beside what was asked for."""

    def times(values: dict[str, float]) -> str:
        return " / ".join(f"{values[name]:.2f}" for name in ("p50", "p95", "p99"))

    record, ratios, memory = figures["record"], figures["ratios"], figures["memoryMiB"]
    together = record["atOnce"]
    rows = [
        ("recording, batches of 100", f"{record['perSecond']:,.0f} executions/s", ">= 6,000"),
        ("  one batch, ms p50/p95/p99", times(record["batchMs"]), ""),
        ("  learned from", f"{record['learnedPerSecond']:,.0f} executions/s", ""),
        ("  learned from, with vectors", f"{record['indexedPerSecond']:,.0f} executions/s", ""),
        ("  lag behind the last batch", f"{record['indexingLagS']:.1f} s", "<= 30 s"),
        (f"sent {AT_ONCE:,}/s: recorded", f"{together['recorded']:,.0f} executions/s", ""),
        ("  learned meanwhile", f"{together['learned']:,.0f} executions/s", ">= 3,000"),
        ("start to ready, median of 3", f"{figures['startS']:.2f} s", "<= 1.0 s"),
        ("floor: embedding, ms", times(figures["floorMs"]["embedding"]), ""),
        ("floor: index query, ms", times(figures["floorMs"]["query"]), ""),
        ("floor: both, ms", times(figures["floorMs"]["both"]), ""),
        ("/suggest, new failure, ms", times(figures["suggestNewMs"]), ""),
        ("  p50 to floor", f"{ratios['newToFloor']:.2f} x", ""),
        ("  p50 to one embedding", f"{ratios['newToEmbedding']:.2f} x", "<= 0.6"),
        ("/suggest, repeated, ms", times(figures["suggestRepeatedMs"]), ""),
        ("  p50 to one embedding", f"{ratios['repeatedToEmbedding']:.2f} x", "<= 0.25"),
        (f"/suggest, {BESIDE:,}/s recorded, ms", times(figures["suggestBesideMs"]), ""),
        ("  p99 to p50", f"{ratios['besideP99ToP50']:.1f} x", "<= 4"),
        ("/check, tookMs", times(figures["checkMs"]), ""),
        ("  p50 to one embedding", f"{ratios['checkToEmbedding']:.3f} x", "<= 0.05"),
        ("memory, opened, nobody asks", f"{memory['opened']:,.0f} MiB", "<= 350"),
        ("  after 500 and 500 questions", f"{memory['afterSuggest']:,.0f} MiB", ""),
        ("  after recording them all", f"{memory['afterRecording']:,.0f} MiB", "<= 350"),
        ("  largest while recording", f"{memory['peakRecording']:,.0f} MiB", ""),
    ]
    head = (
        f"{figures['executions']:,} executions, {figures['tools']} tools, "
        f"{figures['documents']:,} documents; {figures['machine']['cpus']} CPUs, "
        f"Python {figures['machine']['python']}"
    )
    lines = [f"{name:<30} {value:>26}  {wanted}".rstrip() for name, value, wanted in rows]
    return "\n".join((head, "", *lines))


def say(line: str) -> None:
    """Progress."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="5,000 executions, 100 questions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    figures = run(5_000, 100) if args.quick else run(args.executions, 500)
    print(table(figures))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
