"""What every log store does with archives: all of it, moved to any other store, unchanged."""

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from aftercall.models import Outcome
from mongo.archive import KINDS, LOCAL_FACTS
from mongo.protocol import LogStore
from mongo.records import (
    AnswerCount,
    DocumentRow,
    HealthRow,
    IndexCommit,
    KnowledgeRow,
    PatternRow,
    RepairRow,
    StatisticsRow,
    StoreCounts,
    StoredRecommendation,
    StoredTool,
    SuggestionOutcome,
    ToolKey,
    UsageRow,
)
from mongo.upkeep import ArchiveRow
from tests.mongo.conftest import ADAPTERS, OpenLogStore
from tests.mongo.log_store_samples import (
    SCHEMA,
    SEARCH,
    START,
    WORKSPACE,
    learn_anew,
    make_correction,
    make_execution,
    make_id,
    make_mark,
    make_promotion_event,
    make_suggestion,
    make_tool,
)

Archive = dict[str, list[ArchiveRow]]

WORKSPACES = (WORKSPACE, "elsewhere")

PAIRS = [
    pytest.param(origin, target, id=f"{origin_name}-to-{target_name}")
    for origin_name, origin in ADAPTERS.items()
    for target_name, target in ADAPTERS.items()
]

pairs = pytest.mark.parametrize(("open_origin", "open_target"), PAIRS)

_OUTCOMES: tuple[Outcome, ...] = ("success", "failure", "success")

_TYPES: dict[str, type] = {
    "text": str, "integer": int, "real": float, "bytes": str, "flag": bool,
}  # fmt: skip


@asynccontextmanager
async def opened(open_store: OpenLogStore, folder: Path) -> AsyncIterator[LogStore]:
    """A store for the time of a block."""
    store = await open_store(folder)
    try:
        yield store
    finally:
        await store.close()


async def fill(store: LogStore, *workspaces: str) -> None:
    """Put something of every kind into each workspace; about half of it was learned from."""
    for workspace in workspaces:
        await _say(store, workspace)
        await _learn(store, workspace)
        # What comes after the learning waits.
        await store.append(workspace, [make_execution(9, session_id=None, has_failed=False)])
        await store.put_tool(_tool("late", workspace))
    await store.put_fact("model", "m-\u2603")
    await store.put_fact("axes:default", "")
    for name in LOCAL_FACTS:
        await store.put_fact(name, "of this store alone")


def _tool(tool_id: str, workspace: str) -> StoredTool:
    return replace(make_tool(tool_id, schema=tool_id == "a"), workspace=workspace)


async def _say(store: LogStore, workspace: str) -> None:
    """What callers, people and the nightly run say."""
    search = SEARCH._replace(workspace=workspace)
    stands = [make_execution(n, schema=SCHEMA if n else None, tool=search) for n in range(5)]
    stands[3] = replace(stands[3], stands_for=10)
    stands[4] = make_execution(4, tool=ToolKey(workspace, None, "sn\u00f6"), parameters={"x": 0.1})
    await store.append(workspace, stands)
    for tool_id in ("a", "b", "gone", "a"):
        await store.put_tool(_tool(tool_id, workspace))
    await store.delete_tool(workspace, "gone")
    await store.save_suggestions(
        [
            make_suggestion(number, estimate=estimate, workspace=workspace)
            for number, estimate in enumerate((0.1, None, 0.0))
        ]
    )
    await store.add_outcomes(
        [
            SuggestionOutcome(workspace, make_id(0), make_id(number), outcome)
            for number, outcome in enumerate(_OUTCOMES)
        ]
    )
    for number in (1, 2, 3):
        await store.add_mark(make_mark(number, workspace))
        await store.add_correction(make_correction(number, workspace))
    for number, reason in enumerate((None, "not now")):
        await store.put_recommendation(
            StoredRecommendation(
                workspace, make_id(number), "taken", START, b"\x00\xff", reason, "ada"
            )
        )
    await store.change_promotions(
        [
            make_promotion_event("search", workspace=workspace),
            make_promotion_event("other", workspace=workspace),
            make_promotion_event("other", workspace=workspace, is_promoted=False),
            make_promotion_event("search", "1.2.0", workspace=workspace),
        ]
    )
    await store.put_usage(
        [
            UsageRow(tool, date(2026, 2, day), b"\x00u")
            for tool in (search, search._replace(server_name=None))
            for day in (9, 10)
        ]
    )
    await store.put_patterns(
        workspace,
        [
            PatternRow(workspace, make_id(n), b"\xffp", START + timedelta(microseconds=n), n)
            for n in range(3)
        ],
    )
    # A store may keep together what came together: these come in pages all the same.
    for days in ((9, 10), (10, 11), (10,), (9, 11)):
        await store.add_answers(
            workspace,
            [AnswerCount(date(2026, 2, day), kind, day) for day in days for kind in ("b", "a.$")],
        )


