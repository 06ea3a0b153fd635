"""What another process changed is read anew, and nothing else is."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from mongo.protocol import LogStore
from mongo.records import Change, DocumentRow, ToolKey
from retrieval.boundaries.clusters import axes_fact
from retrieval.knowledge.documents import Document
from retrieval.memory import Memory, calibration_fact

TOOL, OTHER = ToolKey("w", "srv", "t"), ToolKey("w", "srv", "u")
ELSEWHERE = ToolKey("x", "srv", "t")


class Store:
    """An empty store with two documents, that counts what is read."""

    def __init__(self) -> None:
        self.reads: Counter[object] = Counter()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def read(key: Any) -> Any:
            keys = key if isinstance(key, list) else [key]
            self.reads.update((name, each) for each in keys)
            return [] if name in ("get_statistics", "get_health") or name.startswith("li") else None

        return read

    async def get_documents(self, workspace: str, ids: Sequence[str]) -> list[DocumentRow]:
        self.reads.update(("get_documents", workspace, each) for each in ids)
        return [DocumentRow(workspace, each, a_document(each)) for each in ids]


def a_document(document_id: str) -> bytes:
    document = Document(
        document_id=document_id, kind="tool", server_name=None, tool_name="t", text="x", count=1
    )
    return document.model_dump_json().encode()


async def ask_everything(memory: Memory) -> None:
    """All that is kept, of two tools of a workspace and one of another."""
    for tool in (TOOL, OTHER, ELSEWHERE):
        await memory.knowledge(tool)
        await memory.statistics([tool])
        await memory.health([tool])
        await memory.tool(tool)
    for workspace in ("w", "x"):
        await memory.registry(workspace)
        await memory.calibration(workspace)
        await memory.axis_clusters(workspace)
        await memory.documents(workspace, ["one", "two"])


LEARNED = [(read, TOOL) for read in ("get_knowledge", "get_statistics", "get_health")]
REGISTRY = [
    ("find_tool", TOOL), ("find_tool", OTHER), ("list_tools", "w"), ("list_promotions", "w"),
]  # fmt: skip
FACTS = [("get_fact", calibration_fact("w")), ("get_fact", axes_fact("w"))]
DOCUMENTS = [("get_documents", "w", "one"), ("get_documents", "w", "two")]
ALL = [*LEARNED, *((read, OTHER) for read, _ in LEARNED), *REGISTRY, *FACTS, *DOCUMENTS]


@pytest.mark.parametrize(
    ("change", "read_anew"),
    [
        (Change("w"), []),
        (Change("w", learned=(TOOL,)), LEARNED),
        (Change("w", documents=("one",)), DOCUMENTS[:1]),
        (Change("w", registry=True), REGISTRY),
        (Change("w", facts=(calibration_fact("w"),)), FACTS[:1]),
        (Change("w", facts=(axes_fact("w"), "else")), FACTS[1:]),
        (Change("", facts=(axes_fact("w"), calibration_fact("w"))), FACTS),
        (Change("w", everything=True), ALL),
        (Change("y", everything=True, registry=True), []),
    ],
    ids=str,
)
async def test_what_changed_is_read_anew_and_nothing_else(
    change: Change, read_anew: list[object]
) -> None:
    """By tool, document, fact, registry, or all of a workspace."""
    store = Store()
    memory = Memory(cast("LogStore", store))
    await ask_everything(memory)
    store.reads.clear()
    memory.forget(change)
    await ask_everything(memory)
    assert store.reads == Counter(read_anew)


async def test_after_a_switch_everything_is_read_anew() -> None:
    """Of all workspaces."""
    store = Store()
    memory = Memory(cast("LogStore", store))
    await ask_everything(memory)
    before = store.reads.copy()
    memory.forget_all()
    store.reads.clear()
    await ask_everything(memory)
    assert store.reads == before


async def test_a_read_that_was_under_way_is_not_kept() -> None:
    """It may have read what was there before the change."""
    store = Store()
    memory = Memory(cast("LogStore", store))

    async def slow(tool: ToolKey) -> None:
        store.reads["slow"] += 1
        memory.forget(Change("w", everything=True))

    store.get_knowledge = slow  # type: ignore[attr-defined]
    for _ in range(2):
        await memory.knowledge(OTHER)
    assert store.reads["slow"] == 2
