"""Agents' mistakes on seven real MCP servers, each made twice by one agent and once by another.

Beside time and git: the reference servers filesystem, memory, everything and sequential-thinking
(npm) and sqlite (PyPI). `mistakes.json` holds mistakes of agents with the calls that they meant,
each in three calls with values of their own; what the servers do not refuse is left out, and
counted. A correction is right when it has the meant call's result and leaves its state.

*Can be known*: the schema, the error or the context says what is right. Of the others only who saw
the mistake mended knows it. *By itself*: surer than 0.80 and allowed by its class.

    python -m bench.quality.mistakes [--install] [--left]
"""

import argparse
import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import venv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from aftercall.files import user_folder
from bench.quality import again, servers
from bench.quality.brain import Recording, open_brain
from bench.quality.sessions import GoldCall, record_mistake
from bench.quality.tables import columns_table
from bench.quality.trial import Damage, Json, Trial
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder

_CASES = Path(__file__).with_name("mistakes.json")
_FOLDER = user_folder("XDG_CACHE_HOME", ".cache") / "bench-servers"
_SCOPE = "@modelcontextprotocol/server-"
_NODE = {
    "filesystem": "2026.8.31", "memory": "2026.8.31", "everything": "2026.8.31",
    "sequential-thinking": "2026.8.31",
}  # fmt: skip
_SQLITE = ("mcp-server-sqlite==2025.4.25", "mcp<2")
"""In an environment of its own: it speaks an older `mcp` than ours."""
CORRECTED = "mended by two agents, right first for the third"
MISSING = "Agents' mistakes: `python -m bench.quality.mistakes --install` (npm and a network)"


def install() -> None:
    """Put the five servers into the user's cache.

    Raises:
        subprocess.CalledProcessError: when npm or pip cannot.
    """
    _FOLDER.mkdir(parents=True, exist_ok=True)
    packages = [f"{_SCOPE}{name}@{version}" for name, version in _NODE.items()]
    npm = [shutil.which("npm") or "npm", "install", "--no-audit", "--no-fund", "--prefix"]
    subprocess.run([*npm, str(_FOLDER), *packages], check=True)
    venv.create(_FOLDER / "sqlite", with_pip=True)
    pip = [str(_FOLDER / "sqlite" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *_SQLITE], check=True)


def available() -> bool:
    """Whether all seven servers are there."""
    return servers.available() and all(each.exists() for each in (_program("memory"), _sqlite()))


def _program(name: str) -> Path:
    return _FOLDER / "node_modules" / ".bin" / f"mcp-server-{name}"


def _sqlite() -> Path:
    return _FOLDER / "sqlite" / "bin" / "mcp-server-sqlite"


# The world of the five


def configuration_of(folder: Path) -> Json:
    """The `mcpServers` of the five."""
    world = folder / "projects"
    of_all = {"PATH": os.environ["PATH"]}
    graph = {"MEMORY_FILE_PATH": str(world / "graph.jsonl")}
    return {
        "filesystem": {
            "command": str(_program("filesystem")), "args": [str(world / "files")],
            "cwd": str(folder), "env": of_all,
        },
        "memory": {"command": str(_program("memory")), "env": of_all | graph},
        "everything": {"command": str(_program("everything")), "env": of_all},
        "thinking": {
            "command": str(_program("sequential-thinking")),
            "env": of_all | {"DISABLE_THOUGHT_LOGGING": "true"},
        },
        "sqlite": {"command": str(_sqlite()), "args": ["--db-path", str(world / "shop.db")]},
    }  # fmt: skip


_FILES = {
    "notes.txt": "buy milk\ncall Anna\npay the rent\n", "README.md": "# Shop\n",
    "docs/guide.md": "# Guide\n\nInstall it.\nRun it.\n", "docs/plan.md": "Sell more.\n",
    "docs/team.md": "Anna and Bert\n", "src/app.py": "def main():\n    pass\n",
    "src/cart.py": "ITEMS = []\n", "logs/app.log": "started\nstopped\n", "logs/web.log": "GET /\n",
    "logs/jobs.log": "none\n",
}  # fmt: skip
_GRAPH: tuple[Json, ...] = (
    {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["likes tea"]},
    {"type": "entity", "name": "Bert", "entityType": "person", "observations": ["likes coffee"]},
    {"type": "entity", "name": "Shop", "entityType": "firm", "observations": ["sells things"]},
    {"type": "entity", "name": "Berlin", "entityType": "city", "observations": []},
    {"type": "relation", "from": "Shop", "to": "Berlin", "relationType": "is in"},
)
_TABLES = """
CREATE TABLE app_users (id INTEGER, name TEXT, email TEXT);
CREATE TABLE orders (id INTEGER, user_id INTEGER, total REAL, status TEXT);
CREATE TABLE products (id INTEGER, title TEXT, price REAL);
INSERT INTO app_users VALUES (1, 'Anna', 'anna@example.org'), (2, 'Bert', 'bert@example.org');
INSERT INTO orders VALUES (1, 1, 12.5, 'new'), (2, 2, 30, 'paid');
INSERT INTO products VALUES (1, 'cup', 12.5), (2, 'lamp', 30);
"""


