"""Histories: clients and services at odds with kills, pauses and clocks, and what must hold after.

    python -m tests.proof.histories [--seed 0] [--minutes 10] [--store sqlite mongodb]
                                    [--steps 260] [--services 3] [--shrink MINUTES]

From a seed comes a plan (`plan`): what clients ask of the services of one store, in which order,
and what befalls the services between: SIGKILL and a new start, SIGSTOP and SIGCONT, connections
that are cut, a clock that steps, another program that locks the file, `aftercall nightly` and
`aftercall rebuild`, some of them killed. Each question and its end (ok, refused, unknown) goes into
a history. When all is mended, history and store are compared (`wrong_with`). A plan with a wrong
end is made smaller as long as the end stays wrong (`shrunk`), and what is left of it is printed.

The services are `aftercall serve` on loopback, without vectors: an embedded index belongs to one
process, and `crash_points` looks at it. On SQLite they open the store as a nightly run does
(`beside`); for the rest they are what a user starts.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import httpx2

from ingest.pacing import FOLLOW_S
from mongo.protocol import Store
from service.forget import learned_without
from tests.mongo.mongo_server import MongoServer, SharedMongo, free_port, given_uri
from tests.proof.history_rules import LAST, TOOLS, Asked, History, Step, wrong_with
from tests.service.running_service import ROOT
from tests.service.tcp_proxy import TcpProxy, proxy_to
from tests.service.warm_starts import WarmStart

_SHIM = Path(__file__).with_name("clock_shim.c")
_CLIENTS = 5
_BOUND = {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"}
_TIMEOUT_S = 4.0
"""After which a client does not know what became of its question."""
_PATIENCE_S = 600.0
"""Only what hangs takes as long, however busy the machine."""
_WRITES = {
    "record": 30, "again": 6, "clash": 3, "mark": 6, "correct": 6, "outcome": 6, "put": 6,
    "delete": 1, "promote": 3, "forget": 1,
}  # fmt: skip
_READS = {"read": 12, "suggest": 10, "tool": 6, "promoted": 3, "status": 4}
_LOOK = ("tool", "tool", "tool")
_FAULTS = {"kill": 3, "pause": 3, "cut": 3, "clock": 2, "nightly": 1, "rebuild": 1}


# Plans.


def plan(seed: int, steps: int, services: int) -> list[Step]:
    """The same for the same seed."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    kinds = {**_WRITES, **_READS}
    made = []
    for number in range(steps):
        what = dice.choices([*kinds], [*kinds.values()])[0]
        if number > 10 and dice.random() < 0.06:
            what = dice.choices([*_FAULTS], [*_FAULTS.values()])[0]
        of = dice.randrange(max(1, number - 40), number) if number > 1 else 0
        of = dice.choice([0, 1]) if what in ("nightly", "rebuild") else of
        s = round(dice.choice([0.3, 1.0, 3.0]) * dice.uniform(0.5, 1.3), 2)
        if what == "clock":
            s = dice.choice([-90.0, -3_600.0, 7_000.0, 50_000.0, 200_000.0, 40 * 86_400.0])
        made.append(Step(number, what, dice.randrange(services), of, s))
    return made


def calls(seed: int, number: int, begun: datetime, *, clashing: bool = False) -> list[Any]:
    """The executions of a step; `clashing` are others of the same ids."""
    dice = random.Random(f"{seed}-{number}")  # noqa: S311
    word = "other" if clashing else "q"
    made = []
    for place in range(dice.randint(1, 6)):
        fails, at = dice.random() < 0.4, begun - timedelta(minutes=dice.randrange(500))
        made.append({
            "executionId": call_id(seed, number, place), "timestamp": at.isoformat(),
            "agent": dice.choice(["ada", "bob", "cyd"]), "serverName": "srv",
            "toolName": dice.choice(TOOLS), "sessionId": f"s{dice.randrange(9)}",
            "parameters": {"query": f"{word} {number} {place}", "topK": 50 if fails else 10},
            "outcome": "failure" if fails else "success", "error": _BOUND if fails else None,
        })  # fmt: skip
    return made


def _failure(step: Step) -> Any:
    return {
        "agent": "ada", "serverName": "srv", "toolName": step.tool, "outcome": "failure",
        "parameters": {"query": f"q {step.number}", "topK": 50}, "error": _BOUND,
    }  # fmt: skip


