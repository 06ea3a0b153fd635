"""What must hold of a history and of the store that it leaves (`tests.proof.histories`)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from mongo.contents import execution_of
from mongo.protocol import Store
from mongo.records import Event
from retrieval.knowledge.rows.log import count_rows
from tests.ingest.histories import WORKSPACE, differences

TOOLS = ("search", "fetch", "send")
LAST = 9_999
"""The first step of the last look, by when all services have followed each other (three a tool)."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a client asks, or what befalls a service."""

    number: int
    what: str
    service: int
    of: int = 0
    """The step that it repeats, reads or marks; for a command 1 where it is killed."""
    s: float = 0.0
    """How long a fault lasts, or by how much a clock steps."""

    @property
    def tool(self) -> str:
        """What it is about."""
        return TOOLS[self.number % len(TOOLS)]


@dataclass(slots=True)
class Asked:
    """A line of the history; times are of one clock that only grows."""

    step: Step
    what: str
    began: float
    ended: float = inf
    result: str = "unknown"
    """`ok`, `refused` or `unknown`."""
    sent: Any = None
    answer: Any = None
    path: str = ""


@dataclass(slots=True)
class History:
    """All lines, and what was seen besides."""

    lines: list[Asked] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    commits: list[Any] = field(default_factory=list)

    def of(self, *what: str) -> Iterable[Asked]:
        """Lines of some kinds."""
        return (each for each in self.lines if each.what in what)


async def wrong_with(history: History, store: Store) -> list[str]:
    """What the store or an answer says that cannot be, after what was acknowledged."""
    events: list[Event] = []
    while page := await store.events.read_after(WORKSPACE, _last(events), 1_000):
        events += page
    wrong = [*history.wrong, *_wrong_events(history, events)]
    wrong += [*_wrong_calls(history, events), *_wrong_reads(history)]
    wrong += _wrong_registers(history, "put", "tool", "description")
    wrong += _wrong_registers(history, "promote", "promoted", "evolvedVersion")
    wrong += _wrong_commits(history.commits, store.knowledge.generation)
    head = (await store.events.read_heads()).get(WORKSPACE)
    if head is not None and sum(head.counts.values()) != len(events):
        wrong.append(f"{sum(head.counts.values())} events are counted, {len(events)} are there")
    taken = await _positions(store, events)
    forgets = any(True for _ in history.of("forget"))
    if taken != [*range(1, len(taken) + 1)] and not forgets:
        wrong.append("the positions of the log have gaps or doubles")
    if (left := await count_rows(store)).pending:
        wrong.append(f"not learned: {left}, {head}, {await store.knowledge.read_cursors()}")
    wrong += [f"{each} differs from a rebuild" for each in await differences(store)]
    return wrong


def _last(events: Sequence[Event]) -> int:
    return events[-1].position if events else 0


async def _positions(store: Store, events: Sequence[Event]) -> list[int]:
    """All that are taken; on MongoDB by tombstones too."""
    db = getattr(store, "_db", None)
    if db is None:
        return [event.position for event in events]
    rows = db.log.find({"workspace": WORKSPACE}, {"position": 1}).sort("position", 1)
    return [row["position"] async for row in rows]


def _wrong_events(history: History, events: Sequence[Event]) -> list[str]:
    found = Counter[tuple[str, str]]((event.kind, event.id) for event in events)
    wrong = [f"{each} is there {n} times" for each, n in found.items() if n > 1]
    positions, gone = [event.position for event in events], _gone(history)
    if positions != sorted(set(positions)):
        wrong.append("positions are not in order")
    for what, kind, key in (
        ("mark", "mark", "markId"), ("correct", "correction", "correctionId"),
        ("outcome", "outcome", ""),
    ):  # fmt: skip
        results: dict[str, set[str]] = {}
        for line in history.of(what):
            results.setdefault(line.sent[key] if key else line.sent, set()).add(line.result)
        for name, heard in results.items():
            is_gone = kind == "outcome" and gone  # with its suggestion, which quoted a call
            if "ok" in heard and not found[kind, name] and not is_gone:
                wrong.append(f"{kind} {name!r} was acknowledged and is lost")
            if heard == {"refused"} and found[kind, name]:
                wrong.append(f"{kind} {name!r} was refused and is there")
    return wrong


