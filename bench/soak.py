"""Mixed load for an hour with a fault every few seconds: leaks, drift, and counts to the last one.

    python -m bench.soak [--minutes 60] [--rate 50] [--every 5] [--seed 1] [--json FILE] [--write]

Two real `aftercall serve` share the load: calls are recorded, asked about, checked and followed by
outcomes, marks and corrections, known tools are read, viewers look at the dashboard, and
`aftercall nightly` runs beside. One, the `steady` service, lives from the beginning to the end, so
that what it leaks is seen: it is stopped (SIGSTOP) for a moment, its connections are cut before and
after a request has arrived, it is sent what is no request, and connections hang. The `killed` one
is killed with SIGKILL and started again as well, and its disk runs full, where this user may mount
one. What was not acknowledged is sent again until it is.

At the end each log is exported and held against what was acknowledged: each execution, mark,
correction and outcome is there, and once; the service's own counts say the same, and still do after
`aftercall rebuild`. The steady service's folder is compared with that of a new service which
imported its export. Latencies are of requests that met no fault. Exit status 1 when a count is
wrong. `--write` puts the tables into `docs/figures/reliability.md`.
"""

import argparse
import contextlib
import gzip
import http.client
import json
import os
import platform
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from bench import history
from bench.figures import write_marked

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "figures" / "reliability.md"
THREADS = 6
VIEWERS = 3
VOLUME_MIB = 512
"""Of the killed service's disk, for each hour."""
TOOLS = ("archive_search", "ledger_read", "calendar_list", "ticket_find")
MIX = {
    "record": 41, "suggest": 20, "check": 15, "known-tools": 4, "similar": 4, "mark": 5,
    "correct": 5, "status": 2, "healthz": 4,
}  # fmt: skip
"""Requests of each kind in a hundred; an outcome follows each suggestion."""
SETTLE_S = 1.5
"""After a fault, until requests count as undisturbed."""
MIB = 1024 * 1024
Json = dict[str, Any]


class Server:
    """`aftercall serve` on a port that stays."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.data = folder, folder / "data"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("AFTERCALL_")},
            "AFTERCALL_NIGHTLY_EVERY_H": "0",
            "AFTERCALL_DATA_DIR": str(self.data),
            "AFTERCALL_LOG_LEVEL": "warning",
            **environment,
        }
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.process: subprocess.Popen[str] | None = None
        self.starts_s: list[float] = []

    def command(self, *arguments: str) -> "subprocess.Popen[str]":
        """An `aftercall` command on this folder."""
        with (self.folder / "log").open("a") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "aftercall.cli", *arguments],
                cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip

    def run(self, *arguments: str) -> int:
        """Run one to its end; its exit status."""
        process = self.command(*arguments)
        process.communicate()
        return process.returncode

    def start(self) -> None:
        """Start it and wait until it is ready; raises with the end of its log if it ends."""
        began = time.monotonic()
        self.process = self.command("serve", "--port", str(self.port))
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if " ready at " in line:
                self.starts_s.append(time.monotonic() - began)
                return
        raise RuntimeError(f"the service ended: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal, and wait for its end; its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(timeout=120)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.process.returncode

    def ask(self, path: str) -> Any:
        """The JSON of a GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())

    def learned(self) -> None:
        """Wait until everything is usable."""
        while self.ask("/status")["pendingIndexing"]:
            time.sleep(0.2)

    def disk(self) -> int:
        """Bytes of its folder, as the file system counts them."""
        total = 0
        for each in self.data.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                total += each.lstat().st_blocks * 512
        return total


@dataclass
class Side:
    """One service under load, and what it has acknowledged."""

    name: str
    server: Server
    dice: random.Random
    sent: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Ids of what was acknowledged, by kind of event."""
    took: list[tuple[float, str, float]] = field(default_factory=list)
    """When a request was sent, its kind, and milliseconds."""
    faults: list[tuple[float, float, str]] = field(default_factory=list)
    """From, to, and which."""
    samples: list[tuple[float, float, int, int, float]] = field(default_factory=list)
    """When, resident MiB, descriptors, threads, MiB on disk."""
    wrong: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Outcomes that may be there: a try without an answer was followed by a refusal, since a kill
    had taken the suggestion."""
    failed: Counter[str] = field(default_factory=Counter)
    """Attempts that were not acknowledged, by how."""
    cuts: int = 0
    """Requests that are still to be cut."""
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def new_id(self) -> str:
        """A UUID that the seed decides."""
        return str(UUID(int=self.dice.getrandbits(128), version=4))