def call_id(seed: int, number: int, place: int = 0) -> str:
    """Of a step's execution; its mark and its correction have it too."""
    return str(uuid5(NAMESPACE_OID, f"{seed}-{number}-{place}"))


def shrunk(steps: list[Step], is_wrong: Callable[[list[Step]], bool]) -> list[Step]:
    """Fewer steps that still end wrong, as far as `is_wrong` says so of them."""
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if fewer and is_wrong(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


# The world of one history.


class Service:
    """`aftercall serve` as a process of its own, that is started again where it was killed."""

    def __init__(self, world: "World", number: int) -> None:
        self._world, self._number = world, number
        self.port = free_port()
        self.clock = world.folder / f"clock-{number}"
        self.clock.write_bytes(bytes(8))
        self.proxy: TcpProxy | None = None
        self._process: WarmStart | None = None
        self.kills = 0

    def start(self) -> None:
        """Start it (again)."""
        self._process = self._world.begun(
            "serve", "--port", str(self.port), number=self._number, clock=self.clock,
            proxy=self.proxy,
        )  # fmt: skip

    async def ready(self) -> bool:
        """Wait until it answers; whether it does."""
        deadline = time.monotonic() + _PATIENCE_S
        async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
            while time.monotonic() < deadline and self.has_ended is None:
                with suppress(httpx2.TransportError):
                    if (await client.get(f"{self.url}/readyz")).status_code == 200:
                        return True
                await asyncio.sleep(0.05)
        return False

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def has_ended(self) -> int | None:
        """The status with which it ended; None while it runs."""
        return self._process.poll() if self._process else 0

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    async def kill(self) -> None:
        """SIGKILL and a new start."""
        assert self._process is not None
        self.signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        self.kills += 1
        self.start()

    def step_clock(self, seconds: float) -> None:
        """Set its wall clock ahead or back, while it runs."""
        with self.clock.open("r+b") as file:
            file.write(int(seconds).to_bytes(8, "little", signed=True))

    async def stop(self) -> int:
        """SIGTERM; its exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        assert self._process is not None
        try:
            return await asyncio.to_thread(self._process.wait, 60)
        except subprocess.TimeoutExpired:
            self.end()
            return -signal.SIGKILL

    def end(self) -> None:
        """Whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class World:
    """A store, its services, and what befalls them."""

    def __init__(
        self, folder: Path, mongo: MongoServer | SharedMongo | None, services: int, broken: str
    ) -> None:
        self.folder, self._mongo, self._broken = folder, mongo, broken
        self.begun_at = datetime.now(UTC)
        self.history = History()
        self._shim = _clock_shim(folder)
        self.log = (folder / "said.txt").open("ab")
        self.services = [Service(self, number) for number in range(services)]

    def begun(
        self, *command: str, number: int, clock: Path | None = None, proxy: TcpProxy | None = None
    ) -> WarmStart:
        """A command of `aftercall` on the store."""
        environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("AFTERCALL_")},
            "PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}",
            "AFTERCALL_EMBEDDING_MODEL": "hashing",
            "AFTERCALL_INDEXING_LEASE_S": "5",
            "AFTERCALL_NIGHTLY_EVERY_H": "0",
            "AFTERCALL_DATA_DIR": str(self.folder / "data"),
            "HISTORY_COMMITS": str(self.folder / "commits.jsonl"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        if self._mongo is not None:
            port = proxy.port if proxy else None
            environ |= {
                "AFTERCALL_DATA_DIR": str(self.folder / f"data-{number}"),
                "AFTERCALL_MONGO_URI": self.uri if port is None else f"mongodb://127.0.0.1:{port}",
                "AFTERCALL_MONGO_DATABASE": self.database,
                "AFTERCALL_MONGO_CONNECT_TIMEOUT_S": "1",
                "AFTERCALL_MONGO_TIMEOUT_S": "3",
            }
        if clock is not None and self._shim is not None:
            environ |= {"LD_PRELOAD": str(self._shim), "HISTORY_CLOCK": str(clock)}
        words = [self._broken, *command]
        return WarmStart(words, environ, main="tests.proof.history_service", output=self.log)

    @property
    def uri(self) -> str:
        """Of the MongoDB."""
        assert self._mongo is not None
        return self._mongo.uri() if isinstance(self._mongo, SharedMongo) else self._mongo.uri

    @property
    def database(self) -> str:
        """In the MongoDB."""
        if isinstance(self._mongo, SharedMongo):
            return self._mongo.database(self.folder)
        return "histories"

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        """The store itself; nobody else has it open."""
        store: Store
        if self._mongo is None:
            from mongo.sqlite.store import open_sqlite_store

            store = await open_sqlite_store(self.folder / "data")
        else:
            from mongo.mongodb.store import MongoOptions, open_mongo_store

            store = await open_mongo_store(MongoOptions(self.uri, self.database))
        try:
            yield store
        finally:
            await store.close()

    async def live(self, seed: int, steps: Sequence[Step]) -> History:
        """Do all steps, mend everything, and read what is left."""
        async with AsyncExitStack() as stack:
            for each in self.services:
                if self._mongo is not None and not isinstance(self._mongo, SharedMongo):
                    each.proxy = stack.enter_context(proxy_to(self._mongo.port))
                stack.callback(each.end)
            async with self.store():
                pass  # it is made before several open it
            for each in self.services:
                each.start()
            await asyncio.gather(*(each.ready() for each in self.services))
            client = await stack.enter_async_context(httpx2.AsyncClient(timeout=_TIMEOUT_S))
            asking = _Asking(self, seed, client)
            faults = await asking.all(steps)
            await asyncio.gather(*faults)
            await self._mend(asking)
            for each in self.services:
                if status := await each.stop():
                    self.history.wrong.append(f"a service ended with status {status}")
            for command in ("nightly", *(["rebuild"] if await self._forgets() else [])):
                for _ in range(3):  # of a service that was killed a rebuild may still be about
                    process = self.begun(command, number=90)
                    try:
                        status = await asyncio.to_thread(process.wait, _PATIENCE_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        status = process.wait()
                    if not status:
                        break
                else:
                    self.history.wrong.append(f"the last {command} ended with status {status}")
        return self.history

    async def _forgets(self) -> bool:
        async with self.store() as store:
            return bool(await learned_without(store))

    async def _mend(self, asking: "_Asking") -> None:
        for number, each in enumerate(self.services):
            each.signal(signal.SIGCONT)
            each.step_clock(0)
            if each.proxy is not None:
                each.proxy.mode, each.proxy.cut_after = "pass", None
            if not await each.ready():
                self.history.wrong.append(f"service {number} does not come back")
        deadline = time.monotonic() + _PATIENCE_S
        calm = 0
        while calm < 3:  # looks in a row: after a rebuild, services go on learning once they see it
            calm = 0 if any([await asking.pending(each) for each in self.services]) else calm + 1
            if time.monotonic() > deadline:
                self.history.wrong.append("learning stands still")
                break
            await asyncio.sleep(FOLLOW_S)
        last = [Step(LAST + n, what, 0) for n, what in enumerate(["status", "promoted", *_LOOK])]
        while True:  # until all services have followed what the others did
            seen = [
                [await asking.ask(replace(each, service=number)) for each in last]
                for number in range(len(self.services))
            ]
            if all(_values(each) == _values(seen[0]) for each in seen):
                break
            if time.monotonic() > deadline + _PATIENCE_S:
                self.history.wrong.append("services answer differently in the end")
                break
            del self.history.lines[-len(last) * len(self.services) :]

    async def befall(self, step: Step) -> None:
        """A fault."""
        service = self.services[step.service]
        match step.what:
            case "kill":
                await service.kill()
            case "pause":
                service.signal(signal.SIGSTOP)
                await asyncio.sleep(step.s)
                service.signal(signal.SIGCONT)
            case "clock":
                service.step_clock(step.s)
            case "cut" if service.proxy is not None:
                if step.number % 3 == 0:
                    service.proxy.refuse()
                elif step.number % 3 == 1:
                    service.proxy.mode = "swallow"
                else:
                    service.proxy.cut_after = 20_000
                await asyncio.sleep(step.s)
                service.proxy.mode, service.proxy.cut_after = "pass", None
            case "cut" if self._mongo is None:
                path = self.folder / "data" / "aftercall.sqlite3"
                with (
                    suppress(sqlite3.Error),
                    closing(sqlite3.connect(path, isolation_level=None)) as other,
                ):
                    other.execute("BEGIN IMMEDIATE")
                    await asyncio.sleep(step.s)
            case "nightly" | "rebuild":
                process = self.begun(step.what, number=100 + step.number)
                with suppress(subprocess.TimeoutExpired):
                    patience = 3 * step.s if step.of else _PATIENCE_S
                    await asyncio.to_thread(process.wait, patience)
                process.kill()
                process.wait()
            case _:
                pass


def _values(lines: Iterable["Asked | None"]) -> list[Any]:
    return [e and e.answer and [e.answer.get(name) for name in _SHOWN] for e in lines]


_SHOWN = ("description", "evolvedVersion", "executions")


class _Asking:
    """The clients: each takes the next step, asks, and writes down what it heard."""

    def __init__(self, world: World, seed: int, client: httpx2.AsyncClient) -> None:
        self._world, self._seed, self._client = world, seed, client
        self._given: dict[int, str] = {}

    async def all(self, steps: Sequence[Step]) -> list["asyncio.Task[None]"]:
        """Ask all; the faults that are still going on."""
        left, faults = list(steps), list[asyncio.Task[None]]()

        async def client(number: int) -> None:
            dice = random.Random(f"{self._seed}-{number}")  # noqa: S311
            while left:
                step = left.pop(0)
                if step.what in _FAULTS:
                    faults.append(asyncio.create_task(self._world.befall(step)))
                else:
                    await self.ask(step)
                await asyncio.sleep(dice.uniform(0, 0.12))  # what a client does between

        async with asyncio.TaskGroup() as group:
            for number in range(_CLIENTS):
                group.create_task(client(number))
        return faults

    async def pending(self, service: Service) -> bool:
        """Whether there is something that is not learned yet."""
        with suppress(httpx2.TransportError):
            answer = await self._client.get(f"{service.url}/status")
            return answer.status_code != 200 or bool(answer.json()["pendingIndexing"])
        return True

    async def ask(self, step: Step) -> Asked | None:
        """One question of a client, and what came of it."""
        seed, begun, call = self._seed, self._world.begun_at, call_id(self._seed, step.of)
        given = next((name for at, name in self._given.items() if at >= step.of), None)
        if step.what == "outcome" and given is None:
            return None
        agent = f"gone{step.number}"
        gone = [{**c, "agent": agent} for c in calls(-1 - seed, step.number, begun)]
        method, path, body = {
            "record": ("POST", "/executions", calls(seed, step.number, begun)),
            "again": ("POST", "/executions", calls(seed, step.of, begun)),
            "clash": ("POST", "/executions", calls(seed, step.of, begun, clashing=True)),
            "forget": ("POST", "/executions", gone),
            "read": ("GET", f"/executions/{call}", None),
            "suggest": ("POST", "/suggest", {"execution": _failure(step)}),
            "outcome": ("POST", f"/suggestions/{given}/outcome",
                        {"executionId": call, "outcome": "success"}),
            "mark": ("POST", f"/tools/{step.tool}/failures",
                     {"markId": call, "executionId": call, "severity": "low",
                      "scenario": "find pages", "errorMessage": "wrong"}),
            "correct": ("POST", "/corrections",
                        {"correctionId": call, "executionId": call, "kind": "low_utility",
                         "text": "not what I meant"}),
            "put": ("PUT", f"/tools/{step.tool}",
                    {"namespace": "pages", "name": step.tool, "serverName": "srv",
                     "version": "1.0", "description": f"w{step.number}"}),
            "delete": ("DELETE", f"/tools/{step.tool}", None),
            "tool": ("GET", f"/tools/{step.tool}", None),
            "promote": ("PUT", "/namespaces/pages/promotion",
                        {"originalVersion": "1.0", "evolvedVersion": f"1.{step.number + 1}",
                         "evolvedFile": "search_v1.py", "reason": "better"}),
            "promoted": ("GET", "/namespaces/pages/promotion", None),
            "status": ("GET", "/status", None),
        }[step.what]  # fmt: skip
        asked = await self._say(step, method, path, body)
        if step.what == "outcome":
            asked.sent = f"{given}\x1f{call}"
        elif step.what == "suggest" and asked.result == "ok" and asked.answer["suggestions"]:
            self._given[step.number] = asked.answer["suggestions"][0]["suggestionId"]
        elif step.what == "forget" and asked.result == "ok":
            asked = await self._say(step, "POST", "/forget", {"agent": agent}, "forget")
        return asked

    async def _say(
        self, step: Step, method: str, path: str, body: Any = None, what: str | None = None
    ) -> Asked:
        named = what or ("record" if path == "/executions" else step.what)
        asked = Asked(step, named, time.monotonic(), sent=body, path=path)
        self._world.history.lines.append(asked)
        url = self._world.services[step.service].url + path
        with suppress(httpx2.TransportError):
            answer = await self._client.request(method, url, json=body)
            if answer.status_code < 500:
                asked.result = "ok" if answer.is_success else "refused"
                asked.answer = answer.json() if answer.content else None
                asked.ended = time.monotonic()
        return asked


def _clock_shim(folder: Path) -> Path | None:
    library = folder / "clock_shim.so"
    try:
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, _SHIM, "-ldl"], check=True)
    except FileNotFoundError:
        return None  # without a compiler the clocks stay right
    return library


