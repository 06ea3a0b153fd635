"""One process at a time, whatever clocks, pauses and stores do."""

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.leases import LeaseKeeper, holder_id, is_gone, retire
from mongo.errors import StoreUnavailableError
from mongo.records import Lease
from tests.ingest.lease_samples import Clock, Leases

TTL = 9.0
ELSEWHERE = "elsewhere~0/7/"


def keeper(store: Leases, clock: Clock, number: int = 1, **fields: Any) -> LeaseKeeper:
    """A process of another host."""
    holder = fields.pop("holder", f"{ELSEWHERE}{number}")
    return LeaseKeeper(store, "thing", ttl=TTL, holder=holder, clock=clock, **fields)


async def stop(*keepers: LeaseKeeper) -> None:
    """End their tasks; what they held stays as it is in the store."""
    for each in keepers:
        await each._stop_beating()


def a_dead_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    return child.pid


async def test_only_one_of_two_has_it_and_the_other_gets_it_when_it_is_given_back() -> None:
    """At once, without waiting for anything to run out; the token grows."""
    store, clock = Leases(), Clock()
    one, other = keeper(store, clock, 1), keeper(store, clock, 2)
    assert await one.try_take()
    assert not await other.try_take()
    assert (other.lease, other.is_held) == (None, False)
    await one.give_back()
    assert not one.is_held
    assert await other.try_take()
    assert other.lease.token == 2
    await one.give_back()  # it was given back already: the other one's is left alone
    assert other.is_held
    assert store.rows["thing"].held
    await stop(one, other)


async def test_a_holder_that_is_silent_for_the_ttl_is_followed() -> None:
    """Not before: a beat makes the contender wait anew."""
    store, clock = Leases(), Clock()
    one, other = keeper(store, clock, 1), keeper(store, clock, 2)
    assert await one.try_take()
    assert not await other.try_take()
    clock.now += TTL - 1
    assert await one.beat()
    assert not await other.try_take()
    assert other.is_held_elsewhere
    clock.now += TTL - 1
    assert not await other.try_take()
    clock.now += 1
    assert await other.try_take()
    assert not other.is_held_elsewhere
    assert not one.is_held
    assert not await one.beat()
    await stop(one, other)


async def test_a_holder_says_by_itself_that_it_lost_the_lease() -> None:
    """A store that cannot be reached for the ttl ends its belief, without anybody telling it."""
    store, clock = Leases(), Clock()
    one = keeper(store, clock)
    assert await one.try_take()
    store.is_away = True
    clock.now += TTL - 0.1
    with pytest.raises(StoreUnavailableError):
        await one.beat()
    assert one.is_held
    clock.now += 0.1
    assert not one.is_held
    assert one.lease is None
    store.is_away = False
    assert await one.try_take()
    assert one.lease.token == 2
    await stop(one)


@pytest.mark.parametrize("wall", [-3600.0, 3600.0])
async def test_a_wall_clock_that_steps_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, wall: float
) -> None:
    """Nobody asks it."""
    now = time.time()
    store, clock = Leases(), Clock()
    one, other = keeper(store, clock, 1), keeper(store, clock, 2)
    assert await one.try_take()
    assert not await other.try_take()
    monkeypatch.setattr(time, "time", lambda: now + wall)
    assert one.is_held
    assert not await other.try_take()
    assert await one.beat()
    await stop(one, other)


async def test_what_was_taken_by_an_answer_that_got_lost_is_taken_again_at_once() -> None:
    """The holder knows its own name; others have to wait for it."""
    store, clock = Leases(), Clock()
    one, other = keeper(store, clock, 1), keeper(store, clock, 2)
    store.answers_get_lost = True
    with pytest.raises(StoreUnavailableError):
        await one.try_take()
    assert not one.is_held
    store.answers_get_lost = False
    assert not await other.try_take()
    assert await one.try_take()
    await stop(one, other)


async def test_the_background_beats_and_outlives_a_short_absence_of_the_store() -> None:
    """With the true clock: longer than the ttl it stays held, and a contender sees the beats."""
    store = Leases()
    one = LeaseKeeper(store, "thing", ttl=1, holder=f"{ELSEWHERE}1")
    other = LeaseKeeper(store, "thing", ttl=1, holder=f"{ELSEWHERE}2")
    assert await one.try_take()
    assert not await other.wait(patience=1.5)
    assert other.is_held_elsewhere
    store.is_away = True
    await asyncio.sleep(0.1)
    store.is_away = False
    assert not await other.wait(patience=1.5)
    assert one.is_held
    await stop(one)  # as killed: no more beats
    assert await other.wait(patience=60)
    await other.close()
    assert not store.rows["thing"].held