class Caller:
    """One client: it keeps its connection, and sends again what was not acknowledged."""

    def __init__(self, side: Side, seed: int) -> None:
        self.side, self.dice = side, random.Random(seed)  # no secret
        self.calls = history.executions(2**31, seed=seed)
        self.connection: http.client.HTTPConnection | None = None
        self.latest: list[Json] = []
        self.is_unsure = False
        """Whether a try of what was sent last had no answer."""

    def send(self, kind: str, method: str, path: str, body: object = None) -> Any:
        """The answer, however often it takes; None of what was refused for good."""
        data = b"" if body is None else json.dumps(body).encode()
        self.is_unsure = False
        while True:
            began = time.monotonic()
            try:
                status, answer = self._once(method, path, data)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                self.is_unsure = True
                self.side.failed[type(error).__name__] += 1
                time.sleep(0.05)
                continue
            if status == 503:
                self.side.failed["503"] += 1
                time.sleep(0.1)
                continue
            if status == 404 and kind == "outcome":  # the suggestion was not durable before a kill
                self.side.failed["unknown suggestion"] += 1
                return None
            if status >= 300:
                self.side.wrong.append(f"{kind}: {status} {answer[:300]!r}")
                return None
            self.side.took.append((began, kind, (time.monotonic() - began) * 1000))
            return json.loads(answer) if answer[:1] == b"{" else answer

    def _once(self, method: str, path: str, data: bytes) -> tuple[int, bytes]:
        if self.connection is None:
            self.connection = http.client.HTTPConnection(
                "127.0.0.1", self.side.server.port, timeout=60
            )
        connection, is_cut = self.connection, False
        with self.side.lock:
            if self.side.cuts:
                self.side.cuts, is_cut = self.side.cuts - 1, True
        headers = {"content-type": "application/json", "content-length": str(len(data))}
        if is_cut and self.dice.random() < 0.5:
            connection.request(method, path, data[: len(data) // 2], headers)
            raise ConnectionAbortedError("cut before it had arrived")
        connection.request(method, path, data, headers)
        if is_cut:
            raise ConnectionAbortedError("cut before it was answered")
        answer = connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        """Let go of the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def call(self) -> Json:
        """A call of the history, that is made now."""
        made = next(self.calls)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return {**made, "executionId": self.side.new_id(), "timestamp": moment}

    def act(self, kind: str) -> None:
        """One request of a kind, and what belongs to it."""
        match kind:
            case "record":
                self.record()
            case "suggest":
                self.suggest()
            case "check":
                call = self.call()
                asked = {name: call[name] for name in ("agent", "serverName", "toolName")}
                body = {"call": {**asked, "parameters": call["parameters"]}}
                self.send(kind, "POST", "/check", body)
            case "similar":
                call = self.call()
                asked = {name: call[name] for name in ("serverName", "toolName", "parameters")}
                self.send(kind, "POST", "/similar", asked)
            case "mark" | "correct":
                self.judge(kind)
            case "known-tools":
                self.send(kind, "GET", "/known-tools?maxTokens=1500")
            case _:  # `healthz` for how the machine's own load drifts
                self.send(kind, "GET", f"/{kind}")

    def record(self) -> None:
        """Some calls in one request."""
        calls = [self.call() for _ in range(self.dice.randint(1, 3))]
        receipt = self.send("record", "POST", "/executions", calls)
        if receipt and receipt["accepted"] + receipt["duplicates"] == len(calls):
            self.side.sent["execution"].update(each["executionId"] for each in calls)
            self.latest = calls
        elif receipt:
            self.side.wrong.append(f"recording {len(calls)}: {receipt}")

    def suggest(self) -> None:
        """Ask about a failure, and say what came of it."""
        failed = self.call()
        while failed["outcome"] == "success":
            failed = self.call()
        answer = self.send("suggest", "POST", "/suggest", {"execution": failed})
        if not answer or not answer["suggestions"]:
            return
        made = answer["suggestions"][0]["suggestionId"]
        report = {"outcome": "success", "executionId": self.side.new_id()}
        name = f"{made}\x1f{report['executionId']}"
        if self.send("outcome", "POST", f"/suggestions/{made}/outcome", report) is not None:
            self.side.sent["outcome"].add(name)
        elif self.is_unsure:
            self.side.refused.add(name)

    def judge(self, kind: str) -> None:
        """Mark a failure, or tell what a user said."""
        tool, made = self.dice.choice(TOOLS), self.side.new_id()
        if kind == "mark":
            mark = {
                "markId": made, "scenario": f"find the {tool}", "severity": "low",
                "errorMessage": "it found nothing",
            }  # fmt: skip
            if self.send(kind, "POST", f"/tools/{tool}/failures", mark):
                self.side.sent["mark"].add(made)
        elif self.latest:
            about = self.dice.choice(self.latest)["executionId"]
            told = {"correctionId": made, "executionId": about, "text": "not that"}
            if self.send(kind, "POST", "/corrections", told):
                self.side.sent["correction"].add(made)

    def work(self, per_s: float) -> None:
        """Until it is over, at a rate."""
        due = time.monotonic() + self.dice.random() / per_s
        kinds, weights = list(MIX), list(MIX.values())
        while not self.side.over.wait(max(0.0, due - time.monotonic())):
            due = max(due, time.monotonic() - 1.0) + 1 / per_s  # what was missed is not made up for
            self.act(self.dice.choices(kinds, weights)[0])
        self.close()

    def view(self) -> None:
        """Look at the dashboard every second."""
        while not self.side.over.wait(1.0):
            self.send("dashboard", "GET", "/dashboard/")
        self.close()


# Faults: each takes a side, and returns when it is over.


def pause(side: Side) -> None:
    """It hangs for up to two seconds."""
    process = side.server.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    time.sleep(side.dice.uniform(0.3, 2.0))
    process.send_signal(signal.SIGCONT)


def kill(side: Side) -> None:
    """SIGKILL, and a new start."""
    side.server.stop(signal.SIGKILL)
    time.sleep(side.dice.uniform(0, 1))
    side.server.start()


def cut(side: Side) -> None:
    """The next requests are cut: within the body, or before their answer."""
    side.cuts = 12
    time.sleep(0.5)


def malformed(side: Side) -> None:
    """What is no request, or says nothing that can be stored."""
    head = b"POST /executions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    sent = [
        side.dice.randbytes(200), b"GET / HTTP/9.9\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n",
        head + b"content-length: -5\r\n\r\n", head + b"content-length: 9\r\n\r\n[{\"a\":1}]",
        head + b"content-length: 4\r\n\r\nnull", head + b"transfer-encoding: x\r\n\r\nzz\r\n",
        head + b"x: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST /suggest HTTP/1.1\r\nhost: [::1].evil.example\r\ncontent-length: 2\r\n\r\n{}",
        head + b"content-length: 6\r\n\r\n[[[[[[", head + b"content-length: 3\r\n\r\n\xff\xfe\xfd",
    ]  # fmt: skip
    for each in sent:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", side.server.port), timeout=5) as connection,
        ):
            connection.sendall(each)
            connection.shutdown(socket.SHUT_WR)
            status = connection.recv(4096).partition(b"\r\n")[0]
            if status.split()[1:2] and status.split()[1][:1] == b"5":
                side.wrong.append(f"{each[:80]!r}: {status!r}")


def hang(side: Side) -> None:
    """Forty connections that send half a request, and then nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            with contextlib.suppress(OSError):
                connection = stack.enter_context(
                    socket.create_connection(("127.0.0.1", side.server.port), timeout=5)
                )
                connection.sendall(b"POST /executions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-le")
        time.sleep(side.dice.uniform(0.5, 2.0))


def fill_disk(side: Side) -> None:
    """Not a byte is left for two seconds."""
    ballast = side.server.folder / "ballast"
    with ballast.open("wb") as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(64 * 1024))
            file.flush()
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while file.write(b"\0"):
            pass
    time.sleep(2.0)
    ballast.unlink()


Fault = Callable[[Side], None]


def disturb(side: Side, kinds: list[Fault], every_s: float) -> None:
    """One fault after the other: a kill, if any, then shuffled rounds of all kinds."""
    round_ = [each for each in kinds if each is kill][:1]
    while not side.over.wait(every_s * side.dice.uniform(0.5, 1.5)):
        if not round_:
            round_ = side.dice.sample(kinds, len(kinds))
        fault = round_.pop()
        began = time.monotonic()
        try:
            fault(side)
            process = side.server.process
            if process is not None and process.poll() is not None:
                side.wrong.append(
                    f"the service ended with {process.returncode} by {fault.__name__}"
                )
                side.server.start()
        except Exception as error:  # noqa: BLE001  # the run goes on, and says so
            side.wrong.append(f"{fault.__name__}: {error!r}")
            if fault is kill or (side.server.process and side.server.process.poll() is not None):
                with contextlib.suppress(RuntimeError):
                    side.server.start()
        side.faults.append((began, time.monotonic(), fault.__name__))


def run_nights(side: Side, every_s: float) -> None:
    """`aftercall nightly` again and again."""
    while not side.over.wait(every_s):
        began = time.monotonic()
        status = side.server.run("nightly")
        if status != 0:
            side.failed[f"nightly ended with {status}"] += 1
        side.faults.append((began, time.monotonic(), "nightly"))


def sample(side: Side, every_s: float) -> None:
    """Memory, descriptors, threads and disk."""
    while not side.over.wait(every_s):
        with contextlib.suppress(psutil.Error):
            assert side.server.process is not None
            process = psutil.Process(side.server.process.pid)
            side.samples.append(
                (
                    time.monotonic(), process.memory_info().rss / MIB, process.num_fds(),
                    process.num_threads(), side.server.disk() / MIB,
                )
            )  # fmt: skip


# Afterwards.


def exported(server: Server) -> dict[str, Counter[str]]:
    """How often each id is in the log, by kind."""
    file = server.folder / "export.gz"
    if server.run("export", "--force", str(file)) != 0:
        raise RuntimeError("aftercall export failed")
    found: dict[str, Counter[str]] = defaultdict(Counter)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line).get("event") if line.startswith('{"event"') else None
            if event:
                found[event["kind"]][event["id"]] += 1
    return found


