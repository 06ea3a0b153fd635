"""What every generation of knowledge promises: commits that are whole, in order, and fenced."""

import asyncio
from collections import Counter as Tally
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mongo.errors import StoreFencedError, StoreUnavailableError
from mongo.protocol import Store
from mongo.records import Commit, Counter, Cursor, Removal, Row
from tests.mongo.conftest import OpenStore
from tests.mongo.store_samples import (
    LOCAL,
    SEARCH,
    WORKSPACE,
    closing,
    keys,
    large,
    lease_of,
    put,
    scan_all,
)

HOUR = 493_000
examples = count()
CALLS = Counter("calls", HOUR, SEARCH)


async def counted(store: Store, what: str = "calls") -> int:
    """The sum of a counter over all hours."""
    sums = await store.counters.sum_counters(WORKSPACE, [what], since=0, until=HOUR * 2)
    return sum(each.number for each in sums)


async def test_a_commit_writes_rows_counts_and_moves_the_cursor(store: Store) -> None:
    """All at once; each has the next serial number of its workspace, and rows say which."""
    knowledge = store.knowledge
    assert await knowledge.read_cursors() == {}
    row = Row("profile", "search", b"{1}", SEARCH, rank=7)
    commit = Commit(WORKSPACE, [row], counters={CALLS: 3}, moved=(0, 12))
    assert await knowledge.commit(commit) == 1
    assert await knowledge.get(WORKSPACE, "profile", ["search", "x"]) == [replace(row, serial=1)]
    assert await counted(store) == 3
    assert await knowledge.read_cursors() == {WORKSPACE: Cursor(12, 1)}
    newer = Row("profile", "search", b"{2}")
    assert await put(knowledge, newer, moved=(12, 13)) == 2
    # Nothing is left of the former row: neither its tool nor its rank.
    assert await knowledge.get(WORKSPACE, "profile", ["search"]) == [replace(newer, serial=2)]
    # A commit that learned from no event leaves the cursor where it is.
    assert await knowledge.commit(Commit(WORKSPACE, counters={CALLS: 2})) == 3
    assert await knowledge.read_cursors() == {WORKSPACE: Cursor(13, 3)}
    assert await counted(store) == 5
    assert await put(knowledge, row, workspace="elsewhere") == 1
    assert await knowledge.read_cursors() == {WORKSPACE: Cursor(13, 3), "elsewhere": Cursor(0, 1)}
    assert await knowledge.get(WORKSPACE, "profile", []) == []


async def test_a_commit_from_another_place_is_refused_whole(store: Store) -> None:
    """Neither rows nor counts nor the cursor change."""
    knowledge = store.knowledge
    row = Row("profile", "search", b"{1}")
    with pytest.raises(StoreFencedError):
        await knowledge.commit(Commit(WORKSPACE, [row], counters={CALLS: 1}, moved=(3, 5)))
    assert await knowledge.read_cursors() == {}
    await put(knowledge, row, moved=(0, 5))
    for moved in ((0, 9), (4, 9), (6, 9)):
        with pytest.raises(StoreFencedError):
            await knowledge.commit(
                Commit(
                    WORKSPACE,
                    [replace(row, data=b"{2}"), Row("profile", "b")],
                    [Removal("profile", "search")],
                    {CALLS: 1},
                    moved,
                )
            )
    assert await knowledge.read_cursors() == {WORKSPACE: Cursor(5, 1)}
    assert await scan_all(knowledge, "profile") == [replace(row, serial=1)]
    assert await counted(store) == 0


async def test_a_former_holder_of_the_lease_is_refused(store: Store) -> None:
    """From when a later one has committed; a lease of another name is another matter."""
    knowledge, row = store.knowledge, Row("profile", "a", b"{}")
    former = await lease_of(store, "learning:default")
    await put(knowledge, row, lease=former)
    later = await lease_of(store, "learning:default", "host/2/b")
    nightly = await lease_of(store, "nightly")
    beaten = await store.leases.renew_lease(later)
    assert beaten is not None
    await put(knowledge, row, lease=later)
    await put(knowledge, row, lease=beaten)
    for moved in (None, (0, 5)):
        with pytest.raises(StoreFencedError):
            await put(knowledge, replace(row, key="b"), lease=former, moved=moved)
    assert await put(knowledge, row, lease=nightly) == 4
    assert await put(knowledge, row) == 5
    assert keys(await scan_all(knowledge, "profile")) == ["a"]


