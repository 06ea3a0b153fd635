"""What every store's counters promise: sums over hours, told apart by what is asked for."""

from collections import Counter as Tally
from collections.abc import Collection
from itertools import product

import pytest

from mongo.protocol import CounterDimension, Store
from mongo.records import Commit, Counter, CounterSum, ToolKey
from tests.mongo.store_samples import LOCAL, SEARCH, WORKSPACE

HOUR = 493_000
OTHER = ToolKey(WORKSPACE, "z-server", "add")
TOOLS = (None, SEARCH, LOCAL)
WHATS = ("calls", "failures:limit", "failures:type", "failuresX")

COUNTERS = {
    Counter(what, HOUR + hour, tool): 1 + number
    for number, (what, hour, tool) in enumerate(product(WHATS, range(3), TOOLS))
}


@pytest.fixture(autouse=True)
async def filled(store: Store) -> None:
    """Two commits that count the same, and one of another workspace."""
    for _ in range(2):
        await store.knowledge.commit(Commit(WORKSPACE, counters=COUNTERS))
    await store.knowledge.commit(Commit("elsewhere", counters={Counter("calls", HOUR): 1000}))


def expected(
    what: Collection[str], hours: range, by: Collection[str], tools: Collection[object] = TOOLS
) -> Tally[CounterSum]:
    """The sums, counted one by one."""
    groups: Tally[tuple[object, ...]] = Tally()
    for counter, number in COUNTERS.items():
        if counter.what in what and counter.hour in hours and counter.tool in tools:
            named = {"hour": counter.hour, "tool": counter.tool, "what": counter.what}
            groups[tuple(named[each] if each in by else None for each in named)] += 2 * number
    return Tally(CounterSum(number, *group) for group, number in groups.items())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "by",
    [(), ("hour",), ("tool",), ("what",), ("hour", "tool"), ("what", "hour", "tool")],
    ids=lambda by: "+".join(by) or "all",
)
async def test_sums_are_told_apart_by_what_is_asked_for(
    store: Store, by: tuple[CounterDimension, ...]
) -> None:
    """All in one by default."""
    sums = await store.counters.sum_counters(
        WORKSPACE, ["calls", "failures:type"], since=HOUR, until=HOUR + 2, by=by
    )
    assert Tally(sums) == expected(("calls", "failures:type"), range(HOUR, HOUR + 3), by)


async def test_hours_are_bounded_on_both_sides(store: Store) -> None:
    """Both belong to what is asked for."""
    for since, until in ((HOUR, HOUR), (HOUR + 1, HOUR + 9), (0, HOUR)):
        [found] = await store.counters.sum_counters(WORKSPACE, ["calls"], since=since, until=until)
        assert [found] == list(expected(["calls"], range(since, until + 1), ()))
    assert (
        await store.counters.sum_counters(WORKSPACE, ["calls"], since=HOUR + 3, until=HOUR + 9)
        == []
    )


async def test_a_star_stands_for_all_that_begin_so(store: Store) -> None:
    """Beside plain names."""
    sums = await store.counters.sum_counters(
        WORKSPACE, ["failures:*", "calls"], since=0, until=HOUR + 9, by=["what"]
    )
    assert Tally(sums) == expected(WHATS[:3], range(HOUR, HOUR + 3), ("what",))


async def test_sums_of_one_tool(store: Store) -> None:
    """A tool without a server is another one than that of a server."""
    for tool in (SEARCH, LOCAL):
        sums = await store.counters.sum_counters(
            WORKSPACE, ["calls"], since=0, until=HOUR + 9, by=("hour", "tool"), tools=[tool]
        )
        assert Tally(sums) == expected(["calls"], range(HOUR, HOUR + 3), ("hour", "tool"), [tool])


async def test_what_counted_nothing_is_left_out(store: Store) -> None:
    """Never counted, or counted back to nothing."""
    back = {counter: -2 * number for counter, number in COUNTERS.items() if counter.tool == SEARCH}
    await store.knowledge.commit(Commit(WORKSPACE, counters=back))
    of = store.counters.sum_counters
    assert await of(WORKSPACE, ["none"], since=0, until=HOUR + 9) == []
    assert await of(WORKSPACE, [], since=0, until=HOUR + 9) == []
    sums = await of(WORKSPACE, ["calls"], since=0, until=HOUR + 9, by=["tool"])
    assert {each.tool for each in sums} == {None, LOCAL}


async def test_top_tools_are_those_that_counted_most(store: Store) -> None:
    """Tools alone, the most first, of equal ones those without a server last."""
    more = {Counter("calls", HOUR, SEARCH): 5, Counter("calls", HOUR, OTHER): 5}
    await store.knowledge.commit(Commit("w", counters=more | {Counter("calls", HOUR): 99}))
    await store.knowledge.commit(Commit("w", counters={Counter("calls", HOUR + 1, LOCAL): 5}))
    await store.knowledge.commit(Commit("w", counters={Counter("errors", HOUR, LOCAL): 1}))

    async def top(*what: str, until: int = HOUR + 1, limit: int = 9) -> list[ToolKey]:
        return await store.counters.top_tools("w", what, since=HOUR, until=until, limit=limit)

    search, other, local = (each._replace(workspace="w") for each in (SEARCH, OTHER, LOCAL))
    assert await top("calls", "errors") == [local, search, other]
    assert await top("calls") == [search, other, local]
    assert await top("calls", limit=1) == [search]
    assert await top("calls", until=HOUR) == [search, other]
    assert await top() == []
