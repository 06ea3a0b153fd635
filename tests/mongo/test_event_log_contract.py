"""What every event log promises: one order, each event once, durable, and commands that hold."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mongo.errors import StateConflictError, StoreUnavailableError
from mongo.protocol import Store
from mongo.records import EPOCH, Appended, Event, StateRow, ToolKey
from tests.mongo.conftest import OpenStore
from tests.mongo.store_samples import (
    LOCAL,
    SCHEMA,
    SCHEMA_HASH,
    SEARCH,
    WORKSPACE,
    closing,
    ids,
    large,
    make_command,
    make_event,
    make_events,
    read_all,
    returned,
    stored,
)


async def test_events_come_back_in_their_order(store: Store) -> None:
    """By pages of any size, whole, with growing positions from 1 and times that never go back."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    events = [
        make_event(1),
        make_event(2, "mark", tool=None, session=None),
        make_event(3, "suggestion", tool=LOCAL, with_schema=True),
        make_event(4, text="ä\u2028\x00 \U0001f600"),
    ]
    assert await store.events.append(WORKSPACE, events[:3]) == ["accepted"] * 3
    assert await store.events.append(WORKSPACE, events[3:]) == ["accepted"]
    for limit in (1, 3, 100):
        found = await read_all(store.events, limit=limit)
        assert returned(found) == stored(events)
        positions = [event.position for event in found]
        assert positions[0] == 1
        assert positions == sorted(set(positions))
        times = [event.received_at for event in found]
        assert times == sorted(times)
        assert before < times[0] <= times[-1] <= datetime.now(UTC) + timedelta(seconds=1)
    assert await store.events.read_after(WORKSPACE, found[-1].position, 10) == []
    assert await store.events.read_after("nowhere", 0, 10) == []


async def test_an_event_that_is_imported_keeps_its_time(store: Store) -> None:
    """Unless the log is later already: its times never go back."""
    old = datetime(2026, 2, 20, 14, 30, 0, 123457, tzinfo=UTC)
    times = [old, old - timedelta(days=1), old + timedelta(days=1), EPOCH, old]
    events = [replace(make_event(n), received_at=time) for n, time in enumerate(times)]
    await store.events.append(WORKSPACE, events[:2])
    await store.events.append(WORKSPACE, events[2:])
    found = [event.received_at for event in await read_all(store.events)]
    assert found[:3] == [old, old, old + timedelta(days=1)]
    assert found[3] == found[4] > datetime.now(UTC) - timedelta(minutes=1)


async def test_an_event_is_stored_once(store: Store) -> None:
    """Sent again it is a duplicate; with other content a conflict; kinds have ids of their own."""
    first, other = make_event(1), make_event(1, text="other")
    assert await store.events.append(WORKSPACE, [first]) == ["accepted"]
    assert await store.events.append(WORKSPACE, [other, first, make_event(2)]) == [
        "conflict", "duplicate", "accepted",
    ]  # fmt: skip
    again = [make_event(3), make_event(3, text="other"), make_event(3)]
    assert await store.events.append(WORKSPACE, again) == ["accepted", "conflict", "duplicate"]
    assert await store.events.append(WORKSPACE, [make_event(1, "mark")]) == ["accepted"]
    assert await store.events.append("elsewhere", [other]) == ["accepted"]
    assert await store.events.append(WORKSPACE, []) == []
    assert returned(await read_all(store.events)) == stored(
        [first, make_event(2), make_event(3), make_event(1, "mark")]
    )
    assert ids(await read_all(store.events, "elsewhere")) == ["id-1"]


async def test_an_event_that_many_send_at_once_is_accepted_once(store: Store) -> None:
    """One caller is told that it is new, all others that it is there."""
    verdicts = await asyncio.gather(
        *(store.events.append(WORKSPACE, [make_event(1), make_event(n)]) for n in range(2, 22))
    )
    assert Counter(first for first, _ in verdicts) == {"accepted": 1, "duplicate": 19}
    assert {second for _, second in verdicts} == {"accepted"}
    assert sorted(ids(await read_all(store.events))) == sorted(ids(make_events(21, first=1)))