async def test_rows_are_removed(store: Store) -> None:
    """Before others are put, and with a rank only while they still have that one."""
    knowledge = store.knowledge
    await put(knowledge, *(Row("document", key, b"{}", rank=5) for key in "abcd"))
    commit = Commit(
        WORKSPACE,
        [Row("document", "b", b"{new}", rank=6)],
        [
            Removal("document", "a"),
            Removal("document", "b"),
            Removal("document", "c", rank=5),
            Removal("document", "d", rank=4),
            Removal("document", "x"),
        ],
    )
    await knowledge.commit(commit)
    assert await scan_all(knowledge, "document") == [
        Row("document", "b", b"{new}", rank=6, serial=2),
        Row("document", "d", b"{}", rank=5, serial=1),
    ]
    assert await knowledge.get(WORKSPACE, "document", ["a", "c"]) == []
    assert await knowledge.count_rows("document") == 2
    await put(knowledge, Row("document", "a", b"{again}"))
    assert keys(await scan_all(knowledge, "document")) == ["a", "b", "d"]


async def test_rows_are_scanned_in_three_orders(store: Store) -> None:
    """By key, by rank from the highest, and as they were written; of one kind, or of a tool."""
    knowledge = store.knowledge
    rows = [
        Row("document", "d", b"{}", SEARCH, rank=2),
        Row("document", "a", b"{}", LOCAL, rank=2),
        Row("document", "Z", b"{}", SEARCH, rank=9),
        Row("document", "ä", b"{}", rank=-1),
        Row("pattern", "p", b"{}", SEARCH, rank=1),
    ]
    for row in rows:
        await put(knowledge, row)
    await put(knowledge, Row("document", "e"), workspace="elsewhere")
    scan_rows = knowledge.scan_rows
    assert keys(await scan_rows(WORKSPACE, "document", 9)) == ["Z", "a", "d", "ä"]
    assert keys(await scan_rows(WORKSPACE, "document", 2, after="Z")) == ["a", "d"]
    assert keys(await scan_rows(WORKSPACE, "document", 3, by="rank")) == ["Z", "a", "d"]
    assert keys(await scan_rows(WORKSPACE, "document", 9, by="rank"))[3] == "ä"
    assert keys(await scan_rows(WORKSPACE, "document", 9, by="rank", tool=SEARCH)) == ["Z", "d"]
    assert keys(await scan_rows(WORKSPACE, "document", 9, tool=LOCAL)) == ["a"]
    assert keys(await scan_rows(WORKSPACE, "pattern", 9)) == ["p"]
    assert await scan_rows(WORKSPACE, None, 9, by="serial") == [
        replace(row, serial=serial) for serial, row in enumerate(rows, 1)
    ]
    assert keys(await scan_rows(WORKSPACE, "document", 2, by="serial", after=1)) == ["a", "Z"]
    assert keys(await scan_rows(WORKSPACE, None, 9, by="serial", after=3)) == ["ä", "p"]
    await put(knowledge, rows[0])
    assert keys(await scan_rows(WORKSPACE, None, 9, by="serial", after=4)) == ["p", "d"]
    assert await scan_rows(WORKSPACE, None, 9, by="serial", after=6) == []
    assert await knowledge.count_rows("document", WORKSPACE) == 4
    assert await knowledge.count_rows("document") == 5
    assert await knowledge.count_rows("document", "nowhere") == 0


async def test_what_was_written_since_a_commit_is_named(store: Store) -> None:
    """Of the kinds asked for, in no order; with a limit as many."""
    list_changed = store.knowledge.list_changed
    await put(store.knowledge, Row("document", "a"), Row("pattern", "p"), Row("health", "h"))
    await put(store.knowledge, Row("document", "b"), Row("document", "c"))
    await put(store.knowledge, Row("document", "x"), workspace="elsewhere")
    kinds = ["document", "pattern"]
    b, c = ("document", "b"), ("document", "c")
    assert sorted(await list_changed(WORKSPACE, kinds, 1, 9)) == [b, c]
    assert sorted(await list_changed(WORKSPACE, kinds, 0, 9)) == [
        ("document", "a"), b, c, ("pattern", "p"),
    ]  # fmt: skip
    assert len(await list_changed(WORKSPACE, kinds, 0, 2)) == 2
    assert await list_changed(WORKSPACE, ["health"], 1, 9) == []
    commit = Commit(WORKSPACE, removed=[Removal("document", "b")])
    await store.knowledge.commit(commit)
    assert await list_changed(WORKSPACE, kinds, 1, 9) == [c]


async def test_rows_of_one_commit_are_not_torn_apart(store: Store) -> None:
    """Who follows by serial numbers goes on behind the last that was seen, and misses none."""
    knowledge = store.knowledge
    for first in (0, 5, 10):
        names = [f"k-{number:02}" for number in range(first, first + 5)]
        kinds = ["document", "pattern", "rule", "document", "pattern"]
        await put(knowledge, *(Row(kind, key) for kind, key in zip(kinds, names, strict=True)))
    for limit in (1, 3, 5, 7):
        seen: list[Row] = []
        while page := await knowledge.scan_rows(
            WORKSPACE, None, limit, by="serial", after=seen[-1].serial if seen else 0
        ):
            seen += page
        assert sorted(keys(seen)) == [f"k-{number:02}" for number in range(15)]