async def _learn(store: LogStore, workspace: str) -> None:
    """Learn from the oldest of each queue, and leave the others."""
    search = SEARCH._replace(workspace=workspace)
    tools = (search, search._replace(server_name=None), search._replace(tool_name=""))
    executions = await store.pending(workspace, 3)
    corrections = await store.pending_corrections(workspace, 2)
    documents = [
        DocumentRow(workspace, make_id(number), bytes([number]), is_new=number != 3)
        for number in range(5)
    ]
    generation = await store.generation()
    await store.commit_index(
        IndexCommit(
            workspace=workspace,
            generation=generation,
            positions=[each.position for each in executions],
            outcomes=await store.pending_outcomes(workspace, 1),
            marks=[each.position for each in await store.pending_marks(workspace, 1)],
            corrections=[(corrections[0].position, search), (corrections[1].position, None)],
            changed_tools=[each.position for each in await store.changed_tools(workspace, 1)],
            promotions=[each.position for each in await store.pending_promotions(workspace, 1)],
            knowledge=[KnowledgeRow(tool, b"\x00k") for tool in tools[:2]],
            statistics=[StatisticsRow(tool, b"") for tool in tools[:2]],
            health=[
                HealthRow(tool, b"h", START, START if tool.server_name else None) for tool in tools
            ],
            documents=documents,
            repairs=[
                RepairRow(search, make_id(number), make_id(number + 1), "topK <n>", b"\xff")
                for number in range(3)
            ],
        )
    )
    await store.commit_index(IndexCommit(workspace, generation, removed=[(workspace, make_id(4))]))
    await store.mark_embedded(await store.pending_vectors(workspace, 1))


async def read_archive(store: LogStore, limit: int = 3) -> Archive:
    """All records of a store, by kind, read in pages."""
    archive: Archive = {}
    for kind in KINDS:
        rows: list[ArchiveRow] = []
        while page := await store.scan_archive(kind.name, rows[-1].fields if rows else None, limit):
            assert len(page) <= limit
            rows += page
        archive[kind.name] = rows
    return archive


async def restore(store: LogStore, archive: Archive, *, at_once: int = 4) -> int:
    """Restore an archive in pieces, kinds in their order; how many records were new."""
    new = 0
    for kind in KINDS:
        rows = archive[kind.name]
        for start in range(0, len(rows), at_once):
            new += await store.restore(rows[start : start + at_once])
    return new


async def queues(store: LogStore, workspace: str) -> dict[str, list[object]]:
    """What waits in a workspace for being learned from."""
    return {
        "executions": [*await store.pending(workspace, 100)],
        "outcomes": [*await store.pending_outcomes(workspace, 100)],
        "marks": [*await store.pending_marks(workspace, 100)],
        "corrections": [*await store.pending_corrections(workspace, 100)],
        "tools": [*await store.changed_tools(workspace, 100)],
        "promotions": [*await store.pending_promotions(workspace, 100)],
    }


