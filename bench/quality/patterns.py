"""Patterns after the nightly job: wordings of one cause joined, causes apart.

    python -m bench.quality --only patterns

`calls/causes.jsonl` holds causes of failures of one tool each, every one in several wordings, with
the call that failed and the one that worked; two agents meet each wording in sessions of their own.
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.quality.brain import START, WORKSPACE, Brain, Recording, open_brain
from bench.quality.trial import Json
from embeddings.embedders import HashingEmbedder
from embeddings.protocol import Embedder
from ingest.nightly import NightlyJob
from ingest.nightly_steps import consolidate_patterns
from mongo.paging import all_rows
from mongo.records import decode_json
from retrieval.knowledge.memory import PATTERN
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern

CAUSES = Path(__file__).parent / "calls" / "causes.jsonl"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of failures of a tool, with the wordings of its errors."""

    name: str
    tool: str
    wordings: list[str]
    failed: list[Json]
    """Calls that failed, one for each agent."""
    worked: list[Json]
    """What these agents then sent; empty where nobody repaired it."""


def causes() -> list[Cause]:
    """Return the causes of the file."""
    return [Cause(**json.loads(line)) for line in CAUSES.read_text(encoding="utf-8").splitlines()]


async def patterns_after_nightly(brain: Brain, embedder: Embedder) -> list[ConsolidatedPattern]:
    """Consolidate, and return the patterns of the memory."""

    async def open_model() -> Embedder:
        return embedder

    knowledge = brain.store.knowledge
    job = NightlyJob(
        store=brain.store, memory=brain.memory, open_model=open_model, keeper=None,
        knowledge=knowledge, clock=lambda: START,
    )  # fmt: skip
    await consolidate_patterns(job)
    return [
        decode_json(ConsolidatedPattern, row.data)
        async for row in all_rows(knowledge, WORKSPACE, PATTERN)
    ]


def record_cause(recording: Recording, cause: Cause) -> None:
    """Add the failures of each wording, and what repaired them."""
    for number, wording in enumerate(cause.wordings):
        for agent, failed in enumerate(cause.failed):
            session = f"{cause.tool}/{cause.name}/{number}/{agent}"
            add = partial(
                recording.add, agent=f"agent-{agent}", session=session, tool=cause.tool,
                server="tools", context="", schema=None,
            )  # fmt: skip
            add(parameters=failed, error={"message": wording})
            if cause.worked:
                add(parameters=cause.worked[agent])


async def joined(embedder: Embedder) -> list[tuple[Cause, int, int]]:
    """Return of each cause how many patterns hold its wordings, and how many other causes'."""
    async with open_brain(embedder) as brain:
        recording = Recording([])
        by_session = {}
        for cause in causes():
            before = len(recording.executions)
            record_cause(recording, cause)
            new = recording.executions[before:]
            by_session |= {each.execution_id: cause.name for each in new}
        await brain.learn(recording.executions)
        found = await patterns_after_nightly(brain, embedder)
    of_cause: dict[str, set[str]] = {}
    for pattern in found:
        for name in {by_session[each] for each in pattern.execution_ids}:
            of_cause.setdefault(name, set()).add(pattern.pattern_id)
    return [
        (
            cause,
            len(of_cause[cause.name]),
            sum(1 for name, ids in of_cause.items()
                if name != cause.name and ids & of_cause[cause.name]),
        )
        for cause in causes()
    ]  # fmt: skip


def _about() -> str:
    return " ".join(__doc__.split("\n\n", 2)[2].split())


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure with the model and with hashed words, print and write `patterns.md`."""
    hashing = HashingEmbedder()
    models = {embedder.name: embedder, hashing.name: hashing}
    results = {name: await joined(model) for name, model in models.items()}
    await hashing.close()
    lines = [
        "# Patterns", "",
        _about(),
        "", "## Wordings of one cause", "",
        "`patterns` is how many hold the wordings of the cause (asked: 1), `mixed` how many other "
        "causes stand in these too (asked: 0).", "",
        f"| cause | tool | wordings |{''.join(f' {n}: patterns | mixed |' for n in results)}",
        "|---" * (3 + 2 * len(results)) + "|",
    ]  # fmt: skip
    for place, cause in enumerate(causes()):
        cells = "".join(f" {found[place][1]} | {found[place][2]} |" for found in results.values())
        lines.append(f"| {cause.name} | {cause.tool} | {len(cause.wordings)} |{cells}")
    cells = "".join(
        f" {sum(each[1] for each in found)} | {sum(each[2] for each in found)} |"
        for found in results.values()
    )
    lines.append(f"| all {len(causes())} | | {sum(len(c.wordings) for c in causes())} |{cells}")
    page = "\n".join(lines) + "\n"
    print(page)
    (folder / "patterns.md").write_text(page, encoding="utf-8")