async def test_a_beat_without_an_answer_does_not_hold_up_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that hangs costs one beat, not the lease."""
    store = Leases()
    answers = store.beat
    asked = 0

    async def beat(lease: Lease) -> Lease | None:
        nonlocal asked
        asked += 1
        if asked % 2:
            await asyncio.Event().wait()
        return await answers(lease)

    monkeypatch.setattr(store, "beat", beat)
    one = LeaseKeeper(store, "thing", ttl=0.9, holder=f"{ELSEWHERE}1")
    assert await one.try_take()
    async with asyncio.timeout(20):
        while store.rows["thing"].beat < 3:  # noqa: ASYNC110  # the store does not tell
            await asyncio.sleep(0.01)
    assert one.is_held
    await one.close()
    assert not store.rows["thing"].held


async def test_closing_frees_it_also_when_the_store_is_away() -> None:
    """Others of this host need not wait for who is no more."""
    store, clock = Leases(), Clock()
    one = LeaseKeeper(store, "thing", ttl=TTL, clock=clock)
    assert await one.try_take()
    store.is_away = True
    await one.close()
    store.is_away = False
    assert store.rows["thing"].held
    other = LeaseKeeper(store, "thing", ttl=TTL, clock=clock)
    assert await other.try_take()
    await other.close()


async def test_a_dead_process_of_this_host_is_followed_at_once() -> None:
    """One that lives is not, nor one of another host that happens to have a free number."""
    store, clock = Leases(), Clock()
    host = holder_id().split("/")[0]
    number = a_dead_process()
    for holder, is_free in (
        (f"{host}/{number}/abc", True),
        (f"{host}/{os.getppid()}/abc", False),
        (f"elsewhere/{number}/abc", False),
    ):
        store.rows["thing"] = Lease("thing", holder, token=4)
        other = keeper(store, clock, 2)
        assert await other.try_take() is is_free
        await stop(other)


def test_a_holder_of_our_own_number_that_is_not_ours_is_gone() -> None:
    """As in a container that was started again: the process has the same number each time."""
    mine = holder_id()
    host, pid, _ = mine.split("/")
    assert pid == str(os.getpid())
    assert not is_gone(mine)
    assert is_gone(f"{host}/{pid}/other")
    retire(mine)
    assert is_gone(mine)


@pytest.mark.parametrize("text", ["", "host", "host/1", "{host}/x/1", "{host}/-1/1", "{host}/0/1"])
def test_a_holder_that_cannot_be_read_may_live(text: str) -> None:
    """It is waited for."""
    host = holder_id().split("/")[0]
    assert not is_gone(text.format(host=host))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.floats(0.1, 1.5 * TTL)),
        st.tuples(st.just("take"), st.integers(0, 2)),
        st.tuples(st.just("beat"), st.integers(0, 2)),
        st.tuples(st.just("give"), st.integers(0, 2)),
        st.tuples(st.just("away"), st.booleans()),
        st.tuples(st.just("lost"), st.booleans()),
    ),
    max_size=60,
)


@given(STEPS)
async def test_never_two_believe_that_they_hold_it(steps: list[tuple[str, Any]]) -> None:
    """Whatever happens in whatever order, and what a former holder writes is refused."""
    store, clock = Leases(), Clock()
    keepers = [keeper(store, clock, number) for number in range(3)]
    former: list[Lease] = []
    for what, how in steps:
        try:
            match what:
                case "pass":
                    clock.now += how
                case "take":
                    await keepers[how].try_take()
                case "beat":
                    await keepers[how].beat()
                case "give":
                    await keepers[how].give_back()
                case "away":
                    store.is_away = how
                case _:
                    store.answers_get_lost = how
        except StoreUnavailableError:
            pass
        held = [each.lease for each in keepers if each.lease is not None]
        assert len(held) <= 1
        assert all(store.writes(lease) for lease in held)
        former.extend(held)
        newest = max((lease.token for lease in former), default=0)
        assert not any(store.writes(lease) for lease in former if lease.token < newest)
    await stop(*keepers)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.1, TTL)), max_size=40))
async def test_who_was_paused_is_stopped_by_the_token(moves: list[tuple[int, float]]) -> None:
    """A holder whose own clock stood still believes on: at most one of the believers can write."""
    store, clocks = Leases(), [Clock() for _ in range(3)]
    keepers = [keeper(store, clock, number) for number, clock in enumerate(clocks)]
    for awake, seconds in moves:
        clocks[awake].now += seconds  # the clocks of the others stand still
        await keepers[awake].try_take()
        believers = [each.lease for each in keepers if each.lease is not None]
        assert sum(store.writes(lease) for lease in believers) <= 1
    await stop(*keepers)