async def lists(store: LogStore, workspace: str) -> dict[str, object]:
    """What the store answers of a workspace."""
    search = SEARCH._replace(workspace=workspace)
    tools = [search, search._replace(server_name=None), search._replace(tool_name="")]
    executions = [make_id(number) for number in range(10)]
    documents = await store.get_documents(workspace, executions)
    return {
        "executions": [await store.get_execution(workspace, each) for each in executions],
        "stored": await store.get_executions(workspace, executions),
        "session": await store.session_calls([(search, "s-1")], 3),
        "latest": await store.latest_call(workspace, "s-1"),
        "tools": await store.list_tools(workspace),
        "found": await store.find_tool(search),
        "suggestions": [await store.get_suggestion(workspace, each) for each in executions[:3]],
        "judged": await store.judged_suggestions(workspace, 10),
        "marks": await store.list_marks(search, 10),
        "learned marks": await store.learned_marks(workspace, [make_id(1001), make_id(1003)]),
        "corrections": await store.list_corrections(workspace, 10),
        "tied": await store.list_corrections(workspace, 10, tool=search),
        "untied": await store.untied_corrections(workspace, [make_id(1002), make_id(1003)]),
        "recommendations": await store.list_recommendations(workspace),
        "promotions": await store.list_promotions(workspace),
        "history": await store.promotion_history(workspace, "search", 10),
        "knowledge": [await store.get_knowledge(tool) for tool in tools],
        "statistics": await store.get_statistics(tools),
        "health": await store.list_health(workspace, 10),
        "troubled": await store.list_health(workspace, 10, troubled=True),
        "documents": documents,
        "repairs": await store.list_repairs(search, 10),
        "usage": await store.scan_usage(workspace, date(2026, 2, 1), None, 10),
        "patterns": await store.list_patterns(workspace, 10),
        "answers": await store.list_answers(workspace, date(2026, 2, 10)),
        "mended": await store.latest_mended(workspace, 10),
        "facts": [await store.get_fact(name) for name in ("model", "axes:default")],
    }


def described(archive: Archive) -> dict[str, list[dict[str, object]]]:
    """An archive without what differs from store to store.

    These are moments of arrival, and gaps between positions.
    """
    plain: dict[str, list[dict[str, object]]] = {}
    for kind in KINDS:
        rows: list[dict[str, object]] = [dict(row.fields) for row in archive[kind.name]]
        places: dict[object, int] = {}
        for row in rows:
            row.pop("received_at", None)
            for name in ("position", "revision"):
                if name in row:
                    row[name] = places[row["workspace"]] = places.get(row["workspace"], 0) + 1
        plain[kind.name] = rows
    return plain


async def test_an_archive_has_the_fields_of_its_kinds(log_store: LogStore) -> None:
    """Each record has all of them, of the type that they say, in the order of the keys."""
    await fill(log_store, *WORKSPACES)
    archive = await read_archive(log_store)
    for kind in KINDS:
        rows = archive[kind.name]
        assert rows, kind.name
        assert {row.kind for row in rows} == {kind.name}
        for row in rows:
            assert set(row.fields) == set(kind.fields), kind.name
            for name, value in row.fields.items():
                wanted = _TYPES[kind.fields[name]]
                assert type(value) is wanted or (value is None and name not in kind.key), name
                if kind.fields[name] == "bytes":
                    assert isinstance(value, str)
                    base64.b64decode(value, validate=True)
        keys = [tuple(row.fields[name] for name in kind.key) for row in rows]
        assert keys == sorted(set(keys)), kind.name
    facts = {row.fields["name"] for row in archive["facts"]}
    assert {"model", "axes:default"} <= facts
    assert not facts & set(LOCAL_FACTS)


async def test_the_size_of_the_pages_changes_nothing(log_store: LogStore) -> None:
    """One by one or all at once; a limit of none gives none."""
    await fill(log_store, *WORKSPACES)
    archive = await read_archive(log_store)
    for limit in (1, 1000):
        assert await read_archive(log_store, limit) == archive
    for kind in KINDS:
        assert await log_store.scan_archive(kind.name, None, 0) == []
        assert await log_store.scan_archive(kind.name, None, -1) == []


async def test_the_archive_of_the_same_content_is_the_same_from_every_store(
    open_log_store: OpenLogStore, tmp_path: Path
) -> None:
    """But for moments of arrival and gaps between positions."""
    reference, *_ = ADAPTERS.values()
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(opened(each, tmp_path / name))
            for name, each in (("reference", reference), ("other", open_log_store))
        ]
        for store in stores:
            await fill(store, *WORKSPACES)
        first, second = [described(await read_archive(store)) for store in stores]
        assert second == first