def counted(server: Server) -> Json:
    """What the service itself says that it holds."""
    totals = server.ask("/stats/totals")["windows"][-1]["totals"]
    status = server.ask("/status")
    return {
        "executions": status["executions"], "tools": status["tools"],
        "successes": totals["successes"], "failures": totals["failures"],
    }  # fmt: skip


def compare(side: Side, environment: dict[str, str], *, is_quick: bool) -> Json:
    """Hold what is there against what was acknowledged, and note what is wrong; what there is."""
    server = side.server
    server.learned()
    said = counted(server)
    if (status := server.stop()) != 0:
        side.wrong.append(f"SIGTERM ended the service with {status}")
    there = exported(server)
    for kind, ids in side.sent.items():
        lost, twice = ids - set(there[kind]), [k for k, n in there[kind].items() if n > 1]
        unasked = set(there[kind]) - ids - side.refused
        if lost or twice or unasked:
            side.wrong.append(
                f"{kind}: {len(lost)} lost, {len(twice)} twice, {len(unasked)} never acknowledged"
            )
    executions = len(side.sent["execution"])
    if not said["executions"] == executions == said["successes"] + said["failures"]:
        side.wrong.append(f"{executions} executions were acknowledged, the service says {said}")
    found: Json = {
        "events": {k: len(ids) for k, ids in side.sent.items()},
        "diskMiB": server.disk() / MIB,
    }
    if is_quick:
        return found
    if server.run("rebuild") != 0:
        said_last = (server.folder / "log").read_text().splitlines()[-1]
        if "make space" in said_last or "free space" in said_last.lower():
            found["rebuildRefused"] = said_last  # on a disk that has no room for two generations
        else:
            side.wrong.append(f"aftercall rebuild failed: {said_last}")
    server.start()
    server.learned()
    if (again := counted(server)) != said:
        side.wrong.append(f"after a rebuild: {again}, before: {said}")
    server.stop()
    return {**found, "freshMiB": fresh_disk(server, environment)}