async def test_a_follower_misses_nothing(store: Store) -> None:
    """It reads on while many append, some of it twice: every event once, in one order."""

    async def write(writer: int) -> None:
        for turn in range(10):
            shared = make_event(turn)
            await store.events.append(WORKSPACE, [shared, make_event(1000 * writer + turn)])

    seen: list[Event] = []
    writers = [asyncio.create_task(write(writer)) for writer in range(1, 9)]
    while not all(writer.done() for writer in writers):
        seen += await store.events.read_after(WORKSPACE, seen[-1].position if seen else 0, 7)
    await asyncio.gather(*writers)
    while page := await store.events.read_after(WORKSPACE, seen[-1].position, 7):
        seen += page
    assert len(seen) == 90 == len(set(ids(seen)))
    assert seen == await read_all(store.events)


async def test_large_events_come_in_smaller_pages(store: Store) -> None:
    """Fewer than were asked for, and none is left out."""
    events = [large(number) for number in range(18)]
    for event in events:
        await store.events.append(WORKSPACE, [event])
    page = await store.events.read_after(WORKSPACE, 0, 100)
    assert 0 < len(page) < 18
    assert ids(await read_all(store.events)) == ids(events)


async def test_events_are_found_by_their_ids(store: Store) -> None:
    """In the order of the ids; those of other kinds and workspaces are not."""
    await store.events.append(WORKSPACE, [*make_events(5), make_event(7, "mark")])
    await store.events.append("elsewhere", [make_event(8)])
    wanted = ["id-3", "id-7", "id-8", "id-0", "nothing"]
    found = await store.events.find_events(WORKSPACE, "execution", wanted)
    assert returned(found) == stored([make_event(3), make_event(0)])
    assert ids(await store.events.find_events(WORKSPACE, "mark", wanted)) == ["id-7"]
    assert await store.events.find_events(WORKSPACE, "execution", []) == []


async def test_the_latest_of_a_kind_come_newest_first(store: Store) -> None:
    """Of all, of a tool, of sessions (so many of each), and below a position."""
    for number in range(12):
        event = make_event(
            number,
            tool=(SEARCH, LOCAL, None)[number % 3],
            session=None if number == 11 else f"s-{number % 2}",
        )
        await store.events.append(WORKSPACE, [event, make_event(number, "mark")])
    of = store.events.latest_events
    assert ids(await of(WORKSPACE, "execution", 3)) == ["id-11", "id-10", "id-9"]
    assert ids(await of(WORKSPACE, "execution", 2, tool=SEARCH)) == ["id-9", "id-6"]
    assert ids(await of(WORKSPACE, "execution", 9, tool=LOCAL)) == [
        "id-10", "id-7", "id-4", "id-1",
    ]  # fmt: skip
    [ninth] = await store.events.find_events(WORKSPACE, "execution", ["id-9"])
    assert ids(await of(WORKSPACE, "execution", 2, before=ninth.position)) == ["id-8", "id-7"]
    assert ids(
        await of(WORKSPACE, "execution", 2, sessions=["s-0", "s-1", "s-9"], before=ninth.position)
    ) == ["id-8", "id-7", "id-6", "id-5"]
    assert ids(await of(WORKSPACE, "execution", 1, sessions=["s-0", "s-1"], tool=SEARCH)) == [
        "id-9", "id-6",
    ]  # fmt: skip
    assert await of(WORKSPACE, "execution", 5, sessions=[]) == []
    assert await of(WORKSPACE, "outcome", 5) == []
    assert await of("elsewhere", "execution", 5) == []
    assert len(await of(WORKSPACE, "mark", 100)) == 12


async def test_the_newest_event_is_of_any_kind(store: Store) -> None:
    """Of its workspace; what is above a position is found among few events, and among many."""
    log = store.events
    assert await log.find_newest(WORKSPACE) == 0
    await log.append(WORKSPACE, [make_event(1), make_event(2, "mark")])
    await log.append("elsewhere", [make_event(n) for n in range(9)])
    latest = (await log.latest_events(WORKSPACE, "mark", 1))[0].position
    assert await log.find_newest(WORKSPACE) == latest
    await log.append(WORKSPACE, [make_event(n, tool=SEARCH) for n in range(10, 320)])
    for above in (latest, (await read_all(log))[-5].position):
        found = await log.latest_events(WORKSPACE, "execution", 2, tool=SEARCH, after=above)
        assert ids(found) == ["id-319", "id-318"]
    assert await log.find_newest(WORKSPACE) == found[0].position