@pairs
async def test_a_restored_store_is_like_the_one_it_comes_from(
    open_origin: OpenLogStore, open_target: OpenLogStore, tmp_path: Path
) -> None:
    """The same archive, answers and queues; and every document waits for its vector."""
    async with (
        opened(open_origin, tmp_path / "origin") as origin,
        opened(open_target, tmp_path / "target") as target,
    ):
        await fill(origin, *WORKSPACES)
        archive = await read_archive(origin)
        assert await restore(target, archive) == sum(map(len, archive.values()))
        assert await read_archive(target) == archive
        assert await target.workspaces() == await origin.workspaces()
        for workspace in WORKSPACES:
            assert await lists(target, workspace) == await lists(origin, workspace)
            assert await queues(target, workspace) == await queues(origin, workspace)
            known = await target.get_documents(workspace, [make_id(n) for n in range(5)])
            waiting = await target.pending_vectors(workspace, 100)
            assert {each.document_id for each in waiting} == {each.document_id for each in known}
            assert await target.removed_documents(workspace, 100) == []
            waits = sum(map(len, (await queues(origin, workspace)).values()))
            assert await target.counts(workspace) == replace(
                await origin.counts(workspace), pending=waits + len(known)
            )
        assert await target.queued_workspaces() == sorted(WORKSPACES)
        for name in LOCAL_FACTS:
            assert await target.get_fact(name) is None


@pairs
async def test_an_archive_survives_the_way_there_and_back(
    open_origin: OpenLogStore, open_target: OpenLogStore, tmp_path: Path
) -> None:
    """From one store through another into a third of the first kind nothing is lost or changed."""
    async with (
        opened(open_origin, tmp_path / "origin") as origin,
        opened(open_target, tmp_path / "middle") as middle,
        opened(open_origin, tmp_path / "back") as back,
    ):
        await fill(origin, *WORKSPACES)
        archive = await read_archive(origin)
        await restore(middle, archive)
        await restore(back, await read_archive(middle))
        assert await read_archive(back) == archive
        for workspace in WORKSPACES:
            assert await queues(back, workspace) == await queues(origin, workspace)


async def test_restoring_twice_changes_nothing(
    open_log_store: OpenLogStore, tmp_path: Path
) -> None:
    """Nothing is new the second time; documents that got their vectors do not wait again."""
    async with (
        opened(open_log_store, tmp_path / "origin") as origin,
        opened(open_log_store, tmp_path / "target") as target,
    ):
        await fill(origin, *WORKSPACES)
        archive = await read_archive(origin)
        await restore(target, archive)
        for workspace in WORKSPACES:
            await target.mark_embedded(await target.pending_vectors(workspace, 100))
        counts = await target.counts()
        waiting = [await queues(target, workspace) for workspace in WORKSPACES]
        assert await restore(target, archive, at_once=100) == 0
        assert await read_archive(target) == archive
        assert await target.counts() == counts
        assert [await queues(target, workspace) for workspace in WORKSPACES] == waiting
        assert await target.pending_vectors(WORKSPACE, 100) == []


@pytest.mark.parametrize("share", [0.3, 0.7])
async def test_a_half_restored_archive_is_completed_by_restoring_again(
    open_log_store: OpenLogStore, tmp_path: Path, share: float
) -> None:
    """Whatever part of it was there; what was there is not counted again."""
    async with (
        opened(open_log_store, tmp_path / "origin") as origin,
        opened(open_log_store, tmp_path / "target") as target,
    ):
        await fill(origin, *WORKSPACES)
        archive = await read_archive(origin)
        half = {kind: rows[: int(len(rows) * share)] for kind, rows in archive.items()}
        first = await restore(target, half)
        second = await restore(target, archive)
        assert first == sum(map(len, half.values()))
        assert first + second == sum(map(len, archive.values()))
        assert await read_archive(target) == archive
        for workspace in WORKSPACES:
            assert await queues(target, workspace) == await queues(origin, workspace)
            assert len(await target.pending_vectors(workspace, 100)) == 4