def _wrong_calls(history: History, events: Sequence[Event]) -> list[str]:
    wrong, gone = [], _gone(history)
    said: dict[str, list[tuple[str, str]]] = {}
    """Of each execution what was sent, by query, and what became of it."""
    for line in history.of("record"):
        bad: set[int] = set()
        if line.result == "ok":
            given = line.answer
            bad = {each["index"] for each in given["rejected"]}
            if len(bad) + given["accepted"] + given["duplicates"] != len(line.sent):
                wrong.append(f"step {line.step.number}: the receipt {given} does not add up")
        for place, call in enumerate(line.sent):
            result = "refused" if place in bad else line.result
            said.setdefault(call["executionId"], []).append((call["parameters"]["query"], result))
    stored = {e.id: execution_of(e).execution for e in events if e.kind == "execution"}
    for name, words in said.items():
        have = stored[name].parameters["query"] if name in stored else None
        heard = {result for query, result in words if query == have}
        if have is None and any(result == "ok" for _, result in words) and name not in gone:
            wrong.append(f"execution {name} was acknowledged and is lost")
        elif have is not None and heard <= {"refused"}:
            wrong.append(f"execution {name} was refused and is there")
        elif have is not None and any(q != have and result == "ok" for q, result in words):
            wrong.append(f"execution {name} was acknowledged with other content")
        elif have is not None and gone.get(name) == "ok":
            wrong.append(f"execution {name} was forgotten and is there")
    return wrong + [f"execution {name}, which nobody sent" for name in stored.keys() - said]


def _gone(history: History) -> dict[str, str]:
    """Executions that somebody wanted forgotten, and what became of that."""
    results = {line.step.number: line.result for line in history.of("forget")}
    return {
        call["executionId"]: results[line.step.number]
        for line in history.of("record")
        if line.step.number in results
        for call in line.sent
    }


def _wrong_reads(history: History) -> list[str]:
    """An execution, and how many there are: what was acknowledged before is seen by everybody."""
    wrong, gone = [], _gone(history)
    sent: dict[str, list[Asked]] = {}
    for line in history.of("record"):
        for call in line.sent:
            sent.setdefault(call["executionId"], []).append(line)
    accepted = {
        name: min((e.ended for e in lines if _accepts(e, name)), default=inf)
        for name, lines in sent.items()
    }
    for line in history.of("read"):
        name = str(line.answer["executionId"]) if line.result == "ok" else None
        if name is not None and all(each.began > line.ended for each in sent.get(name, [])):
            wrong.append(f"step {line.step.number} read what nobody had sent")
        asked = line.path.rpartition("/")[2]
        is_missed = line.result == "refused" and asked not in gone
        if is_missed and accepted.get(asked, inf) < line.began:
            wrong.append(f"step {line.step.number}: {asked} was acknowledged and is not found")
    for line in history.of("status"):
        if line.result != "ok":
            continue
        least = sum(at < line.began for name, at in accepted.items() if name not in gone)
        most = sum(any(each.began < line.ended for each in lines) for lines in sent.values())
        if not least <= (number := line.answer["executions"]) <= most:
            wrong.append(f"step {line.step.number}: {number} executions, not {least} to {most}")
    return wrong


def _accepts(line: Asked, name: str) -> bool:
    if line.result != "ok":
        return False
    rejected = {each["index"] for each in line.answer["rejected"]}
    return any(
        call["executionId"] == name and place not in rejected
        for place, call in enumerate(line.sent)
    )


def _wrong_registers(history: History, put: str, read: str, value: str) -> list[str]:
    """Nobody reads what the same service overwrote before; in the end, what any service did."""
    wrong = []
    for tool in TOOLS:
        lines = [e for e in history.lines if put == "promote" or e.step.tool == tool]
        writes: list[tuple[Any, float, float, int]] = [(None, -inf, -inf, -1)]
        for line in lines:
            if line.what in (put, "delete" if put == "put" else "") and line.result != "refused":
                new = line.sent[value] if line.what == put else None
                writes.append((new, line.began, line.ended, line.step.service))
        for line in (e for e in lines if e.what == read and e.ended < inf):
            seen, number = line.answer.get(value), line.step.number
            over = [
                began
                for _, began, ended, service in writes
                if ended < line.began and (number >= LAST or service == line.step.service)
            ]
            if not any(
                new == seen and began < line.ended and not any(each > ended for each in over)
                for new, began, ended, _ in writes
            ):
                wrong.append(f"step {number} read {value} {seen!r}, which was overwritten")
    return list(dict.fromkeys(wrong))


def _wrong_commits(commits: Sequence[Any], generation: int) -> list[str]:
    """One learner at a time: each goes on where the one before ended, and no former one commits."""
    chain: list[Any] = []
    for number, since, until, token, serial in commits:
        if number == generation:
            chain = [] if since == 0 else chain
            chain.append((serial, since, until, token))
    wrong = []
    for one, other in zip(sorted(chain), sorted(chain)[1:], strict=False):
        # What a killed process committed it did not write down.
        if other[1] < one[2]:
            wrong.append(f"{one[1]}-{one[2]} and {other[1]}-{other[2]} were both learned")
        if other[3] < one[3]:
            wrong.append(f"the holder {other[3]} committed behind the holder {one[3]}")
    return wrong