def fresh_disk(server: Server, environment: dict[str, str]) -> float:
    """MiB of the folder of a new service beside it that has imported its export."""
    shutil.rmtree(server.data)  # its disk may be too small for both
    folder = server.folder / "fresh"
    folder.mkdir()
    other = Server(folder, environment)
    if other.run("import", str(server.folder / "export.gz")) != 0:
        raise RuntimeError(f"import failed: {(folder / 'log').read_text()[-2000:]}")
    other.start()
    other.learned()
    other.stop()
    return other.disk() / MIB


def quantile(values: list[float], share: float) -> float:
    """Of sorted or unsorted values; 0 for none."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def drift(side: Side, began: float, ended: float) -> Json:
    """By kind of request: p50 and p99 of the first quarter and of the last, undisturbed.

    In milliseconds, and in times of the median of `healthz` within the same minute, which is slow
    where the machine is.
    """
    quarter = (ended - began) / 4
    times = sorted((start - 0.2, end + SETTLE_S) for start, end, _ in side.faults)

    def is_calm(at: float, took: float) -> bool:
        return not any(start <= at + took / 1000 and at <= end for start, end in times)

    calm = [each for each in side.took if is_calm(each[0], each[2])]
    health: dict[int, list[float]] = defaultdict(list)
    for at, kind, took in calm:
        if kind == "healthz":
            health[int(at - began) // 60].append(took)
    usual = {minute: statistics.median(each) for minute, each in health.items()}
    found: dict[str, tuple[list[tuple[float, float]], ...]] = defaultdict(lambda: ([], []))
    for at, kind, took in calm:
        minute = int(at - began) // 60
        if minute in usual and not began + quarter <= at <= ended - quarter:
            found[kind][at > ended - quarter].append((took, took / usual[minute]))
    return {
        kind: {
            name: [
                [quantile(column, share) for column in zip(*part, strict=True)] for part in parts
            ]
            for name, share in (("p50", 0.5), ("p99", 0.99))
        }
        for kind, parts in sorted(found.items())
        if min(map(len, parts)) >= 20
    }


def sixths(side: Side, began: float, ended: float) -> list[Json]:
    """Means of what was sampled, for each sixth of the run."""
    length = (ended - began) / 6
    rows = []
    for number in range(6):
        low, high = began + number * length, began + (number + 1) * length
        within = [each for each in side.samples if low <= each[0] < high]
        if within:
            means = [statistics.fmean(column) for column in zip(*within, strict=True)]
            rows.append(
                dict(zip(("rssMiB", "descriptors", "threads", "diskMiB"), means[1:], strict=True))
            )
    return rows


# The run.


@contextlib.contextmanager
def volume(folder: Path, mib: int) -> Iterator[bool]:
    """A file system of its own, in a file; whether it could be mounted."""
    folder.mkdir()
    image = folder.with_suffix(".ext4")
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    mounted = False
    with contextlib.suppress(FileNotFoundError):
        for command in ("mkfs.ext4 -q -m 0", "mount -o loop"):
            arguments = [
                *command.split(),
                str(image),
                *([str(folder)] if "mount" in command else []),
            ]
            mounted = subprocess.run(arguments, capture_output=True, check=False).returncode == 0
            if not mounted:
                break
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def soak(options: argparse.Namespace) -> Json:
    """Run it; all figures."""
    environment = {"AFTERCALL_EMBEDDING_MODEL": options.model} if options.model else {}
    every: list[Fault] = [pause, cut, malformed, hang]
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aftercall-soak-")))
        (root / "steady").mkdir()
        # Embedding needs room of its own: on less it stands still for ever, when minutes are over.
        size = round(VOLUME_MIB * (0.5 if options.minutes < 5 else max(1, options.minutes / 60)))
        can_fill = stack.enter_context(volume(root / "killed", size))
        sides = [
            Side(name, Server(root / name, environment), random.Random(f"{options.seed}-{name}"))
            for name in ("steady", "killed")
        ]  # fmt: skip
        faults = {"steady": every, "killed": [*every, kill, kill] + [fill_disk] * can_fill}
        threads = []
        for side in sides:
            side.server.start()
            stack.callback(_ended, side.server)
            caller = Caller(side, seed=1)
            for tool in TOOLS:
                path, body = f"/tools/{tool}", {"namespace": "n", "name": tool, "inputSchema": {}}
                caller.send("tool", "PUT", path, body)
            caller.close()
            side.took.clear()
        began = time.monotonic()
        for side in sides:
            seeds = range(100, 100 + THREADS + VIEWERS)
            callers = [Caller(side, seed) for seed in seeds]
            per_s = options.rate / len(sides) / THREADS
            threads += [threading.Thread(target=c.work, args=(per_s,)) for c in callers[:THREADS]]
            threads += [threading.Thread(target=each.view) for each in callers[THREADS:]]
            night_s = min(600.0, options.minutes * 60 / 3)
            threads += [
                threading.Thread(target=disturb, args=(side, faults[side.name], options.every)),
                threading.Thread(target=run_nights, args=(side, night_s)),
                threading.Thread(target=sample, args=(side, min(10.0, options.minutes * 60 / 30))),
            ]
        for thread in threads:
            thread.start()
        time.sleep(options.minutes * 60)
        for side in sides:
            side.over.set()
        for thread in threads:
            thread.join()
        ended = time.monotonic()
        figures: Json = {
            "minutes": (ended - began) / 60, "rate": options.rate, "every": options.every,
            "canFill": can_fill, "sides": {},
        }  # fmt: skip
        for side in sides:
            figures["sides"][side.name] = {
                "requests": len(side.took), "wrong": side.wrong,
                "faults": Counter(name for _, _, name in side.faults),
                "again": side.failed, "startS": side.server.starts_s,
                "sixths": sixths(side, began, ended), "drift": drift(side, began, ended),
            }  # fmt: skip
        if options.json:  # comparing takes long, and what was measured is there before
            options.json.write_text(json.dumps(figures, indent=1) + "\n")
        for side in sides:
            say(f"comparing {side.name}")
            compared = compare(side, environment, is_quick=options.quick)
            figures["sides"][side.name] |= compared
    return figures


def _ended(server: Server) -> None:
    if server.process is not None and server.process.poll() is None:
        server.process.send_signal(signal.SIGCONT)
        server.process.kill()
        server.process.wait(timeout=60)


def tables(figures: Json) -> str:
    """In Markdown."""
    lines = [
        "| service | requests | sent again | faults | executions | marks | corrections | outcomes "
        "| wrong |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, side in figures["sides"].items():
        kinds = ("execution", "mark", "correction", "outcome")
        events = " | ".join(f"{side['events'].get(kind, 0):,}" for kind in kinds)
        again, faults = sum(side["again"].values()), sum(side["faults"].values())
        lines.append(
            f"| {name} | {side['requests']:,} | {again:,} | {faults:,} | {events} "
            f"| {len(side['wrong'])} |"
        )
    lines += ["", "Faults: " + "; ".join(
        f"{name}: " + ", ".join(f"{kind} {n}" for kind, n in sorted(side["faults"].items()))
        for name, side in figures["sides"].items()
    ) + "."]  # fmt: skip
    steady = figures["sides"]["steady"]
    length = figures["minutes"] / 6
    lines += [
        "",
        "| minutes of the steady one | memory | descriptors | threads | folder |",
        "|---|---:|---:|---:|---:|",
    ]
    for number, row in enumerate(steady["sixths"]):
        lines.append(
            f"| {number * length:.0f}-{(number + 1) * length:.0f} | {row['rssMiB']:.0f} MiB "
            f"| {row['descriptors']:.0f} | {row['threads']:.0f} | {row['diskMiB']:.1f} MiB |"
        )
    lines += [
        "",
        "Folders at the end, and of a new service that imported the export: "
        + "; ".join(
            f"{name} {side['diskMiB']:.1f} and {side.get('freshMiB', 0):.1f} MiB"
            for name, side in figures["sides"].items()
        )
        + ".",
        "",
        "Drift is how many times slower a request of the steady one is in the last quarter than in "
        "the first, each in times of `healthz` within its minute: 1.00 is none, however busy the "
        "machine became.",
        "",
        "| undisturbed | p50, first quarter | last | drift | p99, first quarter | last | drift |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, row in steady["drift"].items():
        cells = []
        for which in ("p50", "p99"):
            (first, to_first), (last, to_last) = row[which]
            cells.append(f"{first:.1f} ms | {last:.1f} ms | {to_last / max(to_first, 0.01):.2f}")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    killed = figures["sides"]["killed"]["startS"]
    lines += ["", f"Starts after a kill: median {statistics.median(killed):.1f} s, longest "
              f"{max(killed):.1f} s, of {len(killed)}."]  # fmt: skip
    wrong = [
        f"- {name}: {each}" for name, side in figures["sides"].items() for each in side["wrong"]
    ]
    return "\n".join([*lines, *(["", "Wrong:", "", *wrong] if wrong else [])])


def say(line: str) -> None:
    """Progress."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=50, help="requests a second, of both")
    parser.add_argument("--every", type=float, default=5, help="seconds between faults of each")
    parser.add_argument("--seed", type=int, default=1, help="of the faults and the calls")
    parser.add_argument(
        "--quick", action="store_true", help="neither rebuild nor import afterwards"
    )
    parser.add_argument("--model", default="", help="embedding model; `hashing` needs none")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    figures = soak(options)
    made = tables(figures)
    print(made)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.write:
        asked = f"{figures['rate']:.0f} requests a second, a fault every {figures['every']:.0f} s"
        where = (
            f"{figures['minutes']:.0f} minutes, {asked} or so for each service; Python "
            f"{platform.python_version()}, {os.cpu_count()} cores, with a load of {load:.0f} by "
            "others at the start."
        )
        write_marked(PAGE, "soak", f"{where}\n\n{made}")
    return any(side["wrong"] for side in figures["sides"].values())


if __name__ == "__main__":
    sys.exit(main())
