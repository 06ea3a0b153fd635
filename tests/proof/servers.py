"""The same history to the embedded form and to servers, with deaths between: do they agree?

    python -m tests.proof.servers [--mongo URI] [--qdrant URL [--qdrant-grpc-port PORT]]
        [--qdrant-key KEY] [--executions 600] [--questions 180] [--json FILE]

Without addresses the servers are `nx-27017`, which is killed and frozen on the way, and the
client's own store of Qdrant. A server that is named is never touched; its database and collections
get names of their own, and go at the end. Exit code 0: all that was asked held, but for the time
that an answer takes, which on a busy machine says nothing and is for its reader.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from pymongo import MongoClient

from bench import history
from retrieval.index.protocol import QdrantPlace
from retrieval.index.qdrant import Connection
from tests.mongo.mongo_server import MongoServer
from tests.mongo.test_mongodb_queries import LOG, queries
from tests.service.running_service import ServeProcess, aftercall, eventually, finished, serving

Json = dict[str, Any]
TOOLS = 12
BATCH = 50
CONFIDENCE = 2e-3
"""Vectors are in half precision here and in full there."""
FREEZE_S = 4.0


def say(line: str) -> None:
    """A line for who runs it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass
class Row:
    """One line of the table."""

    claim: str
    asked: str
    measured: str
    held: bool
    is_speed: bool = False


