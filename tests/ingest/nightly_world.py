"""A small store for the tests of the nightly run: a learned history, part of it old, and strays."""

import json
import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from aftercall.models import Execution, ExecutionError
from aftercall.redaction import Redactor
from embeddings.hashing import HashingEmbedder
from embeddings.protocol import Embedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from ingest.nightly.night import Night
from mongo.codec import to_microseconds
from mongo.protocol import LogStore
from mongo.records import DocumentRow, IndexCommit, Lease
from mongo.sqlite import FILE_NAME, open_sqlite_store
from retrieval.index.edge import EdgeIndex
from retrieval.knowledge.documents import Document
from retrieval.memory import Memory

WORKSPACE = "default"
NOW = (
    datetime.fromisoformat(given)
    if (given := os.environ.get("NIGHTLY_NOW"))
    else datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=30)
)
"""The night's clock: some time after the executions have arrived; the same in child processes."""
OLD = 23
"""Positions up to which executions arrived longer ago than the retention."""
RETENTION = timedelta(days=90)
STRAY = str(UUID(int=77))
"""A scenario document that no statistics know."""

_MESSAGES = (
    ("ValidationError", "Invalid parameter: topK must be <= 10", {"topK": 50}),
    ("ValidationError", "parameter topK: 70 is greater than the maximum of 10", {"topK": 70}),
    ("ValidationError", "'query' is a required property", {"topK": 3}),
    ("TimeoutError", "Timed out after 30 seconds", {"query": "x"}),
    ("TimeoutError", "timed out after 31 seconds!", {"query": "y"}),
)


class Held:
    """A lease that is held until it is told otherwise."""

    lease: Lease | None = None

    def __init__(self) -> None:
        self.is_held = True


def execution(number: int) -> Execution:
    """One of a history of three tools over three days; every other one fails."""
    error, parameters = None, {"query": f"subject {number}", "topK": number % 9 + 1}
    if number % 2:
        kind, message, sent = _MESSAGES[number // 2 % len(_MESSAGES)]
        error, parameters = ExecutionError(type=kind, message=message), dict(sent)
    return Execution(
        execution_id=str(UUID(int=1_000 + number)),
        timestamp=NOW - timedelta(hours=number % 70),
        agent=f"agent-{number % 4}",
        server_name="rag-server" if number % 3 else None,
        tool_name=f"tool_{number % 3}",
        parameters=parameters,
        context=f"collect sources about {number % 5}",
        outcome="failure" if error is not None else "success",
        duration_ms=float(number),
        error=error,
        session_id=f"s-{number // 4}",
    )


def referral(*axes: str) -> Execution:
    """A call that was refused because it crosses a boundary."""
    return execution(1).model_copy(
        update={
            "execution_id": str(uuid4()),
            "error": ExecutionError(
                type="wrong_tool_boundary", message="no", details={"boundary_axes": list(axes)}
            ),
        }
    )


async def fill(folder: Path, count: int = 60) -> None:
    """Record and learn the history in a new store; make the first of it old, and add strays."""
    embedder = HashingEmbedder()
    store = await open_sqlite_store(folder)
    index = await EdgeIndex.open(
        folder / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    indexer = Indexer(store=store, memory=Memory(store), index=index, embedder=embedder)
    intake = Intake(store, Redactor(), lambda: None)
    await intake.accept(WORKSPACE, [execution(number) for number in range(count)])
    await intake.accept(WORKSPACE, [referral("transport", "html table"), referral("Transport")])
    await indexer.run_until_empty()
    stray = Document(
        document_id=STRAY,
        kind="scenario",
        server_name=None,
        tool_name="gone",
        text="stray",
        count=1,
    )
    await store.commit_index(
        IndexCommit(
            workspace=WORKSPACE,
            generation=await store.generation(),
            documents=[DocumentRow(WORKSPACE, STRAY, stray.model_dump_json().encode(), True)],
        )
    )
    await indexer.run_until_empty()
    await indexer.close()
    await index.close()
    await store.close()
    arrived = to_microseconds(NOW - timedelta(minutes=30))
    age = (RETENTION + timedelta(days=1)) // timedelta(microseconds=1)
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute(
            "UPDATE executions SET received_at = ? + position - (position <= ?) * ?",
            (arrived, OLD, age),
        )
    connection.close()


def a_night(store: LogStore, keeper: Held | None = None, **changes: Any) -> Night:
    """A run over a store, by the fixed clock."""

    async def open_model() -> Embedder:
        return HashingEmbedder()

    given: dict[str, Any] = {
        "store": store,
        "memory": Memory(store),
        "open_model": open_model,
        "keeper": keeper or Held(),
        "retention": RETENTION,
        "clock": lambda: NOW,
        **changes,
    }
    return Night(**given)


def contents(folder: Path) -> dict[str, list[str]]:
    """All that a night makes or removes, table by table; without the report, which tells times."""
    tables = {
        "usage": "SELECT * FROM usage",
        "patterns": "SELECT * FROM patterns",
        "facts": "SELECT name, value FROM facts WHERE name NOT IN ('nightly')",
        "executions": "SELECT position FROM executions",
        "documents": "SELECT workspace, document_id, data FROM documents",
        "removed": "SELECT workspace, document_id FROM removed_documents",
    }
    with sqlite3.connect(folder / FILE_NAME) as connection:
        found = {
            table: sorted(repr(row) for row in connection.execute(query))
            for table, query in tables.items()
        }
    connection.close()
    return found


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Killing:
    """A store that is killed at the n-th call, before or after it did its work."""

    store: LogStore
    at: int
    before: bool
    calls: int = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if not callable(found) or name.endswith("_lease"):
            return found

        async def called(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.at and self.before:
                raise Killed
            result = await found(*args, **kwargs)
            if self.calls == self.at:
                raise Killed
            return result

        return called


async def with_store(folder: Path, work: Callable[[LogStore], Awaitable[Any]]) -> Any:
    """What is made of an open store, which is closed whatever happens."""
    store = await open_sqlite_store(folder)
    try:
        return await work(store)
    finally:
        await store.close()


def facts(folder: Path) -> Mapping[str, Any]:
    """The facts of a store; those in JSON are read."""
    with sqlite3.connect(folder / FILE_NAME) as connection:
        rows = dict(connection.execute("SELECT name, value FROM facts"))
    connection.close()
    return {name: json.loads(value) if value[:1] in "{[" else value for name, value in rows.items()}
