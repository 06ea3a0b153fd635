"""How `/similar` ranks calls: the own call first among 12 and among 100 successes of one tool.

    python -m bench.quality --only similar

Each call is asked for once: as it was made, by its parameters or its intent alone, and, of calls
that were written for this (`calls/similar.jsonl`), by another wording of the intent. The others are
real: commands, searches and reads of coding agents (a command's description is its intent), flight
searches of tau-bench, and MetaTool's questions as queries of one search tool.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from aftercall.models import SimilarRequest
from aftercall.redaction import Redactor
from bench import data
from bench.quality.brain import WORKSPACE, Brain, Recording, open_brain
from bench.quality.trial import Json
from embeddings.embedders import HashingEmbedder
from embeddings.protocol import Embedder
from retrieval.answers.similar import find_similar

SIZES = (12, 100)
SERVER = "tools"
LIMIT = 5
_WRITTEN = Path(__file__).parent / "calls" / "similar.jsonl"
_CLAUDE, _TAU = "claude_code.traces.jsonl.gz", "tau_airline.traces.jsonl.gz"
_METATOOL = "metatool.queries.jsonl.gz"
_OF_CLAUDE = ("Bash", "Grep", "Read", "Edit", "TodoWrite", "Glob", "Task", "Write")
_OF_TAU = ("get_reservation_details", "calculate", "search_direct_flight")


@dataclass(frozen=True, slots=True)
class Call:
    """A success, and another wording of its intent where there is one."""

    tool: str
    parameters: Json
    context: str = ""
    reworded: str = ""


def calls() -> dict[str, list[Call]]:
    """Distinct calls of each tool, in a drawn order that is the same every time."""
    by_tool: dict[str, dict[str, Call]] = {}
    for call in [*_written(), *_recorded(), *_questions()]:
        what = json.dumps([call.parameters, call.context], sort_keys=True)
        by_tool.setdefault(call.tool, {}).setdefault(what, call)
    found = {tool: list(of_tool.values()) for tool, of_tool in by_tool.items()}
    for tool, of_tool in found.items():
        random.Random(tool).shuffle(of_tool)
    return {tool: of_tool for tool, of_tool in found.items() if len(of_tool) >= min(SIZES)}


def _written() -> Iterator[Call]:
    for line in _WRITTEN.read_text(encoding="utf-8").splitlines():
        yield Call(**json.loads(line))


def _recorded() -> Iterator[Call]:
    for name, tools in ((_CLAUDE, _OF_CLAUDE), (_TAU, _OF_TAU)):
        for row in data.rows(name) if data.is_there(name) else ():
            if row["tool"] in tools and row["outcome"] == "success":
                parameters = dict(row["parameters"])
                intent = parameters.pop("description", "") if row["tool"] == "Bash" else ""
                yield Call(row["tool"], parameters, intent)


def _questions() -> Iterator[Call]:
    for row in data.rows(_METATOOL) if data.is_there(_METATOOL) else ():
        if row["set"] == "single":
            yield Call("search", {"query": row["query"][:60], "limit": 10}, row["query"])


@dataclass(frozen=True, slots=True)
class Asked:
    """What one question found."""

    way: str
    size: int
    place: int | None
    """Of the own call, from 1 on; None where it is not among the answers."""
    distinct: int
    """Different calls among the answers."""


def questions(call: Call) -> Iterator[tuple[str, Json, str]]:
    """The ways to ask for a call: name, parameters and context."""
    yield "as it was made", call.parameters, call.context
    if call.context:
        yield "by its parameters", call.parameters, ""
        yield "by its intent", {}, call.context
    if call.reworded:
        yield "by its intent, reworded", {}, call.reworded


async def ask(brain: Brain, embedder: Embedder, of_tool: Sequence[Call]) -> list[Asked]:
    """Record the calls of a tool, each in a session of its own, and ask for each."""
    recording = Recording([])
    for number, call in enumerate(of_tool):
        recording.add(
            agent=f"agent-{number % 7}", session=f"{call.tool}/{len(of_tool)}/{number}",
            tool=call.tool, server=SERVER, parameters=call.parameters, context=call.context,
            schema=None, result={"ok": True},
        )  # fmt: skip
    await brain.learn(recording.executions)
    found = []
    for call, execution in zip(of_tool, recording.executions, strict=True):
        for way, parameters, context in questions(call):
            answer = await find_similar(
                WORKSPACE,
                SimilarRequest(
                    tool_name=call.tool, server_name=SERVER, parameters=parameters,
                    context=context or None, limit=LIMIT,
                ),
                log=brain.store.events, memory=brain.memory, index=brain.index,
                embedder=embedder, redactor=Redactor(),
            )  # fmt: skip
            ids = [each.execution.execution_id for each in answer.executions]
            own = execution.execution_id
            place = ids.index(own) + 1 if own in ids else None
            found.append(Asked(way, len(of_tool), place, len(ids)))
    return found


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure with the model and with hashed words, print and write `similar.md`."""
    by_tool = calls()
    rows = []
    async with AsyncExitStack() as stack:
        hashing = HashingEmbedder()
        stack.push_async_callback(hashing.close)
        for name, model in ((embedder.name, embedder), (hashing.name, hashing)):
            found: list[Asked] = []
            for size in SIZES:
                for of_tool in by_tool.values():
                    if len(of_tool) >= size:
                        async with open_brain(model) as brain:
                            found += await ask(brain, model, of_tool[:size])
            rows += list(_rows(name, found))
    tools = ", ".join(f"{tool} ({min(len(each), max(SIZES))})" for tool, each in by_tool.items())
    page = [
        "# Similar calls",
        "",
        _about(),
        "",
        "Asked: the own call first of 12 in .95, of 100 in .90. "
        f"`first` is the share of questions whose own call comes first, `in {LIMIT}` among the "
        f"first {LIMIT}; `answers` is the mean number of different calls of {LIMIT}.",
        "",
        f"| embedder | successes | asked for | questions | first | in {LIMIT} | answers |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"Tools, and of how many calls: {tools}.",
        *(f"\n{data.left_out(name, name)}."
          for name in (_CLAUDE, _TAU, _METATOOL) if not data.is_there(name)),
    ]  # fmt: skip
    text = "\n".join(page) + "\n"
    print(text)
    (folder / "similar.md").write_text(text, encoding="utf-8")


def _about() -> str:
    return " ".join(__doc__.split("\n\n", 2)[2].split())


def _rows(name: str, found: Sequence[Asked]) -> Iterator[str]:
    for size in SIZES:
        of_size = [each for each in found if each.size == size]
        for way in dict.fromkeys(each.way for each in of_size):
            yield _row(name, size, way, [each for each in of_size if each.way == way])


def _row(name: str, size: int, way: str, found: Sequence[Asked]) -> str:
    first = _share(each.place == 1 for each in found)
    among = _share(each.place is not None for each in found)
    answers = sum(each.distinct for each in found) / len(found)
    return f"| {name} | {size} | {way} | {len(found)} | {first:.3f} | {among:.3f} | {answers:.1f} |"


def _share(were: Iterable[bool]) -> float:
    told = list(were)
    return sum(told) / len(told)
