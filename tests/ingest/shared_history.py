"""A history of several workspaces, and what was learned of it, for several who learn at once."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from aftercall.models import Execution
from aftercall.redaction import Redactor
from ingest.intake import Intake
from mongo.protocol import LogStore
from mongo.records import ToolKey
from retrieval.fitness.statistics import ToolStatistics
from retrieval.health.record import KnownHealth
from retrieval.index.protocol import Hit, IndexPoint, IndexQuery
from retrieval.knowledge.documents import Document
from retrieval.knowledge.rules import ToolKnowledge
from tests.ingest.fitness_samples import a_call, worded

WORKSPACES = ["ada", "bob", "cyd", "dot"]
TOOLS = [("srv", f"tool_{number}") for number in range(3)]


class NoIndex:
    """A vector index that keeps the ids of its documents and finds nothing."""

    name = "none"

    def __init__(self) -> None:
        self.documents: set[str] = set()

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        self.documents.update(each.document_id for each in points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        self.documents.difference_update(document_ids)

    async def search(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        return [[] for _ in queries]

    async def count(self) -> int:
        return len(self.documents)

    async def close(self) -> None:
        self.documents.clear()


def calls(first: int, count: int) -> list[Execution]:
    """Calls of three tools; in each session of ten some fail and are mended by the next."""
    return [a_shared_call(number) for number in range(first, first + count)]


def a_shared_call(number: int) -> Execution:
    failed = number % 4 == 1
    tool = ToolKey("", *TOOLS[number // 10 % 3])
    parameters: dict[str, Any] = {"revision": "master" if failed else "main", "n": number % 5}
    return a_call(
        number,
        failed=failed,
        tool=tool,
        context=worded(number % 20),
        session_id=f"s{number // 10}",
        sequence=number,
        parameters=parameters,
    )


async def record(
    store: LogStore, first: int, count: int, workspaces: Sequence[str] = WORKSPACES
) -> None:
    """Store that part of the history in each workspace."""
    intake = Intake(store, Redactor(), lambda: None)
    for workspace in workspaces:
        for start in range(first, first + count, 500):
            part = calls(start, min(500, first + count - start))
            receipt = await intake.accept(workspace, part)
            assert receipt.accepted == len(part)


async def learned(
    store: LogStore, workspaces: Sequence[str] = WORKSPACES
) -> dict[ToolKey, dict[str, Any]]:
    """What is counted of each tool, in a form that does not depend on how batches were cut."""
    return {
        tool: await _learned_of(store, tool)
        for workspace in workspaces
        for tool in (ToolKey(workspace, *each) for each in TOOLS)
    }


async def _learned_of(store: LogStore, tool: ToolKey) -> dict[str, Any]:
    knowledge = await store.get_knowledge(tool)
    [statistics] = await store.get_statistics([tool])
    [health] = await store.get_health([tool])
    assert knowledge is not None
    known = ToolKnowledge.model_validate_json(knowledge.data)
    profile = known.profile(None)
    fared = ToolStatistics.model_validate_json(statistics.data)
    felt = KnownHealth.model_validate_json(health.data)
    assert profile is not None
    return {
        "profile": (profile.successes, profile.failures),
        "repairs": sorted(
            (row.failed_id, row.mended_id) for row in await store.list_repairs(tool, 100_000)
        ),
        "rules": Counter(
            {
                (signature, key): rule.repairs
                for signature, each in known.signatures.items()
                for key, rule in each.rules.items()
            }
        ),
        "mends": {signature: each.mends for signature, each in known.signatures.items()},
        "versions": {
            version: (each.successes, each.failures) for version, each in fared.versions.items()
        },
        "health": (felt.successes.count, felt.failures.count),
        "scenarios": await _counts(store, tool, fared),
    }


async def _counts(store: LogStore, tool: ToolKey, fared: ToolStatistics) -> dict[str, int]:
    """How many calls each scenario document stands for."""
    rows = await store.get_documents(tool.workspace, list(fared.scenarios))
    documents = [Document.model_validate_json(row.data) for row in rows]
    return {each.document_id: each.count for each in documents}


async def document_counts(store: LogStore, workspace: str) -> dict[str, int]:
    """How many calls each document of a workspace stands for."""
    counts: dict[str, int] = {}
    after = ""
    while page := await store.scan_documents(workspace, after, 500):
        after = page[-1].document_id
        for row in page:
            counts[row.document_id] = Document.model_validate_json(row.data).count
    return counts
