"""Claims about log stores for any input (Hypothesis)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aftercall.json_values import MAX_INTEGER, JsonObject
from aftercall.models import Execution
from mongo.protocol import LogStore
from mongo.records import (
    DocumentRow,
    IndexCommit,
    NewExecution,
    StoreCounts,
    StoredExecution,
    StoredTool,
    SuggestionOutcome,
)
from mongo.sqlite import SqliteLogStore, open_sqlite_store
from mongo.sqlite.executions import judge
from tests.mongo.conftest import OpenLogStore
from tests.mongo.log_store_samples import (
    SEARCH,
    START,
    make_correction,
    make_execution,
    make_id,
    make_mark,
    make_promotion_event,
    make_tool,
)
from tests.mongo.sqlite_inside import QUEUES, read

# Few ids, contents and workspaces, so that duplicates and conflicts are common.
small_executions = st.builds(
    lambda number, top_k: make_execution(number, parameters={"topK": top_k}),
    st.integers(0, 8),
    st.integers(0, 1),
)
workspaces = st.sampled_from(["a", "b"])
small_outcomes = st.builds(
    lambda workspace, number: SuggestionOutcome(workspace, make_id(1), make_id(number), "success"),
    workspaces,
    st.integers(0, 4),
)
calls = st.lists(st.tuples(workspaces, st.lists(small_executions, max_size=6)), max_size=6)

clean_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean_text, inner, max_size=4),
    max_leaves=12,
)
zones = st.sampled_from(
    [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))]
)
moments = st.builds(
    lambda microseconds, zone: (START + timedelta(microseconds=microseconds)).astimezone(zone),
    st.integers(-(10**15), 10**15),
    zones,
)
any_execution = st.fixed_dictionaries(
    {
        "execution_id": st.uuids().map(str),
        "timestamp": moments,
        "agent": names,
        "server_name": st.none() | names,
        "tool_name": names,
        "tool_version": st.none() | names,
        "parameters": st.dictionaries(clean_text, json_values, max_size=4),
        "context": st.none() | clean_text,
        "duration_ms": st.floats(0, allow_infinity=False),
        "session_id": st.none() | names,
        "sequence": st.none() | st.integers(0, MAX_INTEGER),
        "outcome": st.just("failure"),
        "error": st.fixed_dictionaries({"message": clean_text, "code": st.none() | clean_text}),
    }
).map(Execution.model_validate)


on_every_store = settings(
    max_examples=40,
    deadline=None,
    # It only opens stores, each example one of its own.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


async def content_of(store: LogStore) -> tuple[list[StoredExecution], StoreCounts, StoreCounts]:
    queued = [*await store.pending("a", 1000), *await store.pending("b", 1000)]
    return queued, await store.counts("a"), await store.counts("b")


@on_every_store
@given(batches=calls, again=st.permutations(range(6)))
async def test_appending_twice_gives_the_same_store(
    open_log_store: OpenLogStore, batches: list[tuple[str, list[NewExecution]]], again: list[int]
) -> None:
    """Any batches, sent again in any order and at once, change nothing and accept nothing."""
    with TemporaryDirectory() as folder:
        store = await open_log_store(Path(folder))
        try:
            for workspace, batch in batches:
                await store.append(workspace, batch)
            before = await content_of(store)
            verdicts = await asyncio.gather(
                *(store.append(*batches[index]) for index in again if index < len(batches))
            )
            assert not any("accepted" in each for each in verdicts)
            assert await content_of(store) == before
            stored = {(each.workspace, each.execution.execution_id) for each in before[0]}
            assert stored == {
                (workspace, new.execution.execution_id)
                for workspace, batch in batches
                for new in batch
            }
            assert len(before[0]) == len(stored)
        finally:
            await store.close()


@on_every_store
@given(execution=any_execution, schema=st.dictionaries(clean_text, json_values, max_size=3))
async def test_any_execution_comes_back_as_it_was(
    open_log_store: OpenLogStore, execution: Execution, schema: JsonObject
) -> None:
    """Every value the wire accepts is stored without loss, by every way of reading it."""
    new = NewExecution(execution, "c" * 64, schema_hash="s" * 64, input_schema=schema)
    with TemporaryDirectory() as folder:
        store = await open_log_store(Path(folder))
        try:
            assert await store.append("a", [new]) == ["accepted"]
            found = await store.get_execution("a", execution.execution_id)
            assert found == execution.model_copy(update={"input_schema": schema})
            # As text too: in Python 1 equals 1.0, and 0.0 equals -0.0.
            assert found.model_dump_json(exclude={"input_schema"}) == execution.model_dump_json(
                exclude={"input_schema"}
            )
            (queued,) = await store.pending("a", 10)
            assert queued.execution == execution
            assert await store.get_executions("a", [execution.execution_id]) == [queued]
            if execution.session_id is not None:
                assert await store.session_calls([(queued.tool_key, execution.session_id)], 5) == [
                    queued
                ]
                assert await store.latest_call("a", execution.session_id) == queued
        finally:
            await store.close()


@given(batches=calls)
def test_verdicts_follow_the_order_of_arrival(
    batches: list[tuple[str, list[NewExecution]]],
) -> None:
    """Judging everything at once is like judging one execution after the other."""
    arrivals = [(workspace, new) for workspace, batch in batches for new in batch]
    verdicts, fresh = judge({}, arrivals)
    held: dict[tuple[str, str], str] = {}
    for arrival, verdict in zip(arrivals, verdicts, strict=True):
        (alone,), inserted = judge(held, [arrival])
        assert alone == verdict
        held |= {(w, new.execution.execution_id): new.content_hash for w, new in inserted}
    assert {(w, new.execution.execution_id) for w, new in fresh} == set(held)
    assert verdicts.count("accepted") == len(fresh)


Step = Callable[[SqliteLogStore], Awaitable[object]]


async def mark_vectors(store: SqliteLogStore, workspace: str, limit: int) -> None:
    """Say that some vectors were made and some removed."""
    await store.mark_embedded(await store.pending_vectors(workspace, limit))
    await store.mark_removed(await store.removed_documents(workspace, limit))


async def commit(
    store: SqliteLogStore,
    workspace: str,
    positions: list[int],
    documents: list[int],
    removed: list[int],
    outcomes: list[SuggestionOutcome],
) -> None:
    """Say that something was learned, of the present generation."""
    learned = IndexCommit(
        workspace,
        await store.generation(),
        positions=positions,
        outcomes=[replace(each, workspace=workspace) for each in outcomes],
        marks=positions,
        corrections=[(each, SEARCH if each % 2 else None) for each in positions],
        changed_tools=positions,
        promotions=positions,
        documents=[
            DocumentRow(workspace, make_id(number), b"", is_new=number % 2 == 0)
            for number in documents
        ],
        removed=[(workspace, make_id(number)) for number in removed if number not in documents],
    )
    await store.commit_index(learned)


async def rebuild(store: SqliteLogStore, workspace: str, documents: list[int]) -> None:
    """Learn a little of a workspace anew, while more arrives, and switch to it."""
    shadow = await store.open_shadow()
    await commit(shadow, workspace, [1, 2, 3], documents, [], [])
    await store.append(workspace, [make_execution(9)])
    await store.adopt(shadow, {})


few_numbers = st.lists(st.integers(0, 4), max_size=4)

steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda workspace, batch: lambda store: store.append(workspace, batch),
        workspaces,
        st.lists(small_executions, max_size=6),
    ),
    st.builds(
        lambda *learned: lambda store: commit(store, *learned),
        workspaces,
        st.lists(st.integers(1, 20), max_size=8),
        few_numbers,
        few_numbers,
        st.lists(small_outcomes, max_size=4),
    ),
    st.builds(
        lambda workspace, documents: lambda store: rebuild(store, workspace, documents),
        workspaces,
        few_numbers,
    ),
    st.builds(
        lambda workspace, limit: (
            lambda store: store.expire_executions(workspace, datetime.now(UTC), limit)
        ),
        workspaces,
        st.integers(0, 5),
    ),
    st.builds(
        lambda workspace, number: lambda store: store.add_mark(make_mark(number, workspace)),
        workspaces,
        st.integers(0, 3),
    ),
    st.builds(
        lambda workspace, number: (
            lambda store: store.add_correction(make_correction(number, workspace))
        ),
        workspaces,
        st.integers(0, 3),
    ),
    st.builds(
        lambda workspace, is_promoted: (
            lambda store: store.change_promotions(
                [make_promotion_event("search", workspace=workspace, is_promoted=is_promoted)]
            )
        ),
        workspaces,
        st.booleans(),
    ),
    st.builds(
        lambda workspace, limit: lambda store: mark_vectors(store, workspace, limit),
        workspaces,
        st.integers(0, 3),
    ),
    st.builds(
        lambda workspace, number: (
            lambda store: store.put_tool(StoredTool(workspace, make_tool(f"t-{number}").tool))
        ),
        workspaces,
        st.integers(0, 3),
    ),
    st.builds(
        lambda workspace, number: lambda store: store.delete_tool(workspace, f"t-{number}"),
        workspaces,
        st.integers(0, 3),
    ),
    st.builds(
        lambda outcomes: lambda store: store.add_outcomes(outcomes),
        st.lists(small_outcomes, max_size=4),
    ),
)


EVERY_WORKSPACE = [
    "SELECT workspace FROM executions",
    " UNION ALL ".join(f"SELECT workspace FROM {queue}" for queue in QUEUES),  # noqa: S608
    "SELECT workspace FROM tools",
    "SELECT workspace FROM documents",
]


@settings(max_examples=40, deadline=None)
@given(taken=st.lists(steps, max_size=12))
async def test_the_counters_are_what_counting_would_say(taken: list[Step]) -> None:
    """After any steps, the counts kept by the SQLite store equal the rows of its tables."""
    with TemporaryDirectory() as folder:
        async with await open_sqlite_store(Path(folder)) as store:
            for step in taken:
                await step(store)
            for workspace in ("a", "b"):
                counted = [
                    (await read(store, query)).count((workspace,)) for query in EVERY_WORKSPACE
                ]
                counts = await store.counts(workspace)
                assert list(astuple(counts)) == counted
                assert (workspace in await store.queued_workspaces()) == (counts.pending > 0)