def _make(world: Path) -> None:
    for name, text in _FILES.items():
        file = world / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    lines = "\n".join(json.dumps(each) for each in _GRAPH)
    (world / "graph.jsonl").write_text(lines, encoding="utf-8")
    with sqlite3.connect(world / "shop.db") as database:
        database.executescript(_TABLES)
    database.close()


def _state(world: Path) -> str:
    files = sorted((world / "files").rglob("*"))
    told = [(str(each), each.read_text("utf-8") if each.is_file() else "") for each in files]
    database = sqlite3.connect(world / "shop.db")
    tables = list(database.iterdump())
    database.close()
    return json.dumps([told, (world / "graph.jsonl").read_text("utf-8"), tables])


WORLD = servers.More(configuration_of, _make, _state)

# The mistakes


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake, made in three calls."""

    kind: str
    known: bool
    """Whether schema, error or context say what is right."""
    times: tuple[Trial, ...]


async def mistakes(running: servers.Servers) -> tuple[list[Mistake], list[str]]:
    """Those that the servers refuse, and the names of those that they do not."""
    found, accepted = [], []
    for row in json.loads(_CASES.read_text(encoding="utf-8")):
        name = f"{row['tool']} {json.dumps(row['wrong'])}"
        times = [await _trial(running, row, number, name) for number in range(len(again.TIMES))]
        refused = tuple(each for each in times if each is not None)
        if len(refused) == len(times):
            found.append(Mistake(row["kind"], row.get("known", True), refused))
        else:
            accepted.append(name)
    return found, accepted


async def _trial(running: servers.Servers, row: Json, number: int, name: str) -> Trial | None:
    server, tool = row["tool"].split(".")
    values = {each: several[number] for each, several in row["values"].items()}
    wrong, right = (_filled(row[which], values) for which in ("wrong", "right"))
    context = _filled(row.get("context", ""), values)
    call = GoldCall(f"{row['tool']}/{number}", number, tool, server, right, context)
    meant = await running.run(server, tool, right)
    assert meant.error is None, (name, meant.error)
    effect = await running.run(server, tool, wrong)
    if effect.error is None:
        return None
    return Trial(
        session=call.session, tool=tool, server=server, damaged=wrong, gold=right,
        error=effect.error, context=context, schema=running.schema_of(call),
        damage=Damage(row["kind"], name), judge=partial(running.judge, call),
        answer=partial(_answer, running, call), hints=running.hints.get(f"{server}_{tool}"),
    )  # fmt: skip


async def _answer(running: servers.Servers, call: GoldCall, parameters: Json) -> Json | None:
    return (await running.run(call.server, call.tool, parameters)).error


def _filled(value: Any, values: Json) -> Any:
    """With `$x` in texts as the value of x, and `$x#` as its number."""
    if isinstance(value, dict):
        return {key: _filled(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    if not isinstance(value, str):
        return value
    if value.endswith("#") and value[1:-1] in values:
        return int(values[value[1:-1]])
    for name, text in {"repo": servers.REPOSITORY, **values}.items():
        value = value.replace(f"${name}", text)
    return value


# What is measured


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered to each mistake."""

    mistakes: Sequence[Mistake]
    empty: list[list[again.Time]]
    """Each of the three calls, asked of an empty memory."""
    replayed: list[list[again.Time]]
    """The three times, each after what came of those before."""
    corrected: list[again.Time]
    """The third agent's call, after two other agents mended theirs themselves."""


async def measure(embedder: Embedder) -> tuple[Answers, list[str]]:
    """Ask of an empty memory, replay the three times, and after two agents' own corrections."""
    async with servers.open_servers(WORLD) as running:
        found, accepted = await mistakes(running)
        times = [each.times for each in found]
        async with open_brain(embedder) as brain:
            empty = [[await _asked(brain, trial) for trial in each] for each in times]
        async with open_brain(embedder) as brain:
            replayed = await again.replay(brain, times, with_schema=True)
        async with open_brain(embedder) as brain:
            recording = Recording([])
            for number in range(2):
                for at, each in enumerate(times):
                    _correct(recording, each[number], f"agent-{number}", f"{number}/{at}")
            await brain.learn(recording.executions)
            corrected = [await _asked(brain, each[2], "agent-2") for each in times]
    return Answers(found, empty, replayed, corrected), accepted