async def test_an_input_schema_is_kept_once_by_its_hash(store: Store) -> None:
    """Unknown ones are left out; a workspace has its own."""
    await store.events.append(WORKSPACE, [make_event(1, with_schema=True), make_event(2)])
    await store.events.append(WORKSPACE, [make_event(3, with_schema=True)])
    found = await store.events.read_schemas(WORKSPACE, [SCHEMA_HASH, "unknown"])
    assert found == {SCHEMA_HASH: SCHEMA}
    assert await store.events.read_schemas("elsewhere", [SCHEMA_HASH]) == {}
    assert await store.events.read_schemas(WORKSPACE, []) == {}


async def test_a_command_leaves_its_state_with_its_event(store: Store) -> None:
    """A row says which event left it; rows come by key, of one kind and workspace."""
    log = store.events
    for number, key in enumerate("bac"):
        event, row = make_command(number, key)
        assert await log.append(WORKSPACE, [event], [row]) == ["accepted"]
    await log.append(WORKSPACE, [make_event(9)])
    events = await read_all(log)
    found = await log.read_state(WORKSPACE, "tool")
    assert [(row.key, row.position, row.data) for row in found] == [
        (key, events[number].position, events[number].data)
        for key, number in (("a", 1), ("b", 0), ("c", 2))
    ]
    assert [row.key for row in await log.read_state(WORKSPACE, "tool", ["c", "x", "a"])] == [
        "a",
        "c",
    ]
    for limit, keys in ((0, []), (2, ["a", "b"]), (9, ["a", "b", "c"])):
        assert [row.key for row in await log.read_state(WORKSPACE, "tool", limit=limit)] == keys
    assert await log.read_state(WORKSPACE, "promotion") == []
    assert await log.read_state("elsewhere", "tool") == []
    assert await log.count_state(WORKSPACE, "tool") == 3
    await log.append(WORKSPACE, [make_event(10, "tool")], [StateRow("tool", "a", None)])
    assert [row.key for row in await log.read_state(WORKSPACE, "tool")] == ["b", "c"]
    assert [row.key for row in await log.read_state(WORKSPACE, "tool", limit=1)] == ["b"]
    assert await log.count_state(WORKSPACE, "tool") == 2
    assert await log.count_state("elsewhere", "tool") == 0


async def test_a_command_that_expects_what_is_not_there_changes_nothing(store: Store) -> None:
    """Neither the log nor any of its rows; what it expected rightly it changes."""
    log = store.events
    event, row = make_command(1, "a", expected=0)
    await log.append(WORKSPACE, [event], [row])
    [held] = await log.read_state(WORKSPACE, "tool")
    for key, expected in (("a", 0), ("a", held.position + 1), ("b", held.position)):
        event, row = make_command(2, key, expected=expected)
        rows = [StateRow("tool", "other", b"{}"), row]
        with pytest.raises(StateConflictError):
            await log.append(WORKSPACE, [event], rows)
    assert await log.read_state(WORKSPACE, "tool") == [held]
    assert len(await read_all(log)) == 1
    event, row = make_command(3, "a", expected=held.position)
    await log.append(WORKSPACE, [event], [replace(row, data=None), StateRow("tool", "b", b"{}", 0)])
    assert [row.key for row in await log.read_state(WORKSPACE, "tool")] == ["b"]
    event, row = make_command(4, "a", expected=0)  # what was removed is not there
    assert await log.append(WORKSPACE, [event], [row]) == ["accepted"]


async def test_of_commands_at_once_that_expect_the_same_one_succeeds(store: Store) -> None:
    """The others are told so, and their events are not in the log."""

    async def command(number: int) -> bool:
        event, row = make_command(number, "a", expected=0)
        try:
            await store.events.append(WORKSPACE, [event], [row])
        except StateConflictError:
            return False
        return True

    outcomes = await asyncio.gather(*(command(number) for number in range(12)))
    assert sum(outcomes) == 1
    [event] = await read_all(store.events)
    [row] = await store.events.read_state(WORKSPACE, "tool")
    assert (row.data, row.position) == (event.data, event.position)
    assert event.id == f"id-{outcomes.index(True)}"