# The command line.


def lived(
    seed: int, steps: Sequence[Step], store: str, services: int, broken: str = ""
) -> list[str]:
    """What is wrong after a plan, in a world of its own."""

    async def live(world: World) -> list[str]:
        history = await world.live(seed, steps)
        path = world.folder / "commits.jsonl"
        if path.exists():
            history.commits = [json.loads(line) for line in path.read_text().splitlines()]
        async with world.store() as left:
            return await wrong_with(history, left)

    with tempfile.TemporaryDirectory(prefix="aftercall-history-") as folder:
        place = Path(folder)
        mongo: MongoServer | SharedMongo | None = None
        if store == "mongodb":
            mongo = SharedMongo() if given_uri() else MongoServer.start(place / "mongo")
        world = World(place, mongo, services, broken)
        try:
            wrong = asyncio.run(live(world))
        finally:
            world.log.close()
            if isinstance(mongo, SharedMongo):
                mongo.close()
            elif mongo is not None:
                mongo.stop()
        if wrong:
            said = (place / "said.txt").read_text(errors="replace").splitlines()
            wrong += ["the services said", *[e[:300] for e in said if e.startswith("aftercall:")]]
        return wrong


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first (0); then the next ones")
    parser.add_argument("--state", type=Path, help="go on where this file says, and keep it so")
    parser.add_argument("--minutes", type=float, default=10.0, help="until no history is begun")
    parser.add_argument(
        "--store", nargs="+", choices=("sqlite", "mongodb"), default=["sqlite", "mongodb"]
    )
    parser.add_argument("--steps", type=int, default=260, help="of each history (260)")
    parser.add_argument("--services", type=int, default=3, help="of each store (3)")
    parser.add_argument("--shrink", type=float, default=10.0, help="minutes at most (10)")
    args = parser.parse_args()
    seed = args.seed
    if args.state and args.state.exists():
        seed = json.loads(args.state.read_text("utf-8"))["next"]
    first, ends = seed, time.monotonic() + 60 * args.minutes
    while seed == first or time.monotonic() < ends:
        for store in args.store:
            began = time.monotonic()
            steps = plan(seed, args.steps, args.services)
            of = partial(lived, seed, store=store, services=args.services)
            wrong = of(steps)
            took = f"{time.monotonic() - began:.0f} s"
            said = "; ".join(wrong) or "nothing wrong"
            sys.stdout.write(f"seed {seed} on {store}: {said} ({took})\n")
            sys.stdout.flush()
            if wrong:
                until = time.monotonic() + 60 * args.shrink
                small = shrunk(steps, partial(_stays_wrong, of, until))
                sys.stdout.writelines(f"  {each}\n" for each in small)
                raise SystemExit(1)
        seed += 1
        if args.state:
            args.state.parent.mkdir(parents=True, exist_ok=True)
            args.state.write_text(json.dumps({"next": seed}), "utf-8")


def _stays_wrong(of: Callable[[list[Step]], list[str]], until: float, steps: list[Step]) -> bool:
    """Tried twice: what goes wrong between processes does not do so each time."""
    return time.monotonic() < until and bool(of(steps) or of(steps))


if __name__ == "__main__":
    main()