async def _asked(brain: Any, trial: Trial, agent: str = "tester") -> again.Time:
    return (await again.ask(brain, trial, agent, f"{agent}/{trial.damage.name}"))[0]


def _correct(recording: Recording, trial: Trial, agent: str, session: str) -> None:
    """The mistake, and the right call that the agent then makes."""
    mistake = replace(trial, session=session)
    record_mistake(recording, mistake, agent, trial.schema)
    recording.add(
        agent=agent, session=session, tool=trial.tool, server=trial.server,
        parameters=trial.gold, context=trial.context, schema=trial.schema,
    )  # fmt: skip


def figures(found: Answers) -> dict[str, Json]:
    """The columns: what can be known without a memory, what cannot, and all."""
    known = [each.known for each in found.mistakes]
    chosen = {
        "can be known": [at for at, each in enumerate(known) if each],
        "only mended before": [at for at, each in enumerate(known) if not each],
        "all": list(range(len(known))),
    }
    return {name: _column(found, places) for name, places in chosen.items()}


def _column(found: Answers, places: Sequence[int]) -> Json:
    empty = [time for at in places for time in found.empty[at]]
    column: Json = {"mistakes, calls": f"{len(places)}, {len(empty)}"}
    column |= {f"empty memory: {name}": value for name, value in _counts(empty).items()}
    for number in range(len(again.TIMES)):
        counts = _counts([found.replayed[at][number] for at in places])
        column |= {f"time {number + 1}: {name}": value for name, value in counts.items()}
    row = again.row([found.replayed[at] for at in places])
    column |= {name: row[name] for name in ("right, then not", "right, then less sure")}
    open_ = [at for at in places if not found.empty[at][2].right]
    after = [found.corrected[at].right for at in places]
    column[CORRECTED] = f"{sum(after)} of {len(after)}"
    after = [found.corrected[at].right for at in open_]
    column["... of those not right with an empty memory"] = f"{sum(after)} of {len(after)}"
    return column


def _counts(times: Sequence[again.Time]) -> dict[str, str]:
    """Right first, by itself, and what is wrong or left."""
    right = sum(each.right for each in times)
    itself = [each for each in times if each.safe and each.confidence > again.SURE]
    return {
        "right first": f"{right} ({right / len(times):.2f})",
        "sure and wrong": str(sum(not e.right and e.confidence > again.SURE for e in times)),
        "left": str(sum(each.verdict is None for each in times)),
        "by itself": str(len(itself)),
        "by itself and wrong": str(sum(not each.right for each in itself)),
    }


def lines(found: Answers, accepted: Sequence[str]) -> list[str]:
    """The table, in Markdown, and what is left of what can be known, by kind."""
    columns = figures(found)
    wrong = Counter(
        mistake.kind
        for mistake, times in zip(found.mistakes, found.empty, strict=True)
        for time in times
        if mistake.known and not time.right
    )
    said = ", ".join(f"{kind} {count}" for kind, count in wrong.most_common()) or "none"
    return [
        *columns_table(columns), "",
        f"Not right with an empty memory though it can be known: {said}.", "",
        f"Not refused by the servers, and left out: {len(accepted)} of "
        f"{len(accepted) + len(found.mistakes)} mistakes.",
    ]  # fmt: skip


async def page(embedder: Embedder) -> list[str]:
    """The section of `memory.md`: what it is, and the table."""
    if not available():
        return [f"Left out: {MISSING}."]
    about = (__doc__ or "").split("\n\n")[1:3]
    return ["\n\n".join(about), "", *lines(*await measure(embedder))]


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--install", action="store_true", help="put the servers into the cache")
    parser.add_argument("--left", action="store_true", help="print what is not right")
    args = parser.parse_args()
    if args.install:
        install()
    if not available():
        raise SystemExit(MISSING)
    embedder = await open_embedder()
    try:
        found, accepted = await measure(embedder)
    finally:
        await embedder.close()
    print("\n".join(lines(found, accepted)))
    for name in accepted if args.left else ():
        print("not refused:", name)
    for at, mistake in enumerate(found.mistakes if args.left else ()):
        times = [*found.empty[at], *found.replayed[at], found.corrected[at]]
        if not all(each.right for each in times):
            said = [f"{str(each.verdict)[:5]} {each.confidence:.2f}" for each in times]
            print("-" if mistake.known else "- (unknown)", mistake.times[0].damage.name, said)
            print("   ", str(mistake.times[0].error.get("message"))[:300].replace("\n", " "))


if __name__ == "__main__":
    asyncio.run(main())