async def test_commands_at_once_on_different_keys_all_succeed(store: Store) -> None:
    """Beside what is recorded."""
    commands = [make_command(number, f"k-{number:02}", expected=0) for number in range(12)]
    await asyncio.gather(
        *(store.events.append(WORKSPACE, [event], [row]) for event, row in commands),
        *(store.events.append(WORKSPACE, [make_event(100 + n)]) for n in range(12)),
    )
    by_id = {event.id: event for event in await read_all(store.events)}
    assert len(by_id) == 24
    for number, row in enumerate(await store.events.read_state(WORKSPACE, "tool")):
        assert (row.key, row.position) == (f"k-{number:02}", by_id[f"id-{number}"].position)


async def test_heads_say_how_far_each_log_goes(store: Store) -> None:
    """The position of its last event, and how many there are of each kind."""
    assert await store.events.read_heads() == {}
    await store.events.append(WORKSPACE, [*make_events(3), make_event(1, "mark")])
    await store.events.append(WORKSPACE, make_events(4))
    event, row = make_command(1, "a")
    await store.events.append("elsewhere", [event], [row])
    for _ in range(2):
        heads = await store.events.read_heads()
        assert sorted(heads) == [WORKSPACE, "elsewhere"]
        assert dict(heads[WORKSPACE].counts) == {"execution": 4, "mark": 1}
        assert dict(heads["elsewhere"].counts) == {"tool": 1}
        assert heads[WORKSPACE].position == (await read_all(store.events))[-1].position
        assert heads["elsewhere"].position == 1
        assert (heads[WORKSPACE].commands, heads["elsewhere"].commands) == (0, 1)


async def test_the_oldest_events_are_erased(store: Store) -> None:
    """Up to a position, a moment and a limit; state, positions and the rest stay."""
    log = store.events
    event, row = make_command(0, "a")
    await log.append(WORKSPACE, [event], [row])
    await log.append(WORKSPACE, make_events(5))
    await log.append("elsewhere", make_events(2))
    events = await read_all(log)
    later = datetime.now(UTC) + timedelta(days=1)
    assert await log.erase_events(WORKSPACE, 100, events[0].received_at, 100) == 0
    assert await log.erase_events(WORKSPACE, events[3].position, later, 3) == 3
    assert await read_all(log) == events[3:]
    counts = (await log.read_heads())[WORKSPACE].counts
    assert (counts["execution"], counts.get("tool", 0)) == (3, 0)
    assert await log.erase_events(WORKSPACE, events[3].position, later, 100) == 1
    assert await log.erase_events(WORKSPACE, events[3].position, later, 100) == 0
    assert await log.find_events(WORKSPACE, "execution", ["id-0", "id-3"]) == [events[4]]
    assert (await log.read_heads())[WORKSPACE].position == events[-1].position
    assert await log.erase_events(WORKSPACE, events[-1].position, later, 100) == 2
    assert await read_all(log) == []
    assert [each.key for each in await log.read_state(WORKSPACE, "tool")] == ["a"]
    await log.append(WORKSPACE, [make_event(9)])
    [last] = await log.read_after(WORKSPACE, events[-1].position, 10)
    assert last.id == "id-9"
    assert (await log.read_heads())[WORKSPACE].position == last.position
    assert len(await read_all(log, "elsewhere")) == 2


async def test_events_of_positions_are_forgotten_wherever_they_stand(store: Store) -> None:
    """The others keep their order, and are read on past the gap at once; none is counted twice.

    An input schema stays as long as an event names it, and can come again.
    """
    log = store.events
    await log.append(WORKSPACE, [make_event(number, with_schema=number > 6) for number in range(9)])
    events = await read_all(log)
    gone = [events[at].position for at in (0, 3, 4, 7)]
    assert await log.forget_events(WORKSPACE, gone) == 4
    assert await log.forget_events(WORKSPACE, gone) == 0
    left = [each for each in events if each.position not in gone]
    assert await read_all(log) == left
    assert sum((await log.read_heads())[WORKSPACE].counts.values()) == 5
    assert await log.read_schemas(WORKSPACE, [SCHEMA_HASH])
    await log.forget_events(WORKSPACE, [events[8].position])
    assert not await log.read_schemas(WORKSPACE, [SCHEMA_HASH])
    await log.append(WORKSPACE, [make_event(3, with_schema=True)])
    assert await log.read_schemas(WORKSPACE, [SCHEMA_HASH])
    assert (await read_all(log))[-1].position > events[-1].position
    assert await log.append(WORKSPACE, [], [StateRow("tool", "a", b"{}")]) == []
    assert [row.key for row in await log.read_state(WORKSPACE, "tool")] == ["a"]