async def test_large_rows_come_in_smaller_pages(store: Store) -> None:
    """Also many that one commit wrote, which together are more than a record of MongoDB holds."""
    rows = [Row("pattern", f"k-{n:02}", large(n).data, rank=n + 1) for n in range(18)]
    assert await put(store.knowledge, *rows) == 1
    assert len(await store.knowledge.list_changed(WORKSPACE, ["pattern"], 0, 100)) == 18
    page = await store.knowledge.scan_rows(WORKSPACE, "pattern", 100)
    assert 0 < len(page) < 18
    assert await scan_all(store.knowledge, "pattern") == [replace(row, serial=1) for row in rows]


async def test_commits_at_once_are_one_after_the_other(store: Store) -> None:
    """Each is applied; of those that move the cursor from one place, one is."""
    knowledge = store.knowledge
    serials = await asyncio.gather(
        *(
            knowledge.commit(Commit(WORKSPACE, [Row("rule", f"r-{n}")], counters={CALLS: 1}))
            for n in range(10)
        )
    )
    assert sorted(serials) == list(range(1, 11))
    assert await knowledge.count_rows("rule", WORKSPACE) == 10
    assert await counted(store) == 10

    async def learn(number: int) -> bool:
        try:
            await put(knowledge, Row("batch", f"b-{number}"), moved=(0, number))
        except StoreFencedError:
            return False
        return True

    outcomes = await asyncio.gather(*(learn(number) for number in range(1, 9)))
    assert sum(outcomes) == 1
    [row] = await scan_all(knowledge, "batch")
    assert row.key == f"b-{outcomes.index(True) + 1}"
    assert (await knowledge.read_cursors())[WORKSPACE].position == outcomes.index(True) + 1


async def test_what_was_committed_is_there_when_the_store_is_opened_again(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """With its cursor; a closed store says that it is closed."""
    async with closing(await open_store(tmp_path)) as store:
        knowledge = store.knowledge
        await knowledge.commit(
            Commit(WORKSPACE, [Row("rule", "a")], counters={CALLS: 2}, moved=(0, 4))
        )
    with pytest.raises(StoreUnavailableError, match="closed"):
        await knowledge.read_cursors()
    async with closing(await open_store(tmp_path)) as store:
        assert await store.knowledge.read_cursors() == {WORKSPACE: Cursor(4, 1)}
        assert await scan_all(store.knowledge, "rule") == [Row("rule", "a", serial=1)]
        assert await counted(store) == 2


rows = st.builds(
    Row,
    st.sampled_from(["rule", "pattern"]),
    st.sampled_from(["a", "b", "ab", "B", "\U0001f600"]),
    st.sampled_from([b"{}", b"{1}"]),
    st.sampled_from([None, SEARCH, LOCAL]),
    st.integers(-2, 2),
)
removals = st.builds(
    Removal,
    st.sampled_from(["rule", "pattern"]),
    st.sampled_from(["a", "b", "B"]),
    st.none() | st.integers(-2, 2),
)
commits = st.builds(
    Commit,
    st.sampled_from([WORKSPACE, "b"]),
    st.lists(rows, max_size=4, unique_by=lambda row: (row.kind, row.key)),
    st.lists(removals, max_size=3),
    st.dictionaries(
        st.builds(
            Counter,
            st.sampled_from(["x", "y"]),
            st.integers(1, 3),
            st.sampled_from([None, SEARCH, LOCAL]),
        ),
        st.integers(-2, 2),
    ),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(done=st.lists(commits, max_size=6))
async def test_commits_leave_what_doing_them_in_order_leaves(
    store: Store, done: list[Commit]
) -> None:
    """For any commits: the same rows, counts and serial numbers as of a plain dictionary."""
    example = next(examples)
    held: dict[tuple[str, str, str], Row] = {}
    counts: Tally[tuple[str, str, int]] = Tally()
    serials: Tally[str] = Tally()
    for commit in done:
        name = f"{commit.workspace}-{example}"
        serials[name] += 1
        for each in commit.removed:
            row = held.get((name, each.kind, each.key))
            if row is not None and each.rank in (None, row.rank):
                del held[name, each.kind, each.key]
        for row in commit.put:
            tool = row.tool and row.tool._replace(workspace=name)
            held[name, row.kind, row.key] = replace(row, tool=tool, serial=serials[name])
        for counter, number in commit.counters.items():
            counts[name, counter.what, counter.hour] += number
        assert await store.knowledge.commit(replace(commit, workspace=name)) == serials[name]
    cursors = await store.knowledge.read_cursors()
    for name, serial in serials.items():
        assert cursors[name] == Cursor(0, serial)
        for kind in ("rule", "pattern"):
            assert await scan_all(store.knowledge, kind, name) == [
                row for of, row in sorted(held.items()) if of[:2] == (name, kind)
            ]
        sums = await store.counters.sum_counters(
            name, ["x", "y"], since=0, until=9, by=("what", "hour")
        )
        assert {(name, each.what, each.hour): each.number for each in sums} == {
            of: number for of, number in counts.items() if of[0] == name and number
        }