@pairs
async def test_a_restored_store_goes_on_where_the_other_stopped(
    open_origin: OpenLogStore, open_target: OpenLogStore, tmp_path: Path
) -> None:
    """New positions are above all restored ones, and known ids are known."""
    async with (
        opened(open_origin, tmp_path / "origin") as origin,
        opened(open_target, tmp_path / "target") as target,
    ):
        await fill(origin, *WORKSPACES)
        await restore(target, await read_archive(origin))
        for workspace in WORKSPACES:
            before = await queues(target, workspace)
            known = make_execution(9, session_id=None, has_failed=False)
            verdicts = await target.append(workspace, [known, make_execution(20)])
            assert verdicts == ["duplicate", "accepted"]
            assert not await target.add_mark(make_mark(1, workspace))
            assert not await target.add_correction(make_correction(1, workspace))
            said = SuggestionOutcome(workspace, make_id(0), make_id(0), "failure")
            assert await target.add_outcomes([said, replace(said, execution_id="new")]) == 1
            assert await target.add_mark(make_mark(20, workspace))
            assert await target.add_correction(make_correction(20, workspace))
            await target.put_tool(_tool("b", workspace))
            await target.change_promotions(
                [make_promotion_event("search", "1.3.0", workspace=workspace)]
            )
            after = await queues(target, workspace)
            for name, waited in before.items():
                was = [each for each in waited if each in after[name]]
                assert after[name][:-1] == was, name
            held = await target.get_promotion(workspace, "search")
            assert held is not None
            assert held.promotion.evolved_version == "1.3.0"
            history = await target.promotion_history(workspace, "search", 10)
            assert len(history) == 3
            found = await target.find_tool(SEARCH._replace(workspace=workspace))
            assert found == _tool("b", workspace)
            search = SEARCH._replace(workspace=workspace)
            repair = RepairRow(search, make_id(50), make_id(51), "later", b"")
            await target.commit_index(
                IndexCommit(workspace, await target.generation(), repairs=[repair])
            )
            assert (await target.list_repairs(search, 10))[0] == repair


async def test_a_removed_promotion_can_be_restored(
    open_log_store: OpenLogStore, tmp_path: Path
) -> None:
    """What was removed since is not there, so its record in the archive is new again."""
    async with opened(open_log_store, tmp_path / "data") as store:
        promoted = make_promotion_event("search")
        await store.change_promotions([promoted])
        archive = await read_archive(store)
        await store.change_promotions([make_promotion_event("search", is_promoted=False)])
        assert await store.get_promotion(WORKSPACE, "search") is None
        assert await restore(store, archive) == 1
        assert await store.get_promotion(WORKSPACE, "search") == promoted.promoted
        await store.change_promotions([make_promotion_event("search", is_promoted=False)])
        assert await store.list_promotions(WORKSPACE) == []


async def test_an_empty_store_has_an_empty_archive(log_store: LogStore) -> None:
    """And nothing to restore is nothing new."""
    archive = await read_archive(log_store)
    assert [kind for kind, rows in archive.items() if rows] in ([], ["facts"])
    assert await log_store.restore([]) == 0
    assert await log_store.counts() == StoreCounts(0, 0, 0, 0)


@pairs
async def test_a_restored_store_can_be_learned_anew(
    open_origin: OpenLogStore, open_target: OpenLogStore, tmp_path: Path
) -> None:
    """All that was restored waits again, as it would where it comes from; ties are forgotten."""
    async with (
        opened(open_origin, tmp_path / "origin") as origin,
        opened(open_target, tmp_path / "target") as target,
    ):
        await fill(origin, WORKSPACE)
        await restore(target, await read_archive(origin))
        waiting: list[dict[str, list[object]]] = []
        for store in (origin, target):
            await learn_anew(store)
            found = await queues(store, WORKSPACE)
            tools = await store.changed_tools(WORKSPACE, 100)
            # That one is gone may wait on, or not: there is nothing to unlearn any more.
            names = {each.tool_id for each in tools} - {"gone"}
            waiting.append({**found, "tools": [*sorted(names)]})
            assert await store.list_corrections(WORKSPACE, 10, tool=SEARCH) == []
        assert waiting[0] == waiting[1]
        assert waiting[0]["tools"] == ["a", "b", "late"]