async def test_a_store_that_is_opened_again_has_everything(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """And goes on where it was; a closed one says that it is, and closing twice does nothing."""
    event, row = make_command(1, "a")
    async with closing(await open_store(tmp_path)) as store:
        await store.events.append(WORKSPACE, make_events(3))
        await store.events.append(WORKSPACE, [event], [row])
        before = await read_all(store.events), await store.events.read_state(WORKSPACE, "tool")
    await store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.events.append(WORKSPACE, [make_event(9)])
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.events.read_heads()
    async with closing(await open_store(tmp_path)) as store:
        assert (
            await read_all(store.events),
            await store.events.read_state(WORKSPACE, "tool"),
        ) == before
        assert await store.events.append(WORKSPACE, [make_event(2), make_event(4)]) == [
            "duplicate", "accepted",
        ]  # fmt: skip
        assert (await read_all(store.events))[-1].position > before[0][-1].position


on_every_store = settings(
    max_examples=25,
    deadline=None,
    # One store for all examples, each of which has workspaces of its own.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
examples = count()

# Few ids, contents and workspaces, so that duplicates and conflicts are common.
few_events = st.lists(
    st.builds(make_event, st.integers(0, 5), text=st.sampled_from(["", "x"])), max_size=6
)
batches = st.lists(st.tuples(st.sampled_from(["a", "b"]), few_events), max_size=6)


def expected_verdicts(known: dict[str, str], events: list[Event]) -> list[Appended]:
    """What one call after the other is answered."""
    verdicts: list[Appended] = []
    for event in events:
        if event.id not in known:
            known[event.id] = event.content_hash
            verdicts.append("accepted")
        else:
            verdicts.append("duplicate" if known[event.id] == event.content_hash else "conflict")
    return verdicts


@on_every_store
@given(batches=batches, again=st.permutations(range(6)))
async def test_verdicts_follow_the_order_of_arrival(
    store: Store, batches: list[tuple[str, list[Event]]], again: list[int]
) -> None:
    """For any batches; sent again in any order and at once, they change and accept nothing."""
    example = next(examples)
    calls = [(f"{name}-{example}", events) for name, events in batches]
    known: dict[str, dict[str, str]] = {f"{name}-{example}": {} for name in "ab"}
    for workspace, events in calls:
        verdicts = await store.events.append(workspace, events)
        assert verdicts == expected_verdicts(known[workspace], events)
    before = [await read_all(store.events, name) for name in known]
    repeated = await asyncio.gather(
        *(store.events.append(*calls[index]) for index in again if index < len(calls))
    )
    assert not any("accepted" in each for each in repeated)
    assert [await read_all(store.events, name) for name in known] == before
    assert [{e.id: e.content_hash for e in events} for events in before] == list(known.values())
    heads = await store.events.read_heads()
    for name, held in known.items():
        assert (name in heads) == bool(held)
        assert not held or heads[name].counts["execution"] == len(held)


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20
)
any_event = st.builds(
    Event,
    st.sampled_from(["execution", "mark", "review"]),
    names,
    st.binary(max_size=50).map(lambda tail: b"{" + tail),
    st.none() | st.builds(ToolKey, st.just("w"), st.none() | names, names),
    st.none() | names,
    names,
    names,
)


@on_every_store
@given(events=st.lists(any_event, max_size=5, unique_by=lambda event: (event.kind, event.id)))
async def test_any_event_comes_back_as_it_was(store: Store, events: list[Event]) -> None:
    """By every way of reading it."""
    name = f"w-{next(examples)}"
    events = [replace(e, tool=e.tool and e.tool._replace(workspace=name)) for e in events]
    await store.events.append(name, events)
    read = await read_all(store.events, name)
    assert returned(read) == stored(events, name)
    for event in read:
        assert await store.events.find_events(name, event.kind, [event.id]) == [event]
        assert event in await store.events.latest_events(name, event.kind, 9, tool=event.tool)
        at = event.position
        found = await store.events.latest_events(name, event.kind, 9, after=at - 1, before=at + 1)
        assert found == [event]
        if event.session is not None:
            assert event in await store.events.latest_events(
                name, event.kind, 9, sessions=[event.session]
            )