@dataclass
class Form:
    """A form of the product: its processes' environment, and the service while it runs."""

    name: str
    folder: Path
    environ: dict[str, str]
    with_workers: bool = False
    stack: ExitStack = field(default_factory=ExitStack)
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=60))
    service: ServeProcess | None = None
    workers: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self) -> None:
        """Start the service, and two workers where they can share the stores."""
        here = {"AFTERCALL_INDEXING_HERE": "false"} if self.with_workers else {}
        environ = {**self.environ, **here, "AFTERCALL_NIGHTLY_EVERY_H": "0"}
        self.service = self.stack.enter_context(serving(self.folder, environ=environ))
        while self.with_workers and len(self.workers) < 2:
            self._start_worker()

    def _start_worker(self) -> None:
        folder = self.folder.with_name(f"{self.folder.name}-worker-{uuid4().hex[:6]}")
        worker = aftercall("worker", "--data-dir", str(folder), environ=self.environ)
        threading.Thread(target=worker.communicate, daemon=True).start()
        self.workers.append(worker)

    def kill(self) -> None:
        """End the service, and a worker, as `kill -9` does, and start them again."""
        if self.service is not None:
            self.service.process.kill()
            self.service.process.wait(60)
        if self.workers:
            self.workers.pop(0).kill()
        self.stack.close()
        self.start()

    def stop(self) -> None:
        """End all processes in order."""
        if self.service is not None and self.service.process.poll() is None:
            self.service.stop()
        for worker in self.workers:
            worker.terminate()
            worker.wait(60)
        self.workers.clear()
        self.stack.close()
        self.service = None

    def request(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """Ask again until it is there: what is sent twice is one."""

        def answer() -> httpx2.Response | None:
            service = self.service
            if service is None:
                raise RuntimeError(f"{self.name} does not run")
            try:
                found = self.client.request(method, service.url + path, json=body)
            except httpx2.TransportError:
                return None
            return None if found.status_code in (429, 503) else found

        return eventually(answer, 300)

    def command(self, *words: str, environ: dict[str, str] | None = None) -> tuple[int, str]:
        """Run a command of `aftercall` on the stores: its exit status, and what it says."""
        words = (*words, "--data-dir", str(self.folder))
        status, out, err = finished(*words, environ={**self.environ, **(environ or {})})
        return status, out + err

    def learned(self) -> None:
        """Wait until all that is durable is usable."""

        def is_done() -> bool:
            status = self.request("GET", "/status").json()
            return bool(status["pendingIndexing"] == 0 and status["consistent"])

        eventually(is_done, 600)


def calls(count: int) -> list[Json]:
    """The history, with times of yesterday and today: what is older is refused."""
    return list(islice(history.executions(count, tool_count=TOOLS), count))


def failures(count: int) -> list[Json]:
    """Calls to ask about: new ones, and those that were repaired before."""
    third = count // 3
    new = list(history.new_failures(third, tool_count=TOOLS))
    repeated = list(islice(history.repeated_failures(third, tool_count=TOOLS), third))
    others = (e for e in history.executions(10 * count, seed=99, tool_count=TOOLS) if e["error"])
    found = [*new, *repeated, *islice(others, count - len(new) - len(repeated))]
    left_out = ("executionId", "timestamp")
    return [{k: v for k, v in each.items() if k not in left_out} for each in found]


def record(form: Form, records: Sequence[Json], deaths: Sequence[Callable[[], None]] = ()) -> None:
    """Register the tools and record the calls; what is to die dies on the way, in turn."""
    for each in history.tools(TOOLS):
        tool = {
            "namespace": each.server, "name": each.name, "serverName": each.server,
            "description": each.name.replace("_", " "), "inputSchema": each.input_schema,
        }  # fmt: skip
        assert form.request("PUT", f"/tools/{each.name}", tool).status_code in (200, 201)
    starts = range(0, len(records), BATCH)
    due = {len(starts) * (n + 1) // (len(deaths) + 1): death for n, death in enumerate(deaths)}
    for number, start in enumerate(starts):
        if number in due:
            due[number]()
        body = records[start : start + BATCH]
        assert form.request("POST", "/executions", body).status_code == 202


def answers(form: Form, questions: Sequence[Json]) -> tuple[list[Json], list[float]]:
    """What is suggested for each, and the seconds that it took."""
    found, times = [], []
    for question in questions:
        began = time.perf_counter()
        answer = form.request("POST", "/suggest", {"execution": question})
        times.append(time.perf_counter() - began)
        found.append(answer.json())
    return found, times


def essence(answer: Json) -> tuple[Any, ...]:
    """What a caller acts on, best first; what is equally sure in the order of its content."""
    told = ("action", "changes", "correctedParameters", "tool", "retryAfterMs")
    suggestions = [
        (round(each["confidence"] / (2 * CONFIDENCE)), json.dumps([each.get(n) for n in told]))
        for each in answer["suggestions"]
    ]
    return answer["abstained"], answer["retry"], sorted(suggestions, reverse=True)


def differences(one: Sequence[Json], other: Sequence[Json]) -> int:
    """How many answers differ, but for what lies within rounding."""
    return sum(not alike(essence(a), essence(b)) for a, b in zip(one, other, strict=True))


def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Equal, where confidences may be next to each other."""
    if one[:2] != other[:2] or len(one[2]) != len(other[2]):
        return False
    contents = [sorted(text for _, text in each[2]) for each in (one, other)]
    levels = [{text: level for level, text in each[2]} for each in (one, other)]
    return contents[0] == contents[1] and all(
        abs(levels[0][text] - levels[1][text]) <= 1 for text in contents[0]
    )


def exported(form: Form) -> list[str]:
    """The ids of all executions in the log, in its order."""
    file = form.folder.with_name(f"{uuid4().hex}.jsonl")
    status, said = form.command("export", "--flat", str(file))
    assert status == 0, said
    return [json.loads(line)["executionId"] for line in file.read_text().splitlines()]


class Proof:
    """Runs it, and collects the table."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.rows: list[Row] = []
        self.mongo: MongoServer | None = None
        self.name = f"aftercall_proof_{uuid4().hex[:8]}"
        self.prefix = self.name.replace("_", "-")

    def row(
        self, claim: str, asked: object, measured: object, held: bool, *, is_speed: bool = False
    ) -> None:
        """Add a line, and print it."""
        self.rows.append(Row(claim, str(asked), str(measured), held, is_speed))
        say(f"{'held' if held else 'FELL'}: {claim}: {measured} (asked {asked})")

    def environ(self, database: str) -> dict[str, str]:
        """Where the servers are."""
        options = self.options
        uri = options.mongo or (self.mongo.uri if self.mongo else "")
        given = {
            "AFTERCALL_MONGO_URI": uri, "AFTERCALL_MONGO_DATABASE": database,
            "AFTERCALL_QDRANT_URL": options.qdrant or f"local:{self.folder / 'qdrant'}",
            "AFTERCALL_QDRANT_PREFIX": self.prefix,
            "AFTERCALL_QDRANT_GRPC_PORT": str(options.qdrant_grpc_port),
            "AFTERCALL_QDRANT_API_KEY": options.qdrant_key or "",
        }  # fmt: skip
        return {name: value for name, value in given.items() if value}

    def run(self) -> None:
        """All of it."""
        embedded = Form("embedded", self.folder / "embedded", {})
        servers = Form(
            "servers", self.folder / "servers", self.environ(self.name), bool(self.options.qdrant)
        )
        records, questions = calls(self.options.executions), failures(self.options.questions)
        try:
            for form in (embedded, servers):
                form.start()
            record(embedded, records)
            record(servers, records, self.deaths(servers))
            for form in (embedded, servers):
                form.learned()
            self.log_is_whole(servers, records)
            self.answers_are_the_same(embedded, servers, questions)
            self.another_store_changes_nothing(servers, questions[:20])
            self.queries_are_answered()
            self.archive_moves(servers)
            self.forgotten_is_gone(servers, records)
        finally:
            for form in (embedded, servers):
                form.stop()

    def deaths(self, servers: Form) -> list[Callable[[], None]]:
        """What happens while it is recorded."""
        mongo = self.mongo
        if mongo is None:
            return [servers.kill, servers.kill]

        def kill_database() -> None:
            mongo.kill()
            mongo.run()

        def freeze_database() -> None:
            mongo.pause()
            threading.Timer(FREEZE_S, mongo.resume).start()

        return [servers.kill, kill_database, freeze_database, servers.kill]

    def log_is_whole(self, servers: Form, records: Sequence[Json]) -> None:
        """Nothing missing, nothing twice, in the order in which it was sent."""
        found, sent = exported(servers), [each["executionId"] for each in records]
        lost, twice = len({*sent} - {*found}), len(found) - len({*found})
        self.row("executions missing, twice", "0, 0", f"{lost}, {twice}", lost == twice == 0)

    def answers_are_the_same(
        self, embedded: Form, servers: Form, questions: Sequence[Json]
    ) -> None:
        """As they stand, and after a rebuild; in one run how long they take."""
        for form in (embedded, servers):  # what is read first is kept
            answers(form, questions[:10])
        one, fast = answers(embedded, questions)
        other, slow = answers(servers, questions)
        number = differences(one, other)
        asked = f"0 of {len(questions)}"
        self.row("answers that differ after kills", asked, number, number == 0)
        ratio = statistics.median(slow) / statistics.median(fast)
        took = f"{statistics.median(slow) * 1000:.1f} to {statistics.median(fast) * 1000:.1f} ms"
        self.row(
            "/suggest, servers to embedded, p50",
            "1.3",
            f"{ratio:.2f} ({took})",
            ratio <= 1.3,
            is_speed=True,
        )
        servers.stop()
        status, said = servers.command("rebuild")
        servers.start()
        servers.learned()
        after, _ = answers(servers, questions)
        number = differences(one, after) if status == 0 else len(questions)
        self.row("answers that differ after rebuild", asked, number, number == 0)
        if status:
            say(said)

    def another_store_changes_nothing(self, servers: Form, questions: Sequence[Json]) -> None:
        """A second database with the same prefix: start and rebuild are refused with the cure."""
        before, _ = answers(servers, questions)
        if not self.options.qdrant:
            servers.stop()  # a folder can be open once
        other = Form("other", self.folder / "other", self.environ(f"{self.name}_other"))
        refused = [other.command("serve", "--port", "0"), other.command("rebuild")]
        ok = all(status != 0 and "AFTERCALL_QDRANT_PREFIX" in said for status, said in refused)
        if not self.options.qdrant:
            servers.start()
        after, _ = answers(servers, questions)
        changed = differences(before, after)
        self.row("stores that another one's start and rebuild change", 0, int(changed > 0),
                 changed == 0)  # fmt: skip
        self.row("both refused with the setting that helps", "yes", "yes" if ok else "no", ok)

    def queries_are_answered(self) -> None:
        """The five of the operations page, by the database alone."""
        with self.database() as database:
            newest = database[LOG].find_one({"kind": "execution"}, sort=[("timestamp", -1)]) or {}
            named = {"server_name": newest.get("serverName"), "tool_name": newest.get("toolName")}
            answered = 0
            for kind, stages in queries():
                which = stages[0] if kind == "find" else stages[0]["$match"]
                which |= {"serverName": named["server_name"]} if "serverName" in which else {}
                which |= {"toolName": named["tool_name"]} if "toolName" in which else {}
                which |= {"session": newest["session"]} if "session" in which else {}
                which.pop("parameters.topK", None)
                if "timestamp" in which:
                    which["timestamp"] = {"$gte": datetime(2026, 1, 1, tzinfo=UTC)}
                found = (
                    database[LOG].find(which).sort(list(stages[1].items()) or [("_id", 1)])
                    if kind == "find"
                    else database[LOG].aggregate(stages)
                )
                answered += bool(list(found))
        self.row("queries of the operations page answered", 5, answered, answered == 5)

    def archive_moves(self, servers: Form) -> None:
        """Exported, and imported into an embedded store: the same executions in the same order."""
        file = self.folder / "all.jsonl.gz"
        status, said = servers.command("export", str(file))
        back = Form("back", self.folder / "back", {})
        if status == 0:
            status, said = back.command("import", str(file))
        same = status == 0 and exported(back) == exported(servers)
        self.row("an archive of servers in an embedded store is the same log", "yes",
                 "yes" if same else f"no: {said[-300:]}", same)  # fmt: skip

    def forgotten_is_gone(self, servers: Form, records: Sequence[Json]) -> None:
        """An agent's executions go, the others stay."""
        agent = records[0]["agent"]
        servers.stop()
        status, said = servers.command("forget", "--agent", agent)
        left = [each["executionId"] for each in records if each["agent"] != agent]
        ok = status == 0 and exported(servers) == left
        self.row("an agent that is forgotten is gone, and nobody else", "yes",
                 "yes" if ok else f"no: {said[-300:]}", ok)  # fmt: skip

    @contextmanager
    def database(self) -> Iterator[Any]:
        """The log's database."""
        with MongoClient[Json](self.environ(self.name)["AFTERCALL_MONGO_URI"]) as client:
            yield client[self.name]

    def clean_up(self) -> None:
        """Leave nothing on servers that were named."""
        if self.options.mongo:
            with MongoClient[Json](self.options.mongo) as client:
                for name in (self.name, f"{self.name}_other"):
                    client.drop_database(name)
        if self.options.qdrant:
            import asyncio

            asyncio.run(self._drop_collections())

    async def _drop_collections(self) -> None:
        options = self.options
        place = QdrantPlace(options.qdrant, api_key=options.qdrant_key,
                            grpc_port=options.qdrant_grpc_port)  # fmt: skip
        connection = Connection(place)
        with connection.use_client("remove what the proof made") as client:
            for each in (await client.get_collections()).collections:
                if each.name.startswith(f"{self.prefix}-"):
                    await client.delete_collection(each.name)
        await connection.aclose()


def limits(options: argparse.Namespace) -> list[str]:
    """What this run cannot show."""
    found = []
    if not options.mongo:
        found.append("nx-27017: no elections, no secondaries, no journal of its own, one machine")
    else:
        found.append("the database was named, so it was neither killed nor frozen here")
    if not options.qdrant:
        found.append("the client's own store of Qdrant: one process, no network, no cluster, "
                     "exact search; so the service learns by itself, without workers")  # fmt: skip
    return [*found, "no machine was lost, no disk was full, all of it was on one machine"]


def main() -> int:
    """Run the proof; 0 where all held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mongo", metavar="URI", help="else nx-27017 is started")
    parser.add_argument("--qdrant", metavar="URL", help="else the client's own store is used")
    key = os.environ.get("AFTERCALL_TEST_QDRANT_KEY")
    parser.add_argument("--qdrant-key", metavar="KEY", default=key)
    parser.add_argument("--qdrant-grpc-port", type=int, default=6334, metavar="PORT")
    parser.add_argument("--executions", type=int, default=600, metavar="N")
    parser.add_argument("--questions", type=int, default=180, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the table goes as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-servers-") as folder:
        proof = Proof(options, Path(folder))
        proof.mongo = None if options.mongo else MongoServer.start(Path(folder) / "mongo")
        try:
            proof.run()
        finally:
            proof.clean_up()
            if proof.mongo is not None:
                proof.mongo.stop()
    say("\n| what | asked | measured |\n|---|---|---|")
    for row in proof.rows:
        say(f"| {row.claim} | {row.asked} | {row.measured}{'' if row.held else ' **fell**'} |")
    for each in limits(options):
        say(f"Cannot be seen here: {each}.")
    if options.json:
        table = [vars(row) for row in proof.rows]
        options.json.write_text(json.dumps({"rows": table, "limits": limits(options)}, indent=1))
    return 0 if all(row.held or row.is_speed for row in proof.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
